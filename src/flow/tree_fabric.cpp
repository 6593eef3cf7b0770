// SPDX-License-Identifier: Apache-2.0
#include "tree_fabric.hpp"

#include <algorithm>
#include <cmath>

#include "pick.hpp"

namespace chokepoint::flow {

TreeFabric::TreeFabric(const topology::Fabric& fabric, const PlatformOptions& options, int hosts, int nics)
    : spread_(options.spread), share_(options.fabric_share) {
  const bool tree =
      fabric.kind == topology::FabricKind::kFatTree || fabric.kind == topology::FabricKind::kRailOptimized;
  oversubscription_ =
      std::isfinite(fabric.oversubscription) && fabric.oversubscription > 0 ? fabric.oversubscription : 1;
  hosts_per_leaf_ = tree && fabric.hosts_per_leaf > 0 ? fabric.hosts_per_leaf : std::max(1, hosts);
  rails_ = fabric.kind == topology::FabricKind::kRailOptimized ? std::max(1, nics) : 1;
  leaves_ = ((hosts - 1) / hosts_per_leaf_ + 1) * rails_;
  down_.assign(static_cast<std::size_t>(leaves_), 0.0);
  if (!tree || leaves_ == 1) return;
  const double lines = static_cast<double>(std::min(hosts, hosts_per_leaf_)) * (rails_ > 1 ? 1 : std::max(1, nics));
  spines_ =
      spread_ == Spread::kSpray ? 1 : static_cast<int>(std::clamp(std::round(lines / oversubscription_), 1.0, 1e6));
  const int ports = std::max(2, options.switch_ports);
  if (leaves_ <= ports) return;
  leaves_per_pod_ = ports / 2;
  pods_ = (leaves_ - 1) / leaves_per_pod_ + 1;
  cores_ = spread_ == Spread::kSpray ? 1 : leaves_per_pod_;
}

void TreeFabric::append_capacities(std::vector<double>& capacities) const {
  for (int direction = 0; direction < 2; ++direction) {
    for (int leaf = 0; leaf < leaves_; ++leaf) {
      capacities.insert(capacities.end(), static_cast<std::size_t>(spines_), up_of(leaf) / std::max(1, spines_));
    }
  }
  for (int direction = 0; direction < 2; ++direction) {
    for (int pod = 0; pod < pods_; ++pod) {
      double up = 0;
      for (int leaf = pod * leaves_per_pod_; leaf < std::min(leaves_, (pod + 1) * leaves_per_pod_); ++leaf)
        up += up_of(leaf);
      const int cables = spines_ * cores_;
      capacities.insert(capacities.end(), static_cast<std::size_t>(cables), up / cables);
    }
  }
}

LinkClass TreeFabric::class_of(std::uint32_t link) const {
  if (link < leaf_down(0, 0)) return LinkClass::kLeafUp;
  if (link < spine_up(0, 0, 0)) return LinkClass::kLeafDown;
  return link < spine_down(0, 0, 0) ? LinkClass::kSpineUp : LinkClass::kSpineDown;
}

std::string TreeFabric::name_of(std::uint32_t link) const {
  const LinkClass kind = class_of(link);
  const auto text = [](std::uint32_t number) { return std::to_string(number); };
  const auto spines = static_cast<std::uint32_t>(spines_);
  const auto in_pods = [this](std::uint32_t leaf) {
    return pods_ > 0 ? "pod " + std::to_string(leaf / static_cast<std::uint32_t>(leaves_per_pod_)) + " "
                     : std::string();
  };
  if (kind == LinkClass::kLeafUp || kind == LinkClass::kLeafDown) {
    const std::uint32_t at = kind == LinkClass::kLeafUp ? link : link - leaf_down(0, 0);
    const std::string leaf = "leaf " + text(at / spines);
    const std::string spine = spread_ == Spread::kSpray ? in_pods(at / spines) + "spines"
                                                        : in_pods(at / spines) + "spine " + text(at % spines);
    return kind == LinkClass::kLeafUp ? leaf + " -> " + spine : spine + " -> " + leaf;
  }
  const std::uint32_t at = link - (kind == LinkClass::kSpineUp ? spine_up(0, 0, 0) : spine_down(0, 0, 0));
  const auto cores = static_cast<std::uint32_t>(cores_);
  const std::uint32_t spine_number = at / cores % spines;
  const std::string pod = "pod " + text(at / cores / spines);
  const bool trunk = spread_ == Spread::kSpray;
  const std::string spine = pod + (trunk ? " spines" : " spine " + text(spine_number));
  const std::string core = trunk ? "cores" : "core " + text(spine_number * cores + at % cores);
  return kind == LinkClass::kSpineUp ? spine + " -> " + core : core + " -> " + spine;
}

void TreeFabric::route(int from_leaf, int to_leaf, const RouteChoice& choice, std::uint32_t first,
                       std::vector<Use>& uses) const {
  if (from_leaf == to_leaf || spines_ == 0) return;
  const int from_pod = pods_ > 0 ? from_leaf / leaves_per_pod_ : 0;
  const int to_pod = pods_ > 0 ? to_leaf / leaves_per_pod_ : 0;
  const Fluid* fluid = spread_ == Spread::kAdaptive ? choice.fluid : nullptr;
  const int spine = pick(spines_, choice.hash, fluid, [&](int s) {
    return std::pair(first + leaf_up(from_leaf, s), first + leaf_down(to_leaf, s));
  });
  uses.push_back({first + leaf_up(from_leaf, spine), 1});
  if (from_pod != to_pod) {
    const int core = pick(cores_, mixed(choice.hash), fluid, [&](int c) {
      return std::pair(first + spine_up(from_pod, spine, c), first + spine_down(to_pod, spine, c));
    });
    uses.push_back({first + spine_up(from_pod, spine, core), 1});
    uses.push_back({first + spine_down(to_pod, spine, core), 1});
  }
  uses.push_back({first + leaf_down(to_leaf, spine), 1});
}

}  // namespace chokepoint::flow
