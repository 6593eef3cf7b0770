// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/units.hpp>
#include <chokepoint/plan/rematch.hpp>
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
constexpr std::size_t kMostParetoLines = 20;

/// As wide as the longest title, but so that a line with its other columns fits a narrow terminal.
int title_columns(const plan::Plan& plan, const Style& style) {
  constexpr int kOthers = 45;
  int columns = 8;
  for (const Prediction& p : plan.candidates) columns = std::max(columns, display_width(parallel::title(p.strategy)));
  return style.width < kNarrow ? std::min(columns, std::max(20, style.width - kOthers)) : columns;
}

std::string candidate_line(const Prediction& p, std::string_view title, int columns, const Style& style) {
  const double used = p.memory.needed_bytes;
  const double capacity = p.memory.capacity_bytes;
  std::string line = fmt::format("{} {} {}", pad_right(title, columns),
                                 pad_left(fmt::format("{} \u00b1{:>2} %", format_duration(p.step_time_s), band_percent(p)), 13),
                                 pad_left(format_count(p.tokens_per_s_per_gpu), 9));
  if (style.width < kNarrow) return line + fmt::format("  {:.0f}/{:.0f} GiB", used / kGiB, capacity / kGiB);
  line += fmt::format("  {:.3f}  {:>5.1f}/{:.1f} GiB", p.mfu, used / kGiB, capacity / kGiB);
  return style.bars ? line + " " + bar(capacity > 0 ? used / capacity : 0, 6) : line;
}

std::string count(long n) { return format_count(static_cast<double>(n)); }

/// How sure it is that nothing is faster, and what the search cost.
std::string proof_lines(const plan::Plan& plan, const Style& style) {
  const std::string indent = "    ";
  if (plan.optimal) {
    return style.dim(indent + style.say("proved best of {} legal ones: {} timed, bounds exclude the rest", {count(plan.enumerated), count(plan.evaluated)})) + "\n";
  }
  const std::string left = plan.bound_s > 0 ? style.say("at most {} % faster exists", {fmt::format("{:.1f}", 100 * plan.gap)}) : style.say("no bound yet");
  return style.yellow(indent + style.say("stopped after {}: best of {} timed, of {} legal ones; {}",
                                         {format_duration(plan.search_s), count(plan.evaluated), count(plan.enumerated), left})) + "\n";
}

std::string candidate_table(const plan::Plan& plan, const Style& style) {
  const int columns = title_columns(plan, style);
  std::string out = fmt::format(" #  {} {} {}", pad_right(style.say("strategy"), columns), pad_left(style.say("step"), 13), pad_left(style.say("tok/s/GPU"), 9));
  out += (style.width < kNarrow ? "  " : "  MFU    ") + style.say("memory needed") + "\n";
  bool ties = false;
  for (std::size_t i = 0; i < plan.candidates.size(); ++i) {
    const bool tie = i > 0 && plan::tied(plan.candidates[0], plan.candidates[i]);
    ties = ties || tie;
    const std::vector<std::string> titles = wrapped(parallel::title(plan.candidates[i].strategy), columns);
    const std::string line = fmt::format("{:>2}{} {}", i + 1, tie ? "=" : " ", candidate_line(plan.candidates[i], titles[0], columns, style));
    out += (i == 0 ? style.bold(line) : line) + "\n";
    for (std::size_t rest = 1; rest < titles.size(); ++rest) out += "      " + titles[rest] + "\n";
  }
  if (ties) out += style.dim("    = " + style.say("cannot be told apart from the best")) + "\n";
  const bool stage_2 = std::any_of(plan.candidates.begin(), plan.candidates.end(), [](const Prediction& p) {
    return p.strategy.zero == 2 && p.strategy.sharder == parallel::Sharder::kDeepspeed;
  });
  if (stage_2) {
    out += titled("   ", style.say("ZeRO-2 is DeepSpeed's: gradients reduced in each micro-step, whole in memory until then (PyTorch's: fsdp=grad-op)"), style);
  }
  return out + proof_lines(plan, style);
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

/// What the engine did not get to.
std::string engine_left_text(const plan::Plan& plan, const Style& style) {
  for (const plan::Rejected& r : plan.rejected) {
    if (r.reason != plan::kNotRun) continue;
    return titled(plan.engine.size() < 2 ? style.say("Event engine") : "",
                  style.say("{} or more did not run that may overtake there: raise --engine or --time-limit", {std::to_string(r.count)}), style);
  }
  return "";
}

/// The leading candidates in the event engine; where its order is another, that comes first.
std::string engine_text(const plan::Plan& plan, const Style& style) {
  if (plan.engine.size() < 2) return engine_left_text(plan, style);
  bool same = true;
  std::string times;
  for (std::size_t i = 0; i < plan.engine.size(); ++i) {
    same = same && (i == 0 || plan.engine[i - 1].candidate < plan.engine[i].candidate);
    times += fmt::format("{}#{} {}", i == 0 ? "" : ", ", plan.engine[i].candidate + 1, format_duration(plan.engine[i].engine_s));
  }
  return titled(style.say("Event engine"), style.say(same ? "same order: {}" : "another order: {}", {times}), style) + engine_left_text(plan, style);
}

/// What separates candidates that the model holds equal; the same measurement is named once.
std::string undecided_text(const plan::Plan& plan, const Style& style) {
  std::string out;
  std::string head = style.say("To decide");
  std::vector<std::string> named;
  for (const plan::Undecided& u : plan.undecided) {
    if (std::find(named.begin(), named.end(), u.constant) != named.end()) continue;
    named.push_back(u.constant);
    const std::string apart = style.say("candidate {} is {} slower, give or take {}", {std::to_string(u.candidate + 1), format_duration(u.slower_s), format_duration(u.sigma_s)});
    out += titled(head, apart + ": " + style.say(u.measure), style);
    if (!u.command.empty()) out += titled("", u.command, style);
    head = "";
  }
  return out;
}

std::string pareto_text(const plan::Plan& plan, const Style& style) {
  if (plan.pareto.empty()) return "";
  const bool money = plan.pareto.front().usd_per_billion_tokens > 0;
  std::string out = "\n" + style.say("Not beaten in time, memory and money at once") + "\n";
  std::size_t shown = 0;
  for (const plan::ParetoPoint& p : plan.pareto) {
    if (++shown > kMostParetoLines) return out + style.dim("    " + style.say("{} more", {std::to_string(plan.pareto.size() - kMostParetoLines)})) + "\n";
    out += fmt::format("{} {} {} ", pad_left(format_duration(p.step_time_s), 9), pad_left(fmt::format("{:.1f} GiB", p.needed_bytes / kGiB), 10), pad_left(std::to_string(p.gpus) + " GPU", 10));
    if (money) out += pad_left(fmt::format("{:.0f} $/Gtok", p.usd_per_billion_tokens), 14) + " ";
    out += parallel::title(p.strategy) + "\n";
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
  if (plan.candidates.empty() && plan.too_slow) return out + style.red(style.say("Nothing that fits in memory is within the budget.")) + "\n";
  if (plan.candidates.empty() && plan.stopped) return out + style.red(style.say("The search was stopped before anything that fits was found.")) + "\n";
  if (plan.candidates.empty()) return out + nothing_fits(plan, style);
  out += candidate_table(plan, style);
  if (quiet) return out;
  const Prediction& best = plan.candidates.front();
  out += "\n" + choke_text(best, style);
  if (const std::string more = engine_text(plan, style) + undecided_text(plan, style); !more.empty()) out += "\n" + more;
  out += losers_text(plan, style);
  out += pareto_text(plan, style);
  out += "\n" + ladder_text(best, job.accelerator.peak(job.dtype) * job.gpus, style);
  out += assumptions_text(best.assumptions, style);
  return out + "\n" + style.say("Explain the best:") + fmt::format("\n  chokepoint predict JOB --strategy \"{}\"\n", parallel::to_text(best.strategy));
}

}  // namespace chokepoint::report
