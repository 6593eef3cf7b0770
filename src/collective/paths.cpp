// SPDX-License-Identifier: Apache-2.0
// Problem: how fast can the rings of a group run on this host when its sibling groups run theirs?
// Inside an NVSwitch each GPU's own links bound the ring. On direct links NCCL packs several rings; how many fit is
// bounded by the smallest cut between members (Edmonds: that many spanning trees exist), and we take that bound. Anything
// else is a ring over PCIe: its order is searched, every hop is routed, and each directed link divides its rate by the
// number of hops of all sibling groups that use it. A ring is one coupled flow, so the slowest link sets the pace.
// Cost: (members - 1)! orders up to 8 members, two orders above; 2^members cuts up to 16 members.
#include "paths.hpp"

#include <algorithm>
#include <chokepoint/base/units.hpp>
#include <chokepoint/topology/router.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

namespace chokepoint::collective {
namespace {

using topology::Device;
using topology::DeviceKind;
using topology::Host;
using topology::Link;
using topology::LinkKind;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kMaxSearchedRing = 8;
constexpr std::size_t kMaxCutMembers = 16;

const Device& device(const Host& host, int index) { return host.devices[static_cast<std::size_t>(index)]; }
const Link& link_of(const Host& host, int index) { return host.links[static_cast<std::size_t>(index)]; }

bool is_direct(const Link& link) { return link.kind == LinkKind::kNvLink || link.kind == LinkKind::kXgmi; }

double scale_of(const Scale& scale, LinkKind kind) {
  return kind == LinkKind::kNvLink || kind == LinkKind::kXgmi ? scale.nvlink : scale.pcie;
}

/// "PCIe 4.0 x16 of GPU3": generation from the rate of a lane (0.98, 1.97, 3.94, 7.6 GB/s for 3.0 to 6.0).
std::string words_for(const Host& host, const Link& link) {
  const auto end = [&] {
    const DeviceKind from = device(host, link.from).kind;
    const bool from_leaf = from == DeviceKind::kGpu || from == DeviceKind::kNic;
    return device(host, from_leaf ? link.from : link.to).name;
  };
  switch (link.kind) {
    case LinkKind::kNvLink: return std::to_string(link.width) + " NVLinks of " + end();
    case LinkKind::kXgmi: return std::to_string(link.width) + " Infinity Fabric links of " + end();
    case LinkKind::kMemory: return "memory of " + device(host, link.to).name;
    case LinkKind::kSocket: return "link between " + device(host, link.from).name + " and " + device(host, link.to).name;
    case LinkKind::kPcie: break;
  }
  const double lane = link.bandwidth.effective() / std::max(1, link.width);
  const int generation = lane < 0.75e9 ? 2 : lane < 1.5e9 ? 3 : lane < 3e9 ? 4 : lane < 5.5e9 ? 5 : 6;
  return "PCIe " + std::to_string(generation) + ".0 x" + std::to_string(link.width) + " of " + end();
}

LimitKind kind_of(LinkKind kind) {
  switch (kind) {
    case LinkKind::kNvLink:
    case LinkKind::kXgmi: return LimitKind::kNvLink;
    case LinkKind::kPcie: return LimitKind::kPcie;
    case LinkKind::kMemory: return LimitKind::kHostMemory;
    case LinkKind::kSocket: return LimitKind::kSocket;
  }
  return LimitKind::kNone;
}

/// GPUs of every group of the host that runs at the same time, the asked one first.
std::vector<std::vector<int>> sibling_groups(const std::vector<int>& gpus, int members, int stride) {
  std::vector<std::vector<int>> groups;
  const int total = static_cast<int>(gpus.size());
  const int block = members * stride;
  for (int start = 0; start + block <= total; start += block) {
    for (int offset = 0; offset < stride; ++offset) {
      std::vector<int> group;
      for (int j = 0; j < members; ++j) group.push_back(gpus[static_cast<std::size_t>(start + offset + j * stride)]);
      groups.push_back(std::move(group));
    }
  }
  if (groups.empty() && members <= total) groups.emplace_back(gpus.begin(), gpus.begin() + members);
  return groups;
}

/// Hops counted on directed links, and on the memory of sockets by copies that stop there.
class Loads {
 public:
  Loads(const Host& host, const Context& context, bool writes = false) : host_(host), context_(context), writes_(writes), hops_(host.links.size(), 0.0), copies_(host.devices.size(), 0.0) {
    for (const Link& link : host.links) {
      capacity_.push_back(capacity_of(link, false));
      bounce_capacity_.push_back(capacity_of(link, true));
    }
    memory_.assign(host.devices.size(), 0.0);
    for (const Link& link : host.links) {
      if (link.kind != LinkKind::kMemory) continue;
      // Copies per second that a socket's memory takes: each is written once and read once.
      double& memory = memory_[static_cast<std::size_t>(link.to)];
      memory = std::max(memory, link.bandwidth.effective() * context.constants.dram * context.scale.pcie / 2);
    }
  }

  void clear() {
    for (const std::size_t index : touched_) hops_[index] = 0;
    touched_.clear();
    std::fill(copies_.begin(), copies_.end(), 0.0);
  }

  void add(const topology::Route& route, bool through_memory, double weight = 1) {
    bounced_ = bounced_ || through_memory;
    bool stopped = false;
    for (const int index : route.links) {
      const auto at = static_cast<std::size_t>(index);
      if (hops_[at] == 0) touched_.push_back(at);
      hops_[at] += weight;
      const int to = host_.links[at].to;
      if (through_memory && !stopped && device(host_, to).kind == DeviceKind::kCpu) {
        copies_[static_cast<std::size_t>(to)] += weight;
        stopped = true;
      }
    }
  }

  /// Rate at which every counted flow can run.
  double rate() const {
    double rate = kInfinity;
    for (const std::size_t i : touched_) rate = std::min(rate, capacity(i) / hops_[i]);
    for (std::size_t i = 0; i < copies_.size(); ++i) {
      if (copies_[i] > 0 && memory_[i] > 0) rate = std::min(rate, memory_[i] / copies_[i]);
    }
    return rate;
  }

  Limit limit() const {
    Limit limit;
    limit.bytes_per_s = kInfinity;
    limit.wire_bytes_per_s = kInfinity;
    for (std::size_t i = 0; i < hops_.size(); ++i) {
      if (hops_[i] <= 0) continue;
      const Link& link = host_.links[i];
      limit.wire_bytes_per_s = std::min(limit.wire_bytes_per_s, link.bandwidth.effective() * scale_of(context_.scale, link.kind) / hops_[i]);
      if (capacity(i) / hops_[i] >= limit.bytes_per_s) continue;
      limit.bytes_per_s = capacity(i) / hops_[i];
      limit.kind = kind_of(link.kind);
      limit.where = words_for(host_, link);
      if (hops_[i] > 1) limit.where += ", shared by " + std::to_string(static_cast<int>(std::lround(hops_[i]))) + " flows";
    }
    for (std::size_t i = 0; i < copies_.size(); ++i) {
      if (copies_[i] <= 0 || memory_[i] <= 0 || memory_[i] / copies_[i] >= limit.bytes_per_s) continue;
      limit.bytes_per_s = memory_[i] / copies_[i];
      limit.kind = LimitKind::kHostMemory;
      limit.where = "memory of " + host_.devices[i].name;
    }
    if (limit.bytes_per_s == kInfinity) return Limit{};
    return limit;
  }

 private:
  double capacity(std::size_t index) const { return bounced_ ? bounce_capacity_[index] : capacity_[index]; }

  double capacity_of(const Link& link, bool bounced) const {
    const Constants& constants = context_.constants;
    double share = 1;
    switch (link.kind) {
      case LinkKind::kNvLink: share = writes_ ? context_.nvlink.write : context_.nvlink.ring; break;
      case LinkKind::kXgmi: share = constants.xgmi; break;
      case LinkKind::kPcie: share = bounced ? constants.bounce : constants.pcie; break;
      case LinkKind::kMemory:
      case LinkKind::kSocket: break;
    }
    if (link.bandwidth.measured_bytes_per_s) share = 1;
    return link.bandwidth.effective() * share * scale_of(context_.scale, link.kind);
  }

  const Host& host_;
  const Context& context_;
  bool writes_;  ///< plain writes to peers, not the steps of a ring
  std::vector<double> hops_, copies_;
  std::vector<double> capacity_, bounce_capacity_, memory_;
  std::vector<std::size_t> touched_;
  bool bounced_ = false;  ///< any flow stops in host memory: PCIe then runs at the copies' efficiency
};

/// Routes between all GPUs of a host, and whether they stop in host memory.
class Routes {
 public:
  struct Way {
    topology::Route route;
    bool bounces = false;
  };
  Routes(const Host& host, const std::vector<std::vector<int>>& groups) : size_(host.devices.size()), ways_(size_ * size_) {
    topology::Router router(host);
    for (const std::vector<int>& group : groups) {
      for (const int a : group) {
        for (const int b : group) {
          if (a == b) continue;
          Way& way = ways_[static_cast<std::size_t>(a) * size_ + static_cast<std::size_t>(b)];
          way.route = router.route(a, b);
          way.bounces = !host.peer_to_peer && !way.route.links.empty() && !is_direct(link_of(host, way.route.links.front()));
        }
      }
    }
  }
  const Way& between(int a, int b) const { return ways_[static_cast<std::size_t>(a) * size_ + static_cast<std::size_t>(b)]; }

 private:
  std::size_t size_;
  std::vector<Way> ways_;
};

/// Capacity of the direct links out of the members of `mask` into the other members, in bytes per second.
double cut_of(const std::vector<std::vector<double>>& direct, std::size_t mask) {
  double cut = 0;
  for (std::size_t a = 0; a < direct.size(); ++a) {
    for (std::size_t b = 0; b < direct.size(); ++b) {
      if (((mask >> a) & 1U) != 0 && ((mask >> b) & 1U) == 0) cut += direct[a][b];
    }
  }
  return cut;
}

/// Rings that direct links between the members carry together; 0 when they do not connect all members.
Limit direct_rings(const Host& host, const Context& context, const std::vector<int>& group) {
  const std::size_t n = group.size();
  if (n > kMaxCutMembers) return {};
  std::vector<std::vector<double>> direct(n, std::vector<double>(n, 0.0));
  const Link* example = nullptr;
  for (const Link& link : host.links) {
    if (!is_direct(link)) continue;
    const auto from = std::find(group.begin(), group.end(), link.from);
    const auto to = std::find(group.begin(), group.end(), link.to);
    if (from == group.end() || to == group.end()) continue;
    direct[static_cast<std::size_t>(from - group.begin())][static_cast<std::size_t>(to - group.begin())] += link.bandwidth.effective();
    if (example == nullptr) example = &link;
  }
  if (example == nullptr) return {};
  double rings = kInfinity;
  for (std::size_t mask = 1; mask + 1 < (std::size_t{1} << n); ++mask) rings = std::min(rings, cut_of(direct, mask));
  if (n > 2) {
    // A ring enters and leaves a GPU over different neighbours, so the widest pair cannot fill both.
    for (std::size_t a = 0; a < n; ++a) {
      const double sum = std::accumulate(direct[a].begin(), direct[a].end(), 0.0);
      const double widest = *std::max_element(direct[a].begin(), direct[a].end());
      rings = std::min(rings, 2 * (sum - widest));
    }
  }
  if (rings <= 0) return {};
  Limit limit;
  limit.kind = LimitKind::kNvLink;
  limit.wire_bytes_per_s = rings * context.scale.nvlink;
  limit.bytes_per_s = limit.wire_bytes_per_s * (example->kind == LinkKind::kXgmi ? context.constants.xgmi : context.nvlink.ring);
  limit.where = std::string(example->kind == LinkKind::kXgmi ? "Infinity Fabric" : "NVLink") + " between the " + std::to_string(n) + " GPUs of a group";
  return limit;
}

bool through_nvswitch(const Host& host, const std::vector<int>& group) {
  return std::all_of(group.begin(), group.end(), [&](int gpu) {
    return std::any_of(host.links.begin(), host.links.end(), [&](const Link& link) {
      return link.from == gpu && is_direct(link) && device(host, link.to).kind == DeviceKind::kNvSwitch;
    });
  });
}

void add_ring(Loads& loads, const Routes& routes, const std::vector<int>& group, const std::vector<std::size_t>& order, bool closed = true) {
  for (std::size_t i = 0; i + (closed ? 0 : 1) < order.size(); ++i) {
    const Routes::Way& way = routes.between(group[order[i]], group[order[(i + 1) % order.size()]]);
    loads.add(way.route, way.bounces);
  }
}

/// Best order of a ring that all sibling groups take at once, and the rate of the same ring left open.
Limit routed_ring(const Host& host, const Context& context, const std::vector<std::vector<int>>& groups, double& chain_bytes_per_s) {
  const Routes routes(host, groups);
  Loads loads(host, context);
  std::vector<std::size_t> order(groups.front().size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<std::size_t> best = order;
  double best_rate = -1;
  do {
    // The same ring the other way round loads the duplex links alike.
    if (order.size() > 2 && order[1] > order.back()) continue;
    loads.clear();
    for (const std::vector<int>& group : groups) add_ring(loads, routes, group, order);
    const double rate = loads.rate();
    if (rate > best_rate * (1 + 1e-9)) {
      best_rate = rate;
      best = order;
    }
  } while (order.size() <= kMaxSearchedRing && std::next_permutation(order.begin() + 1, order.end()));
  loads.clear();
  for (const std::vector<int>& group : groups) add_ring(loads, routes, group, best, false);
  chain_bytes_per_s = loads.limit().bytes_per_s;
  loads.clear();
  for (const std::vector<int>& group : groups) add_ring(loads, routes, group, best);
  return loads.limit();
}

/// What one GPU sends when every member talks to every other at once.
Limit routed_all_to_all(const Host& host, const Context& context, const std::vector<std::vector<int>>& groups) {
  const Routes routes(host, groups);
  Loads loads(host, context, true);
  const double share = 1.0 / (static_cast<double>(groups.front().size()) - 1);
  for (const std::vector<int>& group : groups) {
    for (const int from : group) {
      for (const int to : group) {
        if (from == to) continue;
        const Routes::Way& way = routes.between(from, to);
        loads.add(way.route, way.bounces, share);
      }
    }
  }
  return loads.limit();
}

/// Sockets: one process drives a NIC through the kernel, a few GB/s whatever the wire could do.
double socket_share(const Constants& constants, double line_bytes_per_s) {
  return std::min(constants.tcp, constants.tcp_cap_bytes_per_s / std::max(1.0, line_bytes_per_s));
}

/// Omni-Path leaves the transport to the processors: the process of each GPU moves its part of a port, up to what sockets
/// would fill. The share is known of hosts with one GPU for each port.
double omni_path_share(const Constants& constants, double gpus_per_port, double line_bytes_per_s) {
  return std::max(constants.omni_path, std::min(constants.omni_path * gpus_per_port, socket_share(constants, line_bytes_per_s)));
}

double transport_share(const Constants& constants, topology::Transport transport, double line_bytes_per_s, double gpus_per_port) {
  using topology::Transport;
  switch (transport) {
    case Transport::kInfiniBand: return constants.infiniband;
    // The share is known of 400 Gb/s ports only; on a slow port RDMA does not fall behind sockets on the same wire.
    case Transport::kRoce: return std::max(constants.roce, socket_share(constants, line_bytes_per_s));
    case Transport::kEfa: return constants.efa;
    case Transport::kSlingshot: return constants.slingshot;
    case Transport::kOmniPath: return omni_path_share(constants, gpus_per_port, line_bytes_per_s);
    case Transport::kTcp: break;
  }
  return socket_share(constants, line_bytes_per_s);
}

double transport_hop(const Constants& constants, topology::Transport transport, hardware::Architecture architecture) {
  using topology::Transport;
  if (transport == Transport::kEfa) return architecture <= hardware::Architecture::kAmpere ? constants.efa_first_hop : constants.efa_hop;
  if (transport == Transport::kSlingshot) return constants.efa_hop;
  return transport == Transport::kTcp || transport == Transport::kOmniPath ? constants.tcp_hop : 1.0;
}

/// GPU with the shortest way to the NIC; ways of equal length go to the GPU that serves fewer NICs so far.
int nearest_gpu(const Host& host, topology::Router& router, int nic, const std::map<int, int>& served) {
  int best = -1;
  std::size_t best_length = std::numeric_limits<std::size_t>::max();
  for (const int gpu : host.gpus()) {
    const topology::Route way = router.route(gpu, nic);
    if (way.links.empty()) continue;
    const auto count = [&](int g) { const auto at = served.find(g); return at == served.end() ? 0 : at->second; };
    if (way.links.size() < best_length || (way.links.size() == best_length && count(gpu) < count(best))) {
      best = gpu;
      best_length = way.links.size();
    }
  }
  return best;
}

std::string gigabits(double bytes_per_s) { return std::to_string(std::lround(bytes_per_s * 8 / 1e9)) + " Gb/s"; }

}  // namespace

Limit host_egress(const topology::Cluster& cluster, const Context& context) {
  const Host& host = cluster.hosts.front().host;
  Limit egress;
  egress.kind = LimitKind::kNic;
  if (cluster.host_count() < 2 || cluster.fabric.kind == topology::FabricKind::kNone) return {};
  const std::vector<int> nics = topology::compute_nics(host);
  if (cluster.fabric.node_measured_bytes_per_s) {
    egress.bytes_per_s = *cluster.fabric.node_measured_bytes_per_s * context.scale.nic;
    egress.wire_bytes_per_s = egress.bytes_per_s;
    egress.kind = LimitKind::kMeasured;
    egress.where = "measured bandwidth of each host into the fabric";
    return egress;
  }
  if (nics.empty()) return {};
  Loads loads(host, context);
  topology::Router router(host);
  std::map<int, int> served;
  double line = kInfinity;
  for (const int nic : nics) {
    const double rate = device(host, nic).line_bytes_per_s;
    if (rate > 0) line = std::min(line, rate);
    const int gpu = nearest_gpu(host, router, nic, served);
    if (gpu < 0) continue;
    ++served[gpu];
    loads.add(router.route(gpu, nic), !host.gpudirect_rdma);
  }
  if (line == kInfinity) line = gbit(100);
  const double count = static_cast<double>(nics.size());
  const double share = transport_share(context.constants, cluster.fabric.transport, line, static_cast<double>(host.gpus().size()) / count);
  egress.bytes_per_s = count * line * share * context.scale.nic;
  egress.wire_bytes_per_s = count * line * context.scale.nic;
  egress.where = std::to_string(nics.size()) + " x " + gigabits(line) + (nics.size() == 1 ? " NIC of each host" : " NICs of each host");
  const Limit inside = loads.limit();
  if (inside.bytes_per_s > 0 && inside.bytes_per_s * count < egress.bytes_per_s) {
    egress.bytes_per_s = inside.bytes_per_s * count;
    egress.kind = inside.kind;
    egress.where = inside.where + " on the way to the NICs";
  }
  if (inside.wire_bytes_per_s > 0) egress.wire_bytes_per_s = std::min(egress.wire_bytes_per_s, inside.wire_bytes_per_s * count);
  return egress;
}

namespace {

/// Leaf up-links: of the hosts under a leaf, those whose ring neighbour sits under another one send through them.
void apply_fabric(Path& path, const topology::Fabric& fabric, const Context& context, int hosts, int host_stride) {
  path.network_direct_bytes_per_s = path.network.bytes_per_s * context.constants.network_direct;
  const int leaf = fabric.hosts_per_leaf;
  if (leaf <= 0 || fabric.oversubscription <= 1 || hosts * host_stride <= leaf) return;
  const double over = fabric.oversubscription / context.scale.fabric;
  const double crossing = static_cast<double>(std::min(host_stride, leaf)) / leaf;
  const double ring = std::min(1.0, 1 / (over * crossing));
  const double outside = static_cast<double>(std::max(0, hosts - std::max(1, leaf / host_stride))) / std::max(1, hosts - 1);
  path.network_direct_bytes_per_s *= std::min(1.0, 1 / std::max(1e-9, over * outside));
  if (ring >= 1) return;
  path.network.bytes_per_s *= ring;
  path.network.wire_bytes_per_s *= ring;
  path.network.kind = LimitKind::kFabric;
  path.network.where = "leaf up-links, " + std::to_string(std::lround(fabric.oversubscription * 10) / 10) + ":1 oversubscribed";
}

/// Share of the link rate that NVLink SHARP turns into algorithm bandwidth; 0 where the switch cannot reduce.
double nvls_share(const Constants& constants, const hardware::Accelerator& accelerator) {
  using hardware::Architecture;
  if (accelerator.architecture == Architecture::kHopper) return constants.nvls_hopper;
  return accelerator.architecture == Architecture::kBlackwell ? constants.nvls_blackwell : 0.0;
}

/// Rings of a group whose members all hang on a switch: each link carries one flow a direction, whatever its siblings do.
Limit switch_links(const Host& host, const Context& context, const std::vector<int>& group, double nvlink_share) {
  Limit ring;
  ring.bytes_per_s = kInfinity;
  for (const Link& link : host.links) {
    if (!is_direct(link) || std::find(group.begin(), group.end(), link.from) == group.end()) continue;
    const double share = link.bandwidth.measured_bytes_per_s ? 1 : link.kind == LinkKind::kXgmi ? context.constants.xgmi : nvlink_share;
    const double rate = link.bandwidth.effective() * share * context.scale.nvlink;
    if (rate < ring.bytes_per_s) ring = Limit{rate, link.bandwidth.effective() * context.scale.nvlink, LimitKind::kNvLink, words_for(host, link)};
  }
  return ring.bytes_per_s == kInfinity ? Limit{} : ring;
}

/// Of a chip's links into all dimensions of a torus of `size` chips, a group of `members` (a box inside it) uses those of
/// the dimensions it spans; a line has one.
double torus_share(int dimensions, int members, int size) {
  if (dimensions < 2 || members < 2 || size <= members) return 1;
  return std::clamp(std::log(members) / std::log(size), 1.0 / dimensions, 1.0);
}

void set_inside(Path& path, const Host& host, const hardware::Accelerator& accelerator, const Context& context, const Group& group) {
  const auto groups = sibling_groups(host.gpus(), group.ranks_per_host, group.local_stride);
  if (groups.empty() || path.per_island < 2) return;
  const bool switched = through_nvswitch(host, groups.front());
  if (group.ranks_per_host < 2) {
    // One rank per host inside a rack-scale NVLink domain: its own links into the switch bound it.
    path.ring = switch_links(host, context, {groups.front().front()}, context.nvlink.ring);
    path.direct = switch_links(host, context, {groups.front().front()}, context.nvlink.write);
  } else if (switched) {
    path.ring = switch_links(host, context, groups.front(), context.nvlink.ring);
    path.direct = switch_links(host, context, groups.front(), context.nvlink.write);
  } else {
    // The slowest sibling sets the pace: its ranks meet those of the others in the next operation of another group.
    path.ring = direct_rings(host, context, groups.front());
    for (const std::vector<int>& sibling : groups) {
      const Limit ring = direct_rings(host, context, sibling);
      if (ring.bytes_per_s < path.ring.bytes_per_s) path.ring = ring;
    }
    path.hop = path.ring.bytes_per_s > 0 ? HopKind::kNvLink : HopKind::kPcie;
    const Limit routed = routed_ring(host, context, groups, path.chain_bytes_per_s);
    if (routed.bytes_per_s > path.ring.bytes_per_s) path.ring = routed;
    path.direct = routed_all_to_all(host, context, groups);
  }
  if (host.torus_dimensions > 0) {
    const int chips = static_cast<int>(host.gpus().size()) * host.nvlink_domain_hosts;
    const double share = torus_share(host.torus_dimensions, path.per_island, chips);
    path.ring.bytes_per_s *= share;
    path.ring.wire_bytes_per_s *= share;
    path.direct = path.ring;
    path.torus_dimensions = std::max(1, static_cast<int>(std::lround(share * host.torus_dimensions)));
  }
  path.chain_bytes_per_s = std::max(path.chain_bytes_per_s, path.ring.bytes_per_s);
  // NCCL over NVLink only: slower links hide the ends of a walk, other libraries walk otherwise.
  const bool nccl = accelerator.architecture <= hardware::Architecture::kBlackwell;
  if (nccl && path.hop == HopKind::kNvLink && host.torus_dimensions == 0) path.ring_start = context.constants.ring_start;
  constexpr NcclVersion kFirstNvls = 21700;
  if (switched && path.per_island > 2 && context.nccl >= kFirstNvls) path.nvls_bytes_per_s = path.ring.wire_bytes_per_s * nvls_share(context.constants, accelerator);
}

/// Host time that each call of a collective takes for each further rank, as start-up tests show it: all_gather and
/// all_reduce over many hosts take the same time, in proportion to the ranks, far above what ring steps and wires explain
/// (processes that check every call with all others, as TORCH_DISTRIBUTED_DEBUG=DETAIL makes them, would behave so).
/// 0: calls are free, as usual.
double call_s_per_peer(const topology::Cluster& cluster, const Context& context) {
  const topology::MeasuredCollectives& measured = cluster.measured;
  const int ranks = cluster.gpu_count();
  if (cluster.host_count() < 2 || !measured.all_reduce || !measured.all_gather || *measured.all_reduce <= 0 || *measured.all_gather <= 0) return 0;
  const double bytes = context.constants.benchmark_bytes;
  const double gather_s = bytes / *measured.all_gather;
  const double reduce_s = 2 * bytes / *measured.all_reduce;
  const double step_s = cluster.fabric.transport == topology::Transport::kEfa ? context.constants.efa_step_s : 0;
  double wire = host_egress(cluster, context).bytes_per_s;
  if (measured.host_all_gather && *measured.host_all_gather > 0) wire = std::min(wire, *measured.host_all_gather);
  const double explained_s = bytes / std::max(1.0, wire) + ranks * step_s;
  constexpr double kFarAbove = 2;
  constexpr double kAlike = 1.65;  // bound by bandwidth or ring steps, a reduction takes twice as long as a gather
  if (gather_s < kFarAbove * explained_s || reduce_s > kAlike * gather_s || gather_s > kAlike * reduce_s) return 0;
  return std::min(gather_s, reduce_s) / (ranks - 1);
}

/// What was measured on this cluster for this group: inside a host the host's value, over hosts the allocation's, of
/// which every sibling group has its part.
void set_measured(Path& path, const topology::MeasuredCollectives& measured, int siblings, int allocation, double benchmark_bytes) {
  if (path.islands == 1) {
    path.measured_all_reduce = measured.host_all_reduce;
    path.measured_all_gather = measured.host_all_gather;
    path.measured_reduce_scatter = measured.host_reduce_scatter;
    return;
  }
  if (path.call_s > 0) return;  // what was measured over hosts are the calls
  const auto part = [siblings](const std::optional<double>& whole) {
    return whole ? std::optional<double>(*whole / siblings) : std::nullopt;
  };
  // Over hosts all three pass the same NICs. What is measured at one size over the whole allocation contains the steps of
  // that many ranks, which are taken out again; the fastest comes nearest to the wire.
  const double steps_s = (allocation - 1) * path.step_s;
  std::optional<double> wire = measured.all_reduce;
  for (const std::optional<double>& one : {measured.all_gather, measured.reduce_scatter}) {
    if (!one) continue;
    const double moving_s = std::max(benchmark_bytes / *one - steps_s, 0.5 * benchmark_bytes / *one);
    const double alone = std::min(benchmark_bytes / moving_s, std::max(*one, path.network.bytes_per_s * siblings));
    wire = std::max(wire.value_or(0), alone);
  }
  // The allocation's all_reduce speaks for groups like itself, all ranks of each host; groups with fewer ranks in a host
  // load the links inside it otherwise, and what is known for them is the wire.
  path.measured_all_reduce = measured.all_reduce ? part(siblings > 1 ? wire : measured.all_reduce) : std::nullopt;
  path.measured_all_gather = measured.all_gather ? part(wire) : std::nullopt;
  path.measured_reduce_scatter = measured.reduce_scatter ? part(wire) : std::nullopt;
}

}  // namespace

namespace {

/// Channels and bandwidth that NCCL's search gives such a group: rates by its table (src/graph/topo.h: 20 of 25 GB/s per
/// NVLink of Volta and Ampere, 20.6 of Hopper, 40.1 of 50 of Blackwell; 12 GB/s of a PCIe 3.0 x16 slot's 15.75).
TunerInput tuner_input(const Path& path, const hardware::Accelerator& accelerator, NcclVersion nccl) {
  using hardware::Architecture;
  constexpr double kPcieShare = 12 / 15.75;
  const bool blackwell = accelerator.architecture == Architecture::kBlackwell;
  const double share = blackwell ? 40.1 / 50 : accelerator.architecture == Architecture::kHopper ? 20.6 / 25 : 20.0 / 25;
  TunerInput in;
  in.ranks = path.ranks;
  in.hosts = path.islands;
  in.nvlink = path.hop == HopKind::kNvLink;
  in.nvls = path.nvls_bytes_per_s > 0;
  in.architecture = accelerator.architecture;
  in.nccl = nccl;
  const double inside = path.per_island > 1 ? path.ring.wire_bytes_per_s * (in.nvlink ? share : kPcieShare) : kInfinity;
  const double outside = path.islands > 1 ? path.network.wire_bytes_per_s : kInfinity;
  in.bus_bytes_per_s = std::min(inside, outside);
  const double links = in.nvlink && path.per_island > 1 ? path.ring.wire_bytes_per_s / (blackwell ? 50e9 : 25e9) : 1;
  const double most = accelerator.architecture == Architecture::kHopper ? 16 : 24;
  in.channels = static_cast<int>(std::clamp(2 * links, 2.0, most));
  return in;
}

}  // namespace

NvLinkShares nvlink_shares(const Constants& constants, const hardware::Accelerator& accelerator) {
  using hardware::Architecture;
  switch (accelerator.architecture) {
    case Architecture::kVolta: return constants.nvlink_volta;
    case Architecture::kHopper: return constants.nvlink_hopper;
    case Architecture::kBlackwell: return constants.nvlink_blackwell;
    default: return constants.nvlink_ampere;  // also for links nobody measured: the slowest generation
  }
}

/// What one of the pairs gets that all send at once. Over sockets a pair opens several, but all pairs of a host pass its ports;
/// over other transports one pair does not fill a port, several that share it do. `left`: what the fabric leaves of a host's rate.
void set_pairs(Path& path, const topology::Cluster& cluster, const Context& context, int siblings, double left) {
  const Host& host = cluster.hosts.front().host;
  if (cluster.fabric.transport == topology::Transport::kTcp) {
    path.send_share = context.constants.tcp_send;
    double line = 0;
    for (const int nic : topology::compute_nics(host)) line += device(host, nic).line_bytes_per_s;
    path.send_most_bytes_per_s = line > 0 ? std::max(path.network.bytes_per_s, left * line * context.scale.nic * context.constants.tcp / siblings)
                                          : path.network.bytes_per_s * path.send_share;
    return;
  }
  const double ports = std::max<double>(1, static_cast<double>(topology::compute_nics(host).size()));
  path.send_share = context.constants.network_send * std::max(1.0, siblings / ports);
  path.send_most_bytes_per_s = path.network.bytes_per_s * std::max(1.0, context.constants.network_send);
}

Path make_path(const topology::Cluster& cluster, const hardware::Accelerator& accelerator, const Context& context, const Limit& egress, const Group& group) {
  const Host& host = cluster.hosts.front().host;
  Path path;
  path.ranks = std::max(1, group.ranks);
  const int per_host = std::clamp(group.ranks_per_host, 1, path.ranks);
  const int hosts = std::max(1, path.ranks / per_host);
  const int domain = std::clamp(host.nvlink_domain_hosts / std::max(1, group.host_stride), 1, hosts);
  path.islands = (hosts + domain - 1) / domain;
  path.per_island = std::max(1, path.ranks / path.islands);
  path.memory_bytes_per_s = accelerator.memory_bytes_per_s;
  set_inside(path, host, accelerator, context, group);
  const int siblings = std::max(1, cluster.gpus_per_host() / per_host);
  if (path.islands > 1) {
    path.network = egress;
    path.network.bytes_per_s *= static_cast<double>(domain) / siblings;
    path.network.wire_bytes_per_s *= static_cast<double>(domain) / siblings;
    if (siblings > 1 && !path.network.where.empty()) path.network.where += ", shared by " + std::to_string(siblings) + " groups";
    path.network_hop = transport_hop(context.constants, cluster.fabric.transport, accelerator.architecture);
    path.step_s = cluster.fabric.transport == topology::Transport::kEfa ? context.constants.efa_step_s : 0;
    path.step_bytes = context.constants.efa_slice_bytes;
    path.tree_pays = cluster.fabric.transport != topology::Transport::kTcp;
    const double unhindered = path.network.bytes_per_s;
    apply_fabric(path, cluster.fabric, context, hosts, group.host_stride);
    set_pairs(path, cluster, context, siblings, unhindered > 0 ? path.network.bytes_per_s / unhindered : 1);
  }
  path.call_s = (path.ranks - 1) * call_s_per_peer(cluster, context);
  set_measured(path, cluster.measured, siblings, cluster.gpu_count(), context.constants.benchmark_bytes);
  path.tuner = tuner_input(path, accelerator, context.nccl);
  path.channels = path.tuner.channels;
  if (path.islands > 1) {
    const double ports = static_cast<double>(topology::compute_nics(host).size());
    path.channels = std::min(path.channels, std::max(2.0, 2 * ports / siblings));
  }
  return path;
}

}  // namespace chokepoint::collective
