// SPDX-License-Identifier: Apache-2.0
#pragma once
// A rank's steps on its device.
#include <chokepoint/diagnose/intervals.hpp>
#include <chokepoint/trace/columns.hpp>
#include <string>
#include <vector>

namespace chokepoint::diagnose {

struct StepWindow {
  std::string name;
  Interval window;
};

/// Steps by the profiler's markers, else by optimizer steps, else by what repeats in the device's work; `how` says which.
/// The windows touch: each lasts until the next one's first work. Empty when nothing repeats.
std::vector<StepWindow> find_steps(const trace::RankTrace& trace, std::string& how);

}  // namespace chokepoint::diagnose
