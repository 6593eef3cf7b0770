// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/flow/fluid.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>

namespace chokepoint::flow {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<Use> over(std::initializer_list<std::uint32_t> links, double weight = 1) {
  std::vector<Use> uses;
  for (const std::uint32_t link : links) uses.push_back({link, weight});
  return uses;
}

/// Ends of all flows by id, up to the last one; kNever for those that stall.
std::vector<double> ends(Fluid& fluid, std::size_t flows) {
  std::vector<double> end(flows, kNever);
  std::vector<FlowId> done;
  while (fluid.next_s() < kNever) {
    fluid.advance(fluid.next_s(), done);
    for (const FlowId flow : done) end[flow] = fluid.now_s();
  }
  return end;
}

TEST(Fluid, ALinkIsSharedEquallyAndTheRestSpeedsUpWhenOneEnds) {
  // 10 B/s for two flows of 10 and 30 bytes: 5 B/s each until the first ends at 2 s; the other has 20 left: 4 s.
  Fluid fluid({10});
  const FlowId small = fluid.start(over({0}), 10);
  const FlowId large = fluid.start(over({0}), 30);
  EXPECT_DOUBLE_EQ(fluid.rate(small), 5);
  EXPECT_DOUBLE_EQ(fluid.next_s(), 2);
  std::vector<FlowId> done;
  fluid.advance(2, done);
  EXPECT_EQ(done, std::vector<FlowId>{small});
  EXPECT_DOUBLE_EQ(fluid.rate(large), 10);
  EXPECT_DOUBLE_EQ(fluid.left_bytes(large), 20);
  EXPECT_DOUBLE_EQ(fluid.next_s(), 4);
  fluid.advance(kNever, done);
  EXPECT_EQ(done, std::vector<FlowId>{large});
  EXPECT_DOUBLE_EQ(fluid.now_s(), 4);
  EXPECT_DOUBLE_EQ(fluid.carried_bytes(0), 40);
  EXPECT_EQ(fluid.next_s(), kNever);
}

TEST(Fluid, ALongFlowOverAParkingLotGetsTheLeastShare) {
  // Links of 10, 6 and 12 B/s; one flow over all three, one more on the first, two more on the second, one on the
  // third. Levels: 10/2, 6/3, 12/2: the second link fills at 2, leaving the first 8 and the third 10 for one flow each.
  Fluid fluid({10, 6, 12});
  const FlowId through = fluid.start(over({0, 1, 2}), 1);
  const FlowId first = fluid.start(over({0}), 1);
  const FlowId second = fluid.start(over({1}), 1);
  fluid.start(over({1}), 1);
  const FlowId third = fluid.start(over({2}), 1);
  EXPECT_DOUBLE_EQ(fluid.rate(through), 2);
  EXPECT_DOUBLE_EQ(fluid.rate(second), 2);
  EXPECT_DOUBLE_EQ(fluid.rate(first), 8);
  EXPECT_DOUBLE_EQ(fluid.rate(third), 10);
  EXPECT_DOUBLE_EQ(fluid.load_bytes_per_s(1), 6);
}

TEST(Fluid, ACoupledFlowRunsAtItsWorstLinkEverywhere) {
  // A ring over links of 10, 10 and 4 B/s that passes the second twice: levels 10, 10/2, 4. Alone it runs at 4.
  // With another flow on the second link: levels 10, 10/3, 4: both run at 10/3 and the ring leaves 4 - 10/3 on the
  // third.
  Fluid fluid({10, 10, 4});
  const FlowId ring = fluid.start(std::vector<Use>{{0, 1}, {1, 2}, {2, 1}}, 100);
  EXPECT_DOUBLE_EQ(fluid.rate(ring), 4);
  const FlowId other = fluid.start(over({1}), 100);
  EXPECT_DOUBLE_EQ(fluid.rate(ring), 10.0 / 3);
  EXPECT_DOUBLE_EQ(fluid.rate(other), 10.0 / 3);
  EXPECT_DOUBLE_EQ(fluid.load_bytes_per_s(2), 10.0 / 3);
}

TEST(Fluid, NamingALinkTwiceIsWeightTwo) {
  Fluid fluid({10});
  const FlowId flow = fluid.start(over({0, 0}), 10);
  EXPECT_DOUBLE_EQ(fluid.rate(flow), 5);
  std::vector<FlowId> done;
  fluid.advance(kNever, done);
  EXPECT_DOUBLE_EQ(fluid.carried_bytes(0), 20);
}

TEST(Fluid, ASprayedFlowFillsItsParallelLinks) {
  Fluid fluid({10, 10, 10, 10});
  EXPECT_DOUBLE_EQ(fluid.rate(fluid.start(over({0, 1, 2, 3}, 0.25), 100)), 40);
}

TEST(Fluid, ALimitedFlowLeavesTheRestToOthers) {
  // 10 B/s, three flows, one limited to 1 B/s: 1 + 4.5 + 4.5. A limit above the fair share changes nothing.
  Fluid fluid({10});
  const FlowId limited = fluid.start(over({0}), 100, 1);
  const FlowId a = fluid.start(over({0}), 100, 9);
  const FlowId b = fluid.start(over({0}), 100);
  EXPECT_DOUBLE_EQ(fluid.rate(limited), 1);
  EXPECT_DOUBLE_EQ(fluid.rate(a), 4.5);
  EXPECT_DOUBLE_EQ(fluid.rate(b), 4.5);
}

TEST(Fluid, ALimitAloneSetsTheRateOfAFlowWithoutLinks) {
  Fluid fluid({});
  fluid.start({}, 10, 2);
  EXPECT_DOUBLE_EQ(fluid.next_s(), 5);
}

TEST(Fluid, CapacityMayChangeWhileAFlowRuns) {
  // 100 bytes at 10 B/s; after 4 s (60 left) the link drops to 2 B/s, at 14 s (40 left) it fails, at 20 s it is back
  // at 10.
  Fluid fluid({10});
  const FlowId flow = fluid.start(over({0}), 100);
  std::vector<FlowId> done;
  fluid.advance(4, done);
  fluid.set_capacity(0, 2);
  EXPECT_DOUBLE_EQ(fluid.next_s(), 34);
  fluid.advance(14, done);
  EXPECT_DOUBLE_EQ(fluid.left_bytes(flow), 40);
  fluid.set_capacity(0, 0);
  EXPECT_EQ(fluid.next_s(), kNever);
  std::vector<FlowId> stalled;
  fluid.stalled(stalled);
  EXPECT_EQ(stalled, std::vector<FlowId>{flow});
  fluid.advance(20, done);
  EXPECT_DOUBLE_EQ(fluid.left_bytes(flow), 40);
  fluid.set_capacity(0, 10);
  EXPECT_DOUBLE_EQ(fluid.next_s(), 24);
  fluid.stalled(stalled);
  EXPECT_TRUE(stalled.empty());
  fluid.advance(24, done);
  EXPECT_EQ(done, std::vector<FlowId>{flow});
  EXPECT_DOUBLE_EQ(fluid.carried_bytes(0), 100);
}

TEST(Fluid, AFailedLinkLeavesNoTraceOfItsOldLoad) {
  // 73 B/s shared by weights whose products do not add up exactly: what is left of 0 after taking them away is 0.
  Fluid fluid({73, 50});
  const FlowId odd = fluid.start(std::vector<Use>{{0, 144.1}, {0, 0.3}, {0, 73.7}}, 100);
  const FlowId other = fluid.start(over({0, 1}), 100);
  EXPECT_GT(fluid.rate(odd), 0);
  fluid.set_capacity(0, 0);
  std::vector<FlowId> stalled;
  fluid.stalled(stalled);
  EXPECT_EQ(stalled, (std::vector<FlowId>{odd, other}));
  EXPECT_EQ(fluid.next_s(), kNever);
}

TEST(Fluid, ZeroBytesAndFlowsWithoutAnythingSlowEndAtOnce) {
  Fluid fluid({10, kNever});
  std::vector<FlowId> done;
  fluid.advance(3, done);
  const FlowId nothing = fluid.start(over({0}), 0);
  const FlowId free = fluid.start({}, 1e9);
  const FlowId wide = fluid.start(over({1}), 1e9);
  EXPECT_DOUBLE_EQ(fluid.next_s(), 3);
  fluid.advance(3, done);
  EXPECT_EQ(done, (std::vector<FlowId>{nothing, free, wide}));
  EXPECT_DOUBLE_EQ(fluid.now_s(), 3);
  EXPECT_DOUBLE_EQ(fluid.carried_bytes(1), 1e9);
  EXPECT_EQ(fluid.live(), 0u);
}

TEST(Fluid, AdvanceReportsAllCompletionsOnTheWayInAscendingOrder) {
  // Flow 0 ends last: 30, 20 and 10 bytes on links of their own of 10 B/s.
  Fluid fluid({10, 10, 10});
  for (std::uint32_t i = 0; i < 3; ++i) fluid.start(over({i}), 30 - 10.0 * i);
  std::vector<FlowId> done;
  fluid.advance(2.5, done);
  EXPECT_EQ(done, (std::vector<FlowId>{1, 2}));
  EXPECT_DOUBLE_EQ(fluid.now_s(), 2.5);
  EXPECT_DOUBLE_EQ(fluid.carried_bytes(0), 25);
  EXPECT_EQ(fluid.start(over({1}), 1), 1u) << "the ids of reported flows are used again";
  fluid.advance(1, done);
  EXPECT_DOUBLE_EQ(fluid.now_s(), 2.5) << "time does not go back";
  fluid.advance(kNan, done);
  EXPECT_DOUBLE_EQ(fluid.now_s(), 2.5);
}

TEST(Fluid, BackgroundTrafficIsAFlowWithoutEndThatIsCancelled) {
  Fluid fluid({10});
  const FlowId background = fluid.start(over({0}), kNever, 4);
  EXPECT_EQ(fluid.next_s(), kNever);
  const FlowId flow = fluid.start(over({0}), 60);
  EXPECT_DOUBLE_EQ(fluid.next_s(), 10);
  std::vector<FlowId> done;
  fluid.advance(5, done);
  fluid.cancel(background);
  EXPECT_DOUBLE_EQ(fluid.rate(flow), 10);
  EXPECT_DOUBLE_EQ(fluid.next_s(), 8);
  EXPECT_DOUBLE_EQ(fluid.carried_bytes(0), 50);
  EXPECT_EQ(fluid.live(), 1u);
}

TEST(Fluid, SenselessNumbersNeitherHangNorSpread) {
  Fluid fluid({10, kNan, -5, kNever, 1e308, 1e-308});
  const FlowId sane = fluid.start(over({0}), 10);
  fluid.start(over({1}), 10);
  fluid.start(over({2}), 10);
  fluid.start(over({99}), 10);
  fluid.start(std::vector<Use>{{0, kNan}}, 10);
  fluid.start(std::vector<Use>{{0, kNever}}, 10);
  fluid.start(over({0}), 10, kNan);
  const FlowId none = fluid.start(over({0}, -1), kNan);
  const FlowId tiny = fluid.start(std::vector<Use>{{4, 1e-300}, {3, 1e300}}, 1e300);
  const FlowId large = fluid.start(std::vector<Use>{{5, 1e308}, {5, 1e308}}, 1e18);
  std::vector<FlowId> stalled;
  fluid.stalled(stalled);
  EXPECT_EQ(stalled, (std::vector<FlowId>{1, 2, 3, 4, 5, 6, large}));
  EXPECT_DOUBLE_EQ(fluid.rate(sane), 10);
  const std::vector<double> end = ends(fluid, 10);
  EXPECT_DOUBLE_EQ(end[sane], 1);
  EXPECT_DOUBLE_EQ(end[none], 0);
  EXPECT_DOUBLE_EQ(end[tiny], 0);
  EXPECT_EQ(fluid.live(), stalled.size());
}

/// A random platform with its flows; seeds make it, so a failure names one.
struct Case {
  std::vector<double> capacity;
  std::vector<std::vector<Use>> uses;
  std::vector<double> bytes, limit, start_s;
};

Case random_case(unsigned seed) {
  std::mt19937_64 random(seed);
  const auto pick = [&random](std::uint64_t count) { return random() % count; };
  const auto real = [&random](double low, double high) {
    return low + (high - low) * static_cast<double>(random() >> 11) * 0x1p-53;
  };
  Case made;
  const std::size_t links = 1 + pick(24);
  for (std::size_t i = 0; i < links; ++i) made.capacity.push_back(pick(4) == 0 ? 10 : real(1, 100));
  const std::size_t flows = 1 + pick(40);
  for (std::size_t i = 0; i < flows; ++i) {
    std::vector<Use> uses;
    const std::size_t length = 1 + pick(std::min<std::size_t>(links, 6));
    for (std::size_t k = 0; k < length; ++k) {
      uses.push_back({static_cast<std::uint32_t>(pick(links)), pick(3) == 0 ? real(0.1, 4) : 1.0});
    }
    made.uses.push_back(uses);
    made.bytes.push_back(pick(3) == 0 ? 100 : real(1, 500));
    made.limit.push_back(pick(3) == 0 ? real(0.1, 20) : kNever);
    made.start_s.push_back(pick(2) == 0 ? 0 : real(0, 20));
  }
  return made;
}

/// Max-min fairness by its definition: nothing over capacity, and each flow has a full link where none is faster, or
/// its own limit. This holds for one allocation only, so it is a complete check.
void expect_fair(const Fluid& fluid, const Case& made, const std::vector<FlowId>& live, unsigned seed) {
  for (std::uint32_t link = 0; link < made.capacity.size(); ++link) {
    EXPECT_LE(fluid.load_bytes_per_s(link), made.capacity[link] * (1 + 1e-9)) << "seed " << seed << " link " << link;
  }
  for (const FlowId flow : live) {
    const double rate = fluid.rate(flow);
    bool held = rate >= made.limit[flow] * (1 - 1e-9);
    EXPECT_LE(rate, made.limit[flow] * (1 + 1e-9)) << "seed " << seed;
    for (const Use& use : made.uses[flow]) {
      if (fluid.load_bytes_per_s(use.link) < made.capacity[use.link] * (1 - 1e-9)) continue;
      const bool fastest = std::all_of(live.begin(), live.end(), [&](FlowId other) {
        const auto& uses = made.uses[other];
        const bool here = std::any_of(uses.begin(), uses.end(), [&use](const Use& u) { return u.link == use.link; });
        return !here || fluid.rate(other) <= rate * (1 + 1e-9);
      });
      held = held || fastest;
    }
    EXPECT_TRUE(held) << "seed " << seed << ": flow " << flow << " at " << rate << " could be faster";
  }
}

TEST(Fluid, RatesAreMaxMinFairAfterEveryEventOfRandomRuns) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    Case made = random_case(seed);
    std::mt19937_64 random(seed);
    Fluid fluid(made.capacity);
    const std::size_t flows = made.uses.size();
    std::vector<FlowId> live, done;
    // Half at once, the rest one after the other between completions, with a capacity changed now and then. Ids stay
    // those of the case because all flows start before the first completion is reported.
    for (std::size_t i = 0; i < flows; ++i) {
      live.push_back(fluid.start(made.uses[i], made.bytes[i] + 1e3, made.limit[i]));
      if (i < flows / 2) continue;
      expect_fair(fluid, made, live, seed);
      fluid.advance(fluid.now_s() + 0.01, done);
      ASSERT_TRUE(done.empty());
    }
    while (fluid.next_s() < kNever) {
      expect_fair(fluid, made, live, seed);
      fluid.advance(fluid.next_s(), done);
      ASSERT_FALSE(done.empty());
      for (const FlowId flow : done) live.erase(std::find(live.begin(), live.end(), flow));
      const auto link = static_cast<std::uint32_t>(random() % made.capacity.size());
      if (random() % 3 == 0) fluid.set_capacity(link, made.capacity[link] = 1 + static_cast<double>(random() % 100));
    }
    EXPECT_TRUE(live.empty());
    EXPECT_EQ(fluid.live(), 0u);
  }
}

TEST(Fluid, WeightsOfVeryDifferentSizeNeitherHangNorOverloadALink) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    Case made = random_case(seed);
    std::mt19937_64 random(seed);
    for (std::vector<Use>& uses : made.uses) {
      for (Use& use : uses) use.weight = std::pow(10.0, static_cast<double>(random() % 25) - 12);
    }
    Fluid fluid(made.capacity);
    for (std::size_t i = 0; i < made.uses.size(); ++i) {
      fluid.start(made.uses[i], made.bytes[i], made.limit[i]);
      for (std::uint32_t link = 0; link < made.capacity.size(); ++link) {
        EXPECT_LE(fluid.load_bytes_per_s(link), made.capacity[link] * (1 + 1e-9)) << "seed " << seed;
      }
    }
    const std::vector<double> end = ends(fluid, made.uses.size());
    EXPECT_EQ(std::count(end.begin(), end.end(), kNever), 0) << "seed " << seed;
  }
}

TEST(Fluid, EveryByteOfEveryFlowIsCarriedByItsLinks) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    const Case made = random_case(seed);
    Fluid fluid(made.capacity);
    std::vector<double> expected(made.capacity.size(), 0);
    for (std::size_t i = 0; i < made.uses.size(); ++i) {
      fluid.start(made.uses[i], made.bytes[i], made.limit[i]);
      for (const Use& use : made.uses[i]) expected[use.link] += use.weight * made.bytes[i];
    }
    ends(fluid, made.uses.size());
    for (std::uint32_t link = 0; link < expected.size(); ++link)
      EXPECT_NEAR(fluid.carried_bytes(link), expected[link], 1e-9 * expected[link]);
  }
}

TEST(Fluid, TheOrderInWhichFlowsStartChangesNothing) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    const Case made = random_case(seed);
    const std::size_t flows = made.uses.size();
    std::vector<std::size_t> order(flows);
    std::iota(order.begin(), order.end(), std::size_t{0});
    Fluid straight(made.capacity);
    for (const std::size_t i : order) straight.start(made.uses[i], made.bytes[i], made.limit[i]);
    std::shuffle(order.begin(), order.end(), std::mt19937_64(seed));
    Fluid shuffled(made.capacity);
    for (const std::size_t i : order) shuffled.start(made.uses[i], made.bytes[i], made.limit[i]);
    const std::vector<double> a = ends(straight, flows);
    const std::vector<double> b = ends(shuffled, flows);
    for (std::size_t i = 0; i < flows; ++i) EXPECT_NEAR(b[i], a[order[i]], 1e-9 * a[order[i]]) << "seed " << seed;
  }
}

TEST(Fluid, SameCallsGiveTheSameBits) {
  const auto run = [](unsigned seed) {
    const Case made = random_case(seed);
    Fluid fluid(made.capacity);
    for (std::size_t i = 0; i < made.uses.size(); ++i) fluid.start(made.uses[i], made.bytes[i], made.limit[i]);
    return ends(fluid, made.uses.size());
  };
  for (unsigned seed = 0; seed < 20; ++seed) EXPECT_EQ(run(seed), run(seed));
}

TEST(Fluid, CapacitiesBelowAnyBandwidthCountAsNone) {
  // Quotients of numbers this small lose their digits: a link came out above its capacity.
  Fluid fluid({2.1322677067469772e-314, 1e9});
  const Use narrow[] = {{0, 1}, {1, 1e6}};
  const Use wide[] = {{0, 1e6}};
  fluid.start(narrow, 1);
  fluid.start(wide, 130, 137);
  EXPECT_EQ(fluid.capacity_bytes_per_s(0), 0);
  EXPECT_EQ(fluid.load_bytes_per_s(0), 0);
}

TEST(Fluid, AskingInBetweenChangesNothing) {
  // Completions are worked out when a rate changes, not when time passes, so steps between events leave no trace.
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Case made = random_case(seed);
    Fluid asked(made.capacity), left(made.capacity);
    for (std::size_t i = 0; i < made.uses.size(); ++i) {
      asked.start(made.uses[i], made.bytes[i], made.limit[i]);
      asked.rate(0);
      left.start(made.uses[i], made.bytes[i], made.limit[i]);
    }
    std::vector<FlowId> done;
    while (left.next_s() < kNever) {
      const double next = left.next_s();
      asked.advance((asked.now_s() + next) / 2, done);
      asked.carried_bytes(0);
      EXPECT_NEAR(asked.next_s(), next, 1e-9 * next);
      asked.advance(asked.next_s(), done);
      left.advance(next, done);
    }
  }
}

}  // namespace
}  // namespace chokepoint::flow
