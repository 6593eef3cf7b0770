// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/diagnose/diagnose.hpp>

#include <algorithm>
#include <chokepoint/base/parallel.hpp>
#include <chokepoint/base/units.hpp>
#include <map>
#include <set>

#include "bill.hpp"
#include "causes.hpp"
#include "early.hpp"
#include "host_work.hpp"
#include "match.hpp"
#include "steps.hpp"

namespace chokepoint::diagnose {

using trace::RankTrace;

namespace {

/// Traces that name no rank take the free numbers in the order given; two of one rank are refused.
Result<bool> settle_ranks(std::vector<RankTrace>& traces, std::vector<Note>& notes) {
  std::set<int> taken;
  for (const RankTrace& t : traces) {
    if (!t.rank_known) continue;
    if (!taken.insert(t.rank).second) {
      const auto first = std::find_if(traces.begin(), traces.end(), [&t](const RankTrace& o) { return o.rank_known && o.rank == t.rank; });
      return fail("rank " + std::to_string(t.rank) + " stands in two traces", {t.file, 0, 0},
                  {"the other is " + first->file, "give one trace per rank, all of one run"});
    }
  }
  int next = 0;
  for (RankTrace& t : traces) {
    if (t.rank_known) continue;
    while (taken.count(next) != 0) ++next;
    taken.insert(next);
    t.rank = next;
    if (traces.size() > 1) notes.push_back({"does not say its rank; taken as rank " + std::to_string(next) + " by its place", {t.file, 0, 0}});
  }
  std::stable_sort(traces.begin(), traces.end(), [](const RankTrace& a, const RankTrace& b) { return a.rank < b.rank; });
  return true;
}

void note_world(const std::vector<RankTrace>& traces, Diagnosis& d) {
  std::set<int> sizes;
  for (const RankTrace& t : traces) {
    if (t.world_size > 0) sizes.insert(t.world_size);
  }
  if (sizes.size() > 1) d.notes.push_back({"the traces name different world sizes: are they of one run?", {}});
  d.world_size = sizes.empty() ? static_cast<int>(traces.size()) : *sizes.rbegin();
  const int missing = d.world_size - static_cast<int>(traces.size());
  if (missing > 0) {
    d.notes.push_back({std::to_string(missing) + " of " + std::to_string(d.world_size) +
                           " ranks are missing: waiting for them shows as transfer, so wire times are upper bounds", {}});
  }
}

/// Ranks whose recordings do not touch in time cannot be of one run, or their clocks have nothing in common.
void note_mixed_runs(const std::vector<RankTrace>& traces, Diagnosis& d) {
  for (std::size_t m = 1; m < traces.size(); ++m) {
    const trace::DeviceEvents& a = traces[0].device;
    const trace::DeviceEvents& b = traces[m].device;
    if (a.size() == 0 || b.size() == 0) continue;
    if (a.start_ns.front() > *std::max_element(b.end_ns.begin(), b.end_ns.end()) || b.start_ns.front() > *std::max_element(a.end_ns.begin(), a.end_ns.end())) {
      d.notes.push_back({"does not overlap in time with rank " + std::to_string(traces[0].rank) + ": another run, or another clock?", {traces[m].file, 0, 0}});
    }
  }
}

/// Hosts of a group's members, by their ranks.
int hosts_of(const MatchedCollective& c, const Diagnosis& d, int gpus_per_host) {
  std::set<int> hosts;
  for (const int m : c.members) hosts.insert(d.ranks[static_cast<std::size_t>(m)].rank / gpus_per_host);
  return static_cast<int>(hosts.size());
}

/// What the wiring should give each collective, and a note where the measured ones stay far behind.
void expect_collectives(Diagnosis& d, const Options& options) {
  if (options.network == nullptr || options.gpus_per_host < 1) return;
  struct Sum {
    double achieved = 0;
    double expected = 0;
    std::string_view where;
    int count = 0;
  };
  std::map<std::pair<collective::Op, std::int64_t>, Sum> sums;
  for (MatchedCollective& c : d.collectives) {
    const int hosts = hosts_of(c, d, options.gpus_per_host);
    if (!c.op_known || c.bytes <= 0 || c.group_size < 2 || c.group_size % hosts != 0) continue;
    const collective::Cost cost = options.network->cost(c.op, static_cast<double>(c.bytes), {c.group_size, c.group_size / hosts, 1, 1});
    c.expected_bus_bytes_per_s = cost.bus_bytes_per_s;
    const double achieved = c.bus_bytes_per_s();
    if (achieved <= 0 || cost.bus_bytes_per_s <= 0) continue;
    Sum& sum = sums[{c.op, c.bytes}];
    sum.achieved += achieved;
    sum.expected += cost.bus_bytes_per_s;
    sum.where = cost.where;
    ++sum.count;
  }
  constexpr double kFarBehind = 0.7;
  for (const auto& [key, sum] : sums) {
    if (sum.achieved > kFarBehind * sum.expected) continue;
    d.notes.push_back({std::string(collective::name(key.first)) + " of " + format_bytes(static_cast<double>(key.second)) + " reaches " +
                           format_rate(sum.achieved / sum.count) + " on the bus, the wiring gives " + format_rate(sum.expected / sum.count) +
                           (sum.where.empty() ? std::string() : " (limit: " + std::string(sum.where) + ")"), {}});
  }
}

void sum_collectives(Diagnosis& d, const std::vector<RankTrace>& traces) {
  for (const MatchedCollective& c : d.collectives) {
    if (c.members.size() < 2) continue;
    if (c.late >= 0) ++d.ranks[static_cast<std::size_t>(c.late)].late_count;
    for (std::size_t i = 0; i < c.members.size(); ++i) {
      const auto m = static_cast<std::size_t>(c.members[i]);
      if (c.late >= 0) d.ranks[m].collective_wait_ns += c.last_start_ns - traces[m].device.start_ns[c.events[i]];
      d.ranks[m].collective_wire_ns += c.wire_ns();
    }
  }
}

/// The part of a recording that is whole steps; all of it without steps.
Interval stepped(const RankResult& rank) {
  if (rank.steps.empty()) return {rank.time.start_ns, rank.time.start_ns + rank.time.span_ns};
  return {rank.steps.front().window.begin_ns, rank.steps.back().window.end_ns};
}

void total_kernels(const RankTrace& trace, RankResult& rank) {
  const Interval window = stepped(rank);
  std::map<trace::NameId, OpTotal> by_name;
  const trace::DeviceEvents& d = trace.device;
  for (std::size_t i = 0; i < d.size(); ++i) {
    if (d.work[i] == trace::Work::kCommunication || d.start_ns[i] < window.begin_ns || d.start_ns[i] >= window.end_ns) continue;
    OpTotal& total = by_name[d.name[i]];
    total.ns += d.end_ns[i] - d.start_ns[i];
    ++total.count;
  }
  for (auto& [name, total] : by_name) {
    total.name = std::string(trace.names[name]);
    rank.ops.push_back(std::move(total));
  }
  std::sort(rank.ops.begin(), rank.ops.end(), [](const OpTotal& a, const OpTotal& b) { return a.name < b.name; });
}

void total_transfers(Diagnosis& d) {
  std::vector<std::map<std::string, OpTotal>> by_name(d.ranks.size());
  for (const MatchedCollective& c : d.collectives) {
    std::string name = (c.op_known ? std::string(collective::name(c.op)) : "operation") + " of group " + c.group;
    if (c.bytes >= 0) name += ", " + format_bytes(static_cast<double>(c.bytes));
    for (const int m : c.members) {
      const Interval window = stepped(d.ranks[static_cast<std::size_t>(m)]);
      if (c.last_start_ns < window.begin_ns || c.last_start_ns >= window.end_ns) continue;
      OpTotal& total = by_name[static_cast<std::size_t>(m)][name];
      total.ns += c.wire_ns();
      ++total.count;
    }
  }
  for (std::size_t m = 0; m < d.ranks.size(); ++m) {
    for (auto& [name, total] : by_name[m]) d.ranks[m].ops.push_back({name, true, total.ns, total.count});
  }
}

void bill_rank(const RankTrace& trace, const CommunicationView& view, RankResult& rank) {
  const DeviceUnions unions = device_unions(trace);
  rank.time = device_time(unions);
  const std::vector<Segment> segments = segments_of(trace, view, unions.window);
  rank.bill = bill_of(segments, unions.window);
  std::string how;
  for (StepWindow& step : find_steps(trace, how)) rank.steps.push_back({std::move(step.name), step.window, bill_of(segments, step.window)});
  if (!rank.steps.empty() && how != "profiler steps") rank.notes.push_back("steps found by " + how);
  total_kernels(trace, rank);
}

}  // namespace

Result<Diagnosis> diagnose(std::vector<RankTrace> traces, const Options& options) {
  if (traces.empty()) return fail("nothing to diagnose: no traces");
  Diagnosis d;
  TRY_INTO([[maybe_unused]] const bool settled, settle_ranks(traces, d.notes));
  note_world(traces, d);
  for (RankTrace& t : traces) {
    const bool on_host = use_host_as_device(t);
    RankResult rank;
    rank.file = t.file;
    rank.rank = t.rank;
    rank.rank_known = t.rank_known;
    rank.defects = t.defects;
    rank.notes = t.notes;
    if (on_host) rank.notes.emplace_back("no device work: the host's operators stand for it");
    d.ranks.push_back(std::move(rank));
    if (t.device.size() == 0) d.notes.push_back({"holds no device work: nothing to bill", {t.file, 0, 0}});
  }
  note_mixed_runs(traces, d);
  d.collectives = match_collectives(traces);
  align_clocks(traces, d.collectives, d.ranks);
  time_collectives(traces, d.ranks, d.collectives);
  mark_early_reductions(traces, d.collectives);
  expect_collectives(d, options);
  sum_collectives(d, traces);
  const std::vector<CommunicationView> views = communication_views(traces, d.collectives);
  parallel_for(traces.size(), [&](std::size_t m) { bill_rank(traces[m], views[m], d.ranks[m]); });
  total_transfers(d);
  if (options.causes) find_causes(traces, views, d);
  return d;
}

}  // namespace chokepoint::diagnose
