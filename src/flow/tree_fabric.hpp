// SPDX-License-Identifier: Apache-2.0
#pragma once
// Leaves, spines and cores of a fabric that is described in words (topology::Fabric), as numbered links.
//
// Each leaf has one cable to each of `spines` spines of its pod; each spine one cable to each of `cores` cores that its
// number selects. Cables share evenly what oversubscription leaves of the leaf's bandwidth.
#include <chokepoint/flow/platform.hpp>
#include <chokepoint/topology/topology.hpp>
#include <cstdint>
#include <vector>

namespace chokepoint::flow {

class TreeFabric {
 public:
  /// `nics`: most NICs of a host. Lines of every host are then added one by one.
  TreeFabric(const topology::Fabric& fabric, const PlatformOptions& options, int hosts, int nics);
  void add_line(int host, int nic, double bytes_per_s) {
    down_[static_cast<std::size_t>(leaf_of(host, nic))] += bytes_per_s;
  }

  /// Links wanted, to be checked before any of them is made.
  double links() const {
    return 2.0 * (static_cast<double>(leaves_) * spines_ + static_cast<double>(pods_) * spines_ * cores_);
  }
  bool rails() const { return rails_ > 1; }
  void append_capacities(std::vector<double>& capacities) const;
  LinkClass class_of(std::uint32_t link) const;
  std::string name_of(std::uint32_t link) const;
  /// Appends the links between two NICs' leaves; `first`: number of the fabric's first link.
  void route(int from_leaf, int to_leaf, const RouteChoice& choice, std::uint32_t first, std::vector<Use>& uses) const;
  int leaf_of(int host, int nic) const { return host / hosts_per_leaf_ * rails_ + nic % rails_; }

 private:
  std::uint32_t leaf_up(int leaf, int spine) const { return static_cast<std::uint32_t>(leaf * spines_ + spine); }
  std::uint32_t leaf_down(int leaf, int spine) const {
    return static_cast<std::uint32_t>((leaves_ + leaf) * spines_ + spine);
  }
  std::uint32_t spine_up(int pod, int spine, int core) const {
    return static_cast<std::uint32_t>(2 * leaves_ * spines_ + (pod * spines_ + spine) * cores_ + core);
  }
  std::uint32_t spine_down(int pod, int spine, int core) const {
    return spine_up(pod, spine, core) + static_cast<std::uint32_t>(pods_ * spines_ * cores_);
  }
  double up_of(int leaf) const { return down_[static_cast<std::size_t>(leaf)] / oversubscription_ * share_; }

  Spread spread_ = Spread::kHash;
  double oversubscription_ = 1;
  double share_ = 1;
  int hosts_per_leaf_ = 1;
  int rails_ = 1;
  int leaves_ = 0;
  int spines_ = 0;  ///< 0: no layer above the leaves
  int leaves_per_pod_ = 1;
  int pods_ = 0;              ///< 0: no core layer
  int cores_ = 0;             ///< of each spine
  std::vector<double> down_;  ///< sum of NIC lines by leaf
};

}  // namespace chokepoint::flow
