// SPDX-License-Identifier: Apache-2.0
#pragma once
// Published runs beside a prediction.
#include <chokepoint/report/style.hpp>
#include <chokepoint/validate/nearest.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace chokepoint::report {

/// "  4 similar published runs: 41-47 % MFU"; empty without any.
std::string nearest_line(const std::vector<validate::NearestRun>& nearest);
/// Each run with what it reached, how it differs and where it is printed.
std::string nearest_list(const std::vector<validate::NearestRun>& nearest, const Style& style);
nlohmann::ordered_json nearest_json(const std::vector<validate::NearestRun>& nearest);

}  // namespace chokepoint::report
