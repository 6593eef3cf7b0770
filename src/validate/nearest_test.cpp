// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/validate/nearest.hpp>
#include <chokepoint/wiring/describe.hpp>

#include <gmock/gmock.h>

namespace chokepoint::validate {
namespace {

parallel::Job job(const char* model, const char* accelerator, int gpus, int sequence) {
  parallel::Job job;
  job.model = model::find_model(model).value();
  job.accelerator = hardware::find_accelerator(accelerator).value();
  job.gpus = gpus;
  job.sequence = sequence;
  return job;
}

TEST(PublishedRuns, EveryEntryIsReadAndReachedAPossibleUtilisation) {
  ASSERT_GE(published_runs().size(), 60u);
  for (const PublishedRun& run : published_runs()) {
    EXPECT_GT(run.mfu, 0.05) << run.source << ": " << run.model;
    EXPECT_LT(run.mfu, 0.75) << run.source << ": " << run.model;
    EXPECT_GE(run.parameters, run.active_parameters);
    EXPECT_FALSE(run.source.empty());
  }
}

TEST(PublishedRuns, RecomputationCountedFiguresAreThreeQuartersModelWork) {
  for (const PublishedRun& run : published_runs()) {
    if (run.model != "GPT 1.7B") continue;
    EXPECT_NEAR(run.mfu, 137.0 / 312 * 0.75, 1e-9);  // SC21, table 1: 137 of 312 TFLOP/s
    return;
  }
  FAIL() << "GPT 1.7B of SC21 is missing";
}

TEST(NearestRuns, ARunOfTheCatalogueIsNearestToItself) {
  const auto strategy = parallel::parse_strategy("tensor=8 pipeline=8 virtual=3 microbatch=1 recompute=selective");
  parallel::Job same = job("gpt3-175b", "a100-sxm4-80gb", 64, 2048);
  same.dtype = hardware::Dtype::kFp16;
  const auto near = nearest_runs(same, *strategy, 3);
  ASSERT_EQ(near.size(), 3u);
  EXPECT_EQ(near[0].run->model, "GPT-3 175B");
  EXPECT_THAT(near[0].run->source, testing::HasSubstr("2205.05198"));
  EXPECT_LT(near[0].distance, 0.05);
  EXPECT_TRUE(near[0].differences.empty());
  EXPECT_LE(near[0].distance, near[1].distance);
}

TEST(NearestRuns, SayHowTheyDiffer) {
  // The same job on eight times the GPUs is one unit away.
  const auto strategy = parallel::parse_strategy("tensor=8 pipeline=8 virtual=3 microbatch=1 recompute=selective");
  parallel::Job larger = job("gpt3-175b", "a100-sxm4-80gb", 512, 2048);
  larger.dtype = hardware::Dtype::kFp16;
  for (const NearestRun& near : nearest_runs(larger, *strategy, 200)) {
    if (near.run->gpus != 64 || near.run->model != "GPT-3 175B" || near.run->accelerator != "a100-sxm4-80gb") continue;
    EXPECT_NEAR(near.distance, 1, 0.01);
    ASSERT_EQ(near.differences.size(), 1u);
    EXPECT_EQ(near.differences[0], "1/8 of the GPUs");
  }
}

TEST(NearestRuns, MixturesOfExpertsStandByThemselves) {
  parallel::Strategy strategy;
  const auto near = nearest_runs(job("deepseek-v3", "h800-sxm5-80gb", 2048, 4096), strategy, 1);
  EXPECT_LT(near.at(0).run->active_parameters, near.at(0).run->parameters);
}

}  // namespace
}  // namespace chokepoint::validate
