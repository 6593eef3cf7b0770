// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/calibrate/fit.hpp>

#include <gtest/gtest.h>

#include <cmath>

#include "normal_equations.hpp"

namespace chokepoint::calibrate {
namespace {

// A time that is the host's alone: 1000 steps of the fixed host work (12 ms by default), so d log t / d log p = 1.
Observation fixed_work(double measured_s) {
  return {"test", measured_s, 1, [](const simulate::Parameters& p) { return 12 * p.step.step_fixed_s / simulate::Constants{}.step_fixed_s; }};
}

// Half fixed work, half Python: t = 1 s + 1 s at the defaults, so either derivative is one half.
Observation mixed_work(double measured_s) {
  return {"test", measured_s, 1, [](const simulate::Parameters& p) {
            const simulate::Constants defaults;
            return p.step.step_fixed_s / defaults.step_fixed_s + p.step.python_forward_s / defaults.python_forward_s;
          }};
}

TEST(NormalEquations, SolvesASmallSystemByHand) {
  // [4 2; 2 3] x = [8 7]: x = [1.25 1.5]; the inverse has the diagonal [3/8 4/8].
  NormalEquations normal(2);
  normal.at(0, 0) = 4;
  normal.at(1, 0) = 2;
  normal.at(1, 1) = 3;
  normal.right(0) = 8;
  normal.right(1) = 7;
  ASSERT_TRUE(normal.factorise());
  EXPECT_NEAR(normal.solution()[0], 1.25, 1e-12);
  EXPECT_NEAR(normal.solution()[1], 1.5, 1e-12);
  EXPECT_NEAR(normal.inverse_diagonal()[0], 0.375, 1e-12);
  EXPECT_NEAR(normal.inverse_diagonal()[1], 0.5, 1e-12);
}

TEST(NormalEquations, RefusesASingularMatrix) {
  NormalEquations normal(2);
  normal.at(0, 0) = normal.at(1, 0) = normal.at(1, 1) = 1;
  EXPECT_FALSE(normal.factorise());
}

TEST(Fit, OneObservationAndOnePriorMeetAtTheirPrecisions) {
  // Prior width 0.7, residual log(12/13) with weight 1/0.1^2: change = r w / (w + 1/0.7^2).
  const std::vector<Observation> seen{fixed_work(13)};
  const Linear linear = linearise(seen, {}, {"step.fixed"});
  ASSERT_EQ(linear.free.size(), 1u);
  EXPECT_NEAR(linear.residual[0], std::log(12.0 / 13.0), 1e-12);
  EXPECT_NEAR(linear.row(0)[0], 1, 1e-6);
  const Solution solution = solve(linear, std::vector<double>{100}, std::vector<double>{0.7});
  EXPECT_NEAR(solution.change[0], std::log(13.0 / 12.0) * 100 / (100 + 1 / 0.49), 1e-6);
  EXPECT_NEAR(solution.sigma[0], 1 / std::sqrt(100 + 1 / 0.49), 1e-6);
}

TEST(Fit, LooserPriorsMoveFurther) {
  // Two parameters with equal derivatives share a residual as their prior variances: 0.4^2 : 0.2^2 = 4 : 1.
  const std::vector<Observation> seen{mixed_work(2.2)};
  const Linear linear = linearise(seen, {}, {"step.fixed", "step.python_forward"});
  ASSERT_EQ(linear.free.size(), 2u);
  EXPECT_EQ(linear.free[0].name, "step.python_forward");  // in the order of refs()
  const Solution solution = solve(linear, std::vector<double>{1e6}, std::vector<double>{0.2, 0.4});
  EXPECT_NEAR(solution.change[1] / solution.change[0], 4, 0.05);
}

TEST(Fit, OneOddObservationHardlyMoves) {
  const std::vector<Observation> seen{fixed_work(12), fixed_work(12), fixed_work(12), fixed_work(12), fixed_work(60)};
  const Linear linear = linearise(seen, {}, {"step.fixed"});
  const std::vector<double> weight(5, 100.0);
  const Solution robust = solve(linear, weight, std::vector<double>{0.7}, {.huber = 0.05});
  const Solution squares = solve(linear, weight, std::vector<double>{0.7}, {.huber = 1e9});
  EXPECT_LT(robust.change[0], 0.03);
  EXPECT_GT(squares.change[0], 0.2);
}

TEST(Fit, NoWeightLeavesThePrior) {
  const std::vector<Observation> seen{fixed_work(60)};
  const Linear linear = linearise(seen, {}, {"step.fixed"});
  const Solution solution = solve(linear, std::vector<double>{0}, std::vector<double>{0.7});
  EXPECT_EQ(solution.change[0], 0);
  EXPECT_NEAR(solution.sigma[0], 0.7, 1e-12);
}

TEST(Fit, RefiningFollowsCurvature) {
  // t = fixed part + Python part is no power law: the linear solution of a factor 1.6 is off, the refined one is not.
  const std::vector<Observation> seen{mixed_work(3.2)};
  const Linear linear = linearise(seen, {}, {"step.fixed"});
  const std::vector<double> weight{1e8};
  const std::vector<double> prior{2.0};
  const Robust squares{.huber = 1e9};
  const auto error = [&](const Solution& s) { return std::abs(seen[0].time_s(moved(linear, s)) / 3.2 - 1); };
  EXPECT_GT(error(solve(linear, weight, prior, squares)), 0.05);
  EXPECT_LT(error(refine(seen, linear, weight, prior, 8, squares)), 0.005);
}

TEST(Fit, EveryMovableParameterHasAPriorAndAPositiveValue) {
  const std::vector<std::string> names = movable_parameters();
  EXPECT_GT(names.size(), 20u);
  const Linear linear = linearise({}, {}, names);
  for (const Parameter& parameter : linear.free) EXPECT_GT(parameter.log_sigma, 0) << parameter.name;
}

}  // namespace
}  // namespace chokepoint::calibrate
