// SPDX-License-Identifier: Apache-2.0
#pragma once
// Process groups of a strategy on hosts. Rank order is Megatron's and DeepSpeed's default: tensor fastest, then
// context, data, and pipeline slowest, so a rank's host is its number divided by the GPUs per host.
#include <chokepoint/collective/collective.hpp>
#include <chokepoint/parallel/job.hpp>

namespace chokepoint::simulate {

struct Groups {
  collective::Group tensor;
  collective::Group context;
  collective::Group expert;
  collective::Group data;       ///< everyone that shares gradients: data x context
  collective::Group shard;      ///< ranks that share one copy of sharded state
  collective::Group replicate;  ///< ranks that hold the same shard (HSDP)
  int stage_distance = 0;       ///< ranks between neighbouring pipeline stages
};

Groups groups_of(const parallel::Job& job, const parallel::Strategy& strategy);

}  // namespace chokepoint::simulate
