// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/units.hpp>
#include <chokepoint/report/diagnose_view.hpp>

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

#include "collective_sums.hpp"
#include "diagnose_parts.hpp"
#include "table.hpp"

namespace chokepoint::report {

using namespace diagnose;
using simulate::Bill;

namespace {

constexpr std::size_t kMostRanks = 8;       // one screen
constexpr std::size_t kMostCollectives = 6;

std::string percent(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? fmt::format("{:.1f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole)) : std::string("-");
}

std::string head(const Diagnosis& d, const Style& style) {
  std::string text = style.say(d.ranks.size() == 1 ? "{} rank of {}" : "{} ranks of {}", {std::to_string(d.ranks.size()), std::to_string(d.world_size)});
  std::size_t steps = 0;
  std::int64_t span = 0;
  for (const RankResult& r : d.ranks) {
    steps = std::max(steps, r.steps.size());
    span = std::max(span, r.time.span_ns);
  }
  text += style.say(" · {} on the device", {format_duration(seconds_of(span))});
  if (steps > 0) text += style.say(steps == 1 ? " · {} step" : " · {} steps", {std::to_string(steps)});
  return text;
}

/// Bill of all ranks together, largest first, as bars.
std::string bill_text(const Diagnosis& d, const Style& style) {
  MeasuredBill sum;
  for (const RankResult& r : d.ranks) sum += r.bill;
  const std::int64_t whole = sum.total_ns();
  std::vector<int> order(simulate::kBillCount);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&sum](int a, int b) { return sum.ns[static_cast<std::size_t>(a)] > sum.ns[static_cast<std::size_t>(b)]; });
  std::vector<std::vector<std::string>> rows;
  for (const int i : order) {
    const std::int64_t ns = sum.ns[static_cast<std::size_t>(i)];
    if (ns == 0) continue;
    const std::int64_t wait = sum.wait_ns[static_cast<std::size_t>(i)];
    std::string detail;
    if (wait > 0) detail = style.say("wire {}, wait {}", {percent(ns - wait, whole), percent(wait, whole)});
    if (static_cast<Bill>(i) == Bill::kHost) {
      for (int p = 0; p < kHostPartCount; ++p) {
        const std::int64_t part = sum.host_ns[static_cast<std::size_t>(p)];
        if (part > 0) detail += fmt::format("{}{} {}", detail.empty() ? "" : ", ", style.say(diagnose::name(static_cast<HostPart>(p))), percent(part, whole));
      }
    }
    const std::string name = style.say(static_cast<Bill>(i) == Bill::kOffload ? "memory copies" : simulate::name(static_cast<Bill>(i)));
    rows.push_back({name, percent(ns, whole), format_duration(seconds_of(ns) / static_cast<double>(d.ranks.size())),
                    style.bars ? bar(static_cast<double>(ns) / static_cast<double>(whole), 20) : std::string(), detail});
  }
  return table({{style.say("where the time goes"), false}, {style.say("share"), true}, {style.say("per rank"), true}, {"", false}, {"", false}}, rows, style);
}

std::string ranks_text(const Diagnosis& d, const Style& style) {
  std::vector<std::vector<std::string>> rows;
  for (const RankResult& r : d.ranks) {
    if (rows.size() == kMostRanks) break;
    rows.push_back({std::to_string(r.rank), format_duration(seconds_of(r.time.span_ns)), percent(r.time.compute_ns, r.time.span_ns),
                    percent(r.time.exposed_communication_ns, r.time.span_ns), percent(r.time.idle_ns(), r.time.span_ns),
                    r.time.communication_ns > 0 ? fmt::format("{:.1f} %", 100 * r.time.overlap_fraction()) : "-",
                    format_duration(seconds_of(r.collective_wait_ns)), format_duration(seconds_of(r.collective_wire_ns)), std::to_string(r.late_count)});
  }
  std::string text = table({{style.say("rank"), true}, {style.say("span"), true}, {style.say("computing"), true}, {style.say("exposed"), true}, {style.say("idle"), true}, {style.say("overlap"), true},
                            {style.say("waits"), true}, {style.say("wire"), true}, {style.say("last"), true}}, rows, style);
  if (d.ranks.size() > kMostRanks) text += "  " + style.say("… and {} more ranks (--json has all)", {std::to_string(d.ranks.size() - kMostRanks)}) + "\n";
  return text;
}

std::string collectives_text(const Diagnosis& d, const Style& style) {
  std::vector<std::vector<std::string>> rows;
  for (const CollectiveSum& s : summed_collectives(d)) {
    if (rows.size() == kMostCollectives) break;
    rows.push_back({s.group, s.op, s.bytes >= 0 ? format_bytes(static_cast<double>(s.bytes)) : "?", std::to_string(s.count), format_duration(seconds_of(s.wire_ns)),
                    format_duration(seconds_of(s.wait_ns)), s.bus_bytes_per_s > 0 ? format_rate(s.bus_bytes_per_s) : "-",
                    s.late_rank < 0 ? "-" : style.say("rank {} ({}×)", {std::to_string(s.late_rank), std::to_string(s.late_count)})});
  }
  if (rows.empty()) return {};
  return "\n" + table({{style.say("group"), false}, {style.say("operation"), false}, {style.say("size"), true}, {style.say("count"), true}, {style.say("wire"), true}, {style.say("first waits"), true},
                       {style.say("bus"), true}, {style.say("last to come"), false}}, rows, style);
}

std::string causes_text(const Diagnosis& d, const Style& style) {
  if (d.causes.empty()) return {};
  std::vector<std::vector<std::string>> rows;
  for (const Cause& c : d.causes) {
    if (rows.size() == 5) break;
    rows.push_back({style.say(c.what), format_duration(c.cost_s), format_duration(c.step_time_without_s)});
  }
  std::string text = "\n" + style.say("measured {} · ideal {}", {format_duration(d.measured_s), format_duration(d.ideal_s)}) + "\n";
  text += table({{style.say("cause"), false}, {style.say("costs"), true}, {style.say("without it"), true}}, rows, style);
  if (!d.causes.front().remedy.empty()) text += style.say("What helps") + ": " + style.say(d.causes.front().remedy) + "\n";
  return text;
}

std::string defects_text(const Diagnosis& d, const Style& style) {
  trace::Defects sum;
  for (const RankResult& r : d.ranks) {
    for (std::size_t i = 0; i < sum.count.size(); ++i) sum.count[i] += r.defects.count[i];
  }
  std::string text;
  for (std::size_t i = 0; i < sum.count.size(); ++i) {
    const auto defect = static_cast<trace::Defect>(i);
    if (sum.count[i] > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", sum.count[i], style.say(trace::name(defect)));
  }
  if (text.empty()) return {};
  return style.dim(style.say("Events: {} dropped ({})", {std::to_string(sum.dropped()), text})) + "\n";
}

}  // namespace

std::string diagnose_text(const Diagnosis& d, const Style& style, bool quiet) {
  std::string text;
  if (!d.choke_point.empty()) text += style.bold(style.say(d.choke_point)) + "\n";
  if (quiet && !d.choke_point.empty()) return text;
  text += head(d, style) + "\n\n" + bill_text(d, style);
  if (quiet) return text;
  text += causes_text(d, style);
  text += "\n" + ranks_text(d, style) + collectives_text(d, style) + "\n" + defects_text(d, style);
  for (const Note& note : d.notes) text += style.dim(style.say("Note") + ": " + (note.pos.file.empty() ? "" : note.pos.file + ": ") + style.say(note.text)) + "\n";
  return text;
}

}  // namespace chokepoint::report
