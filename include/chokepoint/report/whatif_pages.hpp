// SPDX-License-Identifier: Apache-2.0
#pragma once
// A what-if study as one page, Markdown and CSV (docs/formats/reports.md).
#include <chokepoint/report/page_form.hpp>
#include <chokepoint/report/words.hpp>
#include <chokepoint/whatif/study.hpp>
#include <string>

namespace chokepoint::report {

std::string whatif_html(const whatif::Study& study, PageForm form = PageForm::kFile, const Words& words = Words::english());
std::string whatif_markdown(const whatif::Study& study, const Words& words = Words::english());
/// One line for each state, resource and size.
std::string whatif_csv(const whatif::Study& study);

}  // namespace chokepoint::report
