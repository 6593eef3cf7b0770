// SPDX-License-Identifier: Apache-2.0
#pragma once
// Left-out errors, fitted constants and calibration on a few rows as text, JSON and CSV.
#include <chokepoint/calibrate/profile.hpp>
#include <chokepoint/report/style.hpp>
#include <chokepoint/validate/calibrated.hpp>
#include <chokepoint/validate/leave_out.hpp>
#include <string>
#include <vector>

namespace chokepoint::report {

std::string leave_out_text(const validate::LeaveOutReport& report, const Style& style);
std::string leave_out_json(const validate::LeaveOutReport& report);
/// One line per row of the table: source, trust, error as shipped, fitted on all rows, and left out.
std::string leave_out_csv(const validate::RunsReport& runs, const validate::LeaveOutReport& report);
/// The fitted values with their standard errors beside the shipped ones.
std::string fitted_text(const validate::LeaveOutReport& report, const Style& style);

std::string calibrated_text(const std::vector<validate::CalibratedReport>& reports, const Style& style);
std::string calibrated_json(const std::vector<validate::CalibratedReport>& reports);

/// What a calibration changed; `written`: the file, empty when none was.
std::string profile_text(const calibrate::Profile& profile, const std::vector<Note>& notes, const std::string& written, const Style& style);
std::string profile_json(const calibrate::Profile& profile, const std::vector<Note>& notes, const std::string& written);

}  // namespace chokepoint::report
