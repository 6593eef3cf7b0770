// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory of one rank, part by part. Sources: arXiv 2205.05198 (activations), arXiv 1910.02054 (states).
#include <chokepoint/parallel/job.hpp>
#include <string>
#include <vector>

namespace chokepoint::parallel {

struct MemoryPart {
  std::string name;
  double bytes = 0;
};

struct Memory {
  int stage = 0;                   ///< pipeline stage that needs most
  std::vector<MemoryPart> parts;   ///< sum = reserved_bytes
  double allocated_bytes = 0;      ///< peak of live tensors
  double reserved_bytes = 0;       ///< what the caching allocator and the driver hold: the verdict uses this
  double capacity_bytes = 0;       ///< usable
  bool fits() const { return reserved_bytes <= capacity_bytes; }
};

/// Stage with the largest need. `strategy` must be completed.
Memory memory_per_rank(const Job& job, const Strategy& strategy);

}  // namespace chokepoint::parallel
