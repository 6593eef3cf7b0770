// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/commands/run.hpp>

#include <algorithm>
#include <array>
#include <chokepoint/base/text.hpp>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>

#include "commands.hpp"
#include "kept_error.hpp"

namespace chokepoint::commands {
namespace {

struct Row {
  std::string_view name;
  void (*add)(CLI::App& app, CommonOptions& common, Action& action);
};

/// In the order in which --help lists them.
constexpr std::array<Row, 12> kCommands{{{"predict", add_predict},
                                         {"plan", add_plan},
                                         {"whatif", add_whatif},
                                         {"calibrate", add_calibrate},
                                         {"diagnose", add_diagnose},
                                         {"export", add_export},
                                         {"validate", add_validate},
                                         {"measure", add_measure},
                                         {"wiring", add_wiring},
                                         {"models", add_models},
                                         {"clusters", add_clusters},
                                         {"accelerators", add_accelerators}}};

/// The program's options and what the chosen command will do. Holds all commands, or where the first word names one, that
/// one alone: a request that is answered in less than a millisecond does not set up the others.
struct Program {
  CLI::App app{"What holds a training cluster back, worked out for one job on one wiring", "chokepoint"};
  CommonOptions common;
  Action action;

  explicit Program(std::string_view first) {
    app.set_version_flag("--version", "chokepoint " + std::string(version()));
    app.require_subcommand(1);
    const auto* chosen = std::find_if(kCommands.begin(), kCommands.end(), [first](const Row& row) { return row.name == first; });
    for (const Row& row : kCommands) {
      if (chosen == kCommands.end() || row.name == first) row.add(app, common, action);
    }
  }
};

/// The error for a first argument that is neither an option nor a command; CLI11 would only say that one is missing.
std::optional<Error> unknown_command(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty() || words.front().rfind('-', 0) == 0) return std::nullopt;
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), words.front()) != names.end()) return std::nullopt;
  Error error{"unknown command '" + words.front() + "'", {}, {}};
  if (const auto near = nearest(words.front(), names)) error.notes.push_back("did you mean '" + *near + "'?");
  error.notes.push_back("chokepoint --help lists the commands");
  return error;
}

/// Numbers that are none: C++ reads "nan", and no comparison with it holds, so limits and ranges would let it through.
std::optional<Error> no_number(const CLI::App& app) {
  for (const CLI::App* command : app.get_subcommands()) {
    for (const CLI::Option* option : command->get_options()) {
      if (!starts_with_ignoring_case(option->get_type_name(), "FLOAT")) continue;
      for (const std::string& text : option->results()) {
        const std::size_t digits = text.find_first_not_of("+-");
        if (digits != std::string::npos && starts_with_ignoring_case(text.substr(digits), "nan"))
          return Error{"'" + text + "' for " + option->get_name() + " is not a number", {}, {}};
      }
    }
  }
  return std::nullopt;
}

/// Parses and acts. Throws what CLI11 and the standard library throw.
int act(Program& program, std::vector<std::string> words) {
  if (const auto error = unknown_command(program.app, words)) return report_error(*error);
  try {
    std::reverse(words.begin(), words.end());  // as CLI11 takes them
    program.app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return program.app.exit(error);  // --help, --version
    return report_error(explained(program.app, error));
  }
  if (const auto error = no_number(program.app)) return report_error(*error);
  return program.action ? program.action() : 3;
}

Takes taken_by(const CLI::Option& option) {
  if (option.get_type_size() == 0) return Takes::kNothing;
  const std::string type = option.get_type_name();
  if (starts_with_ignoring_case(type, "INT") || starts_with_ignoring_case(type, "UINT")) return Takes::kWholeNumber;
  return starts_with_ignoring_case(type, "FLOAT") ? Takes::kNumber : Takes::kText;
}

}  // namespace

int run(std::vector<std::string> words, const std::vector<Register>& more) {
  Program program(words.empty() ? "" : words.front());
  for (const Register& add : more) add(program.app, program.action);
  try {
    return act(program, std::move(words));
  } catch (const std::exception& error) {
    std::cerr << "internal error: " << error.what() << "\n  please report it with the command and its input\n";
    return 3;
  }
}

Ended run_in_memory(std::vector<std::string> words, MemoryFiles& files) {
  const FilesInMemory scope(&files);
  Ended ended;
  const KeepError keep(ended.error);
  try {
    Program program(words.empty() ? "" : words.front());
    ended.code = act(program, std::move(words));
  } catch (const std::bad_alloc&) {
    ended = {3, Error{"not enough memory for this request", {}, {"ask for less: a smaller job, fewer candidates, fewer files"}}};
  } catch (const std::exception& error) {
    ended = {3, Error{std::string("internal error: ") + error.what(), {}, {"please report it with the request"}}};
  }
  return ended;
}

std::vector<OptionInfo> options_of(std::string_view command) {
  Program program(command);
  std::vector<OptionInfo> out;
  for (CLI::App* one : program.app.get_subcommands(nullptr)) {
    if (one->get_name() != command) continue;
    for (const CLI::Option* option : one->get_options()) {
      if (option->get_lnames().empty() || option->get_group().empty()) continue;
      const bool repeats = option->get_expected_max() > 1;
      out.push_back({option->get_lnames().front(), option->get_description(), taken_by(*option), repeats});
    }
  }
  return out;
}

std::string_view version() { return CHOKEPOINT_VERSION; }

}  // namespace chokepoint::commands
