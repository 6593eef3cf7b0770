// SPDX-License-Identifier: Apache-2.0
#pragma once
// From what a cluster's tools print to a topology. Each importer reads one format and reports what it could not know as
// notes on the host. Formats are recognised by content, never by file name.
#include <chokepoint/base/result.hpp>
#include <chokepoint/hardware/catalogue.hpp>
#include <chokepoint/topology/topology.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::wiring {

enum class Format {
  kUnknown,
  kTopoMatrix,       ///< nvidia-smi topo -m
  kNcclTopologyXml,
  kClusterYaml,      ///< our own cluster file
  kPeerMatrix,       ///< nvidia-smi topo -p2p
  kNvLinkStatus,     ///< nvidia-smi nvlink -s, -e
  kSmiQuery,         ///< nvidia-smi -q
  kNcclGraphXml,
  kNcclLog,          ///< NCCL_DEBUG=INFO
  kHwlocXml,
  kLspci,
  kFabric,           ///< ibnetdiscover, iblinkinfo, ibsim
  kIbPorts,          ///< ibstat
  kIbDevices,        ///< ibv_devinfo, ibstatus
  kPortCounters,     ///< perfquery
  kGuidList,
  kSlurmTopology,
  kRocmTopology,     ///< rocm-smi
  kNcclTests,
  kOsu,
  kPerftest,
  kPairTables,       ///< p2pBandwidthLatencyTest, nvbandwidth, TransferBench, rocm-bandwidth-test
  kDeepSpeedComms,
  kTrainingLog,
  kMeasuredNetwork,  ///< chokepoint measure --network
};
/// "topo-m", "nccl-topo-xml", "ib-fabric", ...: the kind of file, as docs/formats lists them.
std::string_view name(Format format);
/// What the text mostly is.
Format recognise(std::string_view text);
/// Everything the text holds, what it mostly is first: a benchmark's log may also carry NCCL's. Empty when unknown.
std::vector<Format> formats_in(std::string_view text);

/// `nvidia-smi topo -m` as printed or pasted: ANSI codes, tabs, prompts, line prefixes, Markdown fences and tables,
/// missing legends, short, cut or run-together rows. What is missing becomes a note; what cannot be a matrix an error.
Result<topology::Host> read_topo_matrix(std::string_view text, const std::string& file);

/// Every different matrix of a text, with how often it stands there (outputs of several hosts in one paste).
Result<std::vector<topology::HostGroup>> read_topo_matrices(std::string_view text, const std::string& file);

/// NCCL topology XML (NCCL_TOPO_DUMP_FILE, or an overlay given to NCCL_TOPO_FILE), NVIDIA and RCCL dialects.
Result<topology::Host> read_nccl_xml(std::string_view text, const std::string& file);

/// A host of any recognised format.
Result<topology::Host> read_host(std::string_view text, const std::string& file);

/// Sets the accelerator and fills bandwidths that only its data sheet knows (NVLink rate, PCIe generation).
Result<topology::Host> with_accelerator(topology::Host host, const hardware::Accelerator& accelerator);

/// Sets kind and line rate of the NICs that carry collectives.
void set_nics(topology::Host& host, const hardware::Nic& nic);

/// Catalogue fabric -> what joins hosts.
Result<topology::Fabric> build_fabric(const hardware::FabricTemplate& description);
/// Catalogue host -> graph.
Result<topology::Host> build_host(const hardware::HostTemplate& description);
/// `hosts` catalogue hosts with the template's default fabric.
Result<topology::Cluster> build_cluster(std::string_view host_or_cluster_name, int hosts);

/// A user's cluster file (docs/formats/cluster.md): host files x count, fabric, prices. Paths are relative to `file`.
Result<topology::Cluster> read_cluster_yaml(std::string_view text, const std::string& file);

}  // namespace chokepoint::wiring
