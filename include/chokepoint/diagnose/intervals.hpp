// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sets of time as sorted, disjoint half-open intervals of whole nanoseconds; every operation is exact.
#include <cstdint>
#include <vector>

namespace chokepoint::diagnose {

struct Interval {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  bool operator==(const Interval&) const = default;
};

/// Sorted by begin, pairwise disjoint and not touching, none empty.
using Intervals = std::vector<Interval>;

/// Any intervals, in any order -> their union.
Intervals united(std::vector<Interval> any);
Intervals united(const Intervals& a, const Intervals& b);
Intervals common(const Intervals& a, const Intervals& b);
/// What is in `a` and not in `b`.
Intervals without(const Intervals& a, const Intervals& b);
std::int64_t length(const Intervals& a);

}  // namespace chokepoint::diagnose
