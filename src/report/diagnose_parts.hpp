// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pieces that all views of a diagnosis share.
#include <chokepoint/diagnose/diagnose.hpp>
#include <nlohmann/json.hpp>
#include <vector>

namespace chokepoint::report {

inline double seconds_of(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }
/// Class -> seconds; sums to the span.
nlohmann::ordered_json bill_json(const diagnose::MeasuredBill& bill);
/// Communication classes that waited at all -> seconds of waiting.
nlohmann::ordered_json wait_json(const diagnose::MeasuredBill& bill);
nlohmann::ordered_json host_json(const diagnose::MeasuredBill& bill);
nlohmann::ordered_json time_json(const diagnose::DeviceTime& time);
nlohmann::ordered_json causes_json(const std::vector<diagnose::Cause>& causes);
nlohmann::ordered_json notes_json(const std::vector<Note>& notes);

}  // namespace chokepoint::report
