// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/collective/constants.hpp>
#include <initializer_list>
#include <utility>

namespace chokepoint::collective {
namespace {

struct Entry {
  const char* name;
  double* value;
  const char* unit;
  const char* source;
  ParameterKind kind;
  double log_sigma;
};

constexpr const char* kLogs = "nccl-tests logs, fitted (docs/models/collective.md)";
/// How far machines differ: latencies by host and software age, shares of a link's rate less.
constexpr double kLatencySigma = 0.30;
constexpr double kShareSigma = 0.10;
constexpr double kTransportSigma = 0.20;

}  // namespace

std::vector<ParameterRef> refs(Constants& constants) {
  Constants& c = constants;
  using enum ParameterKind;
  const std::initializer_list<Entry> entries{
      {"collective.ll.base", &c.ll.base_s, "s", kLogs, kFitted, kLatencySigma},
      {"collective.ll.nvlink_hop", &c.ll.nvlink_hop_s, "s", kLogs, kFitted, kLatencySigma},
      {"collective.ll.pcie_hop", &c.ll.pcie_hop_s, "s", kLogs, kFitted, kLatencySigma},
      {"collective.ll.network_hop", &c.ll.network_hop_s, "s", kLogs, kFitted, kLatencySigma},
      {"collective.ll128.base", &c.ll128.base_s, "s", kLogs, kFitted, kLatencySigma},
      {"collective.ll128.nvlink_hop", &c.ll128.nvlink_hop_s, "s", kLogs, kFitted, kLatencySigma},
      {"collective.ll128.network_hop", &c.ll128.network_hop_s, "s", kLogs, kFitted, kLatencySigma},
      {"collective.simple.base", &c.simple.base_s, "s", kLogs, kFitted, kLatencySigma},
      {"collective.simple.nvlink_hop", &c.simple.nvlink_hop_s, "s", kLogs, kFitted, kLatencySigma},
      {"collective.simple.pcie_hop", &c.simple.pcie_hop_s, "s", kLogs, kFitted, kLatencySigma},
      {"collective.simple.network_hop", &c.simple.network_hop_s, "s", kLogs, kFitted, kLatencySigma},
      {"collective.gather_hop", &c.gather_hop, "", kLogs, kFitted, kLatencySigma},
      {"collective.chain_hop", &c.chain_hop, "", kLogs, kFitted, kLatencySigma},
      {"collective.peer", &c.peer_s, "s", kLogs, kFitted, kLatencySigma},
      {"collective.efa_hop", &c.efa_hop, "", kLogs, kFitted, kLatencySigma},
      {"collective.efa_step", &c.efa_step_s, "s", "start-up tests of training jobs on 2 to 64 hosts: 1/bandwidth of all_gather grows by the same amount with each rank", kFitted, kLatencySigma},
      {"collective.efa_slice", &c.efa_slice_bytes, "bytes", "the same tests against gradient buckets over 16 to 32 hosts (in sample)", kFitted, kLatencySigma},
      {"collective.tcp_hop", &c.tcp_hop, "", kLogs, kFitted, kLatencySigma},
      {"collective.ll_share", &c.ll_share, "", kLogs, kFitted, kShareSigma},
      {"collective.ll_cap", &c.ll_cap_bytes_per_s, "bytes/s", kLogs, kFitted, kShareSigma},
      {"collective.ll128_share", &c.ll128_share, "", kLogs, kFitted, kShareSigma},
      {"collective.nvlink", &c.nvlink, "", kLogs, kFitted, kShareSigma},
      {"collective.xgmi", &c.xgmi, "", kLogs, kFitted, kShareSigma},
      {"collective.pcie", &c.pcie, "", "peer copies: 56.3 of 63.0 GB/s over PCIe 5.0 x16, rings a little less", kPublished, kShareSigma},
      {"collective.bounce", &c.bounce, "", kLogs, kFitted, kShareSigma},
      {"collective.dram", &c.dram, "", kLogs, kFitted, kShareSigma},
      {"collective.direct", &c.direct, "", kLogs, kFitted, kShareSigma},
      {"collective.infiniband", &c.infiniband, "", kLogs, kFitted, kTransportSigma},
      {"collective.roce", &c.roce, "", kLogs, kFitted, kTransportSigma},
      {"collective.efa", &c.efa, "", kLogs, kFitted, kTransportSigma},
      {"collective.slingshot", &c.slingshot, "", "collectives traced on LUMI, 16 to 256 nodes", kFitted, kTransportSigma},
      {"collective.omni_path", &c.omni_path, "", "all_reduce benchmark on Jean Zay, 4 and 16 nodes", kFitted, kTransportSigma},
      {"collective.tcp", &c.tcp, "", kLogs, kFitted, kTransportSigma},
      {"collective.tcp_cap", &c.tcp_cap_bytes_per_s, "bytes/s", "NVIDIA/nccl#450: 4-6 GB/s on 100 Gb/s; lm-sys/FastChat#9: 5.1 GB/s", kPublished, kTransportSigma},
      {"collective.network_direct", &c.network_direct, "", kLogs, kFitted, kTransportSigma},
      {"collective.nvls_latency", &c.nvls_latency_s, "s", kLogs, kFitted, kLatencySigma},
      {"collective.nvls_hopper", &c.nvls_hopper, "", kLogs, kFitted, kLatencySigma},
      {"collective.nvls_blackwell", &c.nvls_blackwell, "", kLogs, kFitted, kShareSigma},
      {"collective.tree", &c.tree, "", kLogs, kFitted, kShareSigma},
  };
  std::vector<ParameterRef> list;
  for (const Entry& entry : entries) {
    list.push_back({{entry.name, *entry.value, entry.unit, entry.source, entry.kind, entry.log_sigma}, entry.value});
  }
  return list;
}

}  // namespace chokepoint::collective
