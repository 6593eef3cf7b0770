// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory of one rank, part by part. Sources: arXiv 2205.05198 (activations), arXiv 1910.02054 (states).
#include <chokepoint/base/parameter.hpp>
#include <chokepoint/parallel/job.hpp>
#include <string_view>
#include <vector>

namespace chokepoint::parallel {

struct MemoryPart {
  std::string_view name;  ///< static: a plan asks for the memory of thousands of strategies
  double bytes = 0;
};

struct Memory {
  int stage = 0;                   ///< pipeline stage that needs most
  double parameters = 0;           ///< that the rank holds or takes part in sharding
  std::vector<MemoryPart> parts;   ///< what is live at the peak; sum = reserved_bytes
  double allocated_bytes = 0;      ///< peak of live tensors (torch.cuda.max_memory_allocated)
  double reserved_bytes = 0;       ///< held by the caching allocator (max_memory_reserved): the verdict uses this
  double overhead_bytes = 0;       ///< context and communicators, outside the allocator; nvidia-smi shows them too
  double capacity_bytes = 0;       ///< of the device, less the overhead
  bool fits() const { return reserved_bytes <= capacity_bytes; }
};

/// Stage with the largest need. `strategy` must be completed.
Memory memory_per_rank(const Job& job, const Strategy& strategy);
/// The same for one stage, for reports that print the memory of one rank.
Memory memory_of_stage(const Job& job, const Strategy& strategy, int stage);

/// Constants of the memory model.
std::vector<Parameter> parameters();

}  // namespace chokepoint::parallel
