// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which rows of a table of runs are summed up together.
#include <chokepoint/validate/validate.hpp>
#include <functional>
#include <string>
#include <vector>

namespace chokepoint::validate {

/// Summaries of the rows by a key, in the order in which keys first occur. Rows without a key are left out.
std::vector<Summary> summarise_by(const std::vector<RunRow>& rows, const std::function<std::string(const RunRow&)>& key);

/// Fills every summary of the report from its rows.
void fill_summaries(RunsReport& report);

}  // namespace chokepoint::validate
