// SPDX-License-Identifier: Apache-2.0
#pragma once
// Training steps whose computations take times that are given, on a network that was measured: what PyTorch's DDP, ZeRO-1,
// sharded and pipelined schemes take over gloo. Message by message on shared links (flow::Fluid), so unequal hosts,
// oversubscribed ways and waiting for each other need no formula of their own.
//
//   TRY_INTO(TimedPlan plan, read_timed_plan(text, "steps.json"));
//   for (const TimedCase& c : plan.cases) timed_step(plan, c, network);
#include <chokepoint/base/result.hpp>
#include <chokepoint/topology/measured_network.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::simulate {

enum class TimedStrategy { kDdp, kZero1, kSharded, kPipeline };
std::string_view name(TimedStrategy strategy);

struct TimedCase {
  std::string name;
  TimedStrategy strategy = TimedStrategy::kDdp;
  int accumulate = 1;             ///< micro-batches for each rank of the job
  bool no_sync = false;           ///< gradients meet in the last micro-step alone
  double bucket_bytes = 0;        ///< DDP
  int stages = 1;                 ///< pipeline; ranks / stages share a stage's gradients
};

struct TimedPlan {
  int layers = 1;
  double layer_bytes = 0;         ///< fp32 parameters of one layer
  double activation_bytes = 0;    ///< between pipeline stages, one micro-batch
  double forward_s = 0;           ///< one layer, one micro-batch
  double backward_s = 0;
  std::vector<TimedCase> cases;
};
/// JSON as experiments/network/steps.json.
Result<TimedPlan> read_timed_plan(std::string_view text, const std::string& file);

struct TimedStep {
  double step_time_s = 0;
  double compute_s = 0;           ///< of the busiest rank
  double sent_bytes = 0;          ///< by the host that sends most
  std::string busiest;            ///< "h2 out", "h0-1 to the others": the link nearest to full over the step
  double busiest_share = 0;
};

/// One rank for each host of the network, in its order. Errors: a case that the ranks or layers cannot carry.
Result<TimedStep> timed_step(const TimedPlan& plan, const TimedCase& scheme, const topology::MeasuredNetwork& network);

}  // namespace chokepoint::simulate
