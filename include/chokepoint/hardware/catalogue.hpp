// SPDX-License-Identifier: Apache-2.0
#pragma once
// Data sheets. The YAML files of catalogue/ are compiled into the library; every figure there carries its source.
// Bandwidths are per direction, arithmetic rates dense (without structured sparsity).
#include <array>
#include <chokepoint/base/result.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::hardware {

enum class Dtype { kFp32, kTf32, kFp16, kBf16, kFp8, kFp4 };
inline constexpr int kDtypeCount = 6;
std::string_view name(Dtype dtype);
Result<Dtype> parse_dtype(std::string_view text);
double bytes_per_element(Dtype dtype);

/// What a kernel model may depend on besides data-sheet rates.
enum class Architecture { kVolta, kTuring, kAmpere, kAda, kHopper, kBlackwell, kCdna2, kCdna3, kCdna4, kGaudi, kTpu };
inline constexpr int kArchitectureCount = 11;
std::string_view name(Architecture architecture);
Result<Architecture> parse_architecture(std::string_view text);

struct Accelerator {
  std::string name;                   ///< "a100-sxm4-80gb"
  std::vector<std::string> aliases;
  std::vector<std::string> families;  ///< spellings of the product line, letters and digits: {"a100"}
  std::string form;                   ///< sxm (any module), pcie, nvl
  std::string vendor;
  Architecture architecture = Architecture::kAmpere;
  int compute_units = 0;              ///< SMs, CUs per device, or TPU cores
  double memory_bytes = 0;            ///< HBM/GDDR capacity; a vendor's "80 GB" are 80 GiB (81,920 MiB reported)
  double memory_bytes_per_s = 0;
  std::array<double, kDtypeCount> peak_flops_per_s{};  ///< by Dtype; 0 where the part has no such unit
  double power_w = 0;                 ///< board power limit; 0 when not published
  int nvlinks = 0;                    ///< NVLink or xGMI links of one device; 0 for none
  double nvlink_bytes_per_s = 0;      ///< one link, one direction
  int pcie_generation = 0;
  int pcie_lanes = 16;
  double host_link_bytes_per_s = 0;   ///< one direction to the host's memory where it is not PCIe (NVLink-C2C); 0: PCIe
  bool pcie_peer_to_peer = true;      ///< false for GeForce boards whose driver refuses P2P over PCIe
  std::string source;

  double peak(Dtype dtype) const { return peak_flops_per_s[static_cast<std::size_t>(dtype)]; }
};

struct Nic {
  std::string name;                ///< "connectx-7-400g"
  std::vector<std::string> aliases;
  std::string transport;           ///< infiniband, roce, tcp, omni-path, slingshot, efa
  double bytes_per_s = 0;          ///< line rate of the board, one direction
  int ports = 1;
  std::string source;
};

/// How the GPUs of a host template reach each other besides PCIe.
enum class GpuInterconnect { kNone, kNvSwitch, kBridgePairs, kHybridCubeMesh, kFullMesh, kMi250xMesh };
std::string_view name(GpuInterconnect interconnect);

/// A host as the vendor sells it; wiring::build_host turns it into a topology::Host.
struct HostTemplate {
  std::string name;                ///< "dgx-h100"
  std::vector<std::string> aliases;
  std::string accelerator;
  int gpus = 8;
  GpuInterconnect interconnect = GpuInterconnect::kNone;
  int links_per_pair = 0;          ///< NVLinks between directly joined GPUs (bridges, meshes)
  int sockets = 2;
  int gpus_per_pcie_switch = 1;    ///< 0: GPUs hang on the root complex without a switch
  int nics_per_pcie_switch = 0;    ///< NICs that share the switch with GPUs
  int nics_on_root = 0;            ///< NICs per socket that hang on the root complex
  int nics_on_first_root = 0;      ///< further NICs on the root complex of the first socket only
  int pcie_generation = 0;         ///< of the board, where older than the accelerator's; 0: the accelerator's
  bool gpudirect_rdma = true;      ///< NICs read GPU memory; false: data goes through host memory
  std::string nic;                 ///< catalogue name; empty for none
  std::string default_fabric;      ///< catalogue name; empty for none
  int nvlink_domain_hosts = 1;     ///< hosts that share one NVSwitch domain (GB200 NVL72: 18)
  std::string source;

  int nic_count() const;
};

struct FabricTemplate {
  std::string name;
  std::vector<std::string> aliases;
  std::string kind;                ///< single-switch, fat-tree, rail-optimised
  std::string transport;
  int hosts_per_leaf = 0;
  double oversubscription = 1;
  std::string source;
};

/// Payload bytes per second of one PCIe lane group, one direction, after encoding (128b/130b from generation 3 on).
/// Source: PCI Express Base Specification, revisions 3.0 to 6.0. Generation 0 or unknown gives an error.
Result<double> pcie_bytes_per_s(int generation, int lanes);
/// Memory of one server socket of the time of a PCIe generation, channels x transfers x 8 bytes: 6 x DDR4-2666 (PCIe 3.0),
/// 8 x DDR4-3200 (4.0), 8 x DDR5-4800 (5.0 and later).
double socket_memory_bytes_per_s(int pcie_generation);
/// One NVLink of this generation, one direction (20, 25, 25, 25, 50 GB/s for 1 to 5).
Result<double> nvlink_bytes_per_s(int generation);

/// By name, alias or any spelling that says family, form and memory: "NVIDIA A100-SXM4-80GB", "H100 80GB HBM3", "a100".
/// Bracketed remarks are ignored; what is left open falls to the first member of the family in the catalogue.
Result<Accelerator> find_accelerator(std::string_view name);
Result<Nic> find_nic(std::string_view name);
Result<HostTemplate> find_host(std::string_view name);
Result<FabricTemplate> find_fabric(std::string_view name);
const std::vector<Accelerator>& accelerators();
const std::vector<Nic>& nics();
const std::vector<HostTemplate>& host_templates();
const std::vector<FabricTemplate>& fabrics();

}  // namespace chokepoint::hardware
