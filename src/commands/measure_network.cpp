// SPDX-License-Identifier: Apache-2.0
#include "measure_network.hpp"

#include <chokepoint/base/files.hpp>
#include <chokepoint/report/network_view.hpp>
#include <chokepoint/report/style.hpp>
#include <chokepoint/wiring/document.hpp>
#include <chokepoint/wiring/measured_network.hpp>
#include <cstdlib>
#include <iostream>

namespace chokepoint::commands {
namespace {

/// Groups of hosts under one leaf switch, of a file of Slurm's or any fabric file with leaves that list nodes.
Result<std::vector<std::vector<std::string>>> read_groups(const std::string& file) {
  TRY_INTO(const std::string text, read_text_file(file));
  TRY_INTO(const wiring::SlurmTopology found, wiring::read_slurm_topology(text, file));
  std::vector<std::vector<std::string>> groups;
  for (const auto* list : {&found.switches, &found.blocks}) {
    for (const wiring::SlurmSwitch& entry : *list) {
      if (!entry.nodes.empty()) groups.push_back(entry.nodes);
    }
  }
  if (groups.empty()) return fail("no switch of this file lists nodes", {file, 0, 0}, {"expected Slurm's topology.conf or topology.yaml"});
  return groups;
}

Result<int> probe(const NetworkOptions& options, measure::Runner& runner) {
  measure::ProbeOptions probe{options.seconds, options.window_s, options.repeats, options.flows, {}, !options.no_collectives};
  std::optional<topology::MeasuredNetwork> before;
  if (!options.groups.empty()) {
    TRY_INTO(probe.groups, read_groups(options.groups));
  }
  if (!options.against.empty()) {
    TRY_INTO(const std::string text, read_text_file(options.against));
    TRY_INTO(before, wiring::read_measured_network(text, options.against));
  }
  TRY_INTO(const topology::MeasuredNetwork found, measure::probe_network(runner, probe));
  std::optional<measure::Comparison> comparison;
  if (before) comparison = measure::compare(*before, found);
  if (!options.save.empty()) {
    TRY_INTO([[maybe_unused]] const bool saved, write_text_file(options.save, wiring::to_json(found)));
  }
  const bool negative = !found.slow.empty() || (comparison && comparison->worse());
  const int code = negative ? 1 : found.wall_s > options.seconds ? 4 : 0;
  return deliver(options.common, options.common.json ? wiring::to_json(found) : report::network_text(found, comparison ? &*comparison : nullptr, report::terminal_style(), options.common.quiet),
                 code, {});
}

/// Whether this process is the one to speak: rank 0, or no rank at all.
bool speaks() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    if (const char* rank = std::getenv(name)) return std::string(rank) == "0";
  }
  return true;
}

}  // namespace

void add_network_options(CLI::App& command, NetworkOptions& options) {
  command.add_flag("--network", options.network, "the network between the hosts of this mpirun or srun: one rank for each host is enough");
  command.add_option("--budget", options.seconds, "seconds after which no further experiment starts (network)")->check(CLI::Range(1.0, 86400.0));
  command.add_option("--window", options.window_s, "seconds that one bandwidth experiment sends (network)")->check(CLI::Range(0.02, 60.0));
  command.add_option("--repeats", options.repeats, "repeats of each experiment (network)")->check(CLI::Range(1, 1000));
  command.add_option("--flows", options.flows, "ranks of a host that send at once (network)")->check(CLI::Range(1, 64));
  command.add_option("--groups", options.groups, "Slurm topology file: which hosts share a leaf; found by probing when left out (network)");
  command.add_option("--against", options.against, "an earlier result: what became worse gives exit code 1 (network)");
  command.add_option("--save", options.save, "write the result to this file, for wiring, predict and --against (network)");
  command.add_option("--transport", options.transport, "what carries the bytes: nccl between GPUs, mpi, or nccl where every rank has a GPU (auto; network)")
      ->check(CLI::IsMember({"auto", "mpi", "nccl"}));
  command.add_flag("--no-collectives", options.no_collectives, "point to point only (network)");
}

std::optional<NetworkOptions> parse_network_options(int argc, char** argv) {
  NetworkOptions options;
  CLI::App app{"time the network between the hosts of this mpirun", "chokepoint measure"};
  add_common(app, options.common);
  add_network_options(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (speaks() && error.get_exit_code() == 0) app.exit(error);
    else if (speaks()) report_error(explained(app, error));
    return std::nullopt;
  }
  return options;
}

int run_network_probe(const NetworkOptions& options, measure::Runner& runner) {
  const Result<int> code = probe(options, runner);
  return code ? *code : report_error(code.error());
}

}  // namespace chokepoint::commands
