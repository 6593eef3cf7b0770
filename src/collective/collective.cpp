// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/collective/collective.hpp>

#include <algorithm>
#include <array>
#include <chokepoint/base/text.hpp>
#include <map>
#include <string>

#include "constants.hpp"
#include "paths.hpp"
#include "timing.hpp"

namespace chokepoint::collective {
namespace {

struct NamedOp {
  std::string_view name;
  Op op;
};
constexpr std::array<NamedOp, 7> kOps{{{"all_reduce", Op::kAllReduce}, {"all_gather", Op::kAllGather},
                                       {"reduce_scatter", Op::kReduceScatter}, {"broadcast", Op::kBroadcast},
                                       {"reduce", Op::kReduce}, {"all_to_all", Op::kAllToAll},
                                       {"send_recv", Op::kSendRecv}}};

}  // namespace

std::string_view name(Op op) {
  for (const NamedOp& entry : kOps) {
    if (entry.op == op) return entry.name;
  }
  return "unknown";
}

Result<Op> parse_op(std::string_view text) {
  std::string word = lower(trim(text));
  std::erase(word, '_');
  std::erase(word, '-');
  std::vector<std::string> names;
  for (const NamedOp& entry : kOps) {
    std::string plain(entry.name);
    names.push_back(plain);
    std::erase(plain, '_');
    if (plain == word) return entry.op;
  }
  std::vector<std::string> notes;
  if (const auto guess = nearest(text, names)) notes.push_back("did you mean '" + *guess + "'?");
  return fail("unknown collective '" + std::string(text) + "', expected all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all or send_recv", {}, notes);
}

double bus_factor(Op op, int ranks) {
  const double n = std::max(1, ranks);
  switch (op) {
    case Op::kAllReduce: return 2 * (n - 1) / n;
    case Op::kAllGather:
    case Op::kReduceScatter:
    case Op::kAllToAll: return (n - 1) / n;
    case Op::kBroadcast:
    case Op::kReduce:
    case Op::kSendRecv: break;
  }
  return 1;
}

std::string_view name(LimitKind kind) {
  switch (kind) {
    case LimitKind::kNone: return "none";
    case LimitKind::kLatency: return "latency";
    case LimitKind::kNvLink: return "nvlink";
    case LimitKind::kPcie: return "pcie";
    case LimitKind::kHostMemory: return "host memory";
    case LimitKind::kSocket: return "socket link";
    case LimitKind::kNic: return "nic";
    case LimitKind::kFabric: return "fabric";
    case LimitKind::kMeasured: return "measured";
  }
  return "unknown";
}

struct Network::State {
  topology::Cluster cluster;
  hardware::Accelerator accelerator;
  Scale scale;
  Limit egress;
  std::map<Group, Path> paths;

  const Path& path(const Group& group) {
    const auto found = paths.find(group);
    if (found != paths.end()) return found->second;
    return paths.emplace(group, make_path(cluster, accelerator, scale, group)).first->second;
  }
};

Network::Network(const topology::Cluster& cluster, const hardware::Accelerator& accelerator, const Scale& scale)
    : state_(std::make_unique<State>(State{cluster, accelerator, scale, host_egress(cluster, scale), {}})) {}
Network::~Network() = default;
Network::Network(const Network& other) : state_(std::make_unique<State>(*other.state_)) {}
Network& Network::operator=(const Network& other) {
  if (this != &other) state_ = std::make_unique<State>(*other.state_);
  return *this;
}

Cost Network::cost(Op op, double bytes, const Group& group) const {
  return time_of(op, bytes, state_->path(group), state_->scale.latency);
}

Cost Network::exchange(double bytes, double network_share, const Group& group) const {
  return exchange_time(bytes, std::clamp(network_share, 0.0, 1.0), state_->path(group), state_->scale.latency);
}

Cost Network::send(double bytes, int rank_distance, int ranks) const {
  const int gpus = std::max(1, state_->cluster.gpus_per_host());
  const int distance = std::max(1, rank_distance);
  // Neighbours `distance` apart leave the host when the distance is not a proper part of it, or at its edge.
  const bool crosses = distance >= gpus || gpus < 2 || ranks > gpus;
  const Group pair = crosses ? Group{.ranks = 2, .ranks_per_host = 1, .local_stride = 1, .host_stride = std::max(1, distance / gpus)}
                             : Group{.ranks = 2, .ranks_per_host = 2, .local_stride = distance};
  if (crosses && distance < gpus) {
    // The path is that of all GPUs of a host sending at once; here one stage does, over the NICs they share.
    const int nics = std::max(1, static_cast<int>(topology::compute_nics(state_->cluster.hosts.front().host).size()));
    bytes *= std::max(1.0, static_cast<double>(distance) / nics) / std::max(1.0, static_cast<double>(gpus) / nics);
  }
  return time_of(Op::kSendRecv, bytes, state_->path(pair), state_->scale.latency);
}

double Network::host_egress_bytes_per_s() const { return state_->egress.bytes_per_s; }

std::vector<Parameter> parameters() {
  const Constants& c = kConstants;
  const std::string nccl = "nccl-tests logs, fitted (docs/models/collective.md)";
  return {
      {"collective.ll.base", c.ll.base_s, "s", nccl},
      {"collective.ll.nvlink_hop", c.ll.nvlink_hop_s, "s", nccl},
      {"collective.ll.pcie_hop", c.ll.pcie_hop_s, "s", nccl},
      {"collective.ll.network_hop", c.ll.network_hop_s, "s", nccl},
      {"collective.ll128.base", c.ll128.base_s, "s", nccl},
      {"collective.ll128.nvlink_hop", c.ll128.nvlink_hop_s, "s", nccl},
      {"collective.ll128.network_hop", c.ll128.network_hop_s, "s", nccl},
      {"collective.simple.base", c.simple.base_s, "s", nccl},
      {"collective.simple.nvlink_hop", c.simple.nvlink_hop_s, "s", nccl},
      {"collective.simple.pcie_hop", c.simple.pcie_hop_s, "s", nccl},
      {"collective.simple.network_hop", c.simple.network_hop_s, "s", nccl},
      {"collective.gather_hop", c.gather_hop, "", nccl},
      {"collective.chain_hop", c.chain_hop, "", nccl},
      {"collective.peer", c.peer_s, "s", nccl},
      {"collective.efa_hop", c.efa_hop, "", nccl},
      {"collective.efa_step", c.efa_step_s, "s",
       "start-up tests of training jobs on 2 to 64 hosts: 1/bandwidth of all_gather grows by the same amount with each rank"},
      {"collective.tcp_hop", c.tcp_hop, "", nccl},
      {"collective.ll_share", c.ll_share, "", nccl},
      {"collective.ll_cap", c.ll_cap_bytes_per_s, "bytes/s", nccl},
      {"collective.ll128_share", c.ll128_share, "", nccl},
      {"collective.nvlink", c.nvlink, "", nccl},
      {"collective.xgmi", c.xgmi, "", nccl},
      {"collective.pcie", c.pcie, "", "peer copies: 56.3 of 63.0 GB/s over PCIe 5.0 x16, rings a little less"},
      {"collective.bounce", c.bounce, "", nccl},
      {"collective.dram", c.dram, "", nccl},
      {"collective.direct", c.direct, "", nccl},
      {"collective.infiniband", c.infiniband, "", nccl},
      {"collective.roce", c.roce, "", nccl},
      {"collective.efa", c.efa, "", nccl},
      {"collective.slingshot", c.slingshot, "", "collectives traced on LUMI, 16 to 256 nodes"},
      {"collective.omni_path", c.omni_path, "", "all_reduce benchmark on Jean Zay, 4 and 16 nodes"},
      {"collective.tcp", c.tcp, "", nccl},
      {"collective.tcp_cap", c.tcp_cap_bytes_per_s, "bytes/s", nccl},
      {"collective.network_direct", c.network_direct, "", nccl},
      {"collective.nvls_latency", c.nvls_latency_s, "s", nccl},
      {"collective.nvls_hopper", c.nvls_hopper, "", nccl},
      {"collective.nvls_blackwell", c.nvls_blackwell, "", nccl},
      {"collective.tree", c.tree, "", nccl},
  };
}

}  // namespace chokepoint::collective
