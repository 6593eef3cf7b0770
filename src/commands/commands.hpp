// SPDX-License-Identifier: Apache-2.0
#pragma once
// Each command lives in its own file and registers itself here: options in, library call, text out. Exit codes:
// 0 ok, 1 negative verdict, 2 usage or bad input, 3 internal error, 4 partial result.
#include <CLI/CLI.hpp>
#include <chokepoint/base/result.hpp>
#include <chokepoint/commands/run.hpp>
#include <span>
#include <string>

namespace chokepoint::commands {

struct CommonOptions {
  bool json = false;
  bool quiet = false;
  std::string out = "-";
  std::string lang = "en";
};

/// Languages in which a command's text speaks.
enum class Speaks { kEnglish, kEnglishAndRussian };
/// Adds --json, --out, --quiet and --lang to a command.
void add_common(CLI::App& command, CommonOptions& common, Speaks speaks = Speaks::kEnglish);
/// Prints the error to standard error, or keeps it for run_in_memory; gives exit code 2.
int report_error(const Error& error);
/// Writes a result to --out; exit code `code`, or 2 when it cannot be written or would replace one of the inputs.
int deliver(const CommonOptions& common, const std::string& text, int code = 0, std::span<const std::string> inputs = {});
/// The failure of the command line with what was expected.
Error explained(const CLI::App& app, const CLI::ParseError& error);

void add_wiring(CLI::App& app, CommonOptions& common, Action& action);
void add_models(CLI::App& app, CommonOptions& common, Action& action);
void add_clusters(CLI::App& app, CommonOptions& common, Action& action);
void add_accelerators(CLI::App& app, CommonOptions& common, Action& action);
void add_predict(CLI::App& app, CommonOptions& common, Action& action);
void add_plan(CLI::App& app, CommonOptions& common, Action& action);
void add_calibrate(CLI::App& app, CommonOptions& common, Action& action);
void add_measure(CLI::App& app, CommonOptions& common, Action& action);
void add_diagnose(CLI::App& app, CommonOptions& common, Action& action);
void add_whatif(CLI::App& app, CommonOptions& common, Action& action);
void add_export(CLI::App& app, CommonOptions& common, Action& action);
void add_validate(CLI::App& app, CommonOptions& common, Action& action);

}  // namespace chokepoint::commands
