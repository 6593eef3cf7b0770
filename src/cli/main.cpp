// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include <chokepoint/base/files.hpp>
#include <cstdio>
#include <exception>
#include <iostream>

namespace chokepoint::cli {

void add_common(CLI::App& command, CommonOptions& common) {
  command.add_flag("--json", common.json, "machine-readable result (docs/formats/json.md)");
  command.add_option("--out", common.out, "write to this file instead of standard output");
  command.add_flag("--quiet", common.quiet, "only the answer, no explanations");
  command.add_option("--lang", common.lang, "language of texts")->check(CLI::IsMember({"en"}));
}

int report_error(const Error& error) {
  std::cerr << format(error);
  return 2;
}

int deliver(const CommonOptions& common, const std::string& text, int code) {
  const auto written = write_text_file(common.out, text);
  return written ? code : report_error(written.error());
}

}  // namespace chokepoint::cli

int main(int argc, char** argv) {
  using namespace chokepoint::cli;
  CLI::App app{"What holds a training cluster back, worked out for one job on one wiring", "chokepoint"};
  app.set_version_flag("--version", "chokepoint " CHOKEPOINT_VERSION);
  app.require_subcommand(1);
  CommonOptions common;
  Action action;
  add_predict(app, common, action);
  add_plan(app, common, action);
  add_validate(app, common, action);
  add_catalogues(app, common, action);
  try {
    app.parse(argc, argv);
    return action ? action() : 3;
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::cerr << "internal error: " << error.what() << "\n  please report it with the command and its input\n";
    return 3;
  }
}
