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
constexpr const char* kNccl = "NCCL 2.4 to 2.18, src/graph/tuning.cc";
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
      {"collective.simple.base", &c.simple.base_s, "s", kLogs, kFitted, kLatencySigma},
      {"collective.simple.nvlink_hop", &c.simple.nvlink_hop_s, "s", kLogs, kFitted, kLatencySigma},
      {"collective.simple.pcie_hop", &c.simple.pcie_hop_s, "s", kLogs, kFitted, kLatencySigma},
      {"collective.simple.network_hop", &c.simple.network_hop_s, "s", kLogs, kFitted, kLatencySigma},
      {"collective.channel", &c.channel_s, "s", kLogs, kFitted, kLatencySigma},
      {"collective.ll.between_hosts", &c.ll_between_hosts, "", kNccl, kPublished, 0},
      {"collective.chain_hop", &c.chain_hop, "", kLogs, kFitted, kLatencySigma},
      {"collective.peer", &c.peer_s, "s", kLogs, kFitted, kLatencySigma},
      {"collective.exchange", &c.exchange_s, "s", kLogs, kFitted, kLatencySigma},
      {"collective.efa_hop", &c.efa_hop, "", kLogs, kFitted, kLatencySigma},
      {"collective.efa_first_hop", &c.efa_first_hop, "", "nccl-tests on 2 p4de hosts: 162 us for a small all_reduce", kPublished, kLatencySigma},
      {"collective.efa_step", &c.efa_step_s, "s", "start-up tests of training jobs on 2 to 64 hosts: 1/bandwidth of all_gather grows by the same amount with each rank", kFitted, kLatencySigma},
      {"collective.benchmark_bytes", &c.benchmark_bytes, "bytes", "estimate: start-up tests do not print their size", ParameterKind::kEstimate, 0},
      {"collective.efa_slice", &c.efa_slice_bytes, "bytes", "the same tests against gradient buckets over 16 to 32 hosts (in sample)", kFitted, kLatencySigma},
      {"collective.tcp_hop", &c.tcp_hop, "", kLogs, kFitted, kLatencySigma},
      {"collective.fill", &c.fill_s, "s", kLogs, kFitted, kLatencySigma},
      {"collective.fill_bytes", &c.fill_bytes, "bytes", kLogs, kFitted, kLatencySigma},
      {"collective.ll_share", &c.ll_share, "", kLogs, kFitted, kShareSigma},
      {"collective.ll_network_share", &c.ll_network_share, "", kLogs, kFitted, kShareSigma},
      {"collective.ring_start", &c.ring_start, "", "nccl-tests: 2, 4 and 8 A100 reach 206, 224 and 231 of 300 GB/s", kPublished, kLatencySigma},
      {"collective.nvlink.volta.ring", &c.nvlink_volta.ring, "", "nccl-tests: 135 of 150 GB/s on 8 V100", kPublished, kShareSigma},
      {"collective.nvlink.volta.write", &c.nvlink_volta.write, "", "CUDA samples p2pBandwidthLatencyTest, as Ampere", kPublished, kShareSigma},
      {"collective.nvlink.ampere.ring", &c.nvlink_ampere.ring, "", "nccl-tests: 231 to 235 of 300 GB/s on 8 A100", kPublished, kShareSigma},
      {"collective.nvlink.ampere.write", &c.nvlink_ampere.write, "", "CUDA samples p2pBandwidthLatencyTest: 274 of 300 GB/s", kPublished, kShareSigma},
      {"collective.nvlink.hopper.ring", &c.nvlink_hopper.ring, "", "nccl-tests: 164 of 200 GB/s on 8 H800", kPublished, kShareSigma},
      {"collective.nvlink.hopper.write", &c.nvlink_hopper.write, "", "CUDA samples p2pBandwidthLatencyTest: 376 of 450 GB/s", kPublished, kShareSigma},
      {"collective.nvlink.blackwell.ring", &c.nvlink_blackwell.ring, "", "nccl-tests: 483 of 900 GB/s on 2 B200", kPublished, kShareSigma},
      {"collective.nvlink.blackwell.write", &c.nvlink_blackwell.write, "", "CUDA samples p2pBandwidthLatencyTest: 746 of 900 GB/s", kPublished, kShareSigma},
      {"collective.xgmi", &c.xgmi, "", "rccl-tests on 2 x 8 MI300X", kPublished, kShareSigma},
      {"collective.pcie", &c.pcie, "", "peer copies: 56.3 of 63.0 GB/s over PCIe 5.0 x16, rings a little less", kPublished, kShareSigma},
      {"collective.bounce", &c.bounce, "", "nccl-tests: 18.9 of 31.5 GB/s, broadcast between 2 RTX 4090", kPublished, kShareSigma},
      {"collective.dram", &c.dram, "", kLogs, kFitted, kShareSigma},
      {"collective.own_copy", &c.own_copy, "", "nccl-tests all_to_all on 2, 4 and 8 A100", kPublished, kShareSigma},
      {"collective.infiniband", &c.infiniband, "", kLogs, kFitted, kTransportSigma},
      {"collective.roce", &c.roce, "", kLogs, kFitted, kTransportSigma},
      {"collective.efa", &c.efa, "", kLogs, kFitted, kTransportSigma},
      {"collective.slingshot", &c.slingshot, "", "collectives traced on LUMI, 16 to 256 nodes", kPublished, kTransportSigma},
      {"collective.omni_path", &c.omni_path, "", "all_reduce benchmark on Jean Zay, 4 and 16 nodes", kPublished, kTransportSigma},
      {"collective.tcp", &c.tcp, "", kLogs, kFitted, kTransportSigma},
      {"collective.tcp_cap", &c.tcp_cap_bytes_per_s, "bytes/s", "NVIDIA/nccl#450: 4-6 GB/s on 100 Gb/s; lm-sys/FastChat#9: 5.1 GB/s", kPublished, kTransportSigma},
      {"collective.network_direct", &c.network_direct, "", kLogs, kFitted, kTransportSigma},
      {"collective.network_send", &c.network_send, "", "torch.distributed samples: 35 GB/s of a pair against 47 of a ring over 400 Gb/s", kPublished, kTransportSigma},
      {"collective.tcp_send", &c.tcp_send, "", "torch.distributed samples: 3.2 GB/s of a pair against 1.2 of a ring over sockets", kPublished, kTransportSigma},
      {"collective.nvls.latency", &c.nvls_latency_s, "s", "NCCL 2.20 to 2.28, src/graph/tuning.cc", kPublished, kLatencySigma},
      {"collective.nvls.fill", &c.nvls_fill_s, "s", "nccl-tests sweep on 8 H100", kPublished, kLatencySigma},
      {"collective.nvls.hopper", &c.nvls_hopper, "", "nccl-tests: 483 GB/s on 450 of links, 8 H100", kPublished, kShareSigma},
      {"collective.nvls.blackwell", &c.nvls_blackwell, "", "nccl-tests: 839 GB/s on 900 of links, 72 GB200", kPublished, kShareSigma},
      {"collective.tree", &c.tree, "", "NCCL, src/graph/tuning.cc: half of the bus bandwidth", kPublished, kShareSigma},
      {"collective.launch_gpu", &c.launch_gpu_s, "s", "nccl-tests of one process: 8.7 us on 2 and 31 to 35 us on 8 GPUs", kPublished, kLatencySigma},
  };
  std::vector<ParameterRef> list;
  for (const Entry& entry : entries) {
    list.push_back({{entry.name, *entry.value, entry.unit, entry.source, entry.kind, entry.log_sigma}, entry.value});
  }
  return list;
}

}  // namespace chokepoint::collective
