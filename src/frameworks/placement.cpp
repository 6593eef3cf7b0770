// SPDX-License-Identifier: Apache-2.0
// Where each rank runs, and the variables its process needs.
#include "express.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>

namespace chokepoint::frameworks {

namespace {

/// Name of each host: that of its group where the cluster file gives one, else host-1 and on.
std::vector<std::string> host_names(const parallel::Job& job) {
  const int count = machines_of(job).hosts;
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back(fmt::format("host-{}", i + 1));
  return names;
}

}  // namespace

namespace {

/// Names of adapters as a tool printed them; a catalogue's "NIC0" is no name that NCCL knows.
bool is_device_name(const std::string& name) {
  return name.starts_with("mlx") || name.starts_with("bnxt") || name.starts_with("irdma") || name.starts_with("roce") || name.starts_with("ibp");
}

/// The adapters that carry collectives, where a host has others beside them (storage, management).
std::string adapters_to_name(const topology::Host& host) {
  const std::vector<int> compute = topology::compute_nics(host);
  const std::vector<int> all = host.nics();
  if (compute.empty() || compute.size() == all.size()) return "";
  std::string out;
  for (const int nic : compute) {
    const std::string& name = host.devices[static_cast<std::size_t>(nic)].name;
    if (!is_device_name(name)) return "";
    out += (out.empty() ? "" : ",") + name;
  }
  return out;
}

/// NCCL release from which the RoCE v2 address is found without help (NCCL 2.21, 2024).
constexpr int kFindsRoceAddress = 2025;

/// What NCCL cannot know of the ways between hosts.
void network_variables(const parallel::Job& job, std::vector<Variable>& out) {
  if (machines_of(job).hosts < 2) return;
  const topology::Cluster& cluster = job.cluster;
  const bool infiniband = cluster.fabric.transport == topology::Transport::kInfiniBand;
  const bool roce = cluster.fabric.transport == topology::Transport::kRoce;
  if (const std::string names = adapters_to_name(cluster.hosts.front().host); (infiniband || roce) && !names.empty()) {
    out.push_back({"NCCL_IB_HCA", "=" + names, "only these adapters sit beside the GPUs; the others would slow the rings"});
  }
  if (roce && job.year < kFindsRoceAddress) {
    out.push_back({"NCCL_IB_GID_INDEX", "3", "RoCE v2; releases before 2.21 take the first address, which is v1 (check with show_gids)"});
  }
  if (cluster.fabric.transport == topology::Transport::kEfa) {
    out.push_back({"FI_PROVIDER", "efa", "NCCL reaches EFA through libfabric (aws-ofi-nccl)"});
  }
}

}  // namespace

std::vector<Variable> environment(const parallel::Job& job, const parallel::Strategy& s, Target target) {
  std::vector<Variable> out;
  const bool megatron = target == Target::kMegatron || target == Target::kNemo;
  const bool before_blackwell = job.accelerator.architecture < hardware::Architecture::kBlackwell;
  if (megatron && s.tensor > 1 && s.zero < 2 && before_blackwell) {
    out.push_back({"CUDA_DEVICE_MAX_CONNECTIONS", "1",
                   "the backward's tensor-parallel collectives must start before the products that hide them"});
  }
  if (target == Target::kTorchtitan || (target == Target::kAccelerate && s.zero == 3)) {
    out.push_back({"PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True",
                   "gathered units of different sizes come and go: without it memory fragments"});
  }
  network_variables(job, out);
  return out;
}

std::string environment_lines(const parallel::Job& job, const parallel::Strategy& strategy, Target target) {
  std::string out;
  for (const Variable& variable : environment(job, strategy, target)) {
    out += fmt::format("export {}={}  # {}\n", variable.name, variable.value, variable.reason);
  }
  return out;
}

std::string hostfile(const parallel::Job& job) {
  const Machines machines = machines_of(job);
  std::string out;
  int left = job.gpus;
  int index = 0;
  const int per_leaf = job.cluster.fabric.hosts_per_leaf;
  for (const std::string& host : host_names(job)) {
    // Groups of neighbouring ranks stay below one leaf only if the hosts are listed leaf by leaf.
    if (per_leaf > 0 && machines.hosts > per_leaf && index % per_leaf == 0) out += fmt::format("# leaf {}\n", index / per_leaf + 1);
    ++index;
    const int slots = std::min(machines.per_host, left);
    out += fmt::format("{} slots={}\n", host, slots);
    left -= slots;
  }
  return out;
}

std::string rank_map(const parallel::Job& job, const parallel::Strategy& s) {
  const Machines machines = machines_of(job);
  const std::vector<std::string> hosts = host_names(job);
  std::string out = "rank,host,local_rank,tensor,context,data,pipeline";
  const bool experts = s.expert > 1, shards = s.shard_ranks > 0;
  if (experts) out += ",expert";
  if (shards) out += ",shard,replica";
  out += "\n";
  const int data = std::max(1, s.data);
  for (int rank = 0; rank < job.gpus; ++rank) {
    const int tensor = rank % s.tensor;
    const int context = rank / s.tensor % s.context;
    const int replica = rank / (s.tensor * s.context) % data;
    const int stage = rank / (s.tensor * s.context * data);
    fmt::format_to(std::back_inserter(out), "{},{},{},{},{},{},{}", rank,
                   hosts[static_cast<std::size_t>(rank / machines.per_host)], rank % machines.per_host, tensor, context,
                   replica, stage);
    if (experts) fmt::format_to(std::back_inserter(out), ",{}", rank % s.expert);
    if (shards) fmt::format_to(std::back_inserter(out), ",{},{}", replica % s.shard_ranks, replica / s.shard_ranks);
    out += "\n";
  }
  return out;
}

}  // namespace chokepoint::frameworks
