// SPDX-License-Identifier: Apache-2.0
#pragma once
// Steps of given computation times on a measured network, fastest for the same work first.
#include <chokepoint/report/style.hpp>
#include <chokepoint/simulate/timed.hpp>
#include <string>
#include <vector>

namespace chokepoint::report {

/// `steps`: one for each case of the plan, in its order.
std::string timed_text(const simulate::TimedPlan& plan, const std::vector<simulate::TimedStep>& steps, const topology::MeasuredNetwork& network, const Style& style);
std::string timed_json(const simulate::TimedPlan& plan, const std::vector<simulate::TimedStep>& steps);

}  // namespace chokepoint::report
