// SPDX-License-Identifier: Apache-2.0
#pragma once
// Who shares which link, and the max-min fair rates that follow. No time here.
#include <chokepoint/flow/fluid.hpp>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "blocks.hpp"

namespace chokepoint::flow {

/// Invariant: after settle() the rates are max-min fair; between changes and settle() they are the old ones.
class Sharing {
 public:
  explicit Sharing(std::vector<double> capacity_bytes_per_s);

  /// Adds flow `id` (a slot that is free; slots grow by one).
  void add(FlowId id, std::span<const Use> uses, double limit_bytes_per_s);
  void remove(FlowId id);
  void set_capacity(std::uint32_t link, double bytes_per_s);
  /// Rates after all changes since the last call; appends the flows whose rate is another one now.
  void settle(std::vector<FlowId>& changed);

  std::size_t links() const { return links_.size() - 1; }
  double rate(FlowId id) const { return flows_[id].rate; }
  double capacity(std::uint32_t link) const { return links_[link].capacity; }
  std::size_t flows_on(std::uint32_t link) const { return links_[link].members.size; }
  std::span<const Incidence> uses_of(FlowId id) const { return view(flows_[id].uses); }
  std::span<const Incidence> members_of(std::uint32_t link) const { return view(links_[link].members); }

 private:
  struct Link {
    double capacity = 0;
    double left = 0;         ///< while filling: capacity that settled flows leave
    double open_weight = 0;  ///< while filling: weights of flows that still rise
    double all_weight = 0;
    List members;
    std::uint32_t open = 0;  ///< while filling: incidences of flows that still rise
    std::uint32_t seen = 0;  ///< the last filling that touched this link
    bool dirty = false;
  };
  struct Flow {
    double rate = 0;
    double limit = kNever;
    double level = 0;  ///< while filling: the new rate
    List uses = {};
    std::uint32_t seen = 0;
    bool open = false;
  };
  struct Level {
    double level;
    std::uint32_t link;
  };

  std::span<const Incidence> view(const List& list) const {
    return list.size == 0 ? std::span<const Incidence>() : std::span<const Incidence>(&blocks_[list.begin], list.size);
  }
  void touch(std::uint32_t link);
  void join(std::uint32_t link, std::uint32_t place, FlowId id);
  void leave(std::uint32_t link, std::uint32_t place);
  void collect();
  void fill();
  double level_of(Link& link);
  void stop(Flow& flow, double level);
  void sift(std::size_t at);

  Blocks blocks_;
  std::vector<Link> links_;  ///< the last one stands for links that do not exist: no capacity
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> dirty_;
  std::vector<FlowId> fresh_;
  std::uint32_t round_ = 0;
  std::vector<std::uint32_t> part_links_;  ///< of the part being filled
  std::vector<FlowId> part_flows_;
  std::vector<Level> heap_;
  std::vector<std::pair<double, FlowId>> limits_;
};

}  // namespace chokepoint::flow
