// SPDX-License-Identifier: Apache-2.0
// Catalogue host -> graph: sockets, PCIe switches, NICs, then the way its GPUs are joined.
#include "parts.hpp"

#include <chokepoint/wiring/wiring.hpp>

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace chokepoint::wiring {

using namespace topology;
using hardware::GpuInterconnect;

namespace {

constexpr int kMaxGpusPerHost = 256;

struct MeshLink {
  int a = 0;
  int b = 0;
  int links = 0;
};

/// Links of the DGX-1 with V100: two quads and a cube, six links per GPU. Source: NVIDIA DGX-1 with Tesla V100 system
/// architecture white paper (WP-08437), figure of the hybrid cube mesh.
constexpr std::array<MeshLink, 16> kHybridCubeMesh{{{0, 1, 1}, {0, 2, 1}, {0, 3, 2}, {0, 4, 2}, {1, 2, 2}, {1, 3, 1}, {1, 5, 2}, {2, 3, 2},
                                                    {2, 6, 1}, {3, 7, 1}, {4, 5, 1}, {4, 6, 1}, {4, 7, 2}, {5, 6, 2}, {5, 7, 1}, {6, 7, 2}}};

/// Infinity Fabric links between the eight dies of four MI250X. Source: OLCF Frontier user guide, node diagram
/// (four links inside a package, two or one between packages).
constexpr std::array<MeshLink, 12> kMi250xMesh{{{0, 1, 4}, {2, 3, 4}, {4, 5, 4}, {6, 7, 4}, {0, 6, 2}, {2, 4, 2},
                                                {0, 2, 1}, {1, 3, 1}, {1, 5, 1}, {3, 7, 1}, {4, 6, 1}, {5, 7, 1}}};

/// What the steps of building share.
struct Builder {
  const hardware::HostTemplate& description;
  const hardware::Accelerator& accelerator;
  const hardware::Nic* nic = nullptr;
  Host host;
  std::vector<int> gpus;
  std::string origin;
  int generation = 0;  ///< PCIe, of the board

  void add_nic(int attach_to, std::optional<int> numa);
  void add_socket(int socket, int cpu);
  void join(int a, int b, int links);
  Result<bool> join_gpus();
};

void Builder::add_nic(int attach_to, std::optional<int> numa) {
  Device device{DeviceKind::kNic, fmt::format("NIC{}", host.nics().size()), nic->name, {}, numa};
  device.line_bytes_per_s = nic->bytes_per_s;
  const int index = host.add_device(std::move(device));
  host.add_duplex(index, attach_to, LinkKind::kPcie, 16, pcie(generation, 16, origin));
}

void Builder::add_socket(int socket, int cpu) {
  const int per_socket = (description.gpus + description.sockets - 1) / description.sockets;
  const int first = std::min(description.gpus, socket * per_socket);
  const int last = std::min(description.gpus, first + per_socket);
  const int per_switch = description.gpus_per_pcie_switch;
  int parent = -1;
  for (int i = first; i < last; ++i) {
    const bool starts_group = per_switch == 0 || (i - first) % per_switch == 0;
    if (starts_group) {
      parent = add_bridge(host, cpu, generation);
      if (per_switch > 0) {
        const int bridge = parent;
        parent = add_switch(host, fmt::format("PCIe switch {}", host.of_kind(DeviceKind::kPcieSwitch).size()), socket);
        host.add_duplex(parent, bridge, LinkKind::kPcie, 16, pcie(generation, 16, origin));
        for (int n = 0; nic != nullptr && n < description.nics_per_pcie_switch; ++n) add_nic(parent, socket);
      }
    }
    const int gpu = gpus[static_cast<std::size_t>(i)];
    host.devices[static_cast<std::size_t>(gpu)].numa = socket;
    host.add_duplex(gpu, parent, LinkKind::kPcie, accelerator.pcie_lanes, pcie(generation, accelerator.pcie_lanes, origin));
  }
  const int on_root = description.nics_on_root + (socket == 0 ? description.nics_on_first_root : 0);
  for (int n = 0; nic != nullptr && n < on_root; ++n) add_nic(add_bridge(host, cpu, generation), socket);
}

void Builder::join(int a, int b, int links) {
  host.add_duplex(gpus[static_cast<std::size_t>(a)], gpus[static_cast<std::size_t>(b)], gpu_link_kind(accelerator), links,
                  specified(links * accelerator.nvlink_bytes_per_s, "catalogue: " + accelerator.name));
}

Result<bool> Builder::join_gpus() {
  const int count = description.gpus;
  switch (description.interconnect) {
    case GpuInterconnect::kNone: return true;
    case GpuInterconnect::kNvSwitch: {
      const int nvswitch = host.add_device({DeviceKind::kNvSwitch, "NVSwitch", {}, {}, {}});
      for (const int gpu : gpus) {
        host.add_duplex(gpu, nvswitch, LinkKind::kNvLink, accelerator.nvlinks,
                        specified(accelerator.nvlinks * accelerator.nvlink_bytes_per_s, "catalogue: " + accelerator.name));
      }
      return true;
    }
    case GpuInterconnect::kBridgePairs:
      for (int i = 0; i + 1 < count; i += 2) join(i, i + 1, description.links_per_pair);
      return true;
    case GpuInterconnect::kFullMesh:
      for (int a = 0; a < count; ++a) {
        for (int b = a + 1; b < count; ++b) join(a, b, description.links_per_pair);
      }
      return true;
    case GpuInterconnect::kHybridCubeMesh:
    case GpuInterconnect::kMi250xMesh: break;
  }
  if (count > 8) return fail(fmt::format("host '{}' has {} GPUs, but its mesh is drawn for 8", description.name, count));
  // Fewer GPUs are the first ones of the board: a quad of the cube, packages of the other mesh.
  const auto join_all = [&](const auto& mesh) {
    for (const MeshLink& link : mesh) {
      if (link.a < count && link.b < count) join(link.a, link.b, link.links);
    }
  };
  if (description.interconnect == GpuInterconnect::kHybridCubeMesh) {
    join_all(kHybridCubeMesh);
  } else {
    join_all(kMi250xMesh);
  }
  return true;
}

}  // namespace

Result<Host> build_host(const hardware::HostTemplate& description) {
  if (description.gpus < 1 || description.gpus > kMaxGpusPerHost || description.sockets < 1 || description.sockets > description.gpus * 8) {
    return fail(fmt::format("host '{}' has {} GPUs on {} sockets, expected 1 to {} GPUs", description.name, description.gpus,
                            description.sockets, kMaxGpusPerHost));
  }
  TRY_INTO(const hardware::Accelerator accelerator, hardware::find_accelerator(description.accelerator));
  hardware::Nic nic;
  if (!description.nic.empty()) {
    TRY_INTO(nic, hardware::find_nic(description.nic));
  }
  Builder builder{description, accelerator, description.nic.empty() ? nullptr : &nic, {}, {},
                  "catalogue: " + description.name, description.pcie_generation > 0 ? description.pcie_generation : accelerator.pcie_generation};
  Host& host = builder.host;
  host.name = description.name;
  host.accelerator = accelerator.name;
  host.peer_to_peer = accelerator.pcie_peer_to_peer;
  host.gpudirect_rdma = description.gpudirect_rdma && accelerator.pcie_peer_to_peer;
  host.nvlink_domain_hosts = description.nvlink_domain_hosts;
  for (int i = 0; i < description.gpus; ++i) {
    builder.gpus.push_back(host.add_device({DeviceKind::kGpu, fmt::format("GPU{}", i), accelerator.name, {}, {}}));
  }
  std::vector<int> cpus;
  for (int socket = 0; socket < description.sockets; ++socket) {
    cpus.push_back(add_cpu(host, socket));
    builder.add_socket(socket, cpus.back());
  }
  join_sockets(host, cpus, socket_bytes_per_s(builder.generation), fmt::format("{}sockets of a PCIe {}.0 host", kAssumed, builder.generation));
  TRY_INTO([[maybe_unused]] const bool joined, builder.join_gpus());
  return host;
}

Result<Cluster> build_cluster(std::string_view host_or_cluster_name, int hosts) {
  if (hosts < 1) return fail(fmt::format("{} hosts asked for, expected at least 1", hosts));
  TRY_INTO(const hardware::HostTemplate description, hardware::find_host(host_or_cluster_name));
  Cluster cluster;
  cluster.name = description.name;
  TRY_INTO(Host host, build_host(description));
  const bool has_nics = !host.nics().empty();
  cluster.hosts.push_back({std::move(host), hosts});
  if (!description.default_fabric.empty()) {
    TRY_INTO(const hardware::FabricTemplate fabric, hardware::find_fabric(description.default_fabric));
    TRY_INTO(cluster.fabric, build_fabric(fabric));
  } else if (hosts > 1 && has_nics) {
    TRY_INTO(const hardware::Nic nic, hardware::find_nic(description.nic));
    cluster.fabric.kind = FabricKind::kSingleSwitch;
    TRY_INTO(cluster.fabric.transport, parse_transport(nic.transport));
    cluster.fabric.origin = std::string(kAssumed) + "one non-blocking switch";
    cluster.notes.push_back({fmt::format("the catalogue names no fabric for '{}': one non-blocking switch assumed", description.name), {}});
  }
  if (hosts > 1 && !has_nics) {
    return fail(fmt::format("host '{}' has no NIC in the catalogue, so {} of them cannot be joined", description.name, hosts), {},
                {"write a cluster file with 'nic: NAME' for this host"});
  }
  return cluster;
}

}  // namespace chokepoint::wiring
