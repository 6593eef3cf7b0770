// SPDX-License-Identifier: Apache-2.0
#pragma once
// --profile: a machine's own parameters in place of the shipped ones.
#include <CLI/CLI.hpp>
#include <chokepoint/base/result.hpp>
#include <chokepoint/simulate/predict.hpp>
#include <string>
#include <vector>

namespace chokepoint::commands {

struct LoadedProfile {
  simulate::Parameters parameters;
  std::vector<Note> assumptions;
};

void add_profile_option(CLI::App& command, std::string& file);
/// The shipped parameters when no file is given.
Result<LoadedProfile> load_profile(const std::string& file);

}  // namespace chokepoint::commands
