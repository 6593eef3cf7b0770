// SPDX-License-Identifier: Apache-2.0
#pragma once
// Options of `measure --network`, shared by the program and the MPI program that it becomes.
#include <chokepoint/measure/network_probe.hpp>
#include <optional>
#include <string>
#include <vector>

#include "commands.hpp"

namespace chokepoint::commands {

struct NetworkOptions {
  CommonOptions common;
  bool network = false;
  double seconds = 60;
  double window_s = 0.2;
  int repeats = 3;
  int flows = 1;
  std::string groups;    ///< Slurm topology file
  std::string against;   ///< an earlier result
  std::string save;      ///< the result as JSON
  std::string transport = "auto";
  bool no_collectives = false;
};

void add_network_options(CLI::App& command, NetworkOptions& options);
/// Options of the MPI program; errors are printed by the first rank alone. No value: they were wrong.
std::optional<NetworkOptions> parse_network_options(int argc, char** argv);
/// Probes, prints, saves, compares. Exit code of the command.
int run_network_probe(const NetworkOptions& options, measure::Runner& runner);

}  // namespace chokepoint::commands
