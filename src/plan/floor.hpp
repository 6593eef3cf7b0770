// SPDX-License-Identifier: Apache-2.0
#pragma once
// Lower bounds on the step time of strategies that share their kernels. A floor is the exact time of one layer, of the
// embedding and of the head on one rank, asked once of the step model; what a bound leaves out of a step (sends, exposed
// data parallelism, optimizer, offload) is never negative, so no strategy is faster than its bound.
#include <chokepoint/plan/plan.hpp>
#include <array>
#include <cstdint>
#include <unordered_map>

namespace chokepoint::plan {

/// Device and host time of a pass: the longer of the two counts, summed over a stage.
struct PassFloor {
  double device_s = 0;
  double host_s = 0;
  double of(double times) const { return times * (device_s > host_s ? device_s : host_s); }
};

struct Floor {
  PassFloor forward, backward;            ///< one layer, one micro-batch
  std::array<PassFloor, 3> recompute;     ///< by parallel::Recompute
  PassFloor first_forward, first_backward, last_forward, last_backward;  ///< embedding; head and loss
  double layer_weight_s = 0;              ///< weight gradients that a zero-bubble schedule may delay, one layer
  double end_weight_s = 0;                ///< the larger of both ends
  double fixed_s = 0;                     ///< once per step
  bool uniform = true;                    ///< stages differ in their number of layers alone
  bool has_recompute = false;             ///< `recompute` is filled in (Floors::with_recompute)
};

/// Layers of the pipeline's stages as far as bounds need them.
struct StageCounts {
  double first = 0, last = 0, most_between = 0, total = 0;
  int stages = 1;
};
StageCounts stage_counts(const parallel::Job& job, const parallel::Strategy& strategy, bool uniform);

/// Step time below which the strategy cannot come: the slowest stage and the bubble of the schedule with free transfers.
double bound_s(const Floor& floor, const StageCounts& stages, const parallel::Strategy& strategy);

/// Floors by what decides them: micro-batch, the degrees that cut a layer, and the sharding's software.
class Floors {
 public:
  explicit Floors(const simulate::Predictor& predictor) : predictor_(predictor) {}
  const Floor& of(const parallel::Strategy& strategy);
  /// The same with recomputation, which few strategies come to need.
  const Floor& with_recompute(const parallel::Strategy& strategy);
  std::size_t size() const { return floors_.size(); }

 private:
  Floor& slot(const parallel::Strategy& strategy);
  Floor measure(const parallel::Strategy& strategy) const;

  const simulate::Predictor& predictor_;
  std::unordered_map<std::uint64_t, Floor> floors_;
};

}  // namespace chokepoint::plan
