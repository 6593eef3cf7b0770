// SPDX-License-Identifier: Apache-2.0
// The rate of a flow from the times at which its messages came.
//
// What came by a time t is a staircase of messages; a message counts as coming evenly since the one before it. The rate is
// the slope of the least-squares line through that curve at equally spaced times, the same for all flows. Two facts make
// this better than bytes over time between the first and the last message:
//
// - The slope is linear in the curve. Flows that share a way take turns in its queue, so each alone may be silent at an end
//   of the window; the slopes of all still add up to the slope of their sum, which is the way's rate.
// - A receiver that waits for a processor sees messages late. Only times while it waits are off, and of these an end of the
//   window weighs little more than its middle.
#include <chokepoint/measure/network_probe.hpp>

#include <algorithm>
#include <iterator>

namespace chokepoint::measure {

namespace {

constexpr int kTimes = 48;

/// Bytes that came by `time`.
double came_by(const std::vector<Arrival>& arrivals, double time_s) {
  const auto next = std::upper_bound(arrivals.begin(), arrivals.end(), time_s, [](double time, const Arrival& arrival) { return time < arrival.time_s; });
  const Arrival before = next == arrivals.begin() ? Arrival{0, 0} : *std::prev(next);
  if (next == arrivals.end()) return before.bytes;
  const double span = next->time_s - before.time_s;
  return before.bytes + (span > 0 ? (next->bytes - before.bytes) * (time_s - before.time_s) / span : 0);
}

}  // namespace

double arrival_rate(const std::vector<Arrival>& arrivals, double from_s, double to_s) {
  if (arrivals.empty() || !(to_s > from_s)) return 0;
  double sum_t = 0;
  double sum_b = 0;
  double sum_tt = 0;
  double sum_tb = 0;
  for (int i = 0; i < kTimes; ++i) {
    const double t = (to_s - from_s) * i / (kTimes - 1);
    const double b = came_by(arrivals, from_s + t);
    sum_t += t;
    sum_b += b;
    sum_tt += t * t;
    sum_tb += t * b;
  }
  const double rate = (kTimes * sum_tb - sum_t * sum_b) / (kTimes * sum_tt - sum_t * sum_t);
  return std::max(0.0, rate);
}

}  // namespace chokepoint::measure
