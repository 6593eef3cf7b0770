// SPDX-License-Identifier: Apache-2.0
#pragma once
// From the few words in which papers, tables and logs describe a machine to a topology:
//
//   auto cluster = cluster_from_words("A100-SXM4-80GB", 8, 16, "NVLink3+NVSwitch", "8xHDR200-IB per node");
//
// Everything the words leave open is filled with what is usual for that part and said in Cluster::notes.
#include <chokepoint/base/result.hpp>
#include <chokepoint/hardware/catalogue.hpp>
#include <chokepoint/topology/topology.hpp>
#include <string_view>
#include <vector>

namespace chokepoint::wiring {

/// How GPUs of one host reach each other, as words say it.
struct IntraWords {
  hardware::GpuInterconnect interconnect = hardware::GpuInterconnect::kNone;
  int links_per_pair = 0;      ///< direct links between two joined GPUs; 0 without direct links
  int links_per_gpu = 0;       ///< NVLinks of one GPU when the words say it ("NV18", "8 links"); 0: the data sheet's
  int pcie_generation = 0;     ///< 0 when not said
  int gpus_per_pcie_switch = -1;  ///< -1 when not said; 0: on the root complex
  bool peer_to_peer_denied = false;   ///< "no P2P"
  bool peer_to_peer_granted = false;  ///< "P2P (patched driver)"
  int nvlink_domain_hosts = 1;
};

/// How hosts reach each other, as words say it.
struct InterWords {
  topology::Transport transport = topology::Transport::kInfiniBand;
  int nics = 0;                ///< per host; 0 when not said
  double nic_bytes_per_s = 0;  ///< one NIC, one direction; 0 when not said
  double host_bytes_per_s = 0; ///< a host, all NICs; 0 when not said
  bool per_gpu = false;        ///< `nics` and rates count per GPU, not per host
  double stream_bytes_per_s = 0;  ///< what each GPU drives at most, where sockets and not the wire decide
  bool cross_numa = false;     ///< NICs on the other socket
  bool without_gpudirect = false;
  bool says_nothing = false;   ///< empty, "unknown", "not stated"
};

/// The catalogue entry that a free text means: "A100-SXM4 (memory size not stated)", "RTX 4090", "H100 80GB HBM3".
/// `hint` ("NVLink", "PCIe") decides between board forms that the text leaves open.
Result<hardware::Accelerator> accelerator_from_words(std::string_view text, std::string_view hint,
                                                     std::vector<Note>& notes);
IntraWords intra_from_words(std::string_view text, const hardware::Accelerator& accelerator, int gpus_per_host,
                            std::vector<Note>& notes);
InterWords inter_from_words(std::string_view text, std::vector<Note>& notes);

/// A regular cluster: `hosts` equal hosts with `gpus_per_host` GPUs.
Result<topology::Cluster> cluster_from_words(std::string_view accelerator, int gpus_per_host, int hosts,
                                             std::string_view intra_link, std::string_view inter_link);

}  // namespace chokepoint::wiring
