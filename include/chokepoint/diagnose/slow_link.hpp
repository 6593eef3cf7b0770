// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which physical link explains slow collectives: what all slow ones pass and no fast one does.
#include <chokepoint/diagnose/diagnose.hpp>
#include <chokepoint/topology/topology.hpp>
#include <optional>
#include <string>

namespace chokepoint::diagnose {

struct SlowLink {
  std::string where;        ///< "NIC mlx5_3 of host 1 (rank 11) or its cable", ...
  int slow = 0;             ///< slow transfers that pass it
  int slow_in_all = 0;
  int fast = 0;             ///< transfers at full speed that pass it too
  int fast_in_all = 0;
  double lost_share = 0;    ///< of the time lost in slow transfers
};

/// Of a diagnosis against this wiring (Options::network); ranks fill hosts in order. Nothing where no single link, NIC, host
/// or leaf switch explains at least half of the time lost.
std::optional<SlowLink> find_slow_link(const Diagnosis& diagnosis, const topology::Cluster& cluster);

/// Names it in the diagnosis: in the cause "slow-wire" where there is one, else in a note.
void name_slow_link(Diagnosis& diagnosis, const topology::Cluster& cluster);

}  // namespace chokepoint::diagnose
