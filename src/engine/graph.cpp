// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/engine/graph.hpp>

#include <fmt/format.h>

namespace chokepoint::engine {

using simulate::Bill;

std::string_view name(Work work) {
  switch (work) {
    case Work::kForward:
      return "forward";
    case Work::kBackward:
      return "backward";
    case Work::kRecompute:
      return "recompute";
    case Work::kWeightGradient:
      return "weight gradient";
    case Work::kHost:
      return "host";
    case Work::kTensor:
      return "tensor";
    case Work::kContext:
      return "context";
    case Work::kExpert:
      return "expert";
    case Work::kSendForward:
      return "send forward";
    case Work::kSendBackward:
      return "send backward";
    case Work::kGather:
      return "parameter gather";
    case Work::kParameters:
      return "updated parameters";
    case Work::kReduce:
      return "gradient reduction";
    case Work::kReplicate:
      return "replica reduction";
    case Work::kTied:
      return "tied embedding";
    case Work::kNorm:
      return "gradient norm";
    case Work::kOptimizer:
      return "optimizer";
    case Work::kOffload:
      return "offload";
    case Work::kFixed:
      return "step overhead";
  }
  return "?";
}

Bill bill_of(Work work) {
  switch (work) {
    case Work::kForward:
    case Work::kBackward:
    case Work::kWeightGradient:
      return Bill::kCompute;
    case Work::kRecompute:
      return Bill::kRecompute;
    case Work::kHost:
      return Bill::kHost;
    case Work::kTensor:
      return Bill::kTensor;
    case Work::kContext:
      return Bill::kContext;
    case Work::kExpert:
      return Bill::kExpert;
    case Work::kSendForward:
    case Work::kSendBackward:
      return Bill::kPipeline;
    case Work::kGather:
    case Work::kParameters:
      return Bill::kDataGather;
    case Work::kReduce:
    case Work::kReplicate:
    case Work::kTied:
      return Bill::kDataReduce;
    case Work::kNorm:
      return Bill::kBubble;
    case Work::kOptimizer:
      return Bill::kOptimizer;
    case Work::kOffload:
      return Bill::kOffload;
    case Work::kFixed:
      return Bill::kOther;
  }
  return Bill::kOther;
}

namespace {

/// Counts what each operation still waits for and takes away one operation after the other.
class Unravel {
 public:
  explicit Unravel(const StepGraph& graph) : g_(graph) {
    for (const StageGraph& s : g_.stages) {
      first_.push_back(total_);
      total_ += s.ops.size();
    }
    open_.resize(total_, 0);
    lane_next_.resize(total_, kNone);
  }

  Result<bool> run() {
    for (std::size_t s = 0; s < g_.stages.size(); ++s) {
      if (!count(s)) return fail(fmt::format("the graph of stage {} refers to operations that do not exist", s));
    }
    std::vector<std::size_t> ready;
    for (std::size_t i = 0; i < total_; ++i) {
      if (open_[i] == 0) ready.push_back(i);
    }
    std::size_t done = 0;
    for (; done < ready.size(); ++done) release(ready[done], ready);
    if (done == total_) return true;
    return fail(fmt::format("{} of {} operations of the step wait for each other in a circle", total_ - done, total_));
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  bool count(std::size_t s) {
    const StageGraph& stage = g_.stages[s];
    const std::size_t n = stage.ops.size();
    if (stage.waits_for.size() != n || stage.successor_begin.size() != n + 1) return false;
    for (const std::uint32_t to : stage.successors) {
      if (to >= n) return false;
      ++open_[first_[s] + to];
    }
    for (const auto& lane : stage.lanes) {
      for (std::size_t k = 0; k < lane.size(); ++k) {
        if (lane[k] >= n) return false;
        if (k == 0) continue;
        ++open_[first_[s] + lane[k]];
        lane_next_[first_[s] + lane[k - 1]] = first_[s] + lane[k];
      }
    }
    for (const Op& op : stage.ops) {
      if (op.peer_stage < 0) continue;
      const auto to = static_cast<std::size_t>(op.peer_stage);
      if (to >= g_.stages.size() || op.peer_op >= g_.stages[to].ops.size()) return false;
      ++open_[first_[to] + op.peer_op];
    }
    return true;
  }

  void release(std::size_t i, std::vector<std::size_t>& ready) {
    std::size_t s = g_.stages.size() - 1;
    while (first_[s] > i) --s;
    const StageGraph& stage = g_.stages[s];
    const std::size_t own = i - first_[s];
    const auto take = [&](std::size_t to) {
      if (--open_[to] == 0) ready.push_back(to);
    };
    for (std::uint32_t k = stage.successor_begin[own]; k < stage.successor_begin[own + 1]; ++k)
      take(first_[s] + stage.successors[k]);
    if (lane_next_[i] != kNone) take(lane_next_[i]);
    const Op& op = stage.ops[own];
    if (op.peer_stage >= 0) take(first_[static_cast<std::size_t>(op.peer_stage)] + op.peer_op);
  }

  const StepGraph& g_;
  std::vector<std::size_t> first_;
  std::size_t total_ = 0;
  std::vector<std::uint32_t> open_;
  std::vector<std::size_t> lane_next_;
};

}  // namespace

Result<bool> check(const StepGraph& graph) {
  if (graph.stages.empty()) return fail("a step needs at least one pipeline stage");
  return Unravel(graph).run();
}

}  // namespace chokepoint::engine
