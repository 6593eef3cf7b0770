// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/files.hpp>
#include <chokepoint/collective/collective.hpp>
#include <chokepoint/report/wiring_view.hpp>
#include <chokepoint/wiring/wiring.hpp>
#include <memory>

#include "commands.hpp"

namespace chokepoint::cli {

namespace {

struct WiringOptions {
  std::vector<std::string> inputs;
  std::string accelerator;
  std::string nic;
  std::string fabric;
  std::string svg;
  std::vector<std::string> expect;
  int hosts = 0;
};

/// Host files, each the wiring of one host; equal matrices in one file count as several hosts.
Result<std::vector<topology::HostGroup>> read_host_file(const std::string& path, const std::string& text) {
  if (wiring::recognise(text) == wiring::Format::kTopoMatrix) {
    TRY_INTO(std::vector<topology::HostGroup> groups, wiring::read_topo_matrices(text, path));
    for (topology::HostGroup& group : groups) group.host.name = path;
    return groups;
  }
  TRY_INTO(topology::Host host, wiring::read_host(text, path));
  host.name = path;
  return std::vector<topology::HostGroup>{{std::move(host), 1}};
}

Result<topology::Cluster> read_files(const WiringOptions& options) {
  topology::Cluster cluster;
  for (const std::string& path : options.inputs) {
    TRY_INTO(const std::string text, read_text_file(path));
    if (wiring::recognise(text) == wiring::Format::kClusterYaml) {
      if (options.inputs.size() > 1) return fail("a cluster file stands alone; put the host files into it", {path, 0, 0});
      return wiring::read_cluster_yaml(text, path);
    }
    TRY_INTO(std::vector<topology::HostGroup> groups, read_host_file(path, text));
    for (topology::HostGroup& group : groups) cluster.hosts.push_back(std::move(group));
  }
  cluster.name = options.inputs.front();
  return cluster;
}

/// A file, or else a catalogue name.
Result<topology::Cluster> read_cluster(const WiringOptions& options) {
  const std::string& first = options.inputs.front();
  if (options.inputs.size() > 1 || file_exists(first)) return read_files(options);
  Result<topology::Cluster> named = wiring::build_cluster(first, options.hosts > 0 ? options.hosts : 1);
  if (!named) named.error().notes.push_back("'" + first + "' is no file here either");
  return named;
}

Result<bool> apply_options(topology::Cluster& cluster, const WiringOptions& options) {
  if (!options.accelerator.empty()) {
    TRY_INTO(const hardware::Accelerator accelerator, hardware::find_accelerator(options.accelerator));
    for (topology::HostGroup& group : cluster.hosts) {
      TRY_INTO(group.host, wiring::with_accelerator(std::move(group.host), accelerator));
    }
  }
  if (!options.nic.empty()) {
    TRY_INTO(const hardware::Nic nic, hardware::find_nic(options.nic));
    for (topology::HostGroup& group : cluster.hosts) wiring::set_nics(group.host, nic);
  }
  if (options.hosts > 0) {
    if (cluster.hosts.size() > 1) return fail("--hosts needs one kind of host, found several");
    cluster.hosts.front().count = options.hosts;
  }
  if (!options.fabric.empty()) {
    TRY_INTO(const hardware::FabricTemplate fabric, hardware::find_fabric(options.fabric));
    TRY_INTO(cluster.fabric, wiring::build_fabric(fabric));
  }
  return true;
}

Result<std::vector<report::ExpectedTable>> expected_tables(const topology::Cluster& cluster, const collective::Network& network,
                                                           const WiringOptions& options) {
  std::vector<report::ExpectedTable> tables;
  constexpr double kSmallest = 1024;
  constexpr double kLargest = 16.0 * 1024 * 1024 * 1024;
  for (const std::string& word : options.expect) {
    report::ExpectedTable table;
    TRY_INTO(table.op, collective::parse_op(word));
    table.accelerator = cluster.hosts.front().host.accelerator;
    table.group.ranks_per_host = cluster.gpus_per_host();
    table.group.ranks = cluster.gpus_per_host() * cluster.host_count();
    for (double bytes = kSmallest; bytes <= kLargest; bytes *= 2) table.rows.push_back({bytes, network.cost(table.op, bytes, table.group)});
    tables.push_back(std::move(table));
  }
  return tables;
}

Result<hardware::Accelerator> accelerator_of(const topology::Cluster& cluster) {
  const topology::Host& host = cluster.hosts.front().host;
  if (host.gpus().empty()) return fail("the wiring shows no GPU, so there is nothing to expect", {host.name, 0, 0});
  if (cluster.gpu_count() < 2) return fail("a collective needs two GPUs", {host.name, 0, 0}, {"add --hosts N"});
  if (host.accelerator.empty()) return fail("the wiring does not say which accelerator it has", {host.name, 0, 0}, {"add --accelerator NAME"});
  if (cluster.host_count() > 1 && cluster.fabric.kind == topology::FabricKind::kNone) {
    return fail("several hosts, but nothing says what joins them", {host.name, 0, 0}, {"add --fabric NAME, or write a cluster file"});
  }
  return hardware::find_accelerator(host.accelerator);
}

Result<std::string> run(const WiringOptions& options, const CommonOptions& common) {
  TRY_INTO(topology::Cluster cluster, read_cluster(options));
  TRY_INTO([[maybe_unused]] const bool applied, apply_options(cluster, options));
  std::unique_ptr<collective::Network> network;  // outlives the tables, whose words it holds
  std::vector<report::ExpectedTable> tables;
  if (!options.expect.empty()) {
    TRY_INTO(const hardware::Accelerator accelerator, accelerator_of(cluster));
    network = std::make_unique<collective::Network>(cluster, accelerator);
    TRY_INTO(tables, expected_tables(cluster, *network, options));
  }
  if (!options.svg.empty()) {
    TRY_INTO([[maybe_unused]] const bool safe, check_output(options.svg, options.inputs));
    TRY_INTO([[maybe_unused]] const bool written, write_text_file(options.svg, report::wiring_svg(cluster)));
  }
  if (common.json) return report::wiring_json(cluster, tables);
  const report::Style style = report::terminal_style();
  std::string text = common.quiet && !tables.empty() ? std::string() : report::wiring_text(cluster, style, common.quiet);
  for (const report::ExpectedTable& table : tables) text += report::expected_text(table, style);
  return text;
}

}  // namespace

void add_wiring(CLI::App& app, CommonOptions& common, Action& action) {
  auto options = std::make_shared<WiringOptions>();
  CLI::App* command = app.add_subcommand("wiring", "Import and draw a host or cluster; the collectives it should give");
  add_common(*command, common);
  command->add_option("inputs", options->inputs, "nvidia-smi topo -m, NCCL topology XML, a cluster file, or a catalogue host")->required();
  command->add_option("--accelerator", options->accelerator, "catalogue name of the GPUs, where the files do not say it");
  command->add_option("--nic", options->nic, "catalogue name of the NICs near the GPUs");
  command->add_option("--hosts", options->hosts, "number of such hosts")->check(CLI::Range(1, 1 << 20));
  command->add_option("--fabric", options->fabric, "catalogue name of what joins the hosts");
  command->add_option("--svg", options->svg, "also draw the first host into this file");
  command->add_option("--expect", options->expect, "all_reduce, all_gather, ...: the nccl-tests table this wiring should give");
  command->callback([options, &common, &action] {
    action = [options, &common] {
      const Result<std::string> text = run(*options, common);
      return text ? deliver(common, *text, 0, options->inputs) : report_error(text.error());
    };
  });
}

}  // namespace chokepoint::cli
