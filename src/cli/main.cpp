// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/commands/run.hpp>
#include <string>
#include <vector>

#include "serve_command.hpp"

int main(int argc, char** argv) {
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) words.emplace_back(argv[i]);
  return chokepoint::commands::run(std::move(words), {chokepoint::cli::add_serve});
}
