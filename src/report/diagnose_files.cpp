// SPDX-License-Identifier: Apache-2.0
// Markdown and CSV of a diagnosis.
#include <chokepoint/base/units.hpp>
#include <chokepoint/report/pages.hpp>

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

#include "collective_sums.hpp"
#include "diagnose_parts.hpp"
#include "markup.hpp"

namespace chokepoint::report {

using namespace diagnose;
using Rows = std::vector<std::vector<std::string>>;

namespace {

constexpr std::size_t kMostRows = 8;

std::string percent(double part, double whole) {
  return whole > 0 ? fmt::format("{:.1f} %", 100 * part / whole) : std::string();
}
std::string number(double value) { return fmt::format("{:.9g}", value); }

std::string sentence(const std::string& text) { return "**" + markdown_cell(text) + "**\n\n"; }

std::string causes_markdown(const std::vector<Cause>& causes, double measured_s, double ideal_s, const Words& words) {
  Rows rows;
  for (const Cause& c : causes) {
    if (rows.size() == kMostRows) break;
    rows.push_back({words(c.what), format_duration(c.cost_s), percent(c.cost_s, measured_s),
                    format_duration(c.step_time_without_s), words(c.remedy)});
  }
  std::string out =
      words("measured {} a step, ideal {}", {format_duration(measured_s), format_duration(ideal_s)}) + "\n\n";
  return rows.empty() ? out
                      : out +
                            markdown_table({words("cause"), words("costs"), words("share"), words("step without it"),
                                            words("what helps")},
                                           rows, "lrrrl") +
                            "\n";
}

std::string notes_markdown(const std::vector<Note>& notes, const Words& words) {
  std::string out;
  for (const Note& note : notes)
    out += "- " + markdown_cell((note.pos.file.empty() ? "" : note.pos.file + ": ") + words(note.text)) + "\n";
  return out;
}

std::string class_name(int i, const Words& words) {
  return static_cast<simulate::Bill>(i) == simulate::Bill::kOffload
             ? words("memory copies")
             : words(simulate::name(static_cast<simulate::Bill>(i)));
}

std::string bill_markdown(const Diagnosis& d, const Words& words) {
  MeasuredBill sum;
  for (const RankResult& r : d.ranks) sum += r.bill;
  const double whole = static_cast<double>(sum.total_ns());
  std::vector<int> order(simulate::kBillCount);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&sum](int a, int b) {
    return sum.ns[static_cast<std::size_t>(a)] > sum.ns[static_cast<std::size_t>(b)];
  });
  Rows rows;
  for (const int i : order) {
    const auto at = static_cast<std::size_t>(i);
    if (sum.ns[at] == 0) continue;
    rows.push_back({class_name(i, words), percent(static_cast<double>(sum.ns[at]), whole),
                    format_duration(seconds_of(sum.ns[at]) / static_cast<double>(d.ranks.size())),
                    sum.wait_ns[at] > 0 ? percent(static_cast<double>(sum.wait_ns[at]), whole) : ""});
  }
  return rows.empty()
             ? std::string()
             : markdown_table({words("where the time goes"), words("share"), words("per rank"), words("of it waiting")},
                              rows, "lrrr") +
                   "\n";
}

std::string collectives_markdown(const Diagnosis& d, const Words& words) {
  Rows rows;
  for (const CollectiveSum& s : summed_collectives(d)) {
    if (rows.size() == kMostRows) break;
    rows.push_back({s.group, s.op, s.bytes >= 0 ? format_bytes(static_cast<double>(s.bytes)) : "?",
                    std::to_string(s.count), format_duration(seconds_of(s.wire_ns)),
                    format_duration(seconds_of(s.wait_ns)), s.bus_bytes_per_s > 0 ? format_rate(s.bus_bytes_per_s) : "",
                    s.expected_bus_bytes_per_s > 0 ? format_rate(s.expected_bus_bytes_per_s) : "",
                    s.late_rank >= 0 ? std::to_string(s.late_rank) : ""});
  }
  if (rows.empty()) return {};
  return markdown_table({words("group"), words("operation"), words("size"), words("count"), words("wire"),
                         words("wait"), words("reached"), words("expected"), words("late rank")},
                        rows, "llrrrrrrr") +
         "\n";
}

std::vector<std::string> bill_heads() {
  std::vector<std::string> heads;
  for (int i = 0; i < simulate::kBillCount; ++i)
    heads.push_back("bill_" + std::string(simulate::name(static_cast<simulate::Bill>(i))) + "_s");
  for (int i = 0; i < simulate::kBillCount; ++i)
    heads.push_back("wait_" + std::string(simulate::name(static_cast<simulate::Bill>(i))) + "_s");
  return heads;
}

void add_bill(std::vector<std::string>& row, const MeasuredBill& bill) {
  for (const std::int64_t ns : bill.ns) row.push_back(number(seconds_of(ns)));
  for (const std::int64_t ns : bill.wait_ns) row.push_back(number(seconds_of(ns)));
}

std::string with_heads(std::vector<std::string> heads) {
  for (std::string& head : bill_heads()) heads.push_back(std::move(head));
  return csv_line(heads);
}

}  // namespace

std::string diagnose_markdown(const Diagnosis& d, const Words& words) {
  std::string out = d.choke_point.empty() ? std::string() : sentence(words(d.choke_point));
  if (d.measured_s > 0) out += causes_markdown(d.causes, d.measured_s, d.ideal_s, words);
  return out + bill_markdown(d, words) + collectives_markdown(d, words) + notes_markdown(d.notes, words);
}

std::string straggler_markdown(const StragglerReport& r, const Words& words) {
  std::string out = sentence(words(r.choke_point)) + causes_markdown(r.causes, r.measured_s, r.ideal_s, words);
  Rows rows;
  for (const int w : r.slowest) {
    const Worker& worker = r.workers[static_cast<std::size_t>(w)];
    rows.push_back(
        {std::to_string(worker.stage), std::to_string(worker.data_rank), fmt::format("{:.4f}", worker.slowdown)});
  }
  if (!rows.empty()) out += markdown_table({words("stage"), words("data rank"), words("slowdown")}, rows, "rrr") + "\n";
  return out + notes_markdown(r.notes, words);
}

std::string hang_markdown(const HangReport& r, const Words& words) {
  std::string out = sentence(words(r.verdict));
  for (const FaultyRank& f : r.faulty)
    out += "- " + words("rank {}", {std::to_string(f.rank)}) + ": " + markdown_cell(words(f.evidence)) + "\n";
  Rows rows;
  for (const PendingCollective& p : r.pending) {
    if (rows.size() == kMostRows) break;
    std::string missing;
    for (const int rank : p.missing) missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
    rows.push_back({p.group, p.description, p.op, std::to_string(p.sequence), p.sizes, missing});
  }
  if (!rows.empty())
    out += "\n" +
           markdown_table({words("group"), words("description"), words("operation"), words("number"), words("sizes"),
                           words("ranks that lack it")},
                          rows, "lllrll") +
           "\n";
  return out + notes_markdown(r.notes, words);
}

std::string log_markdown(const LogReport& r, const Words& words) {
  const auto time = [&](double s) {
    return r.seconds_known ? format_duration(s) : words("{} of the median", {fmt::format("{:.3f}", s)});
  };
  std::string out = sentence(words(r.choke_point));
  out += markdown_table(
             {words("steps"), words("mean"), words("median"), words("95th percentile"), words("fastest 5 %")},
             {{std::to_string(r.steps), time(r.mean_s), time(r.median_s), time(r.p95_s), time(r.fastest_s)}}, "rrrrr") +
         "\n";
  Rows rows;
  for (const Cause& c : r.causes) rows.push_back({words(c.what), time(c.cost_s), words(c.remedy)});
  if (!rows.empty())
    out += markdown_table({words("cause"), words("costs per step"), words("what helps")}, rows, "lrl") + "\n";
  return out + notes_markdown(r.notes, words);
}

std::string diagnose_csv(const Diagnosis& d) {
  std::string out = with_heads({"rank", "file", "span_s", "overlap_fraction", "collective_wait_s", "collective_wire_s",
                                "late_count", "dropped_events"});
  for (const RankResult& r : d.ranks) {
    std::vector<std::string> row{std::to_string(r.rank),
                                 r.file,
                                 number(seconds_of(r.time.span_ns)),
                                 number(r.time.overlap_fraction()),
                                 number(seconds_of(r.collective_wait_ns)),
                                 number(seconds_of(r.collective_wire_ns)),
                                 std::to_string(r.late_count),
                                 std::to_string(r.defects.dropped())};
    add_bill(row, r.bill);
    out += csv_line(row);
  }
  return out;
}

std::string straggler_csv(const StragglerReport& r) {
  std::string out = with_heads({"rank", "stage", "data_rank", "slowdown", "span_s"});
  for (std::size_t i = 0; i < r.workers.size(); ++i) {
    const Worker& w = r.workers[i];
    std::vector<std::string> row{std::to_string(i), std::to_string(w.stage), std::to_string(w.data_rank),
                                 number(w.slowdown), number(seconds_of(w.time.span_ns))};
    add_bill(row, w.bill);
    out += csv_line(row);
  }
  return out;
}

std::string hang_csv(const HangReport& r) {
  std::string out = csv_line({"rank", "kind", "evidence"});
  for (const FaultyRank& f : r.faulty) out += csv_line({std::to_string(f.rank), f.kind, f.evidence});
  return out;
}

std::string log_csv(const LogReport& r) {
  std::string out = csv_line({"kind", "name", "value_s", "slowest_rank_s"});
  for (const auto& [name, value] :
       {std::pair{"mean", r.mean_s}, {"median", r.median_s}, {"p95", r.p95_s}, {"fastest", r.fastest_s}})
    out += csv_line({"step", name, number(value), ""});
  for (const Cause& c : r.causes) out += csv_line({"cause", c.id, number(c.cost_s), ""});
  for (const trace::TimerSpread& t : r.timers) out += csv_line({"timer", t.name, number(t.least_s), number(t.most_s)});
  return out;
}

}  // namespace chokepoint::report
