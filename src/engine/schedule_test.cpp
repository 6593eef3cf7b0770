// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/engine/engine.hpp>

#include <gtest/gtest.h>
#include <set>

namespace chokepoint::engine {
namespace {

using parallel::Schedule;
using Kind = Slot::Kind;

parallel::Strategy strategy(Schedule schedule, int stages, int micro_batches) {
  parallel::Strategy s;
  s.pipeline = stages;
  s.accumulate = micro_batches;
  s.schedule = schedule;
  s.virtual_stages = schedule == Schedule::kZeroBubbleV ? 2 : 1;
  return s;
}

/// Even stages: forward 1 s, backward 2 s a micro-batch, half of it weight gradients.
simulate::Pieces even(int stages) {
  simulate::Pieces p;
  for (int i = 0; i < stages; ++i) {
    simulate::StagePieces s;
    s.layers = 4;
    s.forward.compute_s = 0.25;
    s.backward.compute_s = 0.5;
    s.weight_gradient_s = 1;
    p.stages.push_back(s);
  }
  return p;
}

double end_of(const simulate::Pieces& pieces, const parallel::Strategy& s) {
  const auto graph = build_graph(pieces, s);
  EXPECT_TRUE(graph) << (graph ? "" : graph.error().message);
  Layout layout;
  layout.pipeline = s.pipeline;
  const auto r = run(*graph, fold_ranks(layout, {}, true), layout, {}, {});
  EXPECT_TRUE(r) << (r ? "" : r.error().message);
  return r->end_s;
}

TEST(Schedule, EveryPassRunsOnceInAnOrderThatTheDataAllows) {
  for (const Schedule schedule : {Schedule::kZeroBubble1, Schedule::kZeroBubble2, Schedule::kZeroBubbleV, Schedule::kDualPipe}) {
    for (const int p : {2, 4, 6}) {
      for (const int m : {1, 2, 5, 3 * p}) {
        const parallel::Strategy s = strategy(schedule, p, m);
        const auto orders = schedule_order(s, std::vector<SlotTimes>(static_cast<std::size_t>(p), SlotTimes{1, 1, 1}));
        ASSERT_EQ(orders.size(), static_cast<std::size_t>(p));
        for (const auto& order : orders) {
          ASSERT_EQ(order.size(), 3u * static_cast<std::size_t>(m * chunks_of(s)));
          std::set<std::tuple<Kind, int, int>> seen;
          for (const Slot& slot : order) {
            EXPECT_TRUE(seen.insert({slot.kind, slot.micro_batch, slot.chunk}).second);
            if (slot.kind == Kind::kForward) continue;
            const Kind before = slot.kind == Kind::kBackward ? Kind::kForward : Kind::kBackward;
            EXPECT_EQ(seen.count({before, slot.micro_batch, slot.chunk}), 1u);
          }
        }
      }
    }
  }
}

TEST(Schedule, PlacesAndPositionsAreEachOthersInverse) {
  for (const Schedule schedule : {Schedule::kOneForwardOneBackward, Schedule::kZeroBubbleV, Schedule::kDualPipe}) {
    const parallel::Strategy s = strategy(schedule, 4, 8);
    for (int micro_batch = 0; micro_batch < 2; ++micro_batch) {
      for (int at = 0; at < 4 * chunks_of(s); ++at) {
        const Place place = place_of(s, at, micro_batch);
        EXPECT_EQ(position_of(s, place.stage, place.chunk, micro_batch), at);
      }
    }
  }
  // The V: the first stage holds the first and the last of the 2p chunks.
  EXPECT_EQ(place_of(strategy(Schedule::kZeroBubbleV, 4, 8), 7, 0).stage, 0);
  // The second micro-batch of DualPipe enters at the last stage.
  EXPECT_EQ(place_of(strategy(Schedule::kDualPipe, 4, 8), 0, 1).stage, 3);
}

TEST(Schedule, TheVIdlesNoMoreThanItsFill) {
  for (const int p : {2, 4, 8}) {
    const int m = 3 * p;
    const double end = end_of(even(p), strategy(Schedule::kZeroBubbleV, p, m));
    // f = b = w = 1 in half-stages of 0.5: the stage at the bottom begins (p - 1) 0.5 late.
    EXPECT_GE(end, 3.0 * m + 0.5 * (p - 1) - 1e-9);
    // Never worse than ZB-H1 with its bubble of (p - 1)(f + b - 2w) = p - 1.
    EXPECT_LE(end, 3.0 * m + (p - 1) + 1e-9) << p;
  }
}

TEST(Schedule, TheVRunsItsHeadOnce) {
  // The first of two stages holds embedding and head: 1 s forward and 2 s backward on top of its 3 s, for 12 micro-batches.
  simulate::Pieces pieces = even(2);
  pieces.stages[0].end_forward.compute_s = 1;
  pieces.stages[0].end_backward.compute_s = 2;
  const double end = end_of(pieces, strategy(Schedule::kZeroBubbleV, 2, 12));
  EXPECT_GE(end, 12 * 6.0 - 1e-9);
  EXPECT_LE(end, 12 * 6.0 + 4.0);  // its fill and the last weight gradients
}

TEST(Schedule, DualPipeBeatsOneForwardOneBackward) {
  for (const int p : {4, 8}) {
    const int m = 4 * p;
    const double end = end_of(even(p), strategy(Schedule::kDualPipe, p, m));
    // (p/2 - 1)(F&B + B - 3W) with F&B = 3, B = 2, W = 1: the paper's bubble of 2 (p/2 - 1).
    EXPECT_GE(end, 3.0 * m) << p;
    EXPECT_LE(end, 3.0 * m + 2.0 * (p / 2 - 1) + 1.0 + 1e-9) << p;
    EXPECT_LT(end, end_of(even(p), strategy(Schedule::kOneForwardOneBackward, p, m))) << p;
  }
}

TEST(Schedule, WeightGradientsFillGapsOfUnevenStages) {
  // A last stage 1.5 times as heavy sets the pace: 4.5 s a micro-batch; the others have room for their weight gradients.
  simulate::Pieces p = even(4);
  p.stages[3].forward.compute_s *= 1.5;
  p.stages[3].backward.compute_s *= 1.5;
  p.stages[3].weight_gradient_s *= 1.5;
  const double end = end_of(p, strategy(Schedule::kZeroBubble1, 4, 16));
  EXPECT_GE(end, 4.5 * 16);
  EXPECT_LE(end, 4.5 * 16 * 1.1);
}

TEST(Schedule, ExpertExchangesHideOnlyBesideAnotherMicroBatch) {
  // One stage, 4 layers of forward 0.25 + 0.1 exchange and backward 0.5 + 0.1; a quarter of an exchange shows where two
  // micro-batches run together. Of 6 micro-batches the first forward and the last backward have nobody:
  // 6 x 3 + 0.8 x (1 + 5 x 0.25).
  simulate::Pieces p = even(1);
  p.stages[0].forward.expert_s = p.stages[0].backward.expert_s = 0.1;
  p.stages[0].paired_expert = 0.25;
  EXPECT_NEAR(end_of(p, strategy(Schedule::kOneForwardOneBackward, 1, 6)), 18 + 0.8 * (1 + 5 * 0.25), 1e-9);
  p.stages[0].paired_expert = 1;
  EXPECT_NEAR(end_of(p, strategy(Schedule::kOneForwardOneBackward, 1, 6)), 18 + 0.8 * 6, 1e-9);
}

}  // namespace
}  // namespace chokepoint::engine
