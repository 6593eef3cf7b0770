// SPDX-License-Identifier: Apache-2.0
#include "choke_sentence.hpp"

#include <chokepoint/base/units.hpp>
#include <cstdio>

namespace chokepoint::diagnose {

std::string choke_sentence(const Cause& cause, double measured_s) {
  char share[32];
  std::snprintf(share, sizeof share, "-%.0f %%", measured_s > 0 ? 100 * (1 - cause.step_time_without_s / measured_s) : 0.0);
  return cause.what + ": without it a step takes " + format_duration(cause.step_time_without_s) + " instead of " + format_duration(measured_s) + " (" + share + ")";
}

}  // namespace chokepoint::diagnose
