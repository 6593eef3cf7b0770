// SPDX-License-Identifier: Apache-2.0
// How long does one simulated step take? GPT-3 175B from 8 to 131,072 accelerators, folded; 1,024 with every rank by
// itself; 1,024 with jitter, which cannot fold; flows hashed onto a fat tree. First the folded step is checked against the unfolded one.
#include <benchmark/benchmark.h>
#include <chokepoint/engine/engine.hpp>
#include <chokepoint/wiring/wiring.hpp>
#include <cmath>

namespace {

using namespace chokepoint;

parallel::Job gpt3_on(int gpus) {
  parallel::Job job;
  job.model = *model::find_model("gpt3-175b");
  job.cluster = *wiring::build_cluster("dgx-h100", gpus / 8);
  job.accelerator = *hardware::find_accelerator(job.cluster.hosts.front().host.accelerator);
  job.gpus = gpus;
  job.sequence = 2048;
  job.global_batch = 1.5 * gpus;
  return job;
}

const char* strategy_for(int gpus) {
  return gpus < 64 ? "tensor=8 microbatch=1" : "tensor=8 pipeline=8 zero=1 microbatch=1";
}

double step(int gpus, const engine::SimulateOptions& options, benchmark::State& state) {
  const parallel::Job job = gpt3_on(gpus);
  const auto strategy = parallel::parse_strategy(strategy_for(gpus));
  const auto s = engine::simulate_step(simulate::Predictor(job), *strategy, options);
  if (!s) {
    state.SkipWithError(s.error().message.c_str());
    return 0;
  }
  state.counters["classes"] = static_cast<double>(s->fold.classes.size());
  state.counters["events"] = static_cast<double>(s->run.events);
  return s->step_s;
}

void folded_step(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(step(static_cast<int>(state.range(0)), {}, state));
}
BENCHMARK(folded_step)->RangeMultiplier(4)->Range(8, 131072)->Unit(benchmark::kMillisecond);

void every_rank_by_itself(benchmark::State& state) {
  engine::SimulateOptions options;
  options.folded = false;
  const double folded = step(1024, {}, state);
  for (auto _ : state) {
    const double own = step(1024, options, state);
    if (std::fabs(own - folded) > 1e-9 * folded) state.SkipWithError("folded and unfolded steps differ");
  }
}
BENCHMARK(every_rank_by_itself)->Unit(benchmark::kMillisecond)->Iterations(1);

void every_rank_differs(benchmark::State& state) {
  engine::SimulateOptions options;
  options.imperfections.jitter = 0.02;
  for (auto _ : state) benchmark::DoNotOptimize(step(1024, options, state));
}
BENCHMARK(every_rank_differs)->Unit(benchmark::kMillisecond)->Iterations(1);

/// A fat tree of 32 hosts a leaf, 2:1, whose flows take cables by hash: no two groups are alike.
void hashed_fabric(benchmark::State& state) {
  const auto gpus = static_cast<int>(state.range(0));
  parallel::Job job = gpt3_on(gpus);
  job.cluster.fabric.kind = topology::FabricKind::kFatTree;
  job.cluster.fabric.hosts_per_leaf = 32;
  job.cluster.fabric.oversubscription = 2;
  const auto strategy = parallel::parse_strategy(strategy_for(gpus));
  engine::SimulateOptions options;
  options.spread = flow::Spread::kHash;
  for (auto _ : state) {
    const auto s = engine::simulate_step(simulate::Predictor(job), *strategy, options);
    if (!s) {
      state.SkipWithError(s.error().message.c_str());
      return;
    }
    state.counters["classes"] = static_cast<double>(s->fold.classes.size());
    state.counters["links"] = static_cast<double>(s->fold.links.size());
  }
}
BENCHMARK(hashed_fabric)->Arg(1024)->Arg(4096)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
