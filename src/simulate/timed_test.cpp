// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/simulate/timed.hpp>
#include <gtest/gtest.h>

namespace chokepoint::simulate {
namespace {

using topology::MeasuredNetwork;

/// Hosts of 10 MB/s each way without latency.
MeasuredNetwork network_of(int hosts) {
  MeasuredNetwork network;
  for (int h = 0; h < hosts; ++h) {
    network.hosts.push_back({"h" + std::to_string(h), 1, {10e6, 0, 3}, {10e6, 0, 3}, {0, 0, 3}, {}, {}});
  }
  return network;
}

TimedPlan plan_of(TimedCase scheme) {
  return {4, 1e6, 1e5, 0.01, 0.02, {std::move(scheme)}};
}

double step(const TimedPlan& plan, const MeasuredNetwork& network) {
  const Result<TimedStep> found = timed_step(plan, plan.cases.front(), network);
  EXPECT_TRUE(found) << (found ? "" : found.error().message);
  return found ? found->step_time_s : 0;
}

constexpr double kAcks = 1 + 66.0 / (2 * 1514);  ///< each link also carries the acknowledgements of what comes the other way

TEST(TimedStep, DdpWaitsForTheLastBucket) {
  // Forward takes 40 ms; the first bucket (1 MiB is reached with two layers) is ready 40 ms later, and the wire is busy from
  // then on with 2 x 3/4 x 4 MB = 6 MB at 10 MB/s.
  const TimedPlan plan = plan_of({"ddp", TimedStrategy::kDdp, 1, false, 1e9, 1});
  EXPECT_NEAR(step(plan, network_of(4)), 0.08 + 0.6 * kAcks, 1e-6);
  // No network to speak of: computation alone.
  MeasuredNetwork fast = network_of(4);
  for (auto& host : fast.hosts) host.out_bytes_per_s.median = host.in_bytes_per_s.median = 1e15;
  EXPECT_NEAR(step(plan, fast), 0.12, 1e-6);
}

TEST(TimedStep, TwoHostsExchangeHalvesBothWays) {
  // Two ranks: each sends 2 x 1/2 x 4 MB at 10 MB/s, 0.4 s, while the other way is as busy; the first bucket is ready after
  // 80 ms. Words of readiness wait behind data, so it may take longer, never less.
  const TimedPlan plan = plan_of({"ddp", TimedStrategy::kDdp, 1, false, 1e9, 1});
  const double found = step(plan, network_of(2));
  EXPECT_GE(found, 0.08 + 0.4 * kAcks - 1e-6);
  EXPECT_LE(found, 0.12 + 0.8 * kAcks);
}

TEST(TimedStep, NoSyncCommunicatesOnce) {
  const double each = step(plan_of({"", TimedStrategy::kDdp, 4, false, 1e9, 1}), network_of(4));
  const double once = step(plan_of({"", TimedStrategy::kDdp, 4, true, 1e9, 1}), network_of(4));
  const double single = step(plan_of({"", TimedStrategy::kDdp, 1, false, 1e9, 1}), network_of(4));
  EXPECT_NEAR(each, 4 * single, 1e-6);              // micro-steps follow one another
  EXPECT_NEAR(once, single + 3 * 4 * 0.03, 1e-6);   // three of them only compute
}

TEST(TimedStep, SlowestHostSetsTheRing) {
  const TimedPlan plan = plan_of({"ddp", TimedStrategy::kDdp, 1, false, 1e9, 1});
  MeasuredNetwork slow = network_of(4);
  slow.hosts[2].out_bytes_per_s.median = 5e6;
  const Result<TimedStep> found = timed_step(plan, plan.cases.front(), slow);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->busiest, "h2 out");
  EXPECT_GE(found->step_time_s, 0.08 + 6e6 / 5e6);
  EXPECT_GT(found->step_time_s, step(plan, network_of(4)));
}

TEST(TimedStep, SharedWayIsNamedAndPipelinesCrossItLess) {
  MeasuredNetwork racks = network_of(4);
  racks.groups.push_back({{0, 1}, 2e6, 2e6, 10, 10});
  racks.groups.push_back({{2, 3}, 2e6, 2e6, 10, 10});
  const TimedPlan ddp = plan_of({"", TimedStrategy::kDdp, 4, true, 1e9, 1});
  const Result<TimedStep> found = timed_step(ddp, ddp.cases.front(), racks);
  ASSERT_TRUE(found);
  EXPECT_NE(found->busiest.find("the others"), std::string::npos) << found->busiest;
  EXPECT_LT(step(plan_of({"", TimedStrategy::kPipeline, 4, false, 0, 2}), racks), found->step_time_s);
}

TEST(TimedStep, PipelineWithoutTransfersIsOneForwardOneBackward) {
  // 2 stages of 2 layers, 4 micro-batches on 2 ranks: (m + p - 1)(f + b) = 9 x 60 ms with m = 8.
  MeasuredNetwork fast = network_of(2);
  for (auto& host : fast.hosts) host.out_bytes_per_s.median = host.in_bytes_per_s.median = 1e15;
  EXPECT_NEAR(step(plan_of({"", TimedStrategy::kPipeline, 4, false, 0, 2}), fast), 9 * 0.06, 1e-6);
}

TEST(TimedStep, FasterLinksNeverMakeASlowerStep) {
  for (const TimedStrategy strategy : {TimedStrategy::kDdp, TimedStrategy::kZero1, TimedStrategy::kSharded, TimedStrategy::kPipeline}) {
    const TimedPlan plan = plan_of({"", strategy, 2, false, 1e6, 2});
    double before = 1e9;
    for (const double rate : {2e6, 8e6, 32e6}) {
      MeasuredNetwork network = network_of(4);
      for (auto& host : network.hosts) host.out_bytes_per_s.median = host.in_bytes_per_s.median = rate;
      const double now = step(plan, network);
      EXPECT_LT(now, before) << name(strategy) << " " << rate;
      before = now;
    }
  }
}

TEST(TimedStep, LinkWithoutRateIsNoLimitAndImpossibleCasesAreErrors) {
  MeasuredNetwork unknown = network_of(3);
  for (auto& host : unknown.hosts) host.out_bytes_per_s = host.in_bytes_per_s = {};
  EXPECT_NEAR(step(plan_of({"", TimedStrategy::kDdp, 1, false, 1e9, 1}), unknown), 0.12, 1e-9);
  const TimedPlan plan = plan_of({"p", TimedStrategy::kPipeline, 1, false, 0, 2});
  EXPECT_EQ(timed_step(plan, plan.cases.front(), network_of(3)).error().message, "'p': 2 stages do not divide 3 ranks");
}

TEST(TimedPlan, FaultsAreNamed) {
  const auto fault = [](const std::string& text) { return read_timed_plan(text, "p.json").error().message; };
  EXPECT_EQ(fault("3"), "this is no JSON object, expected a plan as experiments/network/steps.json");
  EXPECT_EQ(fault("{}"), "'layers' is missing, expected a number from 1 to 1024");
  EXPECT_EQ(fault(R"({"layers":1,"layer_bytes":8,"activation_bytes":8,"forward_s":0,"backward_s":0,"cases":[{"strategy":"x"}]})"),
            "unknown strategy 'x', expected ddp, zero1, sharded or pipeline");
}

}  // namespace
}  // namespace chokepoint::simulate
