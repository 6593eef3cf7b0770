// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `diagnose --json` wrote, read again: enough of it to compare a later run with.
#include <chokepoint/base/result.hpp>
#include <chokepoint/diagnose/diagnose.hpp>
#include <chokepoint/diagnose/log_trend.hpp>
#include <string>
#include <string_view>
#include <variant>

namespace chokepoint::report {

/// Whether a file that begins so may be a saved diagnosis.
bool looks_like_saved_diagnosis(std::string_view head);

/// Of traces or of a log, by what it holds. Kernels are not saved, so no comparison names one.
using SavedDiagnosis = std::variant<diagnose::Diagnosis, diagnose::LogReport>;
Result<SavedDiagnosis> read_saved_diagnosis(std::string_view text, const std::string& file);

}  // namespace chokepoint::report
