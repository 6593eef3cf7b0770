// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/engine/engine.hpp>

#include <gtest/gtest.h>
#include <random>

namespace chokepoint::engine {
namespace {

using parallel::Schedule;
using simulate::Bill;

/// Even stages of `layers` layers: forward 1 s and backward 2 s a micro-batch, half of backward weight gradients.
simulate::Pieces even(int stages, int layers = 4, double send_s = 0) {
  simulate::Pieces p;
  for (int i = 0; i < stages; ++i) {
    simulate::StagePieces s;
    s.layers = layers;
    s.forward.compute_s = 1.0 / layers;
    s.backward.compute_s = 2.0 / layers;
    s.weight_gradient_s = 1;
    p.stages.push_back(s);
  }
  p.send.seconds = send_s;
  return p;
}

parallel::Strategy pipeline(int stages, int micro_batches, Schedule schedule = Schedule::kOneForwardOneBackward,
                            int chunks = 1) {
  parallel::Strategy s;
  s.pipeline = stages;
  s.accumulate = micro_batches;
  s.schedule = schedule;
  s.virtual_stages = chunks;
  return s;
}

Layout layout_of(const parallel::Strategy& s) {
  Layout l;
  l.tensor = s.tensor;
  l.context = s.context;
  l.data = s.data;
  l.pipeline = s.pipeline;
  l.shard = s.data * s.context;
  return l;
}

Run ran(const simulate::Pieces& pieces, const parallel::Strategy& s, bool folded = true,
        const Imperfections& imperfections = {}, const GraphOptions& options = {}) {
  const auto graph = build_graph(pieces, s, options);
  EXPECT_TRUE(graph) << (graph ? "" : graph.error().message);
  const Layout layout = layout_of(s);
  const Ways ways = interfaces_only(layout, 1e9);
  const Fold fold = fold_ranks(layout, imperfections, folded, &ways);
  auto result = run(*graph, fold, layout, imperfections, {});
  EXPECT_TRUE(result) << (result ? "" : result.error().message);
  return *result;
}

TEST(Engine, SchedulesOfEvenStagesTakeTheirTextbookTime) {
  for (const int p : {1, 2, 4, 8}) {
    for (const int m : {1, 3, p, 2 * p, 4 * p + 1}) {
      // (m + p - 1)(f + b) for GPipe and 1F1B.
      EXPECT_NEAR(ran(even(p), pipeline(p, m, Schedule::kGpipe)).end_s, 3.0 * (m + p - 1), 1e-9) << p << " " << m;
      EXPECT_NEAR(ran(even(p), pipeline(p, m)).end_s, 3.0 * (m + p - 1), 1e-9) << p << " " << m;
      if (m < 2 * p || p == 1) continue;
      // ZB-H1: bubble (p - 1)(f + b - 2w) = (p - 1)(1 + 2 - 2) with w = 1 of b = 2.
      EXPECT_NEAR(ran(even(p), pipeline(p, m, Schedule::kZeroBubble1)).end_s, 3.0 * m + (p - 1), 1e-9) << p << " " << m;
    }
  }
}

TEST(Engine, InterleavingDividesTheBubbleByTheChunks) {
  for (const int p : {2, 4}) {
    for (const int v : {2, 4}) {
      const int m = 2 * p;
      // (m + (p - 1) / v)(f + b).
      EXPECT_NEAR(ran(even(p), pipeline(p, m, Schedule::kInterleaved, v)).end_s, 3.0 * (m + (p - 1.0) / v), 1e-9)
          << p << " " << v;
    }
  }
}

TEST(Engine, InterleavedGroupsMayBeCutShort) {
  // 7 micro-batches on 4 stages: the last group walks through the chunks with 3. Never faster than the even share.
  EXPECT_GE(ran(even(4), pipeline(4, 7, Schedule::kInterleaved, 2)).end_s, 3.0 * (7 + 1.5) - 1e-9);
}

TEST(Engine, TransfersBetweenStagesDelayFillAndDrain) {
  // One micro-batch walks forward and back: p(f + b) + 2(p - 1)x = 4 x 3 + 6 x 0.25.
  EXPECT_NEAR(ran(even(4, 4, 0.25), pipeline(4, 1)).end_s, 13.5, 1e-9);
}

TEST(Engine, ZeroBubbleTwoIdlesOnlyBeforeItsFirstAndAfterItsLastPass) {
  // With f = b = w = 1 every stage works 3 x 16 s without a pause, the last from p - 1 on; all meet for the norm.
  const auto r = ran(even(4), pipeline(4, 16, Schedule::kZeroBubble2));
  EXPECT_NEAR(r.end_s, 3.0 * 16 + 3, 1e-9);
}

simulate::Pieces with_buckets(int buckets, double seconds) {
  simulate::Pieces p = even(1);
  p.stages[0].data.active = true;
  p.stages[0].data.buckets = buckets;
  p.stages[0].data.reduce.seconds = p.stages[0].data.reduce_last.seconds = seconds;
  return p;
}

TEST(Engine, BucketsHideBehindBackwardAllButTheLast) {
  parallel::Strategy s = pipeline(1, 3);
  s.data = 16;
  // 2 x 3 + 1, then backward 2 s in four parts; reductions of 0.25 s hide but for the last: 3 x 3 + 0.25.
  EXPECT_NEAR(ran(with_buckets(4, 0.25), s).end_s, 9.25, 1e-9);
  // Of 1 s each they are the bottleneck: first bucket ready at 7.5, then four in a row.
  EXPECT_NEAR(ran(with_buckets(4, 1), s).end_s, 11.5, 1e-9);
  // Beside them kernels run 1.2 times slower: three reductions of 0.25 s cost 3 x 0.25 (1 - 1/1.2) of work.
  simulate::Pieces slower = with_buckets(4, 0.25);
  slower.interference = 1.2;
  EXPECT_NEAR(ran(slower, s).end_s, 9.25 + 3 * 0.25 * (1 - 1 / 1.2), 1e-9);
}

TEST(Engine, UnitsAreGatheredOneAhead) {
  simulate::Pieces p = even(1);
  simulate::DataPieces& d = p.stages[0].data;
  d.active = d.by_unit = true;
  d.gather.seconds = d.gather_again.seconds = 0.1;
  d.scatter.seconds = 0.2;
  parallel::Strategy s = pipeline(1, 1);
  s.data = 16;
  s.zero = 3;
  // Forward: A + 4 f. Backward: A + 4 b + R, where f = 0.25 and b = 0.5 hide the rest: 0.1 + 1 + 0.1 + 2 + 0.2.
  EXPECT_NEAR(ran(p, s).end_s, 3.4, 1e-9);
  d.gathers_behind_forward = d.reduces_behind_backward = false;
  // Nothing hides: four gathers forward, four gathers and four scatters backward.
  EXPECT_NEAR(ran(p, s).end_s, 3 + 4 * 0.1 + 4 * 0.3, 1e-9);
}

TEST(Engine, SlowRankSlowsItsGroupsOnlyThroughWhatTheyWaitFor) {
  simulate::Pieces p = even(2);
  parallel::Strategy s = pipeline(2, 4);
  s.data = 4;
  Imperfections i;
  i.slow_ranks.push_back({0, 1.5});
  // Stage 0 of one replica takes 4.5 s a micro-batch. Its first backward waits for 3 s of the other stage's passes, of
  // which its second forward fills 1.5 s: 4 x 4.5 + 1.5.
  EXPECT_NEAR(ran(p, s, true, i).end_s, 19.5, 1e-9);
  EXPECT_EQ(ran(p, s, true, i).end_s, ran(p, s, false, i).end_s);
}

TEST(Engine, FoldedAndUnfoldedRunsAreEqual) {
  std::mt19937 random(11);
  const auto draw = [&random](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (int round = 0; round < 40; ++round) {
    parallel::Strategy s = pipeline(1 << draw(0, 2), draw(1, 6));
    s.tensor = 1 << draw(0, 2);
    s.context = 1 << draw(0, 1);
    s.data = draw(1, 4);
    simulate::Pieces p = even(s.pipeline, 4, 0.05);
    for (simulate::StagePieces& stage : p.stages) {
      stage.forward.tensor_s = stage.backward.tensor_s = 0.02;
      stage.data = with_buckets(draw(1, 4), 0.1 * draw(1, 9)).stages[0].data;
      stage.data.reduce.bytes = 1e9;
    }
    Imperfections i;
    const int ranks = layout_of(s).ranks();
    for (int k = draw(0, 2); k > 0; --k) i.slow_ranks.push_back({draw(0, ranks - 1), 1 + 0.1 * draw(1, 5)});
    if (draw(0, 1) == 1) i.stalls.push_back({draw(0, ranks - 1), 0.3, 1});
    if (draw(0, 2) == 0) i.slow_hosts.push_back({draw(0, layout_of(s).hosts() - 1), 0.5});
    if (draw(0, 3) == 0) i.sequence_imbalance = 0.2;
    const double folded = ran(p, s, true, i).end_s;
    EXPECT_NEAR(folded, ran(p, s, false, i).end_s, 1e-12 * folded) << "round " << round;
  }
}

TEST(Engine, SymmetricRanksFoldToOneClassPerStage) {
  Layout l;
  l.tensor = 8;
  l.data = 16;
  l.pipeline = 4;
  l.shard = 16;
  const Fold fold = fold_ranks(l, {}, true);
  ASSERT_EQ(fold.classes.size(), 4u);
  EXPECT_EQ(fold.classes[0].count, 128);
  const Ways ways = interfaces_only(l, 1e9);
  const Fold shared = fold_ranks(l, {}, true, &ways);
  EXPECT_EQ(shared.classes.size(), 4u);
  EXPECT_EQ(shared.links.size(), 8u);  // out and in of a host of each stage
  Imperfections one;
  one.slow_ranks.push_back({5, 1.1});
  const Fold broken = fold_ranks(l, one, true);
  EXPECT_GT(broken.classes.size(), 4u);
  EXPECT_LT(broken.classes.size(), 64u);
}

TEST(Engine, TransfersOfOneHostShareItsInterfaces) {
  // Two stages on two hosts; gradients of both and the activations between them meet on the interfaces. Together they
  // cannot be faster than alone.
  simulate::Pieces p = even(2, 4, 0.1);
  p.send_wire_s = 0.1;
  for (simulate::StagePieces& s : p.stages) s.data = with_buckets(4, 0.6).stages[0].data;
  parallel::Strategy s = pipeline(2, 6);
  s.data = 16;
  const auto graph = build_graph(p, s);
  ASSERT_TRUE(graph);
  const Layout layout = layout_of(s);
  const Ways ways = interfaces_only(layout, 1e9);
  const auto shared = run(*graph, fold_ranks(layout, {}, true, &ways), layout, {}, {});
  const auto alone = run(*graph, fold_ranks(layout, {}, true), layout, {}, {});
  ASSERT_TRUE(shared && alone);
  EXPECT_GE(shared->end_s, alone->end_s - 1e-12);
  EXPECT_GT(shared->flows, 0u);
  EXPECT_EQ(alone->flows, 0u);
}

TEST(Engine, CircleInAGraphIsRefused) {
  StepGraph g;
  StageGraph s;
  s.ops.resize(2);
  s.waits_for = {1, 1};
  s.successor_begin = {0, 1, 2};
  s.successors = {1, 0};
  g.stages.push_back(s);
  const auto result = check(g);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "2 of 2 operations of the step wait for each other in a circle");
  g.stages[0].successors = {1, 7};
  EXPECT_EQ(check(g).error().message, "the graph of stage 0 refers to operations that do not exist");
  EXPECT_EQ(check({}).error().message, "a step needs at least one pipeline stage");
}

TEST(Engine, AbsurdStepsAreRefusedBeforeTheyAreBuilt) {
  const auto graph = build_graph(even(8), pipeline(8, 1'000'000'000));
  ASSERT_FALSE(graph);
  EXPECT_NE(graph.error().message.find("million operations"), std::string::npos);
}

TEST(Engine, ImperfectionsThatAreNoneAreRefused) {
  Imperfections i;
  for (const char* text : {"slow-rank=3", "slow-rank=x:2", "slow-rank=1:nan", "jitter=-1%", "stall=1:5", "experts=0.5",
                           "weather=bad", "slow-host=1:0", ""}) {
    EXPECT_FALSE(parse_imperfection(text, i)) << text;
  }
  EXPECT_FALSE(i.any());
  EXPECT_TRUE(parse_imperfection("stall=5:200ms/10", i));
  ASSERT_EQ(i.stalls.size(), 1u);
  EXPECT_DOUBLE_EQ(i.stalls[0].seconds, 0.2);
  EXPECT_EQ(i.stalls[0].every_steps, 10);
  EXPECT_FALSE(check(i, 4, 1));
  EXPECT_TRUE(check(i, 8, 1));
}

TEST(Engine, JitterKeepsTheMeanOfTheWork) {
  Imperfections i;
  i.jitter = 0.1;
  double sum = 0;
  constexpr int kDraws = 20000;
  for (int k = 0; k < kDraws; ++k) sum += work_factor(i, 0, 0, 0, static_cast<std::uint64_t>(k), false, false);
  // Standard error 0.1 / sqrt(20000) = 0.0007.
  EXPECT_NEAR(sum / kDraws, 1, 0.003);
}

}  // namespace
}  // namespace chokepoint::engine
