// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <vector>

namespace chokepoint::diagnose {

/// Shapley values of `players` causes (at most 8). `time_without(mask)` is the time with the causes of the mask removed.
/// The values sum to time_without(none) - time_without(all): each is the mean of what its cause takes away over all
/// orders of removal, so that causes that hide each other share what they hide.
std::vector<double> shapley(int players, const std::function<double(unsigned)>& time_without);

}  // namespace chokepoint::diagnose
