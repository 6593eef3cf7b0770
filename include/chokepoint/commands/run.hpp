// SPDX-License-Identifier: Apache-2.0
#pragma once
// The commands of the program, as functions. Exit codes: 0 ok, 1 negative verdict, 2 usage or bad input, 3 internal error,
// 4 partial result.
#include <chokepoint/base/memory_files.hpp>
#include <chokepoint/base/result.hpp>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace chokepoint::commands {

/// What the chosen command does once the options are parsed; returns the exit code.
using Action = std::function<int()>;
/// Adds a command of a higher layer to the program.
using Register = void (*)(CLI::App& app, Action& action);

/// The program: prints results to standard output and errors to standard error. `words` without the program's name.
int run(std::vector<std::string> words, const std::vector<Register>& more = {});

struct Ended {
  int code = 0;
  std::optional<Error> error;  ///< with codes 2 and 3
};

/// One command whose files are `files`: what it prints and writes is in files.written() afterwards, "-" what it prints.
Ended run_in_memory(std::vector<std::string> words, MemoryFiles& files);

enum class Takes { kNothing, kText, kNumber, kWholeNumber };
struct OptionInfo {
  std::string name;  ///< without the dashes
  std::string what;
  Takes takes = Takes::kText;
  bool repeats = false;
};
/// The long options of a command; empty for an unknown one.
std::vector<OptionInfo> options_of(std::string_view command);

std::string_view version();

}  // namespace chokepoint::commands
