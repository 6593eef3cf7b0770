// SPDX-License-Identifier: Apache-2.0
#include "repeats.hpp"
#include "strategy_order.hpp"

#include <cmath>
#include <gtest/gtest.h>

namespace chokepoint::validate {
namespace {

TEST(KendallTau, IsOneForTheSameOrderAndMinusOneForTheOpposite) {
  EXPECT_DOUBLE_EQ(kendall_tau({{1, 10}, {2, 20}, {3, 30}}, 0.02)->tau, 1);
  EXPECT_DOUBLE_EQ(kendall_tau({{1, 30}, {2, 20}, {3, 10}}, 0.02)->tau, -1);
}

TEST(KendallTau, CountsPairsByHand) {
  // Measured order a b c d; predicted a c b d: five of six pairs right, (5 - 1) / 6.
  const auto tau = kendall_tau({{1, 1}, {2, 3}, {3, 2}, {4, 4}}, 0.02);
  ASSERT_TRUE(tau);
  EXPECT_DOUBLE_EQ(tau->tau, 4.0 / 6);
  EXPECT_EQ(tau->pairs, 6);
  EXPECT_EQ(tau->wrong, 1);
  EXPECT_EQ(tau->worst_faster, 1);
  EXPECT_EQ(tau->worst_slower, 2);
}

TEST(KendallTau, LeavesOutPairsWithinTheNoise) {
  // 1.00 and 1.01 differ by less than 2 %: their wrong order does not count.
  const auto tau = kendall_tau({{1.00, 5}, {1.01, 4}, {2, 6}}, 0.02);
  EXPECT_EQ(tau->pairs, 2);
  EXPECT_DOUBLE_EQ(tau->tau, 1);
  EXPECT_FALSE(kendall_tau({{1.00, 5}, {1.01, 4}}, 0.02));
}

TEST(KendallTau, EqualPredictionsLowerItAsTauBDoes) {
  // Pairs: (1,2) undecided, (1,3) and (2,3) right: 2 / sqrt(2 x 3).
  EXPECT_NEAR(kendall_tau({{1, 5}, {2, 5}, {3, 6}}, 0.02)->tau, 2 / std::sqrt(6.0), 1e-12);
  EXPECT_DOUBLE_EQ(kendall_tau({{1, 5}, {2, 5}}, 0.02)->tau, 0);
}

/// A run of 8 sequences of 1,024 tokens on 8 GPUs.
RunRow run(int number, int tensor, double measured, double predicted) {
  RunRow row;
  row.row = number;
  row.source_id = "made-up";
  row.trust = "A";
  row.job = parallel::Job{};
  row.job->model.name = "m";
  row.job->gpus = 8;
  row.job->sequence = 1024;
  row.job->global_batch = 8;
  row.strategy.tensor = tensor;
  row.prediction = simulate::Prediction{};
  row.prediction->step_time_s = predicted;
  row.measured_step_time_s = measured;
  row.step_time_error = predicted / measured - 1;
  return row;
}

TEST(StrategyOrder, GroupsStrategiesOfOneJobAndMergesRepeats) {
  // Tensor 1 twice (1.0 and 1.1 s), tensor 2 at 2 s, tensor 4 at 3 s; predicted 1, 3, 2.5 s: of three pairs one is wrong.
  std::vector<RunRow> rows = {run(1, 1, 1.0, 1), run(2, 1, 1.1, 1), run(3, 2, 2, 3), run(4, 4, 3, 2.5)};
  rows.push_back(run(5, 8, 1, 9));
  rows.back().job->sequence = 2048;  // another job: does not belong
  const auto repeats = repeats_of(rows);
  ASSERT_EQ(repeats.size(), 1u);
  EXPECT_EQ(repeats[0].configurations, 1);
  EXPECT_EQ(repeats[0].rows, 2);
  EXPECT_NEAR(repeats[0].median_deviation, 0.05 / 1.05, 1e-12);  // 1.0 and 1.1 around 1.05
  const auto orders = strategy_order(rows, repeats);
  ASSERT_EQ(orders.size(), 1u);
  ASSERT_EQ(orders[0].groups.size(), 1u);
  const OrderGroup& group = orders[0].groups[0];
  EXPECT_EQ(group.strategies, 3);
  EXPECT_NEAR(group.tau, 1.0 / 3, 1e-12);
  EXPECT_EQ(group.worst.faster_row, 3);
  EXPECT_EQ(group.worst.slower_row, 4);
  EXPECT_NEAR(group.worst.measured_ratio, 1.5, 1e-12);
  EXPECT_NEAR(orders[0].mean_of_sources, 1.0 / 3, 1e-12);
}

TEST(StrategyOrder, NeedsThreeStrategiesAndNeverMixesTrust) {
  std::vector<RunRow> rows = {run(1, 1, 1, 1), run(2, 2, 2, 2), run(3, 4, 3, 3)};
  rows[2].trust = "C";
  EXPECT_TRUE(strategy_order(rows, {}).empty());
}

}  // namespace
}  // namespace chokepoint::validate
