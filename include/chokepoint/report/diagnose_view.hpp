// SPDX-License-Identifier: Apache-2.0
#pragma once
// A diagnosis for people (one screen) and for programs (JSON, schema in docs/formats/json.md).
#include <chokepoint/diagnose/diagnose.hpp>
#include <chokepoint/report/style.hpp>
#include <string>

namespace chokepoint::report {

std::string diagnose_text(const diagnose::Diagnosis& diagnosis, const Style& style, bool quiet);
std::string diagnose_json(const diagnose::Diagnosis& diagnosis);

}  // namespace chokepoint::report
