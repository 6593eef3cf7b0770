// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which directed links every transfer of a step passes: rings, exchanges and messages lowered on the cluster's own
// links (flow::lower), from PCIe and NVLink inside hosts over network interfaces to leaf and spine cables.
//
//   TRY_INTO(const Ways ways, find_ways(cluster, layout, used, {}));
//   const Fold fold = fold_ranks(layout, imperfections, true, &ways);
#include <array>
#include <chokepoint/base/result.hpp>
#include <chokepoint/engine/graph.hpp>
#include <chokepoint/flow/platform.hpp>
#include <cstdint>
#include <memory>
#include <vector>

namespace chokepoint::engine {

struct Layout;

/// Kinds of transfers: one for each kind of meeting, then messages to the next stage and to the one before.
inline constexpr int kWaySendForward = kMeetCount;
inline constexpr int kWaySendBackward = kMeetCount + 1;
inline constexpr int kWayKinds = kMeetCount + 2;

/// A link is busy `weight` seconds for each byte of one pass round a group's ring, of an exchange's send buffer, or of a
/// message.
struct Load {
  std::uint32_t link = 0;
  double weight = 0;
};

/// Loads by instance: a group's number (Layout::group_of), or the sending rank.
struct WayKind {
  std::vector<std::uint32_t> begin;  ///< offsets into `loads`, one more than instances; empty: no such transfers
  std::vector<Load> loads;           ///< by instance, links ascending
};

struct Ways {
  std::array<WayKind, kWayKinds> kinds;
  std::uint32_t links = 0;
  int gpus_per_host = 1;
  /// Names links and knows their class; none where the links are host interfaces alone (2 x host out, + 1 in).
  std::shared_ptr<const flow::Platform> platform;
  /// Fabric links keep the load that hashing gives them; elsewhere siblings of one kind share as the closed form says.
  bool collides = false;
  /// Whether `link` is an interface of a host into the fabric, and of which host; -1: no.
  int interface_of(std::uint32_t link) const;
  bool in_fabric(std::uint32_t link) const;
};

struct WayOptions {
  flow::Spread spread = flow::Spread::kSpray;
  std::uint64_t seed = 1;  ///< of the hashes of ECMP
  double nic_share = 1;    ///< attained of the interfaces' line rate
};

/// `used`: kinds of transfers that the step has. Errors: no way between two ranks that must meet, with both hosts named.
Result<Ways> find_ways(const topology::Cluster& cluster, const Layout& layout, const std::array<bool, kWayKinds>& used,
                       const WayOptions& options);
/// Hosts of `bytes_per_s` each way and nothing else that is shared: what a graph without a cluster runs on.
Ways interfaces_only(const Layout& layout, double bytes_per_s);

}  // namespace chokepoint::engine
