// SPDX-License-Identifier: Apache-2.0
#pragma once
// A what-if study for people (text) and programs (JSON, docs/formats/json.md).
#include <chokepoint/report/style.hpp>
#include <chokepoint/whatif/study.hpp>
#include <string>

namespace chokepoint::report {

/// `today`: prices older than a year are called stale; empty: their age is not judged.
std::string whatif_text(const whatif::Study& study, const Style& style, bool quiet, std::string_view today = {});
std::string whatif_json(const whatif::Study& study);
/// Every word of the language of changes.
std::string change_words_text(const Style& style);

}  // namespace chokepoint::report
