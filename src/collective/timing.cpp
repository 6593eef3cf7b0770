// SPDX-License-Identifier: Apache-2.0
#include "timing.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace chokepoint::collective {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Protocol {
  std::string_view name;
  ProtocolLatency latency;
  double share = 1;                       ///< of the bandwidth of simple inside an island
  double network_share = 1;               ///< the same over the network
  double channel_bytes = 1;               ///< NCCL opens one channel more for each so many bytes (threads x bytes of a thread)
  bool flags = false;                     ///< every 8 bytes carry a flag (LL)
  bool slots = false;                     ///< whole slots are handed on (Simple)
};
/// NCCL's third protocol, LL128, has no curve of its own: where its tuner takes it, the number of channels sets the time, as with
/// the other two. Threads of a channel x bytes of a thread: NCCL src/include/comm.h, src/enqueue.cc.
std::array<Protocol, 2> protocols(const Constants& constants) {
  return {Protocol{"ll", constants.ll, constants.ll_share, constants.ll_network_share, 512 * 8, true, false},
          Protocol{"simple", constants.simple, 1, 1, 512 * 64, false, true}};
}

/// One curve at one size.
struct Candidate {
  double latency_s = 0;
  double transfer_s = 0;
  std::string_view algorithm;
  std::string_view protocol;
  double time_s() const { return latency_s + transfer_s; }
};

/// What the operation moves: bytes over a ring's link and over the border of an island, and how often latency counts.
struct Shape {
  double ring_bytes = 0;
  double rounds = 1;      ///< times the ring is walked: all_reduce twice
  double hop_factor = 1;
  bool open = false;      ///< a chain: the hop that closes the ring is not used
};

Shape shape_of(Op op, double bytes, int n, const Constants& constants) {
  const double part = static_cast<double>(n - 1) / n;
  switch (op) {
    case Op::kAllReduce: return {2 * part * bytes, 2, 1};
    case Op::kAllGather:
    case Op::kReduceScatter: return {part * bytes, 1, 1};
    case Op::kBroadcast:
    case Op::kReduce: return {bytes, 1, constants.chain_hop, true};
    case Op::kAllToAll: return {part * bytes, 1, 1};
    case Op::kSendRecv: return {bytes, 1, 1};
  }
  return {};
}

double hop_s(const Path& path, const ProtocolLatency& latency) {
  return path.hop == HopKind::kNvLink ? latency.nvlink_hop_s : latency.pcie_hop_s;
}

double rate_or_infinity(double bytes_per_s) { return bytes_per_s > 0 ? bytes_per_s : kInfinity; }

/// What a protocol makes of a bandwidth inside an island.
double inside_rate(double bytes_per_s, const Protocol& protocol) { return bytes_per_s * protocol.share; }

/// Bandwidth of the narrowest part a ring passes; 0 only when there is no way at all.
double ring_bytes_per_s(const Path& path, bool open, double steps, const Protocol& protocol) {
  double inside = path.per_island > 1 ? inside_rate(open ? path.chain_bytes_per_s : path.ring.bytes_per_s, protocol) : kInfinity;
  // The first and the last step of a walk only send or only receive. Slower links hide that.
  if (!open) inside /= 1 + path.ring_start / steps;
  const double outside = path.islands > 1 ? path.network.bytes_per_s * protocol.network_share : kInfinity;
  return std::min(inside, outside);
}

/// Hops over the links of islands: through all members, or along each dimension of a torus in turn.
double inner_hops(const Path& path, double borders) {
  if (path.torus_dimensions == 0) return path.ranks - 1 - borders;
  const double side = std::pow(static_cast<double>(path.per_island), 1.0 / path.torus_dimensions);
  return path.torus_dimensions * (side - 1);
}

/// Simple hands on whole slots: the more of a slot a step fills, the longer a hop takes.
double filled(double bytes, const Constants& constants) { return bytes / (bytes + constants.fill_bytes); }

/// NCCL takes as many channels as the size fills, each thread of a channel with so many bytes (for LL in a ring: of each rank).
/// Those beyond the first; not rounded, so that time never falls with size.
double more_channels(double bytes, double ranks, const Path& path, const Protocol& protocol) {
  return std::clamp(bytes / (protocol.channel_bytes * (protocol.flags ? ranks : 1.0)), 1.0, path.channels) - 1;
}

/// A channel carries its part of the bandwidth, so few of them leave the rest unused.
double opened(double more_channels, const Path& path) { return (more_channels + 1) / path.channels; }

Candidate ring(const Shape& shape, double bytes, const Path& path, const Protocol& protocol, const Constants& constants) {
  const double borders = path.islands > 1 ? path.islands - 1 : 0;
  const double inner = inner_hops(path, borders);
  double hop = hop_s(path, protocol.latency);
  if (protocol.flags && path.islands > 1) hop *= constants.ll_between_hosts;
  if (protocol.slots) hop += constants.fill_s * filled(bytes, constants);
  const double more = more_channels(bytes, path.ranks, path, protocol);
  const double hops = shape.rounds * shape.hop_factor * (inner * hop + borders * path.network_hop * protocol.latency.network_hop_s);
  const double steps = shape.rounds * (path.ranks - 1);
  // A step over the network is stored and forwarded: it takes as long as its part of the buffer does, up to one slice.
  const double part = shape.ring_bytes / std::max(1.0, steps);
  const double stored = path.step_s > 0 ? steps * path.step_s * std::min(1.0, part / path.step_bytes) : 0;
  const double transfer = shape.ring_bytes / (opened(more, path) * ring_bytes_per_s(path, shape.open, steps, protocol));
  const double channels = more * constants.channel_s;
  return {protocol.latency.base_s + std::max(hops, stored) + channels, transfer, "ring", protocol.name};
}

/// Double binary tree over islands, a chain inside: up and down. An island sends its whole buffer once when there are
/// two islands, up to twice (as inner node of one tree and leaf of the other) when there are more.
Candidate tree(double bytes, const Path& path, const Protocol& protocol, const Constants& constants) {
  const double levels = std::log2(static_cast<double>(path.islands));
  const double hop = hop_s(path, protocol.latency) * (protocol.flags ? constants.ll_between_hosts : 1);
  const double more = more_channels(bytes, 1, path, protocol);
  const double latency = protocol.latency.base_s + 2 * ((path.per_island - 1) * hop + levels * path.network_hop * protocol.latency.network_hop_s);
  const double sent = path.islands == 2 && path.tree_pays ? bytes : 2 * bytes;
  const double outside = sent / (path.network.bytes_per_s * protocol.network_share);
  double inside = 0;
  if (path.per_island > 1) {
    inside = 2 * bytes / inside_rate(path.ring.bytes_per_s * constants.tree, protocol);
  }
  const double channels = more * constants.channel_s;
  return {latency + channels, std::max(inside, outside) / opened(more, path), "tree", protocol.name};
}

/// The switch reduces and multicasts: each GPU sends and receives about the whole buffer once. Over islands a tree.
Candidate nvls(double bytes, const Path& path, const Constants& constants) {
  Candidate candidate{constants.nvls_latency_s + constants.nvls_fill_s * filled(bytes, constants), bytes / path.nvls_bytes_per_s, "nvls", "simple"};
  if (path.islands == 1) return candidate;
  const double levels = std::log2(static_cast<double>(path.islands));
  candidate.latency_s += 2 * levels * path.network_hop * constants.simple.network_hop_s;
  candidate.transfer_s = std::max(candidate.transfer_s, (path.islands == 2 ? bytes : 2 * bytes) / path.network.bytes_per_s);
  return candidate;
}

/// Everyone to everyone, or one to one.
Candidate direct(Op op, double bytes, const Path& path, const Protocol& protocol, const Constants& constants) {
  const double n = path.ranks;
  const double g = path.per_island;
  const bool crosses = path.islands > 1;
  double latency = protocol.latency.base_s;
  latency += crosses ? path.network_hop * protocol.latency.network_hop_s : hop_s(path, protocol.latency);
  const double inside = inside_rate(rate_or_infinity(path.direct.bytes_per_s), protocol);
  double transfer = 0;
  if (op == Op::kSendRecv) {
    const double pair = std::min(path.network.bytes_per_s * path.send_share, path.send_most_bytes_per_s);
    transfer = bytes / (crosses ? pair * protocol.network_share : inside);
  } else {
    latency += (n - 1) * constants.peer_s;
    if (protocol.slots) latency += constants.exchange_s;
    if (g > 1) transfer = bytes * (g - 1) / n / inside;
    if (crosses) transfer = std::max(transfer, g * bytes * (n - g) / n / (path.network_direct_bytes_per_s * protocol.network_share));
    // The same kernel copies the rank's own part: read and written once.
    if (path.memory_bytes_per_s > 0) transfer += 2 * bytes / n / (path.memory_bytes_per_s * constants.own_copy);
  }
  const double channels = op == Op::kAllToAll ? more_channels(bytes, 1, path, protocol) * constants.channel_s : 0;
  return {latency + channels, transfer, "direct", protocol.name};
}

Candidate fastest(Op op, double bytes, const Path& path, const Context& context) {
  const Constants& constants = context.constants;
  const Shape shape = shape_of(op, bytes, path.ranks, constants);
  Candidate best;
  double best_s = kInfinity;
  const auto offer = [&](Candidate candidate) {
    candidate.latency_s *= context.scale.latency;
    if (candidate.time_s() < best_s) {
      best = candidate;
      best_s = candidate.time_s();
    }
  };
  for (const Protocol& protocol : protocols(context.constants)) {
    if (op == Op::kAllToAll || op == Op::kSendRecv) {
      offer(direct(op, bytes, path, protocol, constants));
      continue;
    }
    offer(ring(shape, bytes, path, protocol, constants));
    if (op == Op::kAllReduce && path.islands > 1) offer(tree(bytes, path, protocol, constants));
  }
  if (op == Op::kAllReduce && path.nvls_bytes_per_s > 0) offer(nvls(bytes, path, constants));
  return best;
}

/// max over directed links of bytes / capacity, with any algorithm: what must enter or leave a GPU, and an island.
double floor_s(Op op, double bytes, const Path& path) {
  const double n = path.ranks;
  const double islands = path.islands;
  const double g = path.per_island;
  double gpu = bytes;
  double island = bytes;
  switch (op) {
    case Op::kAllReduce:
      gpu = path.nvls_bytes_per_s > 0 ? bytes : 2 * (g - 1) / g * bytes;
      island = 2 * (islands - 1) / islands * bytes;
      break;
    case Op::kAllGather:
    case Op::kReduceScatter:
      gpu = (n - 1) / n * bytes;
      island = (islands - 1) / islands * bytes;
      break;
    case Op::kAllToAll:
      gpu = (g - 1) / n * bytes;
      island = g * bytes * (n - g) / n;
      break;
    case Op::kBroadcast:
    case Op::kReduce:
    case Op::kSendRecv: break;
  }
  double floor = 0;
  if (g > 1 && path.ring.wire_bytes_per_s > 0 && !(op == Op::kSendRecv && islands > 1)) floor = gpu / path.ring.wire_bytes_per_s;
  if (islands > 1 && path.network.wire_bytes_per_s > 0) floor = std::max(floor, island / path.network.wire_bytes_per_s);
  return floor;
}

/// Everyone to everyone when islands copy what they received: all copies pass the links inside, a share the NICs.
Candidate copied_exchange(double bytes, double network_share, const Path& path, const Protocol& protocol, const Constants& constants) {
  Candidate candidate = direct(Op::kAllToAll, bytes, path, protocol, constants);
  const double n = path.ranks;
  const double g = path.per_island;
  const double inside = inside_rate(rate_or_infinity(path.direct.bytes_per_s), protocol);
  const double outside = path.network_direct_bytes_per_s * protocol.network_share;
  candidate.transfer_s = std::max(bytes * (n - 1) / n / inside, g * bytes * network_share * (n - g) / n / outside);
  candidate.latency_s += hop_s(path, protocol.latency);
  return candidate;
}

const std::optional<double>* measured_for(Op op, const Path& path) {
  switch (op) {
    case Op::kAllReduce: return &path.measured_all_reduce;
    case Op::kAllGather:
    case Op::kBroadcast: return &path.measured_all_gather;
    case Op::kReduceScatter:
    case Op::kReduce: return &path.measured_reduce_scatter;
    case Op::kAllToAll:
    case Op::kSendRecv: return nullptr;
  }
  return nullptr;
}

bool network_bound(Op op, const Candidate& taken, double bytes, const Path& path) {
  if (path.islands < 2) return false;
  if (path.per_island < 2) return true;
  if (op == Op::kAllToAll) return path.per_island * bytes * (path.ranks - path.per_island) / path.ranks / path.network_direct_bytes_per_s * 1.0001 >= taken.transfer_s;
  if (taken.algorithm == "ring" || taken.algorithm == "direct") return op == Op::kSendRecv || path.network.bytes_per_s <= path.ring.bytes_per_s;
  return (path.islands == 2 ? bytes : 2 * bytes) / path.network.bytes_per_s * 1.0001 >= taken.transfer_s;
}

void name_limit(Cost& cost, Op op, const Candidate& taken, double bytes, const Path& path) {
  if (taken.transfer_s <= taken.latency_s) {
    cost.limit = LimitKind::kLatency;
    cost.where = "latency";
    return;
  }
  const Limit& limit = network_bound(op, taken, bytes, path) ? path.network : path.ring.bytes_per_s > 0 ? path.ring : path.direct;
  cost.limit = limit.kind;
  cost.where = limit.where;
}

/// Large enough that latency is nothing beside transfer.
constexpr double kHuge = 1e15;

}  // namespace

Cost time_of(Op op, double bytes, const Path& path, const Context& context) {
  Cost cost;
  if (path.ranks < 2) return cost;
  const double factor = bus_factor(op, path.ranks);
  const double size = std::max(0.0, bytes);
  Candidate taken = fastest(op, size, path, context);
  cost.peak_bus_bytes_per_s = path.peak_bus_bytes_per_s[static_cast<std::size_t>(op)];
  const std::optional<double>* measured = measured_for(op, path);
  name_limit(cost, op, taken, size, path);
  if (measured != nullptr && *measured && **measured > 0) {
    taken.transfer_s *= cost.peak_bus_bytes_per_s / **measured;
    cost.peak_bus_bytes_per_s = **measured;
    if (taken.transfer_s > taken.latency_s) {
      cost.limit = LimitKind::kMeasured;
    }
  }
  cost.time_s = taken.time_s();
  cost.latency_s = taken.latency_s;
  cost.call_s = path.call_s;
  cost.bus_bytes_per_s = cost.time_s > 0 ? size * factor / cost.time_s : 0;
  cost.floor_s = std::min(floor_s(op, size, path), cost.time_s);
  cost.algorithm = taken.algorithm;
  cost.protocol = taken.protocol;
  return cost;
}

void set_peaks(Path& path, const Context& context) {
  if (path.ranks < 2) return;
  for (std::size_t i = 0; i < kOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    path.peak_bus_bytes_per_s[i] = kHuge * bus_factor(op, path.ranks) / fastest(op, kHuge, path, context).time_s();
  }
}

Cost exchange_time(double bytes, double network_share, const Path& path, const Context& context) {
  Cost cost = time_of(Op::kAllToAll, bytes, path, context);
  if (network_share >= 1 || path.islands < 2 || path.per_island < 2) return cost;
  const double size = std::max(0.0, bytes);
  for (const Protocol& protocol : protocols(context.constants)) {
    Candidate candidate = copied_exchange(size, network_share, path, protocol, context.constants);
    candidate.latency_s *= context.scale.latency;
    if (candidate.time_s() >= cost.time_s) continue;
    cost.time_s = candidate.time_s();
    cost.latency_s = candidate.latency_s;
    cost.protocol = candidate.protocol;
  }
  cost.bus_bytes_per_s = cost.time_s > 0 ? size * bus_factor(Op::kAllToAll, path.ranks) / cost.time_s : 0;
  // Fewer bytes leave the island than the floor of all_to_all counts.
  cost.floor_s = std::min(cost.floor_s * network_share, cost.time_s);
  return cost;
}

}  // namespace chokepoint::collective
