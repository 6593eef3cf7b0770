// SPDX-License-Identifier: Apache-2.0
#pragma once
// The hosts of one kind: where their numbers begin, and the ways inside one of them.
#include <chokepoint/flow/fluid.hpp>
#include <chokepoint/topology/topology.hpp>
#include <cstdint>
#include <vector>

namespace chokepoint::flow {

/// A way in links of one host, numbered as in Host::links.
using Way = std::vector<Use>;

/// Invariant: `gpus`, `nics` are device indices; positions in them are what callers count by.
class HostKind {
 public:
  HostKind(topology::Host host, int count, bool measured_egress);

  const topology::Host& host() const { return host_; }
  int gpu_count() const { return static_cast<int>(gpus_.size()); }
  int nic_count() const { return static_cast<int>(nics_.size()); }
  /// Links of the host graph, NIC lines and the measured egress of one host.
  std::uint32_t links_per_host() const {
    return own_links() + 2 * static_cast<std::uint32_t>(nics_.size()) + (measured_egress_ ? 2 : 0);
  }
  std::uint32_t own_links() const { return static_cast<std::uint32_t>(host_.links.size()); }
  std::uint32_t nic_out(int nic) const { return own_links() + 2 * static_cast<std::uint32_t>(nic); }
  std::uint32_t nic_in(int nic) const { return nic_out(nic) + 1; }
  std::uint32_t host_out() const { return own_links() + 2 * static_cast<std::uint32_t>(nics_.size()); }
  bool measured_egress() const { return measured_egress_; }
  const topology::Device& nic(int nic) const {
    return host_.devices[static_cast<std::size_t>(nics_[static_cast<std::size_t>(nic)])];
  }
  /// The first GPU whose nearest NIC it is; -1: none's.
  int gpu_next_to(int nic) const;
  int nearest_nic(int gpu) const { return nearest_[static_cast<std::size_t>(gpu)]; }

  /// Empty when there is none.
  const Way& gpu_to_gpu(int from, int to) const { return way(from, to); }
  const Way& nic_to_gpu(int nic, int gpu) const { return way(gpu_count() + nic, gpu); }
  /// Through the GPU next to the NIC when `through_peers` and NVLink leads there.
  Way gpu_to_nic(int gpu, int nic, bool through_peers) const;
  bool over_nvlink(int from, int to) const;
  /// The halves of a way through an NVSwitch, for hosts that share one: GPU to switch, switch to GPU. Empty without
  /// one.
  const Way& up_to_switch(int gpu) const { return up_[static_cast<std::size_t>(gpu)]; }
  const Way& down_from_switch(int gpu) const { return down_[static_cast<std::size_t>(gpu)]; }

  int count = 1;
  int first_host = 0;
  int first_gpu = 0;
  std::uint32_t first_link = 0;

 private:
  const Way& way(int from_slot, int to_slot) const;
  Way find_way(int from_slot, int to_slot) const;
  void find_nearest_nics();
  void find_switch_halves();
  int device_of(int slot) const;

  topology::Host host_;
  bool measured_egress_ = false;
  std::vector<int> gpus_;
  std::vector<int> nics_;
  std::vector<int> nearest_;
  std::vector<Way> up_;
  std::vector<Way> down_;
  mutable std::vector<Way> ways_;  ///< by slots (GPUs, then NICs), found when first asked for
  mutable std::vector<char> known_;
};

}  // namespace chokepoint::flow
