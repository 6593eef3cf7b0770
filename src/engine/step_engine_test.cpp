// SPDX-License-Identifier: Apache-2.0
// Whole jobs: the event engine beside the closed form.
#include <chokepoint/engine/engine.hpp>
#include <chokepoint/wiring/wiring.hpp>

#include <gtest/gtest.h>
#include <numeric>
#include <random>

#include "test_jobs.hpp"

namespace chokepoint::engine {
namespace {

TEST(StepEngine, BillSumsToTheStep) {
  const parallel::Job job = job_on("dgx-a100", 4, "llama-2-7b", 4096, 64);
  const simulate::Predictor predictor(job);
  for (const char* text : {"tensor=2 pipeline=4 zero=1 microbatch=1", "zero=3 microbatch=1 recompute=full",
                           "tensor=8 microbatch=2 context=2", "pipeline=4 virtual=4 schedule=interleaved microbatch=1",
                           "zero=2 microbatch=1"}) {
    const auto strategy = parallel::parse_strategy(text);
    ASSERT_TRUE(strategy);
    const auto s = simulate_step(predictor, *strategy, {});
    ASSERT_TRUE(s) << text << ": " << (s ? "" : s.error().message);
    EXPECT_NEAR(std::accumulate(s->bill.begin(), s->bill.end(), 0.0), s->step_s, 1e-9 * s->step_s) << text;
    for (std::size_t i = 0; i < s->bill.size(); ++i) EXPECT_LE(s->wait_s[i], s->bill[i] + 1e-12) << text;
    const auto again = simulate_step(predictor, *strategy, {});
    EXPECT_EQ(again->step_s, s->step_s);
  }
}

TEST(StepEngine, DataParallelJobsTakeTheFormulasTime) {
  // One stage, nothing on the wires but data parallelism, kernels that keep the device busy: the declared subdomain.
  for (const char* text :
       {"microbatch=2", "zero=1 microbatch=2", "zero=2 microbatch=2", "zero=3 microbatch=2 recompute=full"}) {
    const parallel::Job job = job_on("dgx-h100", 8, "llama-2-7b", 4096, 512);
    const simulate::Predictor predictor(job);
    const auto strategy = parallel::parse_strategy(text);
    ASSERT_TRUE(strategy);
    const auto s = simulate_step(predictor, *strategy, {});
    ASSERT_TRUE(s) << text;
    EXPECT_NEAR(s->step_s, s->closed_form_s, 0.005 * s->closed_form_s) << text;
  }
}

TEST(StepEngine, RandomJobsStayNearTheFormula) {
  std::mt19937 random(5);
  const auto draw = [&random](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  const parallel::Job job = job_on("dgx-h100", 8, "llama-2-13b", 4096, 256);
  const simulate::Predictor predictor(job);
  int compared = 0;
  for (int round = 0; round < 60; ++round) {
    const std::string text = "tensor=" + std::to_string(1 << draw(0, 3)) +
                             " pipeline=" + std::to_string(1 << draw(0, 3)) + " zero=" + std::to_string(draw(0, 1)) +
                             " microbatch=" + std::to_string(1 << draw(0, 1));
    const auto s = parallel::parse_strategy(text);
    ASSERT_TRUE(s) << text;
    const auto one = simulate_step(predictor, *s, {});
    if (!one) continue;  // a pipeline that does not divide the layers
    ++compared;
    EXPECT_GT(one->step_s, 0.97 * one->closed_form_s) << parallel::to_text(one->strategy);
    EXPECT_LT(one->step_s, 1.10 * one->closed_form_s) << parallel::to_text(one->strategy);
  }
  EXPECT_GT(compared, 30);
}

TEST(StepEngine, SlowerRanksAndWiresNeverShortenAStep) {
  const parallel::Job job = job_on("dgx-a100", 4, "llama-2-7b", 4096, 64);
  const simulate::Predictor predictor(job);
  const auto strategy = parallel::parse_strategy("tensor=2 pipeline=4 zero=1 microbatch=1");
  ASSERT_TRUE(strategy);
  SimulateOptions options;
  const double even = simulate_step(predictor, *strategy, options)->step_s;
  double last = even;
  for (const double factor : {1.1, 1.3, 2.0}) {
    options.imperfections.slow_ranks = {{9, factor}};
    const double now = simulate_step(predictor, *strategy, options)->step_s;
    EXPECT_GE(now, last);
    last = now;
  }
  options.imperfections.slow_ranks.clear();
  options.imperfections.slow_hosts = {{1, 0.05}};
  EXPECT_GT(simulate_step(predictor, *strategy, options)->step_s, even);
}

TEST(StepEngine, SpreadNamesTheDearestCauseFirst) {
  const parallel::Job job = job_on("dgx-a100", 2, "llama-2-7b", 4096, 32);
  const simulate::Predictor predictor(job);
  const auto strategy = parallel::parse_strategy("tensor=2 zero=1 microbatch=1");
  ASSERT_TRUE(strategy);
  SimulateOptions options;
  options.imperfections.slow_ranks = {{3, 1.5}};
  options.imperfections.stalls = {{2, 0.01, 2}};
  const auto spread = simulate_spread(predictor, *strategy, options, 4);
  ASSERT_TRUE(spread);
  EXPECT_EQ(spread->step_s.size(), 4u);
  ASSERT_EQ(spread->losses.size(), 2u);
  EXPECT_EQ(spread->losses[0].cause, "slow ranks");
  EXPECT_GT(spread->losses[0].cost_s, 0.3 * spread->even_s);
  EXPECT_GT(spread->mean_s, spread->even_s);
  EXPECT_LE(spread->p10_s, spread->p90_s);
}

}  // namespace
}  // namespace chokepoint::engine
