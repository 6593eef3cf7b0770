// SPDX-License-Identifier: Apache-2.0
#include "pipeline.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

namespace chokepoint::simulate {
namespace {

using parallel::Schedule;

std::vector<StageTimes> even(int stages, double forward, double backward) {
  return std::vector<StageTimes>(static_cast<std::size_t>(stages), StageTimes{forward, backward, backward / 2});
}

/// Slow reference: executes the 1F1B order of each stage against its dependencies.
double executed(const std::vector<StageTimes>& stages, int m, double x) {
  const int p = static_cast<int>(stages.size());
  std::vector<std::vector<double>> f(stages.size(), std::vector<double>(static_cast<std::size_t>(m), -1)), b = f;
  std::vector<std::vector<int>> order(stages.size());  // +k forward of k-1, -k backward
  for (int i = 0; i < p; ++i) {
    const int warm = std::min(m, p - 1 - i);
    int next_f = 0, next_b = 0;
    auto& list = order[static_cast<std::size_t>(i)];
    for (; next_f < warm; ++next_f) list.push_back(next_f + 1);
    while (next_b < m) {
      if (next_f < m) list.push_back(++next_f);
      list.push_back(-(++next_b));
    }
  }
  std::vector<double> free(stages.size(), 0);
  std::vector<std::size_t> at(stages.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (int i = 0; i < p; ++i) {
      const auto s = static_cast<std::size_t>(i);
      while (at[s] < order[s].size()) {
        const int item = order[s][at[s]];
        const auto k = static_cast<std::size_t>(std::abs(item) - 1);
        double ready = 0;
        if (item > 0 && i > 0) ready = f[s - 1][k] < 0 ? -1 : f[s - 1][k] + x;
        if (item < 0) ready = i == p - 1 ? f[s][k] : b[s + 1][k] < 0 ? -1 : b[s + 1][k] + x;
        if (ready < 0) break;
        const double end = std::max(free[s], ready) + (item > 0 ? stages[s].forward : stages[s].backward);
        (item > 0 ? f : b)[s][k] = end;
        free[s] = end;
        ++at[s];
        moved = true;
      }
    }
  }
  return *std::max_element(free.begin(), free.end());
}

TEST(Pipeline, OneStageIsBusyAllTheTime) {
  const PipelineTime t = pipeline_time(even(1, 1, 2), 8, 1, Schedule::kOneForwardOneBackward, 0, false);
  EXPECT_DOUBLE_EQ(t.total, 24);
  EXPECT_DOUBLE_EQ(t.bubble, 0);
}

TEST(Pipeline, EvenStagesHaveTheTextbookBubble) {
  // (m + p - 1)(f + b) = (8 + 3) x 3; bubble (p - 1)(f + b) = 9.
  const PipelineTime t = pipeline_time(even(4, 1, 2), 8, 1, Schedule::kOneForwardOneBackward, 0, false);
  EXPECT_DOUBLE_EQ(t.total, 33);
  EXPECT_DOUBLE_EQ(t.bubble, 9);
  // Interleaving over v = 2 chunks halves it.
  EXPECT_DOUBLE_EQ(pipeline_time(even(4, 1, 2), 8, 2, Schedule::kInterleaved, 0, false).bubble, 4.5);
  // With weight gradients put off what is left is the way down of the first micro-batch: nobody ends before the gradient norm.
  EXPECT_DOUBLE_EQ(pipeline_time(even(4, 1, 2), 8, 1, Schedule::kZeroBubble1, 0, false).bubble, 3);
  // Validated after the step, one step's fill is the drain of the one before.
  EXPECT_DOUBLE_EQ(pipeline_time(even(4, 1, 2), 8, 1, Schedule::kZeroBubble2, 0, false).bubble, 0);
}

TEST(Pipeline, ClosedFormAgreesWithExecutionForEvenStagesAndHeavyEnds) {
  for (const int p : {2, 3, 4, 8}) {
    for (const int m : {p, 2 * p, 4 * p + 1}) {
      for (const double head : {0.0, 0.5}) {
        std::vector<StageTimes> stages = even(p, 1, 2);
        stages.back().forward += head;
        stages.back().backward += 2 * head;
        const double expected = executed(stages, m, 0);
        EXPECT_NEAR(pipeline_time(stages, m, 1, Schedule::kOneForwardOneBackward, 0, false).total, expected, 0.004 * expected)
            << p << " stages, " << m << " micro-batches, head " << head;
      }
    }
  }
}

TEST(Pipeline, FewMicroBatchesTakeTheFirstOnesWayAndBack) {
  // Two micro-batches over 4 stages of two chunks each: the first one's 4 x 3 s, the second a chunk of 1.5 s behind.
  EXPECT_DOUBLE_EQ(pipeline_time(even(4, 1, 2), 2, 2, Schedule::kInterleaved, 0, false).total, 13.5);
  // Zero bubble, forward 1, backward 1 + 1 put off: 4 x 2 s down and back, 2 s for the second, 1 s put off on the first.
  EXPECT_DOUBLE_EQ(pipeline_time(even(4, 1, 2), 2, 1, Schedule::kZeroBubble1, 0, false).total, 11);
  EXPECT_DOUBLE_EQ(pipeline_time(even(4, 1, 2), 2, 1, Schedule::kZeroBubble2, 0, false).total, 11);
}

TEST(Pipeline, TransfersAreNotHiddenInSteadyState) {
  const std::vector<StageTimes> stages = even(4, 1, 2);
  const double expected = executed(stages, 16, 0.2);
  const PipelineTime t = pipeline_time(stages, 16, 1, Schedule::kOneForwardOneBackward, 0.2, false);
  EXPECT_NEAR(t.total, expected, 0.02 * expected);
  EXPECT_GT(t.transfer, 2 * 3 * 0.2 - 1e-9);
}

TEST(Pipeline, BillOfAStageSumsToTheTotal) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> draw(0.5, 1.5);
  for (int i = 0; i < 50; ++i) {
    std::vector<StageTimes> stages;
    for (int k = 0; k < 4; ++k) stages.push_back({draw(random), 2 * draw(random), 0.5});
    const PipelineTime t = pipeline_time(stages, 12, 1, Schedule::kOneForwardOneBackward, 0.05, false);
    EXPECT_NEAR(t.bubble + t.transfer + 12 * stages[static_cast<std::size_t>(t.slowest)].period(), t.total, 1e-9);
    EXPECT_GE(t.bubble, 0);
    EXPECT_GE(t.transfer, 0);
  }
}

TEST(Pipeline, BusyLinkSetsThePaceWhenTransfersAreLongerThanStages) {
  // Two stages of 3 s, 10 micro-batches, a transfer that holds the link for 5 s: 3 + 10 x 5 s; with two chunks a stage
  // sends two activations and one gradient for each micro-batch, after a forward and before a backward of a chunk: 1.5 + 10 x 3 x 5 s.
  EXPECT_DOUBLE_EQ(pipeline_time(even(2, 1, 2), 10, 1, Schedule::kOneForwardOneBackward, 5, false, 5).total,
                   std::max(53.0, pipeline_time(even(2, 1, 2), 10, 1, Schedule::kOneForwardOneBackward, 5, false).total));
  EXPECT_GE(pipeline_time(even(2, 1, 2), 10, 2, Schedule::kInterleaved, 5, false, 5).total, 151.5);
  // A link that keeps up changes nothing.
  EXPECT_DOUBLE_EQ(pipeline_time(even(4, 1, 2), 10, 1, Schedule::kOneForwardOneBackward, 0.1, false, 0.1).total,
                   pipeline_time(even(4, 1, 2), 10, 1, Schedule::kOneForwardOneBackward, 0.1, false).total);
}

}  // namespace
}  // namespace chokepoint::simulate
