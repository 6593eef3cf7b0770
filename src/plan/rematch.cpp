// SPDX-License-Identifier: Apache-2.0
// The leading candidates once more, in the event engine: there transfers share links and ranks wait for each other, so
// candidates that the formula holds equal may part.
#include <chokepoint/engine/engine.hpp>
#include <chokepoint/plan/plan.hpp>

#include <algorithm>

namespace chokepoint::plan {

namespace {
/// A graph of more operations per step takes seconds to run: such a candidate keeps its closed form alone.
constexpr std::size_t kMostOps = 2'000'000;
}  // namespace

void rematch(const parallel::Job& job, const simulate::Parameters& parameters, std::size_t count, Plan& plan) {
  const simulate::Predictor predictor(job, {}, parameters);
  engine::SimulateOptions options;
  options.graph.most_ops = kMostOps;
  for (std::size_t i = 0; i < std::min(count, plan.candidates.size()); ++i) {
    const auto simulated = engine::simulate_step(predictor, plan.candidates[i].strategy, options);
    if (simulated) plan.engine.push_back({i, plan.candidates[i].step_time_s, simulated->step_s});
  }
  std::stable_sort(plan.engine.begin(), plan.engine.end(), [](const Rematch& a, const Rematch& b) { return a.engine_s < b.engine_s; });
}

}  // namespace chokepoint::plan
