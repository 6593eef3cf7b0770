// SPDX-License-Identifier: Apache-2.0
// How long does the optimum of the whole space take, with its proof, and what do a bound and a full prediction cost beside
// each other in the same run? GPT-3 175B on 4,096 A100, every framework's choices; one core.
#include <benchmark/benchmark.h>

#include <chokepoint/job/read_job.hpp>
#include <chokepoint/plan/plan.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "../src/plan/floor.hpp"
#include "../src/plan/space.hpp"

namespace {

using namespace chokepoint;

template <class T>
T must(Result<T> result) {
  if (result) return std::move(*result);
  std::fputs(format(result.error()).c_str(), stderr);
  std::exit(1);
}

parallel::Job gpt3(int gpus) {
  job::Options options;
  options.model = "gpt3-175b";
  options.cluster = "dgx-a100";
  options.gpus = gpus;
  options.batch = 1536;
  options.sequence = 2048;
  return must(job::read_job("", "", options)).job;
}

plan::Options whole_space() {
  plan::Options options;
  options.top = 1;
  options.explain = false;
  options.constraints.any_framework = true;
  return options;
}

/// The search as `chokepoint plan --any-framework --top 1` makes it.
void optimum(benchmark::State& state) {
  const parallel::Job job = gpt3(4096);
  plan::Plan found;
  for (auto _ : state) found = must(plan::make_plan(job, whole_space()));
  if (!found.optimal || found.candidates.empty()) state.SkipWithError("no proved optimum");
  state.counters["legal"] = static_cast<double>(found.enumerated);
  state.counters["evaluated"] = static_cast<double>(found.evaluated);
  state.counters["bounds"] = static_cast<double>(found.bounds);
}
BENCHMARK(optimum)->Unit(benchmark::kMillisecond);

/// Every strategy of the degrees that win, with floor and stages, as the search holds them.
struct Leaves {
  parallel::Job job = gpt3(4096);
  plan::Options options = whole_space();
  simulate::Predictor predictor{job};
  plan::Floors floors{predictor};
  std::vector<parallel::Strategy> strategies;
  std::vector<const plan::Floor*> floor;
  std::vector<plan::StageCounts> stages;

  Leaves() {
    const plan::Space space = must(plan::Space::of(job, options));
    for (const auto& degrees : space.degrees()) {
      if (!space.batch_divides(degrees) || degrees.context > 1) continue;
      for (const auto& sharded : space.shardings(degrees))
        for (const auto& kernel : space.kernels(sharded))
          for (const auto& leaf : space.schedules(kernel)) {
            if (strategies.size() == 100000) return;
            strategies.push_back(leaf);
            floor.push_back(&floors.of(kernel));
            stages.push_back(plan::stage_counts(job, kernel, floor.back()->uniform));
          }
    }
  }
};

void bound(benchmark::State& state) {
  const Leaves leaves;
  std::size_t at = 0;
  for (std::size_t i = 0; i < leaves.strategies.size(); i += 97) {
    if (plan::bound_s(*leaves.floor[i], leaves.stages[i], leaves.strategies[i]) > leaves.predictor.evaluate(leaves.strategies[i]).step_time_s) {
      state.SkipWithError("a bound lies above what it bounds");
      return;
    }
  }
  for (auto _ : state) {
    benchmark::DoNotOptimize(plan::bound_s(*leaves.floor[at], leaves.stages[at], leaves.strategies[at]));
    at = at + 1 == leaves.strategies.size() ? 0 : at + 1;
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(bound);

void full_prediction(benchmark::State& state) {
  const Leaves leaves;
  std::size_t at = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(leaves.predictor.evaluate(leaves.strategies[at]).step_time_s);
    at = at + 1 == leaves.strategies.size() ? 0 : at + 1;
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(full_prediction);

}  // namespace
