// SPDX-License-Identifier: Apache-2.0
#pragma once
// As much of a shell script as launch scripts need: assignments, arrays, quotes, continuation lines, ${X:-default},
// $((A * B)), `if` over its own variables, #SBATCH lines. Nothing is run. Every character keeps its place, so that a setting that comes out of a
// variable is reported where it was written.
#include <chokepoint/base/result.hpp>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::frameworks {

struct Word {
  std::string text;
  SourcePos pos;
};

struct Assignment {
  std::string name;
  std::string value;
  SourcePos pos;
};

struct Script {
  std::vector<std::vector<Word>> commands;   ///< variables replaced where the script sets them, else left as "$NAME"
  std::vector<Word> slurm;                   ///< words of the #SBATCH lines
  std::vector<Assignment> variables;         ///< in order; also those set in front of a command
  std::vector<Assignment> left_open;         ///< set otherwise in another branch, and the script does not say which is run
  std::map<std::string, std::string> files;  ///< that the script writes from here-documents
};

Result<Script> read_shell(std::string_view text, const std::string& file);

}  // namespace chokepoint::frameworks
