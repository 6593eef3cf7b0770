// SPDX-License-Identifier: Apache-2.0
// Published losses as sanity anchors: nothing here is fitted, the bounds are those of physics around the figure.
#include <chokepoint/engine/engine.hpp>

#include <gtest/gtest.h>

#include "test_jobs.hpp"

namespace chokepoint::engine {
namespace {

Spread spread_of(const parallel::Job& job, const char* text, const Imperfections& imperfections, int steps) {
  SimulateOptions options;
  options.imperfections = imperfections;
  auto spread = simulate_spread(simulate::Predictor(job), *parallel::parse_strategy(text), options, steps);
  EXPECT_TRUE(spread) << (spread ? "" : spread.error().message);
  return std::move(*spread);
}

TEST(Anchors, OneSlowGpuCostsAboutItsSlownessAndNotMore) {
  // BLOOM-176B on 384 A100 (tensor 4, pipeline 12, data 8): one slow GPU cost 5.7 % of the step (chronicles of the
  // training, 2022-04-28). A GPU 8 % slower in the last stage, which its head makes the pace of all, must cost more than
  // half of that and no more than 8 %; in a stage that waits anyway hardly anything.
  const parallel::Job job = job_on("dgx-a100", 48, "bloom-176b", 2048, 2048);
  Imperfections one;
  one.slow_ranks = {{380, 1.08}};
  const Spread s = spread_of(job, "tensor=4 sp=off pipeline=12 zero=1 microbatch=2", one, 1);
  const double loss = s.mean_s / s.even_s - 1;
  EXPECT_GT(loss, 0.03);
  EXPECT_LT(loss, 0.08);
  one.slow_ranks = {{100, 1.08}};
  const Spread hidden = spread_of(job, "tensor=4 sp=off pipeline=12 zero=1 microbatch=2", one, 1);
  EXPECT_LT(hidden.mean_s / hidden.even_s - 1, 0.5 * loss);
}

TEST(Anchors, UnevenSequencesCostTensOfPerCent) {
  // Jobs that sequence lengths dominate run 1.34 times slower on average (OSDI'25, 3,079 jobs); a spread of 30 % of the
  // work of a micro-batch over 16 replicas.
  const parallel::Job job = job_on("dgx-h100", 16, "llama-2-13b", 4096, 128);
  Imperfections uneven;
  uneven.sequence_imbalance = 0.3;
  const Spread s = spread_of(job, "tensor=2 pipeline=4 zero=1 microbatch=1", uneven, 5);
  EXPECT_GT(s.mean_s / s.even_s, 1.10);
  EXPECT_LT(s.mean_s / s.even_s, 1.60);
  ASSERT_EQ(s.losses.size(), 1u);
  EXPECT_LE(s.losses[0].p10_s, s.losses[0].cost_s + 1e-12);
  EXPECT_GE(s.losses[0].p90_s, s.losses[0].p10_s);
  // Uneven ranks wait for each other; even ones only fill and drain the pipeline.
  EXPECT_GT(s.wait_s, s.even_wait_s);
  EXPECT_GT(s.meetings, 0);
}

TEST(Anchors, AHeavyLastStageCostsLessThanItsExcess) {
  // Balancing stages gained 9.9 % where the last one's forward was 1.55 times the mean (OSDI'25): the excess of one stage
  // of p lengthens the period by it at most.
  const parallel::Job job = job_on("dgx-h100", 8, "llama-2-13b", 4096, 128);
  Imperfections heavy;
  heavy.stage_load = 1.2;
  const Spread s = spread_of(job, "tensor=2 pipeline=4 zero=1 microbatch=1", heavy, 1);
  EXPECT_GT(s.mean_s / s.even_s, 1.05);
  EXPECT_LT(s.mean_s / s.even_s, 1.25);
}

}  // namespace
}  // namespace chokepoint::engine
