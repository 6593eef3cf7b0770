// SPDX-License-Identifier: Apache-2.0
#include "run_classes.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <span>

namespace chokepoint::validate {
namespace {

/// The label of the first limit that the value does not reach; the last label has no limit.
struct Bin {
  double below;
  const char* label;
};
constexpr double kEndless = 1e300;

std::string bin_of(double value, std::span<const Bin> bins) {
  for (const Bin& bin : bins) {
    if (value < bin.below) return bin.label;
  }
  return "";
}

constexpr Bin kSizes[] = {{1e9, "below 1 B"},      {4e9, "1 to 4 B"},        {15e9, "4 to 15 B"},
                          {60e9, "15 to 60 B"},    {200e9, "60 to 200 B"},   {kEndless, "200 B and more"}};
constexpr Bin kSequences[] = {{1025, "up to 1,024"},          {2049, "1,025 to 2,048"},     {4097, "2,049 to 4,096"},
                              {8193, "4,097 to 8,192"},       {32769, "8,193 to 32,768"},   {kEndless, "above 32,768"}};
/// Bits per second; between the usual shares of a GPU (a 10, 25, 50, 100, 200, 400 or 800 Gb/s port).
constexpr Bin kNetworks[] = {{4e9, "below 4 Gb/s a GPU"},       {18e9, "4 to 18 Gb/s a GPU"},   {36e9, "18 to 36 Gb/s a GPU"},
                             {75e9, "36 to 75 Gb/s a GPU"},     {150e9, "75 to 150 Gb/s a GPU"}, {300e9, "150 to 300 Gb/s a GPU"},
                             {600e9, "300 to 600 Gb/s a GPU"},  {kEndless, "above 600 Gb/s a GPU"}};

std::string gpus_class(int gpus, int hosts) {
  if (gpus == 1) return "1 GPU";
  if (hosts == 1) return "one host";
  constexpr Bin kGpus[] = {{65, "up to 64"}, {257, "65 to 256"}, {1025, "257 to 1,024"}, {kEndless, "above 1,024"}};
  return bin_of(gpus, kGpus);
}

}  // namespace

double network_bytes_per_s_per_gpu(const topology::Cluster& cluster) {
  if (cluster.hosts.empty() || cluster.gpus_per_host() == 0) return 0;
  const topology::Host& host = cluster.hosts.front().host;
  double rate = 0;
  for (const int nic : host.nics()) rate += host.devices[static_cast<std::size_t>(nic)].line_bytes_per_s;
  if (cluster.fabric.node_measured_bytes_per_s) rate = *cluster.fabric.node_measured_bytes_per_s;
  return rate / cluster.gpus_per_host();
}

std::string link_class(const topology::Host& host) {
  const std::vector<int> gpus = host.gpus();
  if (gpus.size() < 2) return "one GPU";
  if (host.torus_dimensions > 0) return "torus";
  if (!host.of_kind(topology::DeviceKind::kNvSwitch).empty()) return "NVSwitch";
  const auto is_gpu = [&](int device) { return std::find(gpus.begin(), gpus.end(), device) != gpus.end(); };
  std::size_t joined = 0;
  std::string_view kind;
  for (const topology::Link& link : host.links) {
    const bool gpu_link = link.kind == topology::LinkKind::kNvLink || link.kind == topology::LinkKind::kXgmi;
    if (!gpu_link || !is_gpu(link.from) || !is_gpu(link.to)) continue;
    ++joined;
    kind = link.kind == topology::LinkKind::kXgmi ? "xGMI" : "NVLink";
  }
  if (joined == 0) return host.peer_to_peer ? "PCIe" : "PCIe through host memory";
  if (joined >= gpus.size() * (gpus.size() - 1)) return gpus.size() == 2 ? fmt::format("{} in pairs", kind) : fmt::format("{}, all joined", kind);
  return fmt::format("{} {}", kind, joined <= gpus.size() ? "in pairs" : "mesh");
}

RunClasses classes_of(const RunRow& row) {
  const parallel::Job& job = *row.job;
  RunClasses classes;
  classes.accelerator = job.accelerator.name;
  classes.framework = parallel::name(job.framework);
  classes.strategy = strategy_kind(row.strategy);
  classes.size = bin_of(model::count_parameters(job.model).total, kSizes);
  classes.gpus = gpus_class(job.gpus, job.cluster.host_count());
  classes.year = std::to_string(job.year);
  classes.links = job.gpus == 1 || job.cluster.hosts.empty() ? "one GPU" : link_class(job.cluster.hosts.front().host);
  const double network = network_bytes_per_s_per_gpu(job.cluster);
  classes.network = job.cluster.host_count() == 1 ? "one host" : network > 0 ? bin_of(8 * network, kNetworks) : "not known";
  classes.sequence = bin_of(job.sequence, kSequences) + " tokens";
  return classes;
}

std::string strategy_kind(const parallel::Strategy& strategy) {
  std::string kind;
  const auto add = [&](std::string_view word) {
    if (!kind.empty()) kind += '+';
    kind += word;
  };
  if (strategy.tensor > 1) add("tensor");
  if (strategy.pipeline > 1) add("pipeline");
  if (strategy.context > 1) add("context");
  if (strategy.data > 1) {
    if (strategy.zero == 3) {
      add(strategy.sharder == parallel::Sharder::kFsdp ? (strategy.shard_ranks > 0 ? "hsdp" : "fsdp") : "zero3");
    } else {
      constexpr std::string_view kStages[] = {"data", "zero1", "zero2"};
      add(kStages[static_cast<std::size_t>(strategy.zero)]);
    }
  }
  return kind.empty() ? "one GPU" : kind;
}

}  // namespace chokepoint::validate
