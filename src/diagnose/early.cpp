// SPDX-License-Identifier: Apache-2.0
// Gradients that are reduced in every micro-step of an accumulation. Told by PyTorch's own ranges: a reduction after which
// another forward pass of DistributedDataParallel begins before the optimizer's next step was not the last of its step.
#include "early.hpp"

#include <algorithm>

namespace chokepoint::diagnose {

using trace::RankTrace;

namespace {

struct Ranges {
  std::vector<std::int64_t> forward_ns;   ///< starts, ascending
  std::vector<std::int64_t> step_end_ns;  ///< starts of the optimizer's steps, else of the profiler's next steps
};

Ranges ranges_of(const RankTrace& trace) {
  Ranges r;
  std::vector<std::int64_t> profiler;
  const trace::HostEvents& h = trace.host_events;
  for (std::size_t i = 0; i < h.size(); ++i) {
    if (h.kind[i] == trace::HostKind::kCall) continue;
    const std::string_view name = trace.names[h.name[i]];
    if (name == "DistributedDataParallel.forward") r.forward_ns.push_back(h.start_ns[i]);
    if (name.substr(0, 15) == "Optimizer.step#") r.step_end_ns.push_back(h.start_ns[i]);
    if (name.substr(0, 13) == "ProfilerStep#") profiler.push_back(h.end_ns[i]);
  }
  if (r.step_end_ns.empty()) r.step_end_ns = std::move(profiler);
  return r;
}

}  // namespace

void mark_early_reductions(const std::vector<RankTrace>& traces, std::vector<MatchedCollective>& collectives) {
  std::vector<Ranges> ranges;
  for (const RankTrace& t : traces) ranges.push_back(ranges_of(t));
  for (MatchedCollective& c : collectives) {
    if (c.op != collective::Op::kAllReduce || !c.op_known || c.dimension != simulate::Bill::kDataReduce) continue;
    const auto m = static_cast<std::size_t>(c.members.front());
    const RankTrace& t = traces[m];
    const std::int32_t launch = t.device.launch[c.events.front()];
    const std::int64_t at = launch >= 0 ? t.host_events.start_ns[static_cast<std::size_t>(launch)] : t.device.start_ns[c.events.front()];
    const auto forward = std::upper_bound(ranges[m].forward_ns.begin(), ranges[m].forward_ns.end(), at);
    const auto step = std::upper_bound(ranges[m].step_end_ns.begin(), ranges[m].step_end_ns.end(), at);
    c.early = forward != ranges[m].forward_ns.end() && step != ranges[m].step_end_ns.end() && *forward < *step;
  }
}

}  // namespace chokepoint::diagnose
