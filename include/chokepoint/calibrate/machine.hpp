// SPDX-License-Identifier: Apache-2.0
#pragma once
// A machine's own parameters from what was measured on it. Which ones a measurement moves follows from the derivatives
// and the prior widths: a step bound by computation moves clocks and kernels, one bound by the wires moves the wires.
#include <chokepoint/calibrate/fit.hpp>
#include <span>
#include <vector>

namespace chokepoint::calibrate {

struct MachineFit {
  Linear linear;                   ///< at the shipped constants
  std::vector<double> weight;      ///< of each observation
  Solution solution;
  simulate::Parameters parameters;
};

/// All movable parameters. The model is linear once, then followed.
MachineFit fit_machine(std::span<const Observation> observations);
/// How far off a single measurement may be before it counts less.
Robust machine_robust();

}  // namespace chokepoint::calibrate
