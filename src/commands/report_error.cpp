// SPDX-License-Identifier: Apache-2.0
// What every command shares: common options, errors, results.
#include "commands.hpp"
#include "kept_error.hpp"

#include <chokepoint/base/files.hpp>
#include <iostream>
#include <string>
#include <vector>

namespace chokepoint::commands {
namespace {

/// Where this thread's errors go; null: standard error.
thread_local std::optional<Error>* kept = nullptr;

}  // namespace

KeepError::KeepError(std::optional<Error>& into) : before_(kept) { kept = &into; }
KeepError::~KeepError() { kept = before_; }

void add_common(CLI::App& command, CommonOptions& common, Speaks speaks) {
  command.add_flag("--json", common.json, "machine-readable result (docs/formats/json.md)");
  command.add_option("--out", common.out, "write to this file instead of standard output");
  command.add_flag("--quiet", common.quiet, "only the answer, no explanations");
  std::vector<std::string> languages{"en"};
  if (speaks == Speaks::kEnglishAndRussian) languages.emplace_back("ru");
  command.add_option("--lang", common.lang, speaks == Speaks::kEnglish ? "language of texts: en" : "language of texts: en or ru")->check(CLI::IsMember(languages));
}

int report_error(const Error& error) {
  if (kept != nullptr) {
    *kept = error;
  } else {
    std::cerr << format(error);
  }
  return 2;
}

int deliver(const CommonOptions& common, const std::string& text, int code, std::span<const std::string> inputs) {
  if (const auto safe = check_output(common.out, inputs); !safe) return report_error(safe.error());
  const auto written = write_text_file(common.out, text);
  return written ? code : report_error(written.error());
}

}  // namespace chokepoint::commands
