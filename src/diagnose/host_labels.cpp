// SPDX-License-Identifier: Apache-2.0
#include "host_labels.hpp"

namespace chokepoint::diagnose {

using trace::HostKind;
using trace::RankTrace;

namespace {

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// What a range means for the work launched inside it.
enum class Range : std::uint8_t { kNothing, kRecompute, kBackward, kOptimizer };

Range range_of(std::string_view name) {
  if (name.substr(0, 15) == "Optimizer.step#") return Range::kOptimizer;
  if (contains(name, "CheckpointFunctionBackward") || contains(name, "CheckpointHigherOrderOp")) return Range::kRecompute;
  if (name.substr(0, 35) == "autograd::engine::evaluate_function") return Range::kBackward;
  return Range::kNothing;
}

/// One lookup per different name instead of one per event.
template <class T, class F>
std::vector<T> by_name(const RankTrace& trace, F of) {
  std::vector<T> values;
  for (std::size_t id = 0; id < trace.names.size(); ++id) values.push_back(of(trace.names[static_cast<trace::NameId>(id)]));
  return values;
}

}  // namespace

std::vector<LaunchedFrom> launch_labels(const RankTrace& trace) {
  const trace::HostEvents& h = trace.host_events;
  const std::vector<Range> ranges = by_name<Range>(trace, range_of);
  struct Open {
    std::int64_t end_ns;
    Range range;
  };
  std::vector<std::vector<Open>> stacks(trace.threads.size());
  std::vector<LaunchedFrom> labels(h.size(), LaunchedFrom::kElsewhere);
  for (std::size_t i = 0; i < h.size(); ++i) {
    std::vector<Open>& stack = stacks[h.thread[i]];
    while (!stack.empty() && stack.back().end_ns <= h.start_ns[i]) stack.pop_back();
    if (h.kind[i] != HostKind::kCall) {
      const Range range = ranges[h.name[i]];
      if (range != Range::kNothing) stack.push_back({h.end_ns[i], range});
      continue;
    }
    // The innermost range decides: a checkpointed block runs its forward again first, then its own backward inside.
    if (stack.empty()) continue;
    if (stack.back().range == Range::kRecompute) labels[i] = LaunchedFrom::kRecompute;
    if (stack.back().range == Range::kOptimizer) labels[i] = LaunchedFrom::kOptimizer;
  }
  return labels;
}

HostRanges host_ranges(const RankTrace& trace) {
  enum class Kind : std::uint8_t { kNothing, kData, kCheckpoint, kSynchronise };
  const std::vector<Kind> kinds = by_name<Kind>(trace, [](std::string_view name) {
    if (contains(name, "DataLoader") || contains(name, "dataloader") || contains(name, "data_loader")) return Kind::kData;
    if (contains(name, "save_checkpoint") || contains(name, "checkpoint_save") || name.substr(0, 10) == "torch.save") return Kind::kCheckpoint;
    if (contains(name, "Synchronize") || name == "aten::item" || name == "aten::_local_scalar_dense" || name == "aten::nonzero") return Kind::kSynchronise;
    return Kind::kNothing;
  });
  const trace::HostEvents& h = trace.host_events;
  std::vector<Interval> data;
  std::vector<Interval> checkpoint;
  std::vector<Interval> synchronise;
  for (std::size_t i = 0; i < h.size(); ++i) {
    const Interval range{h.start_ns[i], h.end_ns[i]};
    switch (kinds[h.name[i]]) {
      case Kind::kData: data.push_back(range); break;
      case Kind::kCheckpoint: checkpoint.push_back(range); break;
      case Kind::kSynchronise: synchronise.push_back(range); break;
      case Kind::kNothing: break;
    }
  }
  HostRanges ranges;
  ranges.data_loader = united(std::move(data));
  ranges.checkpoint = without(united(std::move(checkpoint)), ranges.data_loader);
  ranges.synchronise = without(without(united(std::move(synchronise)), ranges.data_loader), ranges.checkpoint);
  return ranges;
}

}  // namespace chokepoint::diagnose
