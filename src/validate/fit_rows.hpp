// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rows of a table of runs as observations of a fit.
#include <chokepoint/calibrate/fit.hpp>
#include <chokepoint/validate/validate.hpp>
#include <cstddef>
#include <vector>

namespace chokepoint::validate {

/// Whether the row can teach a fit: a job, a measured time, trust A or B.
bool can_teach(const RunRow& row);

/// At most `most` of `rows`, evenly spread, first and last included.
std::vector<std::size_t> evenly(const std::vector<std::size_t>& rows, std::size_t most);

/// Rows of each source in the order of the file; only those that can teach.
std::vector<std::vector<std::size_t>> rows_by_source(const RunsReport& runs, bool only_a);

calibrate::Observation observation_of(const RunRow& row);

/// Step time and band of a row under other constants.
simulate::Prediction predict_with(const RunRow& row, const simulate::Parameters& parameters);

}  // namespace chokepoint::validate
