// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the computations of a pipelined job differ from their mean, split by pattern.
#include <vector>

#include "op_graph.hpp"

namespace chokepoint::diagnose {

/// Parts of (duration - mean of its kind) per (operation, instance), each with mean zero over its kind; they sum to the
/// whole difference. Communications and single operations of a step have no parts.
struct Spread {
  std::vector<double> stage;       ///< the stage's workers all differ alike
  std::vector<double> worker;      ///< this worker differs from its stage, always
  std::vector<double> drift;       ///< the whole step differs
  std::vector<double> micro_batch; ///< the rest
  /// Correlation of forward and backward of the same micro-batch in `micro_batch`: near 1 where the data decides (sequence
  /// lengths), near 0 where it is jitter.
  double forward_backward_correlation = 0;
};
/// `mean` is the ideal duration per operation (all instances alike).
Spread spread_of(const OpGraph& graph, const std::vector<double>& own, const std::vector<double>& mean);

}  // namespace chokepoint::diagnose
