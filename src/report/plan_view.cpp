// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/units.hpp>
#include <chokepoint/report/predict_view.hpp>

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "prediction_parts.hpp"

namespace chokepoint::report {

using simulate::Bill;
using simulate::Prediction;

namespace {

/// Below this width the table leaves out MFU and the bar.
constexpr int kNarrow = 110;

int title_columns(const plan::Plan& plan) {
  int columns = 8;
  for (const Prediction& p : plan.candidates) columns = std::max(columns, display_width(parallel::title(p.strategy)));
  return columns;
}

std::string candidate_line(const Prediction& p, int columns, const Style& style) {
  const double used = p.memory.reserved_bytes;
  const double capacity = p.memory.capacity_bytes;
  std::string line = fmt::format("{} {} {}", pad_right(parallel::title(p.strategy), columns),
                                 pad_left(fmt::format("{} \u00b1{:>2} %", format_duration(p.step_time_s), band_percent(p)), 13),
                                 pad_left(format_count(p.tokens_per_s_per_gpu), 9));
  if (style.width < kNarrow) return line + fmt::format("  {:.0f}/{:.0f} GiB", used / kGiB, capacity / kGiB);
  line += fmt::format("  {:.3f}  {:>5.1f}/{:.1f} GiB", p.mfu, used / kGiB, capacity / kGiB);
  return style.bars ? line + " " + bar(capacity > 0 ? used / capacity : 0, 6) : line;
}

std::string candidate_table(const plan::Plan& plan, const Style& style) {
  const int columns = title_columns(plan);
  std::string out = fmt::format(" #  {} {} {}", pad_right(style.say("strategy"), columns), pad_left(style.say("step"), 13), pad_left(style.say("tok/s/GPU"), 9));
  out += (style.width < kNarrow ? "  " : "  MFU    ") + style.say("memory") + "\n";
  bool ties = false;
  for (std::size_t i = 0; i < plan.candidates.size(); ++i) {
    const bool tie = i > 0 && plan::tied(plan.candidates[0], plan.candidates[i]);
    ties = ties || tie;
    const std::string line = fmt::format("{:>2}{} {}", i + 1, tie ? "=" : " ", candidate_line(plan.candidates[i], columns, style));
    out += (i == 0 ? style.bold(line) : line) + "\n";
  }
  if (ties) out += style.dim("    = " + style.say("cannot be told apart from the best")) + "\n";
  return out + style.dim("    " + style.say("best of all {} that fit, of {} legal ones", {format_count(static_cast<double>(plan.evaluated)),
                                                                                    format_count(static_cast<double>(plan.enumerated))})) + "\n";
}

std::string losers_text(const plan::Plan& plan, const Style& style) {
  if (plan.why_not.empty()) return "";
  const double best = plan.candidates.front().step_time_s;
  std::string out = "\n";
  std::string head = style.say("Why not");
  for (const plan::Loser& l : plan.why_not) {
    const std::string text = l.strategy ? fmt::format("{:.2f}x  {}: {}", l.step_time_s / best, parallel::title(*l.strategy), style.say(l.reason))
                                        : fmt::format("{} {}", style.say(l.family), style.say(l.reason));
    out += titled(head, text, style);
    head = "";
  }
  return out;
}

std::string nothing_fits(const plan::Plan& plan, const Style& style) {
  std::string out = style.red(style.say("Nothing fits.")) + "\n";
  if (plan.closest) {
    out += style.say("Closest: {} needs {} of {} usable", {parallel::title(plan.closest->strategy), format_bytes(plan.closest->memory.needed_bytes),
                                                           format_bytes(plan.closest->memory.capacity_bytes)}) + "\n\n";
    out += memory_text(*plan.closest, style);
  }
  out += "\n";
  std::string head = style.say("It would fit");
  for (const std::string& way : plan.would_fit) {
    out += titled(head, style.say(way), style);
    head = "";
  }
  return out;
}

}  // namespace

std::string plan_text(const parallel::Job& job, const plan::Plan& plan, const Style& style, bool quiet) {
  std::string out = quiet ? "" : job_heading(job, style.words == nullptr ? Words::english() : *style.words) + "\n";
  if (plan.candidates.empty()) return out + nothing_fits(plan, style);
  out += candidate_table(plan, style);
  if (quiet) return out;
  const Prediction& best = plan.candidates.front();
  out += "\n" + choke_text(best, style);
  out += losers_text(plan, style);
  out += "\n" + ladder_text(best, job.accelerator.peak(job.dtype) * job.gpus, style);
  out += assumptions_text(best.assumptions, style);
  return out + "\n" + style.say("Explain the best:") + fmt::format("\n  chokepoint predict JOB --strategy \"{}\"\n", parallel::to_text(best.strategy));
}

}  // namespace chokepoint::report
