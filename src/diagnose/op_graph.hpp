// SPDX-License-Identifier: Apache-2.0
#pragma once
// A measured step of a pipeline as a graph, replayed with other durations. All steps and data-parallel ranks have the same
// graph (that of one rank in the first step), so it is ordered once and replayed for all of them side by side.
//
// Dependencies (as published with the ByteDance straggler study, OSDI 2025): computations of a stage in their measured
// order; each kind of send and receive in its order; a receive before the computation it feeds and after the one before;
// a send after its computation; parameters before the first forward of their chunk; after the last backward: collection,
// layer-norm and embedding reductions, gradient reduction, clipping, optimizer. A communication ends for a member at the
// latest start of all members plus that member's own transfer.
#include <chokepoint/base/result.hpp>
#include <chokepoint/trace/op_timeline.hpp>
#include <string>
#include <vector>

namespace chokepoint::diagnose {

/// An operation of the graph; its instances are (step, data rank).
struct GraphOp {
  trace::OpType type = trace::OpType::kCount;
  int stage = 0;
  int sequence = 0;
  int chunk = -1;
  bool communication = false;  ///< waits for the other members of its group
  int group = -1;
  std::vector<int> after;      ///< operations that must be over
};

struct OpGraph {
  int data_ranks = 0;
  int stages = 0;
  std::vector<int> steps;                ///< trainer's numbers
  std::vector<GraphOp> ops;
  std::vector<std::vector<int>> groups;  ///< members of each communication
  std::vector<bool> over_data;           ///< per group: the data ranks take part too
  std::vector<int> order;                ///< groups and lone operations so that everything stands after what it needs
  int dropped_steps = 0;                 ///< steps that lack operations

  std::size_t instances() const { return steps.size() * static_cast<std::size_t>(data_ranks); }
  std::size_t instance(std::size_t step, int data_rank) const { return step * static_cast<std::size_t>(data_ranks) + static_cast<std::size_t>(data_rank); }
  std::size_t at(std::size_t op, std::size_t instance) const { return op * instances() + instance; }
};

/// Seconds per (operation, instance), laid out by OpGraph::at.
struct OpTimes {
  std::vector<double> start_s;
  std::vector<double> end_s;
};

/// What each operation would last by itself: computations as measured, communications from the latest start of their
/// members to their own end.
struct OpDurations {
  std::vector<double> seconds;
};

Result<OpGraph> build_graph(const trace::OpTimeline& timeline, OpTimes& measured);
OpDurations own_durations(const OpGraph& graph, const OpTimes& measured);
/// Time from what an operation waits for to its start, at least 0: the host that did not launch in time.
std::vector<double> launch_delays(const OpGraph& graph, const OpTimes& measured);

/// Replays every step; the seconds of each. `delays` may be empty.
std::vector<double> replay(const OpGraph& graph, const std::vector<double>& durations, const std::vector<double>& delays, OpTimes* times = nullptr);

}  // namespace chokepoint::diagnose
