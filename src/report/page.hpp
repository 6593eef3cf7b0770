// SPDX-License-Identifier: Apache-2.0
#pragma once
// One self-contained HTML page: the frame, style and pictures that all pages share, the script of one page, its data.
#include <chokepoint/report/page_form.hpp>
#include <chokepoint/report/words.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace chokepoint::report {

struct Page {
  std::string_view view;    ///< "prediction", "whatif" ...: the script by name, for a page that has it already
  std::string kind;         ///< "chokepoint predict": small, above the verdict
  std::string verdict;      ///< one sentence, the heading; readable without scripts
  std::string facts;        ///< what it is about, lines
  std::string_view script;  ///< embedded page_*.js
  std::string markdown;     ///< the report as Markdown: what readers without scripts see
  nlohmann::ordered_json data;
};
/// The page, with its data and words in the given language; or the data alone.
std::string html_page(const Page& page, const Words& words = Words::english(), PageForm form = PageForm::kFile);

}  // namespace chokepoint::report
