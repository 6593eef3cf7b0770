// SPDX-License-Identifier: Apache-2.0
#pragma once
// One of several equal ways, by hash or by load.
#include <algorithm>
#include <chokepoint/flow/fluid.hpp>
#include <cstdint>
#include <utility>

namespace chokepoint::flow {

/// The finaliser of MurmurHash3: every bit of the input reaches every bit of the output.
inline std::uint64_t mixed(std::uint64_t value) {
  value ^= value >> 33;
  value *= 0xff51afd7ed558ccdULL;
  value ^= value >> 33;
  value *= 0xc4ceb9fe1a85ec53ULL;
  return value ^ (value >> 33);
}

/// Flows that a new one would meet on a link, for its capacity.
inline double crowding(const Fluid& fluid, std::uint32_t link) {
  const double capacity = fluid.capacity_bytes_per_s(link);
  return capacity > 0 ? (static_cast<double>(fluid.flows_on(link)) + 1) / capacity : kNever;
}

/// Of `count` ways the one the hash names; with `fluid` the least crowded, equals going to the first from there on.
/// `links_of(way)`: the two links of a way that others share.
template <class LinksOf>
int pick(int count, std::uint64_t hash, const Fluid* fluid, LinksOf links_of) {
  const int start = static_cast<int>(mixed(hash) % static_cast<std::uint64_t>(count));
  if (fluid == nullptr) return start;
  int best = start;
  double least = kNever;
  for (int k = 0; k < count; ++k) {
    const int way = (start + k) % count;
    const auto [a, b] = links_of(way);
    const double crowd = std::max(crowding(*fluid, a), crowding(*fluid, b));
    if (crowd >= least) continue;
    least = crowd;
    best = way;
  }
  return best;
}

}  // namespace chokepoint::flow
