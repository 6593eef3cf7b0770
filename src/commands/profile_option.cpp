// SPDX-License-Identifier: Apache-2.0
#include "profile_option.hpp"

#include <chokepoint/base/files.hpp>
#include <chokepoint/calibrate/profile.hpp>

namespace chokepoint::commands {

void add_profile_option(CLI::App& command, std::string& file) {
  command.add_option("--profile", file, "parameters of this machine, as chokepoint calibrate wrote them");
}

Result<LoadedProfile> load_profile(const std::string& file) {
  LoadedProfile loaded;
  if (file.empty()) return loaded;
  TRY_INTO(const std::string text, read_text_file(file));
  TRY_INTO(const calibrate::Profile profile, calibrate::read_profile(text, file));
  loaded.parameters = calibrate::parameters_of(profile);
  loaded.assumptions = calibrate::assumptions_of(profile);
  return loaded;
}

}  // namespace chokepoint::commands
