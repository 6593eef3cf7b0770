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
  static constexpr std::uint32_t kNone = 0xffffffff;
  struct Link {
    double capacity = 0;
    double hold = kNever;    ///< rate of the flows that it holds, when it holds any
    double left = 0;         ///< in a filling: capacity that the flows that stand leave
    double largest = 0;      ///< in a filling: the largest term of `left` since it was last counted
    double open_weight = 0;  ///< in a filling: weights of those that rise
    double all_weight = 0;   ///< in a filling: the most that open_weight has been
    double queued = kNever;  ///< in a filling: level of its entry in the queue that counts
    List members;
    std::uint32_t held = 0;  ///< standing flows that it holds
    std::uint32_t open = 0;  ///< in a filling: incidences of rising flows
    std::uint32_t seen = 0;  ///< the last filling that entered it
    bool dirty = false;
  };
  struct Flow {
    double rate = 0;
    double limit = kNever;
    double level = 0;  ///< in a filling: the rate it stands at; else `rate`
    List uses = {};
    std::uint32_t held = kNone;  ///< the full link that holds it; kNone: its limit, or nothing
    std::uint32_t seen = 0;      ///< the last filling that opened it
    bool open = false;           ///< in a filling: rising
  };
  /// Something to look at when the common rate gets there: a link, or the limit of a flow.
  struct Level {
    double level;
    std::uint32_t index;
    bool flow;
  };

  std::span<const Incidence> view(const List& list) const {
    return list.size == 0 ? std::span<const Incidence>() : std::span<const Incidence>(&blocks_[list.begin], list.size);
  }
  void touch(std::uint32_t link);
  void join(std::uint32_t link, std::uint32_t place, FlowId id);
  void leave(std::uint32_t link, std::uint32_t place);
  void enter(std::uint32_t link);
  void open(FlowId id);
  bool open_above_share(std::uint32_t link);
  void stop(FlowId id, double level, std::uint32_t held);
  double full_at(Link& link) const;
  double next_level(Link& link) const;
  void queue(std::uint32_t link);
  void visit(std::uint32_t link, double level);
  bool too_fast(const Link& link, double level) const;
  void begin();
  void make_queue();
  void open_all_reached();
  void fill();
  void push(const Level& level);
  void pop();
  void sift(std::size_t at);

  Blocks blocks_;
  std::vector<Link> links_;  ///< the last one stands for links that do not exist: no capacity
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> dirty_;
  std::vector<FlowId> fresh_;
  std::uint32_t round_ = 0;
  bool filling_ = false;                ///< the queue is a heap now
  bool plain_ = false;                  ///< everything rises from 0; what has stopped stays
  std::vector<std::uint32_t> entered_;  ///< links of this filling
  std::vector<FlowId> opened_;          ///< flows of this filling
  std::vector<Level> queue_;
};

}  // namespace chokepoint::flow
