// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/whatif/break_even.hpp>
#include <chokepoint/whatif/scaling.hpp>
#include <chokepoint/whatif/sensitivity.hpp>

#include <algorithm>

#include "scenario_for_tests.hpp"

namespace chokepoint::whatif {
namespace {

const Sensitivity* find(const Sensitivities& s, const std::string& resource) {
  const auto at = std::find_if(s.resources.begin(), s.resources.end(),
                               [&](const Sensitivity& r) { return r.resource == resource; });
  return at == s.resources.end() ? nullptr : &*at;
}

TEST(Sensitivities, LinksThatTheJobDoesNotUseHaveNone) {
  // Inside one NVSwitch host nothing crosses PCIe or sockets.
  const Scenario s = scenario_of({.gpus = 8});
  const auto found = sensitivities(s, *s.strategy);
  ASSERT_TRUE(found);
  for (const char* unused : {"pcie", "pcie-uplink", "nic-slot", "socket", "host-memory"}) {
    ASSERT_NE(find(*found, unused), nullptr) << unused;
    EXPECT_EQ(find(*found, unused)->derivative, 0) << unused;
    EXPECT_EQ(find(*found, unused)->step_time_infinite_s, found->step_time_s) << unused;
  }
  EXPECT_EQ(find(*found, "nic"), nullptr);
  EXPECT_LT(find(*found, "arithmetic")->derivative, 0);
}

TEST(Sensitivities, HeadroomContainsTheTenthAndTheDouble) {
  for (const std::string cluster : {"dgx-a100", "pcie-a100-8"}) {
    const Scenario s = scenario_of({.cluster = cluster});
    const auto found = sensitivities(s, *s.strategy);
    ASSERT_TRUE(found);
    for (const Sensitivity& r : found->resources) {
      EXPECT_LE(r.step_time_infinite_s, r.step_time_double_s * (1 + 1e-9)) << cluster << " " << r.resource;
      EXPECT_LE(r.step_time_double_s, r.step_time_plus_10_s * (1 + 1e-9)) << cluster << " " << r.resource;
    }
    EXPECT_TRUE(std::is_sorted(
        found->resources.begin(), found->resources.end(),
        [](const Sensitivity& a, const Sensitivity& b) { return a.step_time_infinite_s < b.step_time_infinite_s; }));
  }
}

TEST(Sensitivities, TheChainShortensTheStepEachTime) {
  const Scenario s =
      scenario_of({.cluster = "pcie-a100-8", .strategy = "pipeline=2 zero=1 microbatch=1 recompute=full"});
  const auto found = sensitivities(s, *s.strategy);
  ASSERT_TRUE(found);
  ASSERT_GE(found->chain.size(), 2u);
  EXPECT_LE(found->chain.size(), 4u);
  double before = found->step_time_s;
  for (const Fix& fix : found->chain) {
    EXPECT_LT(fix.step_time_s, before) << fix.resource;
    before = fix.step_time_s;
  }
}

TEST(Sensitivities, MoreMicroBatchesCanAtMostRemoveTheBubble) {
  const Scenario s = scenario_of({.strategy = "pipeline=4 zero=1 microbatch=1"});
  const auto found = sensitivities(s, *s.strategy);
  ASSERT_TRUE(found);
  const auto p = simulate::Predictor(s.job).predict(*s.strategy);
  ASSERT_TRUE(p);
  const double bubble = p->item(simulate::Bill::kBubble);
  ASSERT_GT(bubble, 0);
  EXPECT_NEAR(find(*found, "micro-batches")->step_time_infinite_s, p->step_time_s - bubble, 1e-5 * p->step_time_s);
}

TEST(NetworkBreakEven, TheBandwidthFoundKeepsTheEfficiency) {
  const Scenario s = scenario_of({});
  const NetworkBreakEven found = network_break_even(s, *s.strategy, 0.9);
  ASSERT_TRUE(found.bytes_per_s) << found.why_not;
  const auto slow = after(s, {"nic=x" + std::to_string(*found.bytes_per_s / found.now_bytes_per_s)});
  ASSERT_TRUE(slow);
  const double unlimited = *step_time(s, *s.strategy) * found.now_efficiency;
  EXPECT_NEAR(unlimited / *step_time(*slow, *s.strategy), 0.9, 0.01);
  EXPECT_FALSE(network_break_even(scenario_of({.gpus = 8}), *s.strategy).bytes_per_s);
}

TEST(Largest, OneMoreDoesNotFit) {
  const Scenario s = scenario_of({.batch = 16});
  const Largest found = largest_kept(s, *s.strategy);
  ASSERT_GT(found.layers, 32);
  Scenario at = s;
  at.job.model.layers = found.layers;
  EXPECT_TRUE(parallel::memory_per_rank(at.job, *parallel::completed(at.job, *s.strategy)).fits());
  at.job.model.layers = found.layers + 1;
  EXPECT_FALSE(parallel::memory_per_rank(at.job, *parallel::completed(at.job, *s.strategy)).fits());
  EXPECT_GE(found.sequence, 4096);
  EXPECT_EQ(found.sequence % 1024, 0);
  EXPECT_GE(found.micro_batch, 1);
}

TEST(Scaling, StrongScalingKeepsTheBatchAndWeakGrowsIt) {
  const Scenario s = scenario_of({});
  ScaleOptions options;
  options.first = 8;
  options.last = 64;
  const auto strong = scaling(s, shipped_prices(), options);
  options.grow_batch = true;
  const auto weak = scaling(s, shipped_prices(), options);
  ASSERT_TRUE(strong && weak);
  ASSERT_EQ(strong->size(), 4u);
  EXPECT_EQ(strong->back().batch, 64);
  EXPECT_EQ(weak->back().batch, 256);  // 64 x 64 / 16
  for (const ScalePoint& p : *strong) EXPECT_LE(p.efficiency, 1);
  // A bend is named where, and only where, efficiency falls.
  for (std::size_t i = 1; i < strong->size(); ++i) {
    const double fall =
        (*strong)[i - 1].tokens_per_s / (*strong)[i - 1].gpus - (*strong)[i].tokens_per_s / (*strong)[i].gpus;
    EXPECT_TRUE(!(*strong)[i].bend || fall > 0);
  }
}

TEST(Scaling, ThePointsOnTheFrontAreNotBeaten) {
  ScaleOptions options;
  options.first = 8;
  options.last = 128;
  const auto points = scaling(scenario_of({}), shipped_prices(), options);
  ASSERT_TRUE(points);
  EXPECT_TRUE(std::any_of(points->begin(), points->end(), [](const ScalePoint& p) { return p.on_front; }));
  for (const ScalePoint& p : *points) {
    if (!p.on_front) continue;
    for (const ScalePoint& q : *points) {
      const bool better = q.state && q.tokens_per_s * q.goodput.goodput > p.tokens_per_s * p.goodput.goodput &&
                          q.money->usd_per_billion_tokens < p.money->usd_per_billion_tokens;
      EXPECT_FALSE(better) << q.gpus << " beats " << p.gpus;
    }
  }
}

TEST(Deadline, HalfTheTimeTakesMoreAccelerators) {
  const Scenario s = scenario_of({.batch = 512});
  ScaleOptions options;
  options.tokens = 1e11;
  const double rate = tokens_per_step(s.job) / *step_time(s, *s.strategy);
  const Deadline slow = deadline(s, shipped_prices(), options, options.tokens / rate);
  const Deadline fast = deadline(s, shipped_prices(), options, options.tokens / rate / 2);
  ASSERT_TRUE(slow.point && fast.point);
  EXPECT_GT(fast.point->gpus, slow.point->gpus);
  EXPECT_FALSE(deadline(s, shipped_prices(), options, 1).point);
}

}  // namespace
}  // namespace chokepoint::whatif
