// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/plan/plan.hpp>

#include <gtest/gtest.h>

namespace chokepoint::plan {
namespace {

using simulate::Bill;
using simulate::Prediction;

Prediction steps(double compute_s, double tensor_s) {
  Prediction p;
  p.bill[static_cast<std::size_t>(Bill::kCompute)] = compute_s;
  p.bill[static_cast<std::size_t>(Bill::kTensor)] = tensor_s;
  p.step_time_s = compute_s + tensor_s;
  return p;
}

TEST(Tied, CommunicationIsLessCertainThanArithmetic) {
  // 0.1 s of 1.5 s: in communication its error is 1.28 x 0.15 x 0.6 = 0.115 s, in arithmetic 1.28 x (0.004 + 0.0055).
  EXPECT_TRUE(tied(steps(1, 0.5), steps(1, 0.6)));
  EXPECT_FALSE(tied(steps(1, 0), steps(1.1, 0)));
}

TEST(Tied, IsSymmetricAndHoldsForEqualSteps) {
  EXPECT_TRUE(tied(steps(1, 0.5), steps(1, 0.5)));
  EXPECT_EQ(tied(steps(1, 0.2), steps(1.3, 0.1)), tied(steps(1.3, 0.1), steps(1, 0.2)));
}

}  // namespace
}  // namespace chokepoint::plan
