// SPDX-License-Identifier: Apache-2.0
// How many full predictions with bill does one core make in a second? Strategies of GPT-3 175B on 512 A100, as a search
// visits them: tensor, pipeline and data degrees, recomputation, micro-batches.
#include <benchmark/benchmark.h>

#include <chokepoint/job/read_job.hpp>
#include <chokepoint/simulate/predict.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using namespace chokepoint;

template <class T>
T must(Result<T> result) {
  if (result) return std::move(*result);
  std::fputs(format(result.error()).c_str(), stderr);
  std::exit(1);
}

parallel::Job job_of_the_bench() {
  job::Options options;
  options.model = "gpt3-175b";
  options.cluster = "dgx-a100";
  options.gpus = 512;
  options.batch = 1536;
  options.sequence = 2048;
  return must(job::read_job("", "", options)).job;
}

std::vector<parallel::Strategy> completed(const simulate::Predictor& predictor) {
  std::vector<parallel::Strategy> out;
  for (const int tensor : {1, 2, 4, 8})
    for (const int pipeline : {1, 2, 4, 8, 16})
      for (const int micro_batch : {1, 2, 4})
        for (const int zero : {0, 1}) {
          const std::string text = "tensor=" + std::to_string(tensor) + " pipeline=" + std::to_string(pipeline) +
                                   " microbatch=" + std::to_string(micro_batch) + " zero=" + std::to_string(zero);
          const auto strategy = parallel::parse_strategy(text);
          if (!strategy) continue;
          const auto prediction = predictor.predict(*strategy);
          if (prediction) out.push_back(prediction->strategy);
        }
  return out;
}

void evaluate(benchmark::State& state) {
  const parallel::Job job = job_of_the_bench();
  const simulate::Predictor predictor(job);
  const std::vector<parallel::Strategy> strategies = completed(predictor);
  for (const auto& strategy : strategies) {
    const double full = must(predictor.predict(strategy)).step_time_s;
    if (predictor.evaluate(strategy).step_time_s != full) {
      state.SkipWithError("evaluate and predict differ");
      return;
    }
  }
  std::size_t at = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(predictor.evaluate(strategies[at]).step_time_s);
    at = at + 1 == strategies.size() ? 0 : at + 1;
  }
  state.SetItemsProcessed(state.iterations());
  state.counters["strategies"] = static_cast<double>(strategies.size());
}
BENCHMARK(evaluate);

}  // namespace
