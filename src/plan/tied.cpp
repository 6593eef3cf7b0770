// SPDX-License-Identifier: Apache-2.0
// Paired errors: two strategies of one machine share what the model does not know of it, so only the classes of the bill
// in which they differ carry error.
#include <chokepoint/plan/plan.hpp>

#include <algorithm>
#include <cmath>

namespace chokepoint::plan {

namespace {

using simulate::Bill;

/// Relative errors of one class between two strategies: arithmetic scales with the same clocks, so mostly its difference
/// is uncertain; communication, host and bubble are modelled by different paths.
constexpr double kArithmeticDifference = 0.04;
constexpr double kArithmetic = 0.005;
constexpr double kOther = 0.15;
constexpr double kEightyPercent = 1.2816;

}  // namespace

bool tied(const simulate::Prediction& a, const simulate::Prediction& b) {
  double variance = 0;
  for (std::size_t i = 0; i < a.bill.size(); ++i) {
    const double larger = std::max(a.bill[i], b.bill[i]);
    const bool arithmetic = i == static_cast<std::size_t>(Bill::kCompute) || i == static_cast<std::size_t>(Bill::kRecompute);
    const double sigma = arithmetic ? kArithmeticDifference * std::abs(a.bill[i] - b.bill[i]) + kArithmetic * larger : kOther * larger;
    variance += sigma * sigma;
  }
  return std::abs(a.step_time_s - b.step_time_s) < kEightyPercent * std::sqrt(variance);
}

}  // namespace chokepoint::plan
