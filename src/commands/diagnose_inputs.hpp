// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `diagnose` reads: folders opened to their files, and logs that are followed while they grow.
#include <string>
#include <vector>

#include "commands.hpp"

namespace chokepoint::commands {

/// Files as they stand; a folder's files (not its folders', no hidden ones) by name in its place.
Result<std::vector<std::string>> with_folders_opened(const std::vector<std::string>& paths);

struct FollowOptions {
  bool asked = false;
  std::string every = "2s";      ///< between two looks
  std::string duration;          ///< "": until stopped
  int looks = 0;                 ///< at most so many; 0: no limit
  std::string prometheus;
};
void add_follow_options(CLI::App& command, FollowOptions& options);

/// Prints what the logs of a running job tell as it happens; at the end where they stand. Exit code 1 when steps are slower
/// at the end than at the beginning.
int follow_logs(const std::vector<std::string>& paths, const FollowOptions& options, const CommonOptions& common);

}  // namespace chokepoint::commands
