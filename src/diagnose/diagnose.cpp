// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/diagnose/diagnose.hpp>

#include <algorithm>
#include <chokepoint/base/parallel.hpp>
#include <set>

#include "bill.hpp"
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

void bill_rank(const RankTrace& trace, const CommunicationView& view, RankResult& rank) {
  const DeviceUnions unions = device_unions(trace);
  rank.time = device_time(unions);
  const std::vector<Segment> segments = segments_of(trace, view, unions.window);
  rank.bill = bill_of(segments, unions.window);
  std::string how;
  for (StepWindow& step : find_steps(trace, how)) rank.steps.push_back({std::move(step.name), step.window, bill_of(segments, step.window)});
  if (!rank.steps.empty() && how != "profiler steps") rank.notes.push_back("steps found by " + how);
}

}  // namespace

Result<Diagnosis> diagnose(std::vector<RankTrace> traces, const Options& options) {
  static_cast<void>(options);
  if (traces.empty()) return fail("nothing to diagnose: no traces");
  Diagnosis d;
  TRY_INTO([[maybe_unused]] const bool settled, settle_ranks(traces, d.notes));
  note_world(traces, d);
  note_mixed_runs(traces, d);
  for (const RankTrace& t : traces) {
    RankResult rank;
    rank.file = t.file;
    rank.rank = t.rank;
    rank.rank_known = t.rank_known;
    rank.defects = t.defects;
    rank.notes = t.notes;
    d.ranks.push_back(std::move(rank));
    if (t.device.size() == 0) d.notes.push_back({"holds no device work: nothing to bill", {t.file, 0, 0}});
  }
  d.collectives = match_collectives(traces);
  align_clocks(traces, d.collectives, d.ranks);
  time_collectives(traces, d.ranks, d.collectives);
  sum_collectives(d, traces);
  const std::vector<CommunicationView> views = communication_views(traces, d.collectives);
  parallel_for(traces.size(), [&](std::size_t m) { bill_rank(traces[m], views[m], d.ranks[m]); });
  return d;
}

}  // namespace chokepoint::diagnose
