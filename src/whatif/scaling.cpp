// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/progress.hpp>
#include <chokepoint/whatif/scaling.hpp>

#include <algorithm>
#include <chokepoint/base/units.hpp>
#include <cmath>
#include <fmt/format.h>

namespace chokepoint::whatif {

using simulate::Bill;
using simulate::Prediction;

namespace {

constexpr int kMostGpus = 1 << 20;
/// A fall of efficiency below this is no bend.
constexpr double kBend = 0.02;

ScalePoint point_at(const Scenario& scenario, const Prices& prices, const ScaleOptions& options, int gpus,
                    double batch) {
  ScalePoint point;
  point.gpus = gpus;
  point.batch = batch;
  Result<Scenario> sized = changed(scenario, {{fmt::format("gpus={}", gpus), "gpus", std::to_string(gpus)}});
  if (!sized) {
    point.state.why_not = sized.error().message;
    return point;
  }
  sized->job.global_batch = batch;
  point.state = plan_state(*sized);
  point.goodput = goodput_of(sized->job, options.failures);
  if (!point.state) return point;
  const Prediction& p = *point.state.prediction;
  point.tokens_per_s = tokens_per_step(sized->job) / p.step_time_s;
  std::string why;
  if (const auto price = hourly_price(sized->job, prices, options.basis, why)) {
    point.money = money_of(sized->job, p, *price, point.goodput.goodput, options.tokens);
    add_spares(*point.money, sized->job, point.goodput.spare_hosts);
    add_surcharges(*point.money, sized->job, prices, point.goodput.checkpoint_bytes);
  }
  return point;
}

/// Accelerator-seconds per token of each class.
double per_token(const ScalePoint& point, Bill item) {
  return point.state.prediction->item(item) / point.state.prediction->step_time_s * point.gpus / point.tokens_per_s;
}

std::optional<Bend> bend_between(const ScalePoint& a, const ScalePoint& b) {
  const double before = a.tokens_per_s / a.gpus;
  const double after = b.tokens_per_s / b.gpus;
  if (after >= (1 - kBend) * before) return std::nullopt;
  Bend bend;
  double most = 0;
  for (int i = 0; i < simulate::kBillCount; ++i) {
    const double grown = per_token(b, static_cast<Bill>(i)) - per_token(a, static_cast<Bill>(i));
    if (grown <= most) continue;
    most = grown;
    bend.bill = simulate::name(static_cast<Bill>(i));
  }
  const double all = 1 / after - 1 / before;
  bend.lost = (1 - after / before) * std::min(1.0, most / all);
  return bend;
}

void mark_front(std::vector<ScalePoint>& points) {
  for (ScalePoint& point : points) {
    if (!point.state || !point.money) continue;
    point.on_front = std::none_of(points.begin(), points.end(), [&](const ScalePoint& other) {
      if (!other.state || !other.money || other.gpus == point.gpus) return false;
      const double rate = point.tokens_per_s * point.goodput.goodput;
      const double other_rate = other.tokens_per_s * other.goodput.goodput;
      const double usd = point.money->usd_per_billion_tokens;
      const double other_usd = other.money->usd_per_billion_tokens;
      return other_rate >= rate && other_usd <= usd && (other_rate > rate || other_usd < usd);
    });
  }
}

}  // namespace

Result<std::vector<ScalePoint>> scaling(const Scenario& scenario, const Prices& prices, const ScaleOptions& options) {
  if (options.first < 1 || options.last < options.first || options.last > kMostGpus) {
    return fail(fmt::format("scale from {} to {}: expected two counts in rising order up to {}", options.first,
                            options.last, kMostGpus),
                {}, {"for example --scale 8..16384"});
  }
  std::vector<ScalePoint> points;
  const ScalePoint* before = nullptr;
  double best_rate = 0;
  std::size_t sizes = 0;
  for (long gpus = options.first; gpus <= options.last; gpus *= 2) ++sizes;
  ProgressLoop progress(sizes);
  for (long gpus = options.first; gpus <= options.last; gpus *= 2) {
    const ProgressLoop::Round round(progress);
    const double grown = scenario.job.global_batch * static_cast<double>(gpus) / scenario.job.gpus;
    const double batch = options.grow_batch ? std::max(1.0, std::round(grown)) : scenario.job.global_batch;
    ScalePoint point = point_at(scenario, prices, options, static_cast<int>(gpus), batch);
    if (stop_requested()) break;  // its search may have ended early
    points.push_back(std::move(point));
  }
  for (ScalePoint& point : points) {
    if (!point.state) continue;
    const double rate = point.tokens_per_s / point.gpus;
    best_rate = std::max(best_rate, rate);
    point.efficiency = rate / best_rate;
    if (before != nullptr) point.bend = bend_between(*before, point);
    before = &point;
  }
  mark_front(points);
  return points;
}

Deadline deadline(const Scenario& scenario, const Prices& prices, const ScaleOptions& options, double seconds) {
  Deadline out;
  if (!(options.tokens > 0) || !(seconds > 0)) {
    out.why_not = "a deadline needs the tokens of the run";
    return out;
  }
  const double needed = options.tokens / seconds;
  const int per_host = std::max(1, scenario.job.cluster.gpus_per_host());
  // Hosts of 1, 3, 5, 7 x 2^k: counts that batches and layers divide by.
  std::vector<long> hosts;
  for (const long odd : {1, 3, 5, 7}) {
    for (long count = odd; count * per_host <= kMostGpus; count *= 2) hosts.push_back(count);
  }
  std::sort(hosts.begin(), hosts.end());
  double best = 0;
  for (const long count : hosts) {
    if (stop_requested()) break;
    const auto gpus = static_cast<int>(count * per_host);
    const double grown = scenario.job.global_batch * gpus / scenario.job.gpus;
    ScalePoint point = point_at(scenario, prices, options, gpus,
                                options.grow_batch ? std::max(1.0, std::round(grown)) : scenario.job.global_batch);
    if (!point.state) continue;
    const double rate = point.tokens_per_s * point.goodput.goodput;
    best = std::max(best, rate);
    if (rate < needed) continue;
    out.point = std::move(point);
    return out;
  }
  out.why_not = fmt::format("{} tokens/s are needed, the most any size reaches is {}", format_count(std::ceil(needed)),
                            format_count(std::floor(best)));
  if (!options.grow_batch) out.why_not += "; a batch that grows with the accelerators (--grow-batch) scales further";
  return out;
}

}  // namespace chokepoint::whatif
