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
  for (const std::string& host : host_names(job)) {
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
