// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every number of the collective model that is not a data-sheet value. All are global: none belongs to a system, an
// accelerator name or a table. docs/models/collective.md says what each was fitted on; refs() lists them.
#include <chokepoint/base/parameter.hpp>
#include <vector>

namespace chokepoint::collective {

/// Latency of one protocol: start, and one hop of the ring over each kind of link.
struct ProtocolLatency {
  double base_s = 0;
  double nvlink_hop_s = 0;
  double pcie_hop_s = 0;     ///< peer copies and host memory alike
  double network_hop_s = 0;  ///< InfiniBand or RoCE
  bool operator==(const ProtocolLatency&) const = default;
};

/// Share of the data-sheet rate that NVLinks of one generation give.
struct NvLinkShares {
  double ring = 0.8;   ///< rings, which reduce or store what arrives and send it on
  double write = 0.9;  ///< plain writes to a peer: send and receive, all_to_all
  bool operator==(const NvLinkShares&) const = default;
};

struct Constants {
  ProtocolLatency ll{8.9e-6, 0.74e-6, 2.63e-6, 7.0e-6};
  ProtocolLatency simple{13e-6, 1.56e-6, 19e-6, 22e-6};
  double channel_s = 2.2e-6;        ///< each channel beyond the first; how many NCCL opens grows with the size
  double ll_between_hosts = 1.8;    ///< a hop inside a host when the ring also crosses hosts, for LL
  double chain_hop = 0.40;          ///< a hop of broadcast or reduce, which only pass data on
  double peer_s = 2.2e-6;           ///< all_to_all: one more peer
  double exchange_s = 82e-6;        ///< all_to_all in slots: set-up of the connections to all peers
  double efa_hop = 2.95;            ///< network hops over EFA against InfiniBand
  double efa_first_hop = 9.5;       ///< the same on hosts of the Ampere age, whose EFA is the first generation
  double efa_step_s = 42e-6;        ///< ring over EFA: each of its n - 1 steps passes every channel's proxy once
  double benchmark_bytes = 1e9;  ///< size at which start-up tests of training jobs measure; they do not print it
  double efa_slice_bytes = 0.5e6;   ///< parts of a ring step below this take less: TP over 2 hosts against DDP over 32
  double tcp_hop = 4.0;             ///< network hops over TCP sockets, also Omni-Path verbs
  double fill_s = 9.0e-6;           ///< Simple: what a hop costs more once its slots are full
  double fill_bytes = 31.7e6;       ///< size at which half of that is reached

  double ll_share = 0.65;           ///< of the bandwidth of simple, inside an island: half of the bytes of LL are flags, but it waits less
  double ll_network_share = 0.21;   ///< the same over the network
  double ring_start = 0.28;         ///< steps of a ring that do not overlap with others, each time it is walked

  NvLinkShares nvlink_volta{0.94, 0.90};
  NvLinkShares nvlink_ampere{0.785, 0.913};
  NvLinkShares nvlink_hopper{0.835, 0.836};
  NvLinkShares nvlink_blackwell{0.69, 0.83};
  double xgmi = 0.74;
  double pcie = 0.85;
  double bounce = 0.60;             ///< PCIe through host memory
  double dram = 0.71;               ///< memory of a socket
  double own_copy = 0.50;           ///< all_to_all: copy of a rank's own part, as share of the memory's rate

  double infiniband = 0.94;         ///< share of the line rate
  double roce = 0.65;
  double efa = 0.84;
  double slingshot = 0.40;
  double omni_path = 0.145;
  double tcp_cap_bytes_per_s = 5.0e9; ///< sockets of one NIC: 4-6 GB/s on 100 Gb/s (NVIDIA/nccl#450), 5.1 (FastChat#9)
  double tcp = 0.85;
  double network_direct = 0.85;     ///< all_to_all across hosts against a ring
  double network_send = 0.73;       ///< one pair across hosts against a ring
  double tcp_send = 2.7;            ///< sockets that one pair opens, against one of a ring

  double nvls_latency_s = 25e-6;   ///< as NCCL's tuner counts it
  double nvls_fill_s = 105e-6;      ///< what NVLS costs more once its slots are full
  double nvls_hopper = 0.556;       ///< algorithm bandwidth as share of the specified link rate
  double nvls_blackwell = 0.46;
  double tree = 0.5;                ///< bandwidth of the chain inside a host against a ring

  /// Benchmarks only: launch for one GPU more by the same process (nccl-tests with -g or -t).
  double launch_gpu_s = 4.1e-6;
  bool operator==(const Constants&) const = default;
};

/// Every constant with its unit, source and kind; the pointers lead into `constants`.
std::vector<ParameterRef> refs(Constants& constants);

}  // namespace chokepoint::collective
