// SPDX-License-Identifier: Apache-2.0
#pragma once
// --html, --markdown and --csv: the result as files, beside what is printed. Markdown without a file is printed
// instead.
#include <chokepoint/report/page_form.hpp>
#include <functional>
#include <string>
#include <vector>

#include "commands.hpp"

namespace chokepoint::commands {

struct ReportFiles {
  std::string html;
  std::string markdown;
  std::string csv;
  std::string page;  ///< --page: what the page of serve draws, in place of the result
  bool prints_markdown() const { return markdown == "-"; }
  bool draws() const { return page == "whole" || !html.empty(); }
};

void add_report_options(CLI::App& command, ReportFiles& files);
/// No output may replace an input or stand for two of them.
Result<bool> check_reports(const ReportFiles& files, const CommonOptions& common, std::vector<std::string> inputs);

/// How to make each of them; only what was asked for is made.
struct ReportMakers {
  std::function<std::string(report::PageForm)> html;
  std::function<std::string()> markdown;
  std::function<std::string()> csv;
};
/// Writes the files; gives the Markdown when that is to be printed, else `text()`.
Result<std::string> write_reports(const ReportFiles& files, const ReportMakers& make,
                                  const std::function<std::string()>& text);

}  // namespace chokepoint::commands
