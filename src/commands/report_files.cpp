// SPDX-License-Identifier: Apache-2.0
#include "report_files.hpp"

#include <algorithm>
#include <chokepoint/base/files.hpp>

namespace chokepoint::commands {

void add_report_options(CLI::App& command, ReportFiles& files) {
  command.add_option("--html", files.html, "also write one self-contained page with pictures to this file");
  command.add_option("--markdown", files.markdown, "print Markdown for an issue or a ticket, or write it to this file")
      ->expected(0, 1)
      ->default_str("-");
  command.add_option("--csv", files.csv, "also write the figures as CSV to this file");
  command.add_option("--page", files.page, "print the page's data as JSON, as the page of chokepoint serve draws it: whole, or without what takes longest to make")
      ->check(CLI::IsMember({"whole", "moving"}))
      ->group("");
}

Result<bool> check_reports(const ReportFiles& files, const CommonOptions& common, std::vector<std::string> inputs) {
  for (const std::string& output : {common.out, files.html, files.csv, files.markdown}) {
    if (auto safe = check_output(output, inputs); !safe) return safe;
    const bool repeated = output != "-" && !output.empty() && std::count(inputs.begin(), inputs.end(), output) > 0;
    if (repeated) return fail("stands for two outputs", {output, 0, 0}, {"give each its own file"});
    inputs.push_back(output);
  }
  if (files.prints_markdown() && common.json)
    return fail("--markdown and --json cannot both be printed", {},
                {"give one of them a file: --markdown report.md, --out result.json"});
  return true;
}

Result<std::string> write_reports(const ReportFiles& files, const ReportMakers& make,
                                  const std::function<std::string()>& text) {
  if (!files.html.empty()) {
    if (auto done = write_text_file(files.html, make.html(report::PageForm::kFile)); !done) return tl::make_unexpected(done.error());
  }
  if (!files.csv.empty()) {
    if (auto done = write_text_file(files.csv, make.csv()); !done) return tl::make_unexpected(done.error());
  }
  if (!files.page.empty()) return make.html(report::PageForm::kData);
  if (files.prints_markdown()) return make.markdown();
  if (!files.markdown.empty()) {
    if (auto done = write_text_file(files.markdown, make.markdown()); !done) return tl::make_unexpected(done.error());
  }
  return text();
}

}  // namespace chokepoint::commands
