// SPDX-License-Identifier: Apache-2.0
// Prometheus' text exposition format: one HELP and TYPE per metric, label values escaped. Names: docs/formats/prometheus.md.
#include <chokepoint/report/diagnose_view.hpp>

#include <fmt/format.h>
#include <initializer_list>
#include <map>
#include <utility>

#include "diagnose_parts.hpp"

namespace chokepoint::report {

using namespace diagnose;

namespace {

using Labels = std::initializer_list<std::pair<std::string_view, std::string>>;

std::string escaped(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return out;
}

class Page {
 public:
  /// All values of one metric follow its head.
  void metric(std::string_view name, std::string_view help) {
    name_ = name;
    text_ += fmt::format("# HELP {} {}\n# TYPE {} gauge\n", name, help, name);
  }
  void value(const Labels& labels, double value) {
    std::string list;
    for (const auto& [key, text] : labels) list += fmt::format("{}{}=\"{}\"", list.empty() ? "" : ",", key, escaped(text));
    text_ += list.empty() ? fmt::format("{} {:.9g}\n", name_, value) : fmt::format("{}{{{}}} {:.9g}\n", name_, list, value);
  }
  void one(std::string_view name, std::string_view help, double number) {
    metric(name, help);
    value({}, number);
  }
  void causes(const std::vector<Cause>& causes, double measured_s, double ideal_s) {
    one("chokepoint_step_seconds", "Mean time of a step.", measured_s);
    one("chokepoint_ideal_step_seconds", "Step time without all causes.", ideal_s);
    metric("chokepoint_cause_cost_seconds", "What a cause adds to a step.");
    // A metric holds each set of labels once.
    std::map<std::pair<std::string, std::string>, double> sums;
    for (const Cause& c : causes) sums[{c.id, c.where}] += c.cost_s;
    for (const auto& [key, cost] : sums) value({{"cause", key.first}, {"where", key.second}}, cost);
  }
  std::string text() && { return std::move(text_); }

 private:
  std::string name_;
  std::string text_;
};

}  // namespace

std::string diagnose_prometheus(const Diagnosis& d) {
  Page page;
  page.causes(d.causes, d.measured_s, d.ideal_s);
  page.metric("chokepoint_rank_seconds", "Time of the recording by rank and class of the bill.");
  for (const RankResult& r : d.ranks) {
    for (int i = 0; i < simulate::kBillCount; ++i) {
      const std::int64_t ns = r.bill.ns[static_cast<std::size_t>(i)];
      if (ns > 0) page.value({{"rank", std::to_string(r.rank)}, {"class", std::string(simulate::name(static_cast<simulate::Bill>(i)))}}, seconds_of(ns));
    }
  }
  page.metric("chokepoint_rank_wait_seconds", "Time of the recording that a rank waited for later ranks in collectives.");
  for (const RankResult& r : d.ranks) page.value({{"rank", std::to_string(r.rank)}}, seconds_of(r.collective_wait_ns));
  page.metric("chokepoint_rank_late_collectives", "Collectives in which a rank came last.");
  for (const RankResult& r : d.ranks) page.value({{"rank", std::to_string(r.rank)}}, r.late_count);
  double dropped = 0;
  for (const RankResult& r : d.ranks) dropped += static_cast<double>(r.defects.dropped());
  page.one("chokepoint_events_dropped", "Events of the traces that could not be used.", dropped);
  return std::move(page).text();
}

std::string straggler_prometheus(const StragglerReport& r) {
  Page page;
  page.causes(r.causes, r.measured_s, r.ideal_s);
  page.one("chokepoint_slowdown", "Step time over the ideal one.", r.slowdown);
  page.metric("chokepoint_worker_slowdown", "Ideal step with this worker as measured, over the ideal one.");
  for (const Worker& w : r.workers) page.value({{"stage", std::to_string(w.stage)}, {"data_rank", std::to_string(w.data_rank)}}, w.slowdown);
  return std::move(page).text();
}

std::string hang_prometheus(const HangReport& r) {
  Page page;
  page.metric("chokepoint_faulty_rank", "1 for each rank that the others wait for.");
  for (const FaultyRank& f : r.faulty) page.value({{"rank", std::to_string(f.rank)}, {"kind", f.kind}}, 1);
  page.one("chokepoint_pending_collectives", "Collectives that some member never issued.", static_cast<double>(r.pending.size()));
  return std::move(page).text();
}

std::string log_prometheus(const LogReport& r) {
  Page page;
  page.causes(r.causes, r.mean_s, r.fastest_s);
  page.one("chokepoint_log_steps", "Steps in the log.", r.steps);
  page.metric("chokepoint_timer_seconds", "A timer's fastest and slowest rank.");
  for (const trace::TimerSpread& t : r.timers) {
    page.value({{"timer", t.name}, {"rank", "fastest"}}, t.least_s);
    page.value({{"timer", t.name}, {"rank", "slowest"}}, t.most_s);
  }
  return std::move(page).text();
}

std::string watch_prometheus(const std::vector<WatchedLog>& logs, const std::vector<WatchEvent>& events) {
  Page page;
  page.metric("chokepoint_log_step", "Number of the last step in the log.");
  for (const WatchedLog& w : logs) page.value({{"log", w.file}}, static_cast<double>(w.last_step));
  page.metric("chokepoint_log_step_seconds", "Median of the recent steps at the present level.");
  for (const WatchedLog& w : logs) page.value({{"log", w.file}}, w.level_s);
  page.metric("chokepoint_log_first_level_seconds", "Median of the steps before the first change.");
  for (const WatchedLog& w : logs) page.value({{"log", w.file}}, w.first_level_s);
  page.metric("chokepoint_log_cause_cost_seconds", "What a cause adds to a step, over the steps kept.");
  for (const WatchedLog& w : logs) {
    if (!w.report) continue;
    for (const Cause& c : w.report->causes) page.value({{"log", w.file}, {"cause", c.id}}, c.cost_s);
  }
  page.metric("chokepoint_watch_events", "Events told since following began.");
  std::map<std::string, double> counts;
  for (const WatchEvent& e : events) counts[std::string(name(e.kind))] += 1;
  for (const auto& [kind, count] : counts) page.value({{"kind", kind}}, count);
  return std::move(page).text();
}

}  // namespace chokepoint::report
