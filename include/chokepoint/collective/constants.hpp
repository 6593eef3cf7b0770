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

struct Constants {
  ProtocolLatency ll{8.7e-6, 2.6e-6, 3.5e-6, 6.0e-6};
  ProtocolLatency ll128{20e-6, 3.8e-6, 0, 5.7e-6};
  ProtocolLatency simple{21e-6, 8.4e-6, 8.8e-6, 20.5e-6};
  double gather_hop = 1.4;       ///< a hop of all_gather or reduce_scatter against one of all_reduce
  double chain_hop = 0.45;       ///< a hop of broadcast or reduce, which only pass data on
  double peer_s = 1.1e-6;        ///< all_to_all: one more peer
  double efa_hop = 4.0;          ///< network hops over EFA against InfiniBand
  double efa_step_s = 42e-6;     ///< ring over EFA: each of its n - 1 steps passes every channel's proxy once
  double efa_slice_bytes = 0.5e6;  ///< parts of a ring step below this take less: TP over 2 hosts against DDP over 32
  double tcp_hop = 8.0;          ///< network hops over TCP sockets, also Omni-Path verbs

  double ll_share = 0.42;        ///< of the bandwidth of simple; half of its bytes are flags
  double ll_cap_bytes_per_s = 18.5e9;
  double ll128_share = 0.66;     ///< attained at the sizes where it is the best choice; 120 of its 128 bytes are data

  double nvlink = 0.785;          ///< share of the specified rate a ring reaches
  double xgmi = 0.74;
  double pcie = 0.85;
  double bounce = 0.60;          ///< PCIe through host memory
  double dram = 0.71;            ///< memory of a socket
  double direct = 0.90;          ///< all_to_all against a ring, on the same links

  double infiniband = 0.94;      ///< share of the line rate
  double roce = 0.65;
  double efa = 0.84;
  double slingshot = 0.40;
  double omni_path = 0.145;
  double tcp_cap_bytes_per_s = 5.0e9;  ///< sockets of one NIC: 4-6 GB/s on 100 Gb/s (NVIDIA/nccl#450), 5.1 (FastChat#9)
  double tcp = 0.85;
  double network_direct = 0.85;  ///< all_to_all across hosts against a ring

  double nvls_latency_s = 19e-6;
  double nvls_hopper = 0.54;     ///< algorithm bandwidth as share of the specified link rate
  double nvls_blackwell = 0.46;
  double tree = 0.60;            ///< bandwidth of the chain inside a host against a ring
  bool operator==(const Constants&) const = default;
};

/// Every constant with its unit, source and kind; the pointers lead into `constants`.
std::vector<ParameterRef> refs(Constants& constants);

}  // namespace chokepoint::collective
