// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chokepoint/base/units.hpp>
#include <cmath>
#include <fmt/format.h>

#include "prediction_parts.hpp"
#include "table.hpp"
#include "whatif_parts.hpp"

namespace chokepoint::report {

using namespace whatif;

namespace {

constexpr double kDay = 86400;

/// Changes too small to print as a figure.
std::string percent(double value) { return std::abs(value) < 5e-4 ? "-" : fmt::format("{:+.1f} %", 100 * value); }

/// Spans of a run: "28 min", "7.3 h", "12 days".
std::string span_words(double seconds) {
  if (seconds < 600) return format_duration(seconds);
  if (seconds < 2 * 3600) return fmt::format("{:.0f} min", seconds / 60);
  return seconds < 2 * kDay ? fmt::format("{:.1f} h", seconds / 3600) : fmt::format("{:.1f} days", seconds / kDay);
}

std::string tokens_words(double tokens) { return format_billions(tokens) + " tokens"; }

std::string title_of(const Answer& answer) {
  std::string title;
  for (const Change& change : answer.changes) title += (title.empty() ? "" : " + ") + change.text;
  return title;
}

}  // namespace

std::string comparison_section(const Study& study, const Style& style) {
  constexpr std::size_t kWorthATable = 3;
  if (study.answers.size() < kWorthATable) return "";
  std::vector<std::vector<std::string>> rows;
  const auto row = [&](const std::string& title, const State& kept, const State& best, const parallel::Job& job,
                       const std::optional<Money>& money) {
    std::vector<std::string> cells = {title};
    if (kept) {
      cells.insert(cells.end(), {format_duration(kept.prediction->step_time_s),
                                 fmt::format("{:.0f} %", 100 * exposed_communication(*kept.prediction))});
    } else {
      cells.insert(cells.end(), {"-", "-"});
    }
    if (best) {
      cells.insert(cells.end(), {format_duration(best.prediction->step_time_s),
                                 fmt::format("{:.0f} %", 100 * exposed_communication(*best.prediction)),
                                 format_count(std::round(best.prediction->tokens_per_s_per_gpu * job.gpus))});
    } else {
      cells.insert(cells.end(), {"-", "-", "-"});
    }
    cells.push_back(money ? usd(money->usd_per_billion_tokens) : "-");
    rows.push_back(std::move(cells));
  };
  row(style.say("now"), study.baseline.own, study.baseline.best, study.baseline.scenario.job, study.best_money);
  for (const PricedAnswer& a : study.answers)
    row(title_of(a.answer), a.answer.kept, a.answer.best, a.answer.scenario.job, a.best_money);
  return "\n" + table({{style.say("change")},
                       {style.say("same plan"), true},
                       {style.say("network"), true},
                       {style.say("re-planned"), true},
                       {style.say("network"), true},
                       {style.say("tokens/s"), true},
                       {style.say("USD/B tokens"), true}},
                      rows, style);
}

std::string sensitivity_section(const Study& study, const Style& style) {
  const Sensitivities& s = *study.sensitivities;
  std::string out =
      "\n" + style.bold(style.say("What the step hangs on")) +
      style.say(", same strategy, step {}", {format_duration(s.step_time_s)}) + "\n";
  std::vector<std::vector<std::string>> rows;
  int unused = 0;
  for (const Sensitivity& r : s.resources) {
    const double headroom = r.step_time_infinite_s / s.step_time_s - 1;
    if (std::abs(headroom) < 5e-5 && std::abs(r.derivative) < 5e-5) {
      ++unused;
      continue;
    }
    rows.push_back({r.resource, percent(r.derivative), percent(r.step_time_double_s / s.step_time_s - 1),
                    percent(headroom), style.say(r.where)});
  }
  out += table({{style.say("resource")},
                {style.say("+10 % of it"), true},
                {style.say("twice"), true},
                {style.say("no limit"), true},
                {style.say("where")}},
               rows, style);
  if (unused > 0)
    out += style.dim(style.say(fmt::format("{} more resource{} this job does not feel (--json lists them)", unused,
                                           unused == 1 ? "" : "s"))) +
           "\n";
  out += "\n" + style.say("One after the other") + "\n";
  double before = s.step_time_s;
  for (std::size_t i = 0; i < s.chain.size(); ++i) {
    const Fix& fix = s.chain[i];
    out +=
        fmt::format("  {}. {} -> {} ({:+.1f} %)  {}: {}\n", i + 1, format_duration(before),
                    format_duration(fix.step_time_s), 100 * (fix.step_time_s / before - 1), fix.resource, style.say(fix.change));
    before = fix.step_time_s;
  }
  if (s.chain.empty()) out += "  " + style.say("no single resource shortens the step by a thousandth") + "\n";
  return out;
}

std::string scale_section(const Study& study, const Style& style) {
  const bool grow = study.options.scaling.grow_batch;
  const bool priced =
      std::any_of(study.scale.begin(), study.scale.end(), [](const ScalePoint& p) { return p.money.has_value(); });
  std::string out = "\n" + style.bold(style.say("Scale")) +
                    style.say(grow ? ", the batch grows with the accelerators (weak scaling)"
                                   : ", the batch stays (strong scaling; --grow-batch grows it)") +
                    "\n";
  std::vector<Column> columns = {
      {"GPUs", true}, {style.say("step"), true}, {style.say("tokens/s"), true}, {style.say("efficiency"), true},
      {"goodput", true}};
  if (grow) columns.push_back({style.say("batch"), true});
  if (priced) columns.push_back({style.say("USD/B tokens"), true});
  columns.push_back({style.say("strategy")});
  columns.push_back({style.say("bends by")});
  std::vector<std::vector<std::string>> rows;
  for (const ScalePoint& p : study.scale) {
    std::vector<std::string> row = {format_count(p.gpus)};
    if (!p.state) {
      row.insert(row.end(), columns.size() - 3, "");
      row.push_back(style.say(p.state.why_not));
      row.push_back("");
    } else {
      row.insert(row.end(),
                 {format_duration(p.state.prediction->step_time_s), format_count(std::round(p.tokens_per_s)),
                  fmt::format("{:.0f} %", 100 * p.efficiency), fmt::format("{:.1f} %", 100 * p.goodput.goodput)});
      if (grow) row.push_back(format_count(p.batch));
      if (priced) row.push_back((p.on_front ? "*" : " ") + (p.money ? usd(p.money->usd_per_billion_tokens) : "-"));
      row.push_back(parallel::title(p.state.prediction->strategy));
      row.push_back(p.bend ? fmt::format("{} (-{:.0f} %)", style.say(p.bend->bill), 100 * p.bend->lost) : "");
    }
    rows.push_back(std::move(row));
  }
  out += table(columns, rows, style);
  if (priced) out += style.dim(style.say("* no other size is both faster and cheaper (Pareto front)")) + "\n";
  return out;
}

std::string break_even_section(const Study& study, const Style& style) {
  const BreakEven& b = *study.break_even;
  std::string out = "\n" + style.bold(style.say("Break-even")) + "\n";
  const NetworkBreakEven& n = b.network;
  if (n.bytes_per_s) {
    out += said_line("  network",
                  fmt::format("{} a host keep {:.0f} % of an unlimited network's speed; {} now keep {:.0f} %",
                              format_rate(*n.bytes_per_s), 100 * n.efficiency, format_rate(n.now_bytes_per_s),
                              100 * n.now_efficiency),
                  style);
  } else {
    out += said_line("  network", n.why_not, style);
  }
  const auto size = [](const char* what, int value) {
    return value > 0 ? fmt::format("{} {}", format_count(value), what) : fmt::format("no {}", what);
  };
  out += said_line(
      "  same plan",
      fmt::format("fits up to {}, {}, or {}", size("layers", b.kept.layers), size("tokens a sequence", b.kept.sequence),
                  size("sequences a micro-batch", b.kept.micro_batch)),
      style);
  out += said_line("  re-planned",
                fmt::format("fits up to {} or {}", size("layers", b.replanned.layers),
                            size("tokens a sequence", b.replanned.sequence)),
                style);
  return out;
}

std::string money_section(const Study& study, const Style& style) {
  std::string out = "\n" + style.bold(style.say("The run")) + "\n";
  const Goodput& g = study.goodput;
  const double tokens = study.options.scaling.tokens;
  if (tokens > 0 && study.money && study.money->run_s) {
    out += said_line("  now",
                  fmt::format("{}: {:.1f} days, {} USD", tokens_words(tokens), *study.money->run_s / kDay,
                              usd(*study.money->run_usd)),
                  style);
  }
  for (const PricedAnswer& a : study.answers) {
    if (!a.best_money || !a.best_money->run_s) continue;
    out += said_line("  changed",
                  fmt::format("{}: {:.1f} days, {} USD", title_of(a.answer), *a.best_money->run_s / kDay,
                              usd(*a.best_money->run_usd)),
                  style);
  }
  if (study.deadline) {
    const Deadline& d = *study.deadline;
    const std::string by = fmt::format("in {:.3g} days", study.options.by_s / kDay);
    out += d.point
               ? said_line("  deadline",
                        fmt::format("{} {}: {} accelerators, {}", tokens_words(tokens), by, format_count(d.point->gpus),
                                    parallel::title(d.point->state.prediction->strategy)),
                        style)
               : said_line("  deadline", d.why_not, style);
    if (d.point && d.point->money && d.point->money->run_usd)
      out += said_line(
          "", fmt::format("{:.1f} days, {} USD", *d.point->money->run_s / kDay, usd(*d.point->money->run_usd)), style);
  }
  out += said_line("  failures",
                fmt::format("{:.2g} a day, goodput {:.1f} %: checkpoints of {} every {}{}, Young and Daly {}, cost "
                            "{:.2f} %, lost work and restarts {:.2f} %, {} spare host{}",
                            g.failures_per_day, 100 * g.goodput, span_words(g.checkpoint_s), span_words(g.interval_s),
                            study.options.scaling.failures.interval_s ? "" : " (best)", span_words(g.young_daly_s),
                            100 * g.fraction_checkpoint, 100 * g.fraction_lost_work, g.spare_hosts,
                            g.spare_hosts == 1 ? "" : "s"),
                style);
  if (study.money && !study.money->idle.empty()) {
    std::string idle;
    for (std::size_t i = 0; i < study.money->idle.size() && i < 6; ++i) {
      const IdleMoney& one = study.money->idle[i];
      if (i > 0 && one.usd_per_day < 0.001 * study.money->usd_per_day) break;
      idle += fmt::format("{}{} {}", i == 0 ? "" : ", ", style.say(one.name), usd(one.usd_per_day));
    }
    out += said_line("  idle", "USD a day: " + idle, style);
  }
  return out;
}

}  // namespace chokepoint::report
