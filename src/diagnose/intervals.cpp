// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/diagnose/intervals.hpp>

#include <algorithm>

namespace chokepoint::diagnose {

Intervals united(std::vector<Interval> any) {
  const auto before = [](const Interval& a, const Interval& b) { return a.begin_ns < b.begin_ns; };
  if (!std::is_sorted(any.begin(), any.end(), before)) std::sort(any.begin(), any.end(), before);
  Intervals result;
  for (const Interval& next : any) {
    if (next.end_ns <= next.begin_ns) continue;
    if (!result.empty() && next.begin_ns <= result.back().end_ns) {
      result.back().end_ns = std::max(result.back().end_ns, next.end_ns);
    } else {
      result.push_back(next);
    }
  }
  return result;
}

Intervals united(const Intervals& a, const Intervals& b) {
  std::vector<Interval> all;
  all.reserve(a.size() + b.size());
  std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(all),
             [](const Interval& x, const Interval& y) { return x.begin_ns < y.begin_ns; });
  return united(std::move(all));
}

Intervals common(const Intervals& a, const Intervals& b) {
  Intervals result;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    const std::int64_t begin = std::max(a[i].begin_ns, b[j].begin_ns);
    const std::int64_t end = std::min(a[i].end_ns, b[j].end_ns);
    if (begin < end) result.push_back({begin, end});
    if (a[i].end_ns < b[j].end_ns) {
      ++i;
    } else {
      ++j;
    }
  }
  return result;
}

Intervals without(const Intervals& a, const Intervals& b) {
  Intervals result;
  std::size_t j = 0;
  for (Interval rest : a) {
    while (j < b.size() && b[j].end_ns <= rest.begin_ns) ++j;
    for (std::size_t k = j; k < b.size() && b[k].begin_ns < rest.end_ns; ++k) {
      if (b[k].begin_ns > rest.begin_ns) result.push_back({rest.begin_ns, b[k].begin_ns});
      rest.begin_ns = std::max(rest.begin_ns, b[k].end_ns);
    }
    if (rest.begin_ns < rest.end_ns) result.push_back(rest);
  }
  return result;
}

std::int64_t length(const Intervals& a) {
  std::int64_t sum = 0;
  for (const Interval& part : a) sum += part.end_ns - part.begin_ns;
  return sum;
}

}  // namespace chokepoint::diagnose
