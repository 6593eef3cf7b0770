// SPDX-License-Identifier: Apache-2.0
#pragma once
// Time of a pipeline of `micro_batches` through stages with given forward and backward times.
#include <chokepoint/parallel/job.hpp>
#include <vector>

namespace chokepoint::simulate {

struct StageTimes {
  double forward = 0;        ///< one micro-batch, seconds
  double backward = 0;       ///< with recomputation
  double weight_gradient = 0;///< part of backward that zero-bubble schedules may delay
  double period() const { return forward + backward; }
};

struct PipelineTime {
  double total = 0;
  double transfer = 0;   ///< exposed point-to-point
  double bubble = 0;     ///< idle of the slowest stage
  int slowest = 0;       ///< stage with the longest period
};

/// The longest of the chains of passes and transfers that the schedule is known to hold: no run is shorter. The stages are
/// those of the pipeline; ranks of DualPipe, which hold two each, are made of them here.
/// `send_s`: one activation transfer. `blocking`: the schedule waits for each transfer (Megatron before asynchronous p2p).
/// `wire_s`: how long one transfer keeps the busiest link busy; however well the schedule hides transfers, the link
/// carries all of them, one after the other.
PipelineTime pipeline_time(const std::vector<StageTimes>& stages, int micro_batches, int virtual_stages,
                           parallel::Schedule schedule, double send_s, bool blocking, double wire_s = 0);

/// Whether no longer chain exists: a run of these stages takes pipeline_time() itself.
bool is_exact(const std::vector<StageTimes>& stages, int micro_batches, int virtual_stages, parallel::Schedule schedule,
              double send_s, bool blocking, double wire_s);

}  // namespace chokepoint::simulate
