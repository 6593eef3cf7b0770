// SPDX-License-Identifier: Apache-2.0
#pragma once
// Matched collectives of one group, operation and size, summed: what every view of a diagnosis shows.
#include <chokepoint/diagnose/diagnose.hpp>
#include <string>
#include <vector>

namespace chokepoint::report {

struct CollectiveSum {
  std::string group;
  std::string op;  ///< "?" where the traces do not say
  std::int64_t bytes = -1;
  int count = 0;
  std::int64_t wire_ns = 0;
  std::int64_t wait_ns = 0;
  double bus_bytes_per_s = 0;  ///< mean over those where it is known; 0: none
  double expected_bus_bytes_per_s = 0;
  int late_rank = -1;  ///< most often last to come
  int late_count = 0;
};
/// Longest wire and wait first.
std::vector<CollectiveSum> summed_collectives(const diagnose::Diagnosis& diagnosis);

}  // namespace chokepoint::report
