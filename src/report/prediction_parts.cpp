// SPDX-License-Identifier: Apache-2.0
#include "prediction_parts.hpp"

#include <chokepoint/base/units.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>

namespace chokepoint::report {

using simulate::Prediction;

namespace {

constexpr int kTitleColumns = 13;
constexpr std::size_t kChokePointsShown = 4;

/// Cells of a bar that ends the line after `taken` columns.
int bar_cells(const Style& style, int taken) { return std::clamp(style.width - taken, 8, 32); }

std::string relative_change(const Prediction& p, double step_time_s) {
  return fmt::format("{:+.0f} %", 100 * (step_time_s / p.step_time_s - 1));
}

}  // namespace

int band_percent(const Prediction& p) {
  return static_cast<int>(std::lround(100 * (p.step_time_high_s / p.step_time_s - 1)));
}

std::string titled(std::string_view title, std::string_view text, const Style& style) {
  std::string out;
  std::string_view head = title;
  for (const std::string& line : wrapped(text, style.width - kTitleColumns - 1)) {
    out += fmt::format("{} {}\n", pad_right(head, kTitleColumns), line);
    head = "";
  }
  return out;
}

std::string choke_text(const Prediction& p, const Style& style) {
  if (p.choke_points.empty()) {
    return titled(style.say("Choke point"), style.say("none stands out: no single better resource shortens the step by more than 0.2 %"), style);
  }
  std::string out;
  const std::size_t shown = std::min(kChokePointsShown, p.choke_points.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const simulate::ChokePoint& c = p.choke_points[i];
    // What saves less than half a per cent is no answer, unless it is the only one.
    if (i > 0 && c.step_time_if_changed_s > 0.995 * p.step_time_s) break;
    const std::string text = style.say("{1}: {2}, {3} with {4}", {style.say(c.where), relative_change(p, c.step_time_if_changed_s),
                                                            format_duration(c.step_time_if_changed_s), style.say(c.change)});
    std::string lines = titled(i == 0 ? style.say("Choke point") : i == 1 ? style.say("  then") : "", text, style);
    if (i == 0) lines = style.bold(lines.substr(0, lines.size() - 1)) + "\n";
    out += lines;
  }
  return out;
}

std::string ladder_text(const Prediction& p, double peak_flops_per_s, const Style& style) {
  std::string out = style.say("From peak to useful work") + "\n";
  double before = 1.0;
  for (std::size_t i = 0; i < p.ladder.size(); ++i) {
    const simulate::Rung& rung = p.ladder[i];
    if (i > 0 && before - rung.fraction < 0.0005) continue;
    const std::string label = i == 0 ? style.say("peak {}", {format_flop_rate(peak_flops_per_s)}) : style.say(rung.name);
    const std::string loss = i == 0 ? "" : fmt::format("{:>6.1f}", -100 * (before - rung.fraction));
    const std::string filled = style.bars ? style.cyan(bar(rung.fraction, bar_cells(style, 56))) : "";
    out += fmt::format("{:>6.1f} %  {} {}  {}", 100 * rung.fraction, pad_right(label, 36), pad_right(loss, 6), filled);
    out.erase(out.find_last_not_of(' ') + 1);
    out += "\n";
    before = rung.fraction;
  }
  return out;
}

std::string memory_text(const Prediction& p, const Style& style) {
  std::string out = style.say("Memory of the fullest rank") + "\n";
  for (const parallel::MemoryPart& part : p.memory.parts) {
    if (part.bytes < 1e6) continue;
    out += fmt::format("  {} {:>8.2f} GiB\n", pad_right(style.say(part.name), 36), part.bytes / kGiB);
  }
  out += fmt::format("  {} {:>8.2f} GiB\n", pad_right(style.say("reserved"), 36), p.memory.reserved_bytes / kGiB);
  // What the allocator gives back when the device is full, and what fragmentation costs it then, part the two figures.
  const double margin = p.memory.capacity_bytes - p.memory.needed_bytes;
  const parallel::Verdict verdict = p.memory.verdict();
  const std::string word = style.say(parallel::name(verdict));
  const std::string shown = verdict == parallel::Verdict::kFits    ? style.green(word)
                            : verdict == parallel::Verdict::kTight ? style.yellow(word)
                                                                   : style.red(word);
  out += fmt::format("  {} {:>8.2f} GiB {} {:.1f}: {}, {:.1f} GiB {}{}\n", pad_right(style.say("needed on a full device"), 36),
                     p.memory.needed_bytes / kGiB, style.say("of"), p.memory.capacity_bytes / kGiB, shown, std::abs(margin) / kGiB,
                     style.say(margin < 0 ? "too much" : "free"), p.strategy.pipeline > 1 ? style.say(" (stage {})", {std::to_string(p.memory.stage)}) : "");
  return out;
}

std::string assumptions_text(const std::vector<Note>& notes, const Style& style) {
  if (notes.empty()) return "";
  std::string out = "\n" + style.say("Assumed ({})", {std::to_string(notes.size())}) + "\n";
  for (const Note& note : notes) {
    std::string text = style.say(note.text);
    if (!note.pos.file.empty()) {
      const std::string file = std::filesystem::path(note.pos.file).lexically_normal().string();
      text += note.pos.line > 0 ? fmt::format(" ({}:{})", file, note.pos.line) : fmt::format(" ({})", file);
    }
    std::string_view head = "  - ";
    for (const std::string& line : wrapped(text, style.width - 4)) {
      out += style.dim(fmt::format("{}{}", head, line)) + "\n";
      head = "    ";
    }
  }
  return out;
}

}  // namespace chokepoint::report
