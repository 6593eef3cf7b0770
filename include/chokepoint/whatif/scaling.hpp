// SPDX-License-Identifier: Apache-2.0
#pragma once
// The same job on fewer and on more accelerators: throughput, efficiency, money, and what grows where the curve bends.
#include <chokepoint/whatif/goodput.hpp>
#include <chokepoint/whatif/money.hpp>
#include <string>
#include <vector>

namespace chokepoint::whatif {

struct ScaleOptions {
  int first = 8;
  int last = 16384;         ///< doublings in between
  bool grow_batch = false;  ///< the batch grows with the accelerators (weak scaling); else it stays (strong scaling)
  double tokens = 0;        ///< of a run, for its length and price
  Basis basis;
  Failures failures;
};

/// The class of the bill whose accelerator-seconds per token grew most since the point before, when efficiency fell.
struct Bend {
  std::string bill;
  double lost = 0;  ///< efficiency lost since the point before that this class explains
};

struct ScalePoint {
  int gpus = 0;
  double batch = 0;
  State state;
  double tokens_per_s = 0;
  double efficiency = 0;  ///< tokens per accelerator-second against the best point before it, first point 1
  std::optional<Bend> bend;
  Goodput goodput;
  std::optional<Money> money;
  bool on_front = false;  ///< no other point is both faster and cheaper
};

/// Best strategy at each size.
Result<std::vector<ScalePoint>> scaling(const Scenario& scenario, const Prices& prices, const ScaleOptions& options);

/// The fewest accelerators (whole hosts) that process `tokens` within `seconds`, goodput counted.
struct Deadline {
  std::optional<ScalePoint> point;
  std::string why_not;
};
Deadline deadline(const Scenario& scenario, const Prices& prices, const ScaleOptions& options, double seconds);

}  // namespace chokepoint::whatif
