// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bandwidth part of a group: which directed links the rings of the group and of its siblings load, and how often.
#include <array>
#include <chokepoint/collective/collective.hpp>
#include <chokepoint/collective/constants.hpp>
#include <optional>
#include <string>

#include "tuner.hpp"

namespace chokepoint::collective {

/// What a caller may vary.
struct Context {
  Scale scale;
  Constants constants;
  NcclVersion nccl = 0;
  NvLinkShares nvlink;  ///< those of the accelerator's generation
};

/// A bandwidth and the link that sets it.
struct Limit {
  double bytes_per_s = 0;   ///< attained, after efficiencies; 0: no such way
  double wire_bytes_per_s = 0;  ///< the same links at their data-sheet rate, for the floor
  LimitKind kind = LimitKind::kNone;
  std::string where;
};

enum class HopKind { kNvLink, kPcie };

/// Everything about a group that does not depend on the message.
struct Path {
  int ranks = 1;
  int per_island = 1;       ///< ranks that reach each other without a NIC: a host, or an NVLink domain of several hosts
  int islands = 1;
  HopKind hop = HopKind::kNvLink;
  int torus_dimensions = 0; ///< rings run along each dimension of a torus in turn; 0: one ring through all ranks
  double ring_start = 0;    ///< steps of a walk that overlap with no other
  Limit ring;               ///< bus bandwidth of rings inside the island
  double chain_bytes_per_s = 0; ///< the same without the hop that closes the ring: broadcast and reduce
  Limit direct;             ///< what one GPU sends to its peers inside the island, all peers at once
  double nvls_bytes_per_s = 0;  ///< algorithm bandwidth of NVLink SHARP; 0 where there is none
  Limit network;            ///< what this group may send out of an island
  double network_direct_bytes_per_s = 0;  ///< the same for all_to_all, whose traffic crosses leaves
  double network_hop = 1;   ///< multiplier on the latency of a network hop
  double step_s = 0;        ///< least time of one step of a ring over the network for a part of `step_bytes` or more
  double step_bytes = 1;
  double channels = 2;      ///< the most that a collective of this group opens
  double call_s = 0;        ///< host time of one call
  double memory_bytes_per_s = 0; ///< of one accelerator, for copies of a rank's own part
  double send_share = 1;    ///< of the network for one pair: send and receive against a ring
  double send_most_bytes_per_s = 0; ///< no pair sends faster than its part of the ports
  TunerInput tuner;         ///< this group as NCCL's tuner sees it; `op` is filled in later
  bool tree_pays = true;    ///< two islands gain from a tree; not over sockets, whose threads are the limit
  std::array<double, kOpCount> peak_bus_bytes_per_s{};  ///< by Op; set_peaks()
  /// Bus bandwidths measured on this cluster, as far as they speak about this group.
  std::optional<double> measured_all_reduce, measured_all_gather, measured_reduce_scatter;
};

/// Shares of the accelerator's NVLink generation.
NvLinkShares nvlink_shares(const Constants& constants, const hardware::Accelerator& accelerator);
/// `egress`: what host_egress gives for this cluster, which is the same for all of its groups.
Path make_path(const topology::Cluster& cluster, const hardware::Accelerator& accelerator, const Context& context, const Limit& egress, const Group& group);
/// Bandwidth of one host into the fabric, all NICs together.
Limit host_egress(const topology::Cluster& cluster, const Context& context);

}  // namespace chokepoint::collective
