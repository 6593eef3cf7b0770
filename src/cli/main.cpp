// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include <algorithm>
#include <chokepoint/base/text.hpp>
#include <cstdio>
#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

namespace chokepoint::cli {

namespace {

/// The error for a first argument that is neither an option nor a command; CLI11 would only say that one is missing.
std::optional<Error> unknown_command(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return std::nullopt;
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), argv[1]) != names.end()) return std::nullopt;
  Error error{std::string("unknown command '") + argv[1] + "'", {}, {}};
  if (const auto near = nearest(argv[1], names)) error.notes.push_back("did you mean '" + *near + "'?");
  error.notes.push_back("chokepoint --help lists the commands");
  return error;
}

}  // namespace
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
  add_whatif(app, common, action);
  add_calibrate(app, common, action);
  add_diagnose(app, common, action);
  add_export(app, common, action);
  add_validate(app, common, action);
  add_measure(app, common, action);
  add_wiring(app, common, action);
  add_catalogues(app, common, action);
  if (const auto error = unknown_command(app, argc, argv)) return report_error(*error);
  try {
    app.parse(argc, argv);
    return action ? action() : 3;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return report_error(explained(app, error));
  } catch (const std::exception& error) {
    std::cerr << "internal error: " << error.what() << "\n  please report it with the command and its input\n";
    return 3;
  }
}
