// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/plan/plan.hpp>
#include <chokepoint/wiring/wiring.hpp>

#include <array>
#include <gtest/gtest.h>
#include <set>

#include "test_jobs.hpp"

namespace chokepoint::plan {
namespace {

TEST(Plan, CandidatesFitAndComeBestFirst) {
  const auto plan = make_plan(job_on("dgx-a100", 2, "llama-2-7b", 4096, 256));
  ASSERT_TRUE(plan);
  ASSERT_GE(plan->candidates.size(), 2u);
  for (std::size_t i = 0; i < plan->candidates.size(); ++i) {
    EXPECT_TRUE(plan->candidates[i].memory.fits());
    if (i > 0) { EXPECT_GE(plan->candidates[i].step_time_s, plan->candidates[i - 1].step_time_s); }
  }
  EXPECT_TRUE(plan->optimal);
  EXPECT_EQ(plan->enumerated, plan->pruned + plan->evaluated);
}

TEST(Plan, NoHandPickedStrategyBeatsTheBest) {
  const parallel::Job job = job_on("dgx-a100", 2, "llama-2-7b", 4096, 256);
  const auto plan = make_plan(job);
  ASSERT_TRUE(plan);
  const simulate::Predictor predictor(job);
  for (const char* text : {"zero=1 microbatch=1", "fsdp microbatch=2", "hsdp microbatch=2", "tensor=2 zero=1 microbatch=2",
                           "tensor=8 zero=1 microbatch=4", "pipeline=2 zero=1 microbatch=1", "pipeline=4 virtual=2 zero=1 microbatch=1"}) {
    const auto p = predictor.predict(*parallel::parse_strategy(text));
    ASSERT_TRUE(p) << text;
    if (!p->memory.fits()) continue;
    EXPECT_GE(p->step_time_s, plan->candidates.front().step_time_s * (1 - 1e-12)) << text;
  }
}

TEST(Plan, WhenNothingFitsItSaysWhatIsClosestAndWhatWouldFit) {
  const auto plan = make_plan(job_on("rtx3090-8", 1, "gpt3-175b", 2048, 64));
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->candidates.empty());
  EXPECT_FALSE(plan->optimal);
  ASSERT_TRUE(plan->closest);
  EXPECT_GT(plan->closest->memory.reserved_bytes, plan->closest->memory.capacity_bytes);
  EXPECT_FALSE(plan->would_fit.empty());
}

TEST(Plan, EveryLosingFamilyIsExplained) {
  const auto plan = make_plan(job_on("dgx-a100", 2, "llama-2-7b", 4096, 256));
  ASSERT_TRUE(plan);
  std::string all;
  for (const Loser& loser : plan->why_not) all += loser.family + ": " + loser.reason + "\n";
  EXPECT_NE(all.find("tensor parallelism across hosts"), std::string::npos);
  EXPECT_NE(all.find("DDP: does not fit"), std::string::npos);
}

TEST(Plan, ListsTheBestOfEachLayoutUnlessAskedForVariants) {
  // One layout (here: pure ZeRO-1) has many micro-batches; they would fill the list with what a reader takes for one.
  const auto job = job_on("dgx-a100", 1, "llama-2-7b", 4096, 64);
  Options options;
  options.top = 5;
  const auto layouts = make_plan(job, options);
  options.variants = true;
  const auto variants = make_plan(job, options);
  ASSERT_TRUE(layouts);
  ASSERT_TRUE(variants);
  EXPECT_EQ(layouts->candidates.front().strategy, variants->candidates.front().strategy);
  const auto degrees = [](const simulate::Prediction& p) {
    const parallel::Strategy& s = p.strategy;
    return std::array{s.tensor, s.pipeline, s.zero, static_cast<int>(s.sharder), s.shard_ranks};
  };
  std::set<std::array<int, 5>> seen;
  for (const simulate::Prediction& p : layouts->candidates) { EXPECT_TRUE(seen.insert(degrees(p)).second) << parallel::to_text(p.strategy); }
  EXPECT_LE(variants->candidates.back().step_time_s, layouts->candidates.back().step_time_s);
}

TEST(Plan, TheRunnerUpIsExplained) {
  const auto plan = make_plan(job_on("pcie-a100-8", 2, "llama-2-7b", 4096, 256));
  ASSERT_TRUE(plan);
  ASSERT_GE(plan->candidates.size(), 2u);
  bool explained = false;
  for (const Loser& loser : plan->why_not) {
    explained = explained || (loser.strategy && loser.step_time_s == plan->candidates[1].step_time_s && !loser.reason.empty());
  }
  EXPECT_TRUE(explained);
}

TEST(Plan, BatchThatNothingDividesIsAnError) {
  const auto plan = make_plan(job_on("dgx-a100", 1, "llama-2-7b", 4096, 0.5));
  ASSERT_FALSE(plan);
  EXPECT_FALSE(plan.error().notes.empty());
}

}  // namespace
}  // namespace chokepoint::plan
