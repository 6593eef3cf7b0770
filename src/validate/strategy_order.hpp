// SPDX-License-Identifier: Apache-2.0
#pragma once
// Is the order of strategies right? Kendall's tau-b between predicted and measured times.
#include <chokepoint/validate/validate.hpp>
#include <optional>
#include <vector>

namespace chokepoint::validate {

struct TimedPair {
  double measured = 0;
  double predicted = 0;
};

struct Tau {
  double tau = 0;
  int pairs = 0;
  int wrong = 0;
  int worst_faster = -1, worst_slower = -1;  ///< indices of the wrong pair with the largest measured gap
};

/// Kendall's tau-b without the pairs whose measured times differ by less than `tie` (0.02: 2 %): which of them was faster
/// is chance. Equal predictions of pairs that do differ count as half right. Nothing when no pair is left.
std::optional<Tau> kendall_tau(const std::vector<TimedPair>& runs, double tie);

/// Groups of three or more strategies on the same machine with the same model, for each trust class.
std::vector<StrategyOrder> strategy_order(const std::vector<RunRow>& rows, const std::vector<Repeats>& repeats);

}  // namespace chokepoint::validate
