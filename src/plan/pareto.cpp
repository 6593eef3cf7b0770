// SPDX-License-Identifier: Apache-2.0
// Time, memory and money at once. Money is accelerators x step time, so it parts from time only where fewer accelerators
// take longer but cost less; each number of accelerators is searched by itself. Memory: the search again under a lower and
// lower ceiling, each step below what the last answer needed, so that every point is the optimum of its ceiling.
#include <chokepoint/plan/plan.hpp>

#include <algorithm>

#include "search.hpp"

namespace chokepoint::plan {

namespace {

/// Ceilings in steps of this share of the device.
constexpr double kMemoryStep = 0.1;
constexpr int kMostPoints = 20;
constexpr int kMostHalvings = 3;

bool beats(const ParetoPoint& a, const ParetoPoint& b) {
  return a.step_time_s <= b.step_time_s && a.needed_bytes <= b.needed_bytes && a.usd_per_billion_tokens <= b.usd_per_billion_tokens;
}

/// The front of one number of accelerators, by falling memory. Ceilings share the floors: only the first pays for them.
void add_front(const parallel::Job& job, Options options, double usd_per_hour, std::vector<ParetoPoint>& points) {
  const double first_margin = options.constraints.memory_margin;
  const auto space = Space::of(job, options);
  if (!space) return;
  const simulate::Predictor predictor(job, {}, options.parameters);
  Floors floors(predictor);
  for (int i = 0; i < kMostPoints; ++i) {
    Plan plan;
    Search search(job, options, predictor, *space, floors);
    search.run(plan);
    if (search.found().empty()) return;
    const Candidate& best = search.found().front();
    const parallel::Memory memory = parallel::memory_per_rank(job, best.strategy);
    const double tokens_per_s = job.global_batch * job.sequence / best.step_time_s;
    const double usd = usd_per_hour > 0 ? usd_per_hour / 3600 * job.gpus / tokens_per_s * 1e9 : 0;
    points.push_back({job.gpus, best.strategy, best.step_time_s, memory.needed_bytes, usd});
    const double used = memory.needed_bytes / memory.capacity_bytes;
    options.constraints.memory_margin = std::max(1 - used + kMemoryStep, first_margin + kMemoryStep);
    if (options.constraints.memory_margin >= 1 || plan.stopped) return;
    if (options.time_limit_s > 0) options.time_limit_s = std::max(1e-9, options.time_limit_s - plan.search_s);
  }
}

}  // namespace

void find_pareto(const parallel::Job& job, const Options& options, double usd_per_accelerator_hour, Plan& plan) {
  plan.pareto.clear();
  Options search = options;
  search.top = 1;
  search.explain = false;
  search.variants = false;
  search.report = nullptr;
  std::vector<ParetoPoint> points;
  parallel::Job smaller = job;
  const int least = usd_per_accelerator_hour > 0 ? std::max(1, job.gpus >> kMostHalvings) : job.gpus;
  for (; smaller.gpus >= least; smaller.gpus /= 2) {
    add_front(smaller, search, usd_per_accelerator_hour, points);
    if (smaller.gpus % 2 != 0) break;
    const int per_host = std::max(1, job.cluster.gpus_per_host());
    if (smaller.gpus / 2 >= per_host && (smaller.gpus / 2) % per_host != 0) break;
  }
  std::stable_sort(points.begin(), points.end(), [](const ParetoPoint& a, const ParetoPoint& b) { return a.step_time_s < b.step_time_s; });
  for (const ParetoPoint& p : points) {
    const bool beaten = std::any_of(plan.pareto.begin(), plan.pareto.end(), [&p](const ParetoPoint& kept) { return beats(kept, p); });
    if (!beaten) plan.pareto.push_back(p);
  }
}

}  // namespace chokepoint::plan
