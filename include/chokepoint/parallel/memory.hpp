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

/// Near the capacity fragmentation decides, and that differs from run to run.
enum class Verdict { kFits, kTight, kDoesNotFit };
std::string_view name(Verdict verdict);

struct Memory {
  int stage = 0;                   ///< pipeline stage that needs most
  double parameters = 0;           ///< that the rank holds or takes part in sharding
  std::vector<MemoryPart> parts;   ///< what is live at the peak; sum = reserved_bytes
  double allocated_bytes = 0;      ///< peak of live tensors (torch.cuda.max_memory_allocated)
  double reserved_bytes = 0;       ///< held by the caching allocator (max_memory_reserved)
  double needed_bytes = 0;         ///< of the worst stage, after the allocator gave back what it can: the verdict uses this
  double overhead_bytes = 0;       ///< context and communicators, outside the allocator; nvidia-smi shows them too
  double capacity_bytes = 0;       ///< of the device, less the overhead
  bool fits() const { return needed_bytes <= capacity_bytes; }
  /// Tight: within a few per cent of the capacity, or live tensors fit but fragmentation may not let them.
  Verdict verdict() const;
};

/// Stage with the largest need. `strategy` must be completed.
Memory memory_per_rank(const Job& job, const Strategy& strategy);
/// The same for one stage, for reports that print the memory of one rank.
Memory memory_of_stage(const Job& job, const Strategy& strategy, int stage);

/// Constants of the memory model.
std::vector<Parameter> parameters();

}  // namespace chokepoint::parallel
