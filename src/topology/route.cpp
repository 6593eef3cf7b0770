// SPDX-License-Identifier: Apache-2.0
// Ways through a host. NVLink and xGMI come first because NCCL prefers them whatever their bandwidth; after that the
// PCIe tree, where the fewest hops is also the nearest common ancestor. GPUs and NICs never forward, and an NVSwitch
// forwards only between GPUs.
#include <chokepoint/topology/router.hpp>

#include <algorithm>
#include <limits>

namespace chokepoint::topology {

namespace {

bool valid(const Host& host, int device) { return device >= 0 && device < static_cast<int>(host.devices.size()); }
DeviceKind kind_of(const Host& host, int device) { return host.devices[static_cast<std::size_t>(device)].kind; }
const Link& link_at(const Host& host, int link) { return host.links[static_cast<std::size_t>(link)]; }
bool is_gpu_link(const Link& link) { return link.kind == LinkKind::kNvLink || link.kind == LinkKind::kXgmi; }

Route finish(const Host& host, std::vector<int> links) {
  Route route;
  route.links = std::move(links);
  if (route.links.empty()) return route;
  route.bytes_per_s = std::numeric_limits<double>::infinity();
  for (const int link : route.links) route.bytes_per_s = std::min(route.bytes_per_s, link_at(host, link).bandwidth.effective());
  return route;
}

/// Links of every device, in their order, in two flat arrays: ways are asked for by the hundred, and one small vector for
/// each device was half of their time.
struct Outgoing {
  std::vector<int> first;  ///< devices + 1: where the links of a device begin
  std::vector<int> links;

  explicit Outgoing(const Host& host) : first(host.devices.size() + 1, 0) {
    const auto usable = [&host](const Link& link) { return valid(host, link.from) && valid(host, link.to); };
    for (const Link& link : host.links) {
      if (usable(link)) ++first[static_cast<std::size_t>(link.from) + 1];
    }
    for (std::size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
    links.resize(static_cast<std::size_t>(first.back()));
    std::vector<int> next(first.begin(), first.end() - 1);
    for (std::size_t i = 0; i < host.links.size(); ++i) {
      const Link& link = host.links[i];
      if (usable(link)) links[static_cast<std::size_t>(next[static_cast<std::size_t>(link.from)]++)] = static_cast<int>(i);
    }
  }
};

/// Widest link of the accepted kind between two devices, -1 when there is none.
int direct_link(const Host& host, const Outgoing& outgoing, int from, int to) {
  int best = -1;
  const auto here = static_cast<std::size_t>(from);
  for (int k = outgoing.first[here]; k < outgoing.first[here + 1]; ++k) {
    const int index = outgoing.links[static_cast<std::size_t>(k)];
    const Link& link = link_at(host, index);
    if (link.to != to || !is_gpu_link(link)) continue;
    if (best < 0 || link.bandwidth.effective() > link_at(host, best).bandwidth.effective()) best = index;
  }
  return best;
}

std::vector<int> nvlink_way(const Host& host, const Outgoing& outgoing, int from, int to) {
  if (const int direct = direct_link(host, outgoing, from, to); direct >= 0) return {direct};
  if (kind_of(host, from) != DeviceKind::kGpu || kind_of(host, to) != DeviceKind::kGpu) return {};
  for (std::size_t i = 0; i < host.devices.size(); ++i) {
    if (host.devices[i].kind != DeviceKind::kNvSwitch) continue;
    const int up = direct_link(host, outgoing, from, static_cast<int>(i));
    if (up < 0) continue;
    const int down = direct_link(host, outgoing, static_cast<int>(i), to);
    if (down >= 0) return {up, down};
  }
  return {};
}

/// Whether a way may pass through this device on the PCIe side.
bool forwards(DeviceKind kind) {
  return kind == DeviceKind::kPcieSwitch || kind == DeviceKind::kHostBridge || kind == DeviceKind::kCpu;
}

/// Fewest hops over PCIe, memory and socket links (and a GPU's NVLink to its own CPU). `accept` says where to stop.
template <class Accept>
std::vector<int> pcie_way(const Host& host, const Outgoing& outgoing, int from, Accept accept) {
  std::vector<int> reached_by(host.devices.size(), -1);
  std::vector<int> frontier{from};
  for (std::size_t at_front = 0; at_front < frontier.size(); ++at_front) {
    const auto here = static_cast<std::size_t>(frontier[at_front]);
    for (int k = outgoing.first[here]; k < outgoing.first[here + 1]; ++k) {
      const int index = outgoing.links[static_cast<std::size_t>(k)];
      const int next = link_at(host, index).to;
      if (next == from || reached_by[static_cast<std::size_t>(next)] >= 0) continue;
      const bool end = accept(next);
      if (!end && !forwards(kind_of(host, next))) continue;
      reached_by[static_cast<std::size_t>(next)] = index;
      if (!end) {
        frontier.push_back(next);
        continue;
      }
      std::vector<int> links;
      for (int at = next; at != from; at = link_at(host, links.back()).from) links.push_back(reached_by[static_cast<std::size_t>(at)]);
      std::reverse(links.begin(), links.end());
      return links;
    }
  }
  return {};
}

std::vector<int> pcie_way_to(const Host& host, const Outgoing& outgoing, int from, int to) {
  return pcie_way(host, outgoing, from, [to](int device) { return device == to; });
}

/// Copies that the device may not make itself go down to the memory of the source's NUMA node and up again.
std::vector<int> way_through_memory(const Host& host, const Outgoing& outgoing, int from, int to) {
  std::vector<int> links = pcie_way(host, outgoing, from, [&host](int device) { return kind_of(host, device) == DeviceKind::kCpu; });
  if (links.empty()) return pcie_way_to(host, outgoing, from, to);
  const std::vector<int> rest = pcie_way_to(host, outgoing, link_at(host, links.back()).to, to);
  if (rest.empty()) return {};
  links.insert(links.end(), rest.begin(), rest.end());
  return links;
}

bool needs_host_memory(const Host& host, int from, int to) {
  const DeviceKind a = kind_of(host, from);
  const DeviceKind b = kind_of(host, to);
  if (a == DeviceKind::kGpu && b == DeviceKind::kGpu) return !host.peer_to_peer;
  const bool gpu_and_nic = (a == DeviceKind::kGpu && b == DeviceKind::kNic) || (a == DeviceKind::kNic && b == DeviceKind::kGpu);
  return gpu_and_nic && !host.gpudirect_rdma;
}

PathClass classify(const Host& host, const std::vector<int>& links) {
  int switches = 0;
  int bridges = 0;
  bool sockets = false;
  bool memory = false;
  for (const int index : links) {
    const Link& link = link_at(host, index);
    sockets = sockets || link.kind == LinkKind::kSocket;
    const DeviceKind kind = kind_of(host, link.to);
    memory = memory || kind == DeviceKind::kCpu;
    switches += kind == DeviceKind::kPcieSwitch ? 1 : 0;
    bridges += kind == DeviceKind::kHostBridge ? 1 : 0;
  }
  if (sockets) return PathClass::kSys;
  if (bridges >= 2) return PathClass::kNode;
  if (bridges == 1 || memory) return PathClass::kPhb;
  return switches >= 2 ? PathClass::kPxb : PathClass::kPix;
}

}  // namespace

struct Router::Tables {
  const Host& host;
  Outgoing outgoing;
};

Router::Router(const Host& host) : tables_(std::make_unique<Tables>(Tables{host, Outgoing(host)})) {}
Router::~Router() = default;

Route Router::route(int from, int to) {
  const Host& host = tables_->host;
  const Outgoing& outgoing = tables_->outgoing;
  if (!valid(host, from) || !valid(host, to) || from == to) return {};
  if (std::vector<int> links = nvlink_way(host, outgoing, from, to); !links.empty()) return finish(host, std::move(links));
  if (needs_host_memory(host, from, to)) return finish(host, way_through_memory(host, outgoing, from, to));
  return finish(host, pcie_way_to(host, outgoing, from, to));
}

Route route(const Host& host, int from, int to) { return Router(host).route(from, to); }

namespace {
DeclaredPath path_between(const Host& host, const Outgoing& outgoing, int a, int b) {
  if (!valid(host, a) || !valid(host, b)) return {a, b, PathClass::kUnknown, 0};
  if (a == b) return {a, b, PathClass::kSelf, 0};
  for (const DeclaredPath& path : host.declared) {
    if ((path.a == a && path.b == b) || (path.a == b && path.b == a)) return {a, b, path.path, path.nvlinks};
  }
  if (const std::vector<int> links = nvlink_way(host, outgoing, a, b); !links.empty()) {
    int width = std::numeric_limits<int>::max();
    for (const int link : links) width = std::min(width, link_at(host, link).width);
    return {a, b, PathClass::kNvLink, width};
  }
  const std::vector<int> links = pcie_way_to(host, outgoing, a, b);
  return {a, b, links.empty() ? PathClass::kUnknown : classify(host, links), 0};
}
}  // namespace

DeclaredPath path_between(const Host& host, int a, int b) { return path_between(host, Outgoing(host), a, b); }

std::vector<PathClass> path_classes(const Host& host, int from, const std::vector<int>& to) {
  const Outgoing outgoing(host);
  std::vector<PathClass> classes;
  for (const int device : to) classes.push_back(path_between(host, outgoing, from, device).path);
  return classes;
}

}  // namespace chokepoint::topology
