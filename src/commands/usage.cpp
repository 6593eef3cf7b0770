// SPDX-License-Identifier: Apache-2.0
// What was wrong with the command line, what was expected and where to read more; CLI11 says the first alone.
#include "commands.hpp"

#include <algorithm>
#include <chokepoint/base/text.hpp>
#include <vector>

namespace chokepoint::commands {
namespace {

/// The command the words before the error chose, else the program.
const CLI::App& chosen(const CLI::App& app) {
  const std::vector<CLI::App*> commands = app.get_subcommands();
  return commands.empty() ? app : *commands.front();
}

std::string call_of(const CLI::App& command) {
  return command.get_parent() == nullptr ? command.get_name() : command.get_parent()->get_name() + " " + command.get_name();
}

/// "--top" in "--top: Value x not in range 1 to 1000".
std::string option_in(const std::string& text) {
  const std::size_t at = text.find("--");
  return at == std::string::npos ? std::string() : text.substr(at, text.find_first_of(" :=,", at) - at);
}

std::string_view type_in_words(const std::string& type) {
  if (starts_with_ignoring_case(type, "INT") || starts_with_ignoring_case(type, "UINT")) return "a whole number";
  if (starts_with_ignoring_case(type, "FLOAT")) return "a number";
  return "a text";
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

Error unknown_words(const CLI::App& command, const std::string& what) {
  std::string word = what.substr(what.rfind(':') + 1);
  word = std::string(trim(word));
  word = word.substr(0, word.find(' '));
  const bool option = word.rfind("-", 0) == 0;
  Error error{(option ? "unknown option '" : "unexpected argument '") + word + "'", {}, {}};
  if (option) {
    if (const auto close = nearest(word, option_names(command))) error.notes.push_back("did you mean '" + *close + "'?");
  } else {
    error.notes.push_back("quote a value that holds blanks");
  }
  return error;
}

}  // namespace

Error explained(const CLI::App& app, const CLI::ParseError& parse_error) {
  const CLI::App& command = chosen(app);
  const std::string what = parse_error.what();
  Error error{what, {}, {}};
  if (parse_error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)) {
    error = unknown_words(command, what);
  } else if (parse_error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError) && what.find("subcommand") != std::string::npos) {
    error.message = "no command given";
  } else if (const std::string name = option_in(what); !name.empty()) {
    if (const CLI::Option* option = command.get_option_no_throw(name)) {
      const bool flag = option->get_type_size() == 0;
      error.notes.push_back(name + (flag ? " takes no value: " : " expects " + std::string(type_in_words(option->get_type_name())) + ": ") +
                            option->get_description());
    }
  }
  error.notes.push_back(call_of(command) + " --help lists " + (command.get_parent() == nullptr ? "the commands" : "the options"));
  return error;
}

}  // namespace chokepoint::commands
