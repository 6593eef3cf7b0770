// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which resource the step time hangs on: its derivative, what is to be had at most, and the order in which resources
// become the choke point when each is mended in turn.
#include <chokepoint/whatif/evaluate.hpp>
#include <string>
#include <vector>

namespace chokepoint::whatif {

struct Sensitivity {
  std::string resource;             ///< "nic", "nvlink", "arithmetic", ...
  std::string where;                ///< in the wiring's words
  double step_time_plus_10_s = 0;   ///< with a tenth more of it
  double step_time_double_s = 0;    ///< with twice of it, about one generation
  double step_time_infinite_s = 0;  ///< without any limit from it
  double derivative = 0;            ///< relative change of the step time by the tenth: -0.05 is 5 % faster
};

/// One step of "fix this, then that": the resource whose doubling shortens the step most, after those before it.
struct Fix {
  std::string resource;
  std::string where;
  std::string change;
  double step_time_s = 0;  ///< with this and all fixes before
};

struct Sensitivities {
  double step_time_s = 0;
  std::vector<Sensitivity> resources;  ///< by headroom, largest first; unused resources last with none
  std::vector<Fix> chain;              ///< the choke point and those behind it
};

/// Same strategy throughout. `depth`: how many fixes follow each other.
Result<Sensitivities> sensitivities(const Scenario& scenario, const parallel::Strategy& strategy, int depth = 4);

}  // namespace chokepoint::whatif
