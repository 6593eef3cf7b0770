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
  ProtocolLatency ll{9.3e-6, 0.67e-6, 2.6e-6, 7.3e-6};
  ProtocolLatency ll128{57e-6, 0, 0, 9.5e-6};  ///< a plateau that hardly depends on the ranks of a host
  ProtocolLatency simple{28.5e-6, 2.35e-6, 10e-6, 20.3e-6};
  double ll_between_hosts = 1.8;    ///< a hop inside a host when the ring also crosses hosts, for LL
  double chain_hop = 0.415;         ///< a hop of broadcast or reduce, which only pass data on
  double peer_s = 2.2e-6;           ///< all_to_all: one more peer
  double exchange_s = 73e-6;        ///< all_to_all in slots: set-up of the connections to all peers
  double efa_hop = 2.95;            ///< network hops over EFA against InfiniBand
  double efa_first_hop = 9.5;       ///< the same on hosts of the Ampere age, whose EFA is the first generation
  double efa_step_s = 42e-6;        ///< ring over EFA: each of its n - 1 steps passes every channel's proxy once
  double benchmark_bytes = 1e9;  ///< size at which start-up tests of training jobs measure; they do not print it
  double efa_slice_bytes = 0.5e6;   ///< parts of a ring step below this take less: TP over 2 hosts against DDP over 32
  double tcp_hop = 4.0;             ///< network hops over TCP sockets, also Omni-Path verbs
  double fill_s = 13.8e-6;          ///< Simple: what a hop costs more once its slots are full
  double fill_bytes = 12.5e6;       ///< size at which half of that is reached

  double ll_share = 0.168;          ///< of the bandwidth of simple: half of its bytes are flags, and few channels run
  double ll_pcie_share = 0.62;      ///< over PCIe, where Simple itself does not fill the wire
  double ll_cap_bytes_per_s = 7.3e9; ///< inside a host over NVLink: few channels at these sizes
  double ll128_share = 0.356;       ///< attained at the sizes where it is the best choice; 120 of its 128 bytes are data
  double overlap = 1.133;           ///< p: a ring's latency and transfer join as (latency^p + transfer^p)^(1/p), from LL128 on
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

  double nvls_latency_s = 3e-6;
  double nvls_fill_s = 105e-6;      ///< what NVLS costs more once its slots are full
  double nvls_hopper = 0.556;       ///< algorithm bandwidth as share of the specified link rate
  double nvls_blackwell = 0.46;
  double tree = 0.5075;             ///< bandwidth of the chain inside a host against a ring

  /// Benchmarks only: launch for one GPU more by the same process (nccl-tests with -g or -t).
  double launch_gpu_s = 3.95e-6;
  bool operator==(const Constants&) const = default;
};

/// Every constant with its unit, source and kind; the pointers lead into `constants`.
std::vector<ParameterRef> refs(Constants& constants);

}  // namespace chokepoint::collective
