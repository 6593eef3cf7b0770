// SPDX-License-Identifier: Apache-2.0
#pragma once
// Small clusters with round numbers for the tests of this module.
#include <chokepoint/topology/topology.hpp>
#include <string>
#include <utility>

namespace chokepoint::flow {

inline topology::Bandwidth rate(double bytes_per_s) {
  topology::Bandwidth bandwidth;
  bandwidth.specified_bytes_per_s = bytes_per_s;
  return bandwidth;
}

inline int add(topology::Host& host, topology::DeviceKind kind, std::string name, double line_bytes_per_s = 0) {
  topology::Device device;
  device.kind = kind;
  device.name = std::move(name);
  device.line_bytes_per_s = line_bytes_per_s;
  return host.add_device(std::move(device));
}

/// `gpus` GPUs, each with a PCIe switch (10 B/s) and a NIC (5 B/s) of its own; with `nvswitch` also 100 B/s each to
/// one.
inline topology::Host host_of(int gpus, bool nvswitch = true) {
  using topology::DeviceKind;
  using topology::LinkKind;
  topology::Host host;
  host.name = "box";
  const int cpu = add(host, DeviceKind::kCpu, "NUMA0");
  const int bridge = add(host, DeviceKind::kHostBridge, "PHB0");
  host.add_duplex(bridge, cpu, LinkKind::kMemory, 1, rate(40));
  const int nv = nvswitch ? add(host, DeviceKind::kNvSwitch, "NVSwitch0") : -1;
  for (int i = 0; i < gpus; ++i) {
    const int gpu = add(host, DeviceKind::kGpu, "GPU" + std::to_string(i));
    const int pcie = add(host, DeviceKind::kPcieSwitch, "PLX" + std::to_string(i));
    const int nic = add(host, DeviceKind::kNic, "mlx5_" + std::to_string(i), 5);
    host.add_duplex(gpu, pcie, LinkKind::kPcie, 16, rate(10));
    host.add_duplex(nic, pcie, LinkKind::kPcie, 16, rate(10));
    host.add_duplex(pcie, bridge, LinkKind::kPcie, 16, rate(10));
    if (nvswitch) host.add_duplex(gpu, nv, LinkKind::kNvLink, 18, rate(100));
  }
  return host;
}

inline topology::Cluster cluster_of(topology::Host host, int count, topology::FabricKind kind, int hosts_per_leaf = 0,
                                    double oversubscription = 1) {
  topology::Cluster cluster;
  cluster.hosts.push_back({std::move(host), count});
  cluster.fabric.kind = kind;
  cluster.fabric.hosts_per_leaf = hosts_per_leaf;
  cluster.fabric.oversubscription = oversubscription;
  return cluster;
}

}  // namespace chokepoint::flow
