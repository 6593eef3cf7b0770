// SPDX-License-Identifier: Apache-2.0
#pragma once
// A diagnosis for people (one screen) and for programs (JSON, schema in docs/formats/json.md).
#include <chokepoint/diagnose/diagnose.hpp>
#include <chokepoint/diagnose/hang.hpp>
#include <chokepoint/diagnose/log_trend.hpp>
#include <chokepoint/diagnose/straggler.hpp>
#include <chokepoint/report/style.hpp>
#include <string>

namespace chokepoint::report {

std::string diagnose_text(const diagnose::Diagnosis& diagnosis, const Style& style, bool quiet);
std::string diagnose_json(const diagnose::Diagnosis& diagnosis);
std::string straggler_text(const diagnose::StragglerReport& report, const Style& style, bool quiet);
std::string straggler_json(const diagnose::StragglerReport& report);
std::string hang_text(const diagnose::HangReport& report, const Style& style, bool quiet);
std::string hang_json(const diagnose::HangReport& report);
std::string log_text(const diagnose::LogReport& report, const Style& style, bool quiet);
std::string log_json(const diagnose::LogReport& report);

}  // namespace chokepoint::report
