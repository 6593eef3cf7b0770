// SPDX-License-Identifier: Apache-2.0
#pragma once
// Device, link and host time of one transformer layer and of the head for one micro-batch on one rank.
#include <chokepoint/collective/collective.hpp>
#include <chokepoint/compute/kernels.hpp>
#include <chokepoint/compute/launch.hpp>
#include <chokepoint/parallel/job.hpp>
#include <chokepoint/parallel/software.hpp>
#include <chokepoint/simulate/constants.hpp>

#include <vector>

#include "groups.hpp"

namespace chokepoint::simulate {

/// Seconds of one pass (forward or backward) of one layer.
struct Pass {
  double compute = 0;   ///< kernels
  double tensor = 0;    ///< exposed tensor-parallel communication
  double context = 0;   ///< exposed context-parallel communication
  double expert = 0;    ///< exposed expert all-to-all
  double host = 0;      ///< launches and Python
  double device() const { return compute + tensor + context + expert; }
};

struct LayerCost {
  Pass forward;
  Pass backward;             ///< without recomputation
  Pass recompute;            ///< what backward runs again
  double matmul_flops = 0;   ///< forward, this rank
  double matmul_s = 0;       ///< forward GEMM and attention time, this rank
  double recompute_flops = 0; ///< products run again in backward, this rank
};

struct EndCost {             ///< embedding (first stage) or head and loss (last stage)
  Pass forward;
  Pass backward;
};

struct StepContext {
  const parallel::Job& job;
  const parallel::Strategy& strategy;
  const parallel::Software& software;
  const compute::KernelModel& kernels;
  const compute::LaunchModel& launches;
  const collective::Network& network;
  const Groups& groups;
  const Constants& constants;
  double tokens = 0;  ///< of one micro-batch on this rank's context slice
};

LayerCost layer_cost(const StepContext& context, model::LayerKind kind);
/// The mean layer of so many of each kind; `kinds` by LayerCounts::index.
LayerCost mixed(const std::vector<LayerCost>& kinds, const model::LayerCounts& counts);
EndCost embedding(const StepContext& context);
EndCost head(const StepContext& context);

/// Time of compute K beside communication C when overlapped compute runs `slowdown` times slower: MODEL section 3,
/// O(K, C) with the communication unhindered.
double overlapped(double compute_s, double communication_s, double slowdown);

/// Overlapped products run on the SMs that communication kernels leave (CTA quantisation): M / (M - c).
double interference(const hardware::Accelerator& accelerator, const Constants& constants);

}  // namespace chokepoint::simulate
