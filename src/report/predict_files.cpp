// SPDX-License-Identifier: Apache-2.0
// Markdown and CSV of a prediction and of a plan.
#include <chokepoint/base/text.hpp>
#include <chokepoint/base/units.hpp>

#include <fmt/format.h>

#include "markup.hpp"
#include "predict_pages.hpp"
#include "prediction_parts.hpp"

namespace chokepoint::report {

using simulate::Prediction;
using Rows = std::vector<std::vector<std::string>>;

namespace {

constexpr std::size_t kChokePointsShown = 4;

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }
std::string money(double usd) { return usd >= 100 ? "$" + format_count(usd) : fmt::format("${:.2f}", usd); }

std::string heading(const parallel::Job& job, const Words& words) {
  std::string text(trim(job_heading(job, words)));
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n')) text.replace(end, 1, "; ");
  return markdown_cell(text);
}

std::string ladder_markdown(const parallel::Job& job, const Prediction& p, const Words& words) {
  Rows rows;
  double before = 1;
  for (std::size_t i = 0; i < p.ladder.size(); ++i) {
    const simulate::Rung& rung = p.ladder[i];
    if (i > 0 && before - rung.fraction < 0.0005) continue;
    const std::string label =
        i == 0 ? words("peak") + " " + format_flop_rate(job.accelerator.peak(job.dtype) * job.gpus) : words(rung.name);
    // What a rung takes of the step is the time it adds, not the points of the peak it loses.
    const double share = i == 0 ? 0 : p.ladder.back().fraction * (1 / rung.fraction - 1 / before);
    std::vector<std::string> row{label, percent(rung.fraction), i == 0 ? "" : format_duration(share * p.step_time_s)};
    if (usd_per_day(job) > 0) row.push_back(i == 0 ? "" : money(share * usd_per_day(job)));
    rows.push_back(std::move(row));
    before = rung.fraction;
  }
  std::vector<std::string> heads{words("From peak to useful work"), words("left"), words("of the step")};
  if (usd_per_day(job) > 0) heads.push_back(words("money a day"));
  return markdown_table(heads, rows, "lrrr");
}

std::string bill_markdown(const Prediction& p, const Words& words) {
  Rows rows;
  for (int i = 0; i < simulate::kBillCount; ++i) {
    const double seconds = p.bill[static_cast<std::size_t>(i)];
    if (seconds <= 0) continue;
    rows.push_back({words(simulate::name(static_cast<simulate::Bill>(i))), format_duration(seconds),
                    percent(seconds / p.step_time_s)});
  }
  rows.push_back({words("step"), format_duration(p.step_time_s), ""});
  return markdown_table({words("Bill of the step"), words("time"), words("share")}, rows, "lrr");
}

std::string choke_markdown(const Prediction& p, const Words& words) {
  Rows rows;
  for (const simulate::ChokePoint& c : p.choke_points) {
    if (rows.size() == kChokePointsShown) break;
    rows.push_back({words(c.where), words(c.change), format_duration(c.step_time_if_changed_s),
                    fmt::format("{:+.1f} %", 100 * (c.step_time_if_changed_s / p.step_time_s - 1))});
  }
  return rows.empty()
             ? std::string()
             : markdown_table({words("Choke point"), words("with"), words("step"), words("change")}, rows, "llrr") +
                   "\n";
}

std::string assumptions_markdown(const Prediction& p, const Words& words) {
  if (p.assumptions.empty()) return {};
  std::string out =
      fmt::format("\n<details><summary>{} ({})</summary>\n\n", words("Assumptions"), p.assumptions.size());
  for (const Note& note : p.assumptions) out += "- " + markdown_cell(words(note.text)) + "\n";
  return out + "\n</details>\n";
}

/// What comes after the ladder.
std::string explained(const Prediction& p, const Words& words) {
  return choke_markdown(p, words) + bill_markdown(p, words) + "\n" +
         words("Memory: {} needed of {} usable: {}.",
               {format_bytes(p.memory.needed_bytes), format_bytes(p.memory.capacity_bytes),
                words(parallel::name(p.memory.verdict()))}) +
         "\n" + assumptions_markdown(p, words);
}

std::string number(double value) { return fmt::format("{:.9g}", value); }

}  // namespace

std::string predict_markdown(const PredictReport& report, const Words& words) {
  const Prediction& p = report.prediction;
  std::string out = "**" + markdown_cell(verdict_of(p, words)) + "**\n\n" + heading(report.job, words) + "  \n`" +
                    parallel::to_text(p.strategy) + "`\n\n";
  if (report.implied) {
    out += words("Measured {}: {} times the prediction.", {format_duration(report.implied->measured_step_time_s),
                                                           fmt::format("{:.2f}", report.implied->ratio)}) +
           " " + markdown_cell(words(report.implied->suspect)) + "\n\n";
  }
  return out + ladder_markdown(report.job, p, words) + "\n" + explained(p, words);
}

std::string plan_markdown(const PlanReport& report, const Words& words) {
  const plan::Plan& plan = report.plan;
  std::string out = "**" + markdown_cell(verdict_of(plan, words)) + "**\n\n" + heading(report.job, words) + "\n\n";
  if (plan.candidates.empty()) {
    for (const std::string& way : plan.would_fit)
      out += "- " + words("It would fit with") + " " + markdown_cell(words(way)) + "\n";
    return out;
  }
  const Prediction& best = plan.candidates.front();
  out += ladder_markdown(report.job, best, words) + "\n";
  Rows rows;
  for (const Prediction& p : plan.candidates) {
    const bool tie = &p != &best && plan::tied(best, p);
    rows.push_back({fmt::format("{}{}", rows.size() + 1, tie ? " =" : ""), parallel::title(p.strategy),
                    format_duration(p.step_time_s), fmt::format("\u00b1{} %", band_percent(p)),
                    format_count(p.tokens_per_s_per_gpu), percent(p.mfu), format_bytes(p.memory.needed_bytes)});
  }
  out += markdown_table(
             {"#", words("strategy"), words("step"), words("band"), words("tokens/s per GPU"), "MFU", words("memory")},
             rows, "rlrrrrr") +
         "\n";
  rows.clear();
  for (const plan::Loser& l : plan.why_not) {
    rows.push_back({l.strategy ? parallel::title(*l.strategy) : words(l.family),
                    l.strategy ? fmt::format("{:.2f}\u00d7", l.step_time_s / best.step_time_s) : "", words(l.reason)});
  }
  if (!rows.empty())
    out += markdown_table({words("Why the others lost"), words("step"), words("reason")}, rows, "lrl") + "\n";
  return out + "`" + parallel::to_text(best.strategy) + "`\n\n" + explained(best, words);
}

std::string predict_csv(const PredictReport& report) {
  const Prediction& p = report.prediction;
  std::string out = csv_line({"kind", "name", "value", "unit"});
  out += csv_line({"step", "step_time", number(p.step_time_s), "s"}) +
         csv_line({"step", "step_time_low", number(p.step_time_low_s), "s"}) +
         csv_line({"step", "step_time_high", number(p.step_time_high_s), "s"}) +
         csv_line({"step", "tokens_per_s_per_gpu", number(p.tokens_per_s_per_gpu), "1/s"}) +
         csv_line({"step", "mfu", number(p.mfu), ""}) + csv_line({"step", "hfu", number(p.hfu), ""});
  for (int i = 0; i < simulate::kBillCount; ++i) {
    out += csv_line({"bill", std::string(simulate::name(static_cast<simulate::Bill>(i))),
                     number(p.bill[static_cast<std::size_t>(i)]), "s"});
  }
  for (const simulate::Rung& rung : p.ladder) out += csv_line({"ladder", rung.name, number(rung.fraction), ""});
  for (const parallel::MemoryPart& part : p.memory.parts)
    out += csv_line({"memory", std::string(part.name), number(part.bytes), "bytes"});
  out += csv_line({"memory", "needed", number(p.memory.needed_bytes), "bytes"}) +
         csv_line({"memory", "capacity", number(p.memory.capacity_bytes), "bytes"});
  for (const simulate::ChokePoint& c : p.choke_points)
    out += csv_line({"choke_point", c.where + ": " + c.change, number(c.step_time_if_changed_s), "s"});
  return out;
}

std::string plan_csv(const PlanReport& report) {
  std::vector<std::string> heads{
      "rank", "strategy",     "step_time_s",   "step_time_low_s", "step_time_high_s", "tokens_per_s_per_gpu",
      "mfu",  "needed_bytes", "capacity_bytes"};
  for (int i = 0; i < simulate::kBillCount; ++i)
    heads.push_back("bill_" + std::string(simulate::name(static_cast<simulate::Bill>(i))) + "_s");
  std::string out = csv_line(heads);
  int rank = 0;
  for (const Prediction& p : report.plan.candidates) {
    std::vector<std::string> row{std::to_string(++rank),
                                 parallel::to_text(p.strategy),
                                 number(p.step_time_s),
                                 number(p.step_time_low_s),
                                 number(p.step_time_high_s),
                                 number(p.tokens_per_s_per_gpu),
                                 number(p.mfu),
                                 number(p.memory.needed_bytes),
                                 number(p.memory.capacity_bytes)};
    for (const double seconds : p.bill) row.push_back(number(seconds));
    out += csv_line(row);
  }
  return out;
}

}  // namespace chokepoint::report
