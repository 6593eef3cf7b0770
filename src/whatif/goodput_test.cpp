// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/whatif/goodput.hpp>

#include <cmath>

#include "scenario_for_tests.hpp"

namespace chokepoint::whatif {
namespace {

TEST(TrainingShare, WithoutFailuresIsWorkOverWorkAndCheckpoint) {
  EXPECT_DOUBLE_EQ(training_share(900, 100, 0, 50), 0.9);
}

TEST(TrainingShare, ByHand) {
  // r = 1/1000 s, t = 100, C = 10, R = 20: e^0.02 (e^0.11 - 1) / r = 118.6 s of wall time for 100 s of work.
  EXPECT_NEAR(training_share(100, 10, 1e-3, 20), 100 / (std::exp(0.02) * (std::exp(0.11) - 1) * 1000), 1e-12);
}

TEST(BestInterval, NoNeighbourIsBetter) {
  for (const double checkpoint_s : {1.0, 60.0, 3000.0}) {
    for (const double rate : {1e-6, 1e-4, 1e-3}) {
      const double best = best_interval(checkpoint_s, rate);
      const double share = training_share(best, checkpoint_s, rate, 100);
      for (const double factor : {0.5, 0.9, 0.99, 1.01, 1.1, 2.0}) {
        EXPECT_LE(training_share(best * factor, checkpoint_s, rate, 100), share * (1 + 1e-12))
            << checkpoint_s << " " << rate << " " << factor;
      }
    }
  }
}

TEST(BestInterval, TendsToYoungForRareFailures) {
  // sqrt(2 C M) = sqrt(2 x 60 x 1e6) = 10,954 s; Daly's next term is -2/3 C.
  EXPECT_NEAR(best_interval(60, 1e-6), std::sqrt(2 * 60 * 1e6) - 2.0 / 3 * 60, 1);
}

TEST(Goodput, FailuresGrowWithTheJobAndGoodputFalls) {
  const auto at = [](int gpus) {
    return goodput_of(scenario_of({.cluster = "dgx-h100", .gpus = gpus, .batch = 16384, .strategy = ""}).job);
  };
  EXPECT_NEAR(at(1024).failures_per_day, 2 * at(512).failures_per_day, 1e-12);
  for (const int gpus : {8, 64, 512, 4096}) {
    const Goodput g = at(gpus);
    EXPECT_NEAR(g.goodput + g.fraction_checkpoint + g.fraction_lost_work + g.fraction_waiting, 1, 1e-9);
    EXPECT_GE(g.fraction_lost_work, 0);
  }
  // From 64 hosts on checkpoints are quick and failures weigh; waiting depends on the spares that pay.
  const auto trained = [&](int gpus) { return at(gpus).goodput / (1 - at(gpus).fraction_waiting); };
  EXPECT_GT(trained(512), trained(4096));
}

TEST(Goodput, TheRunThatTheRateComesFrom) {
  // Llama 3 405B on 16,384: 419 interruptions in 54 days are 7.8 a day; the paper says more than 90 % effective.
  const Scenario s = scenario_of(
      {.model = "llama-3-405b", .cluster = "dgx-h100", .gpus = 16384, .batch = 2048, .sequence = 8192, .strategy = ""});
  const Goodput g = goodput_of(s.job);
  EXPECT_NEAR(g.failures_per_day, 419.0 / 54, 1e-9);
  EXPECT_GT(g.goodput, 0.90);
}

TEST(Goodput, SpareHostsAreAsManyAsMakeUsefulTimeCheapest) {
  // 8 hosts lack one in 2.3 % of the time: a ninth would cost 12.5 %.
  EXPECT_EQ(goodput_of(scenario_of({.cluster = "dgx-h100", .gpus = 64, .strategy = ""}).job).spare_hosts, 0);
  const Scenario s = scenario_of({.cluster = "dgx-h100", .gpus = 8192, .batch = 1024, .strategy = ""});
  const auto cost = [&](int spares) {
    Failures f;
    f.spare_hosts = spares;
    return (1024 + spares) / (1 - goodput_of(s.job, f).fraction_waiting);
  };
  const int best = goodput_of(s.job).spare_hosts;
  EXPECT_GT(best, 3);
  EXPECT_LT(cost(best), cost(best - 1));
  EXPECT_LT(cost(best), cost(best + 1));
}

TEST(Goodput, WithoutSparesTheJobWaitsForRepairs) {
  const Scenario s = scenario_of({.cluster = "dgx-h100", .gpus = 1024, .batch = 1024, .strategy = ""});
  Failures none;
  none.spare_hosts = 0;
  const Goodput g = goodput_of(s.job, none);
  // Hosts in repair are Poisson with mean rate x share x repair time; any at all stops the job.
  const double mean = none.per_accelerator_hour * 1024 * none.hardware_share * 24;
  EXPECT_NEAR(g.fraction_waiting, 1 - std::exp(-mean), 1e-12);
  EXPECT_LT(g.goodput, goodput_of(s.job).goodput);
  EXPECT_LT(goodput_of(s.job).fraction_waiting, 0.01);
}

TEST(Goodput, HugeRatesAndSizesStayFinite) {
  const Scenario s = scenario_of({});
  Failures f;
  f.per_accelerator_hour = 1e12;
  f.interval_s = 1e9;
  const Goodput g = goodput_of(s.job, f);
  EXPECT_TRUE(std::isfinite(g.goodput));
  EXPECT_GE(g.goodput, 0);
  EXPECT_LE(g.goodput, 1);
}

}  // namespace
}  // namespace chokepoint::whatif
