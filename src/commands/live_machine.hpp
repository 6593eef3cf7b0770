// SPDX-License-Identifier: Apache-2.0
#pragma once
// `wiring --live`: this machine's sysfs, and what the tools that are installed here print.
#include <chokepoint/wiring/document.hpp>
#include <string>
#include <vector>

#include "commands.hpp"

namespace chokepoint::commands {

struct LiveOptions {
  bool live = false;
  std::string sysfs = "/sys";   ///< another tree: sysfs alone is read, no tool is run
  bool fabric = false;          ///< ask the InfiniBand subnet even where sysfs shows no port
  std::string library;          ///< only print what this library says
  std::vector<std::string> ports;  ///< InfiniBand ports ("mlx5_0:1") at which ibnetdisc starts
};

void add_live_options(CLI::App& command, LiveOptions& options);
/// --library: the text.
Result<std::string> library_text(const LiveOptions& options);
/// Documents of this machine; `unseen` gets what could not be seen, and why.
Result<std::vector<wiring::Document>> live_documents(const LiveOptions& options, std::vector<std::string>& unseen);

}  // namespace chokepoint::commands
