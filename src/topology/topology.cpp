// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/topology/topology.hpp>

#include <algorithm>
#include <limits>

namespace chokepoint::topology {

std::string_view name(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kGpu: return "gpu";
    case DeviceKind::kNic: return "nic";
    case DeviceKind::kNvSwitch: return "nvswitch";
    case DeviceKind::kPcieSwitch: return "pcie-switch";
    case DeviceKind::kHostBridge: return "host-bridge";
    case DeviceKind::kCpu: return "cpu";
  }
  return "unknown";
}

std::string_view name(LinkKind kind) {
  switch (kind) {
    case LinkKind::kNvLink: return "nvlink";
    case LinkKind::kXgmi: return "xgmi";
    case LinkKind::kPcie: return "pcie";
    case LinkKind::kMemory: return "memory";
    case LinkKind::kSocket: return "socket";
  }
  return "unknown";
}

std::string_view name(FabricKind kind) {
  switch (kind) {
    case FabricKind::kNone: return "none";
    case FabricKind::kSingleSwitch: return "single-switch";
    case FabricKind::kFatTree: return "fat-tree";
    case FabricKind::kRailOptimized: return "rail-optimised";
  }
  return "unknown";
}

std::string_view name(Transport transport) {
  switch (transport) {
    case Transport::kInfiniBand: return "infiniband";
    case Transport::kRoce: return "roce";
    case Transport::kTcp: return "tcp";
    case Transport::kOmniPath: return "omni-path";
    case Transport::kSlingshot: return "slingshot";
    case Transport::kEfa: return "efa";
  }
  return "unknown";
}

std::string path_class_name(PathClass path, int nvlinks) {
  switch (path) {
    case PathClass::kSelf: return "X";
    case PathClass::kNvLink: return "NV" + std::to_string(nvlinks);
    case PathClass::kPix: return "PIX";
    case PathClass::kPxb: return "PXB";
    case PathClass::kPhb: return "PHB";
    case PathClass::kNode: return "NODE";
    case PathClass::kSys: return "SYS";
    case PathClass::kUnknown: return "?";
  }
  return "?";
}

double Bandwidth::effective() const {
  if (measured_bytes_per_s) return *measured_bytes_per_s;
  if (negotiated_bytes_per_s) return *negotiated_bytes_per_s;
  return specified_bytes_per_s.value_or(0.0);
}

int Host::add_device(Device device) {
  devices.push_back(std::move(device));
  return static_cast<int>(devices.size()) - 1;
}

void Host::add_duplex(int a, int b, LinkKind kind, int width, const Bandwidth& bandwidth) {
  links.push_back({a, b, kind, width, bandwidth});
  links.push_back({b, a, kind, width, bandwidth});
}

std::vector<int> Host::of_kind(DeviceKind kind) const {
  std::vector<int> found;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].kind == kind) found.push_back(static_cast<int>(i));
  }
  return found;
}

int Cluster::host_count() const {
  int count = 0;
  for (const HostGroup& group : hosts) count += group.count;
  return count;
}

int Cluster::gpus_per_host() const { return hosts.empty() ? 0 : static_cast<int>(hosts.front().host.gpus().size()); }

int Cluster::gpu_count() const {
  int count = 0;
  for (const HostGroup& group : hosts) count += group.count * static_cast<int>(group.host.gpus().size());
  return count;
}

std::vector<int> compute_nics(const Host& host) {
  std::vector<int> attached;
  for (const int nic : host.nics()) {
    const bool on_pcie = std::any_of(host.links.begin(), host.links.end(), [nic](const Link& link) {
      return link.from == nic && link.kind == LinkKind::kPcie;
    });
    if (on_pcie) attached.push_back(nic);
  }
  if (attached.empty()) return host.nics();

  std::vector<int> near;
  for (const int gpu : host.gpus()) {
    const std::vector<PathClass> paths = path_classes(host, gpu, attached);
    const PathClass best = std::min(PathClass::kSys, *std::min_element(paths.begin(), paths.end()));
    if (best == PathClass::kSys) continue;
    for (std::size_t i = 0; i < attached.size(); ++i) {
      if (paths[i] == best) near.push_back(attached[i]);
    }
  }
  if (near.empty()) return attached;
  std::sort(near.begin(), near.end());
  near.erase(std::unique(near.begin(), near.end()), near.end());
  return near;
}

}  // namespace chokepoint::topology
