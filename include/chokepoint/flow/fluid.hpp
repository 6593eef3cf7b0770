// SPDX-License-Identifier: Apache-2.0
#pragma once
// Transfers that are alive at the same time share their links: rates by max-min fairness, time by events.
//
//   Fluid fluid({10e9, 10e9});                       // two directed links
//   const Use ring[] = {{0, 1}, {1, 1}};             // one coupled flow over both
//   fluid.start(ring, 1e9);
//   std::vector<FlowId> done;
//   while (fluid.next_s() < kNever) fluid.advance(fluid.next_s(), done);
//
// Model (docs/models/flow.md): all rates rise together; a flow stops rising when a link of its own is full or its own
// limit is reached (progressive filling). The result is the one allocation in which every flow has a full link where
// no other flow is faster, or runs at its limit (Bertsekas and Gallager, Data Networks, 6.5.2).
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

namespace chokepoint::flow {

inline constexpr double kNever = std::numeric_limits<double>::infinity();

/// One link of a flow: each byte of the flow puts `weight` bytes on it. A coupled flow (a ring's channel) has one rate
/// and all links of the ring; a flow sprayed over k equal links has weight 1/k on each.
struct Use {
  std::uint32_t link = 0;
  double weight = 1;
  bool operator==(const Use&) const = default;
};

/// Index of a flow. Reused for a later flow once its end was reported, so arrays by FlowId stay as short as the most
/// flows ever alive at once.
using FlowId = std::uint32_t;

/// Invariant: time never goes back, and at any time no link carries more than its capacity.
/// Cost of a change: proportional to the flows and links whose rates it can reach. Memory: O(links + uses of live
/// flows). Same calls, same bits. One thread at a time (const functions too: they bring rates up to date). Any input is
/// safe: a capacity, a limit or a size that is negative or no number counts as 0, as do capacities and limits below 1e-100;
/// a weight below 1e-100 is no use, above 1e100 it counts as 1e100; one that is no number, or a link that does not exist, is
/// a link of capacity 0. Infinite sizes never end.
class Fluid {
 public:
  explicit Fluid(std::vector<double> capacity_bytes_per_s);
  ~Fluid();
  Fluid(Fluid&& other) noexcept;
  Fluid& operator=(Fluid&& other) noexcept;

  /// A flow from now_s() on. Without bytes, or without anything that slows it, it ends at now_s() (and is reported by
  /// the next advance). Flows started at the same time cost one recomputation together.
  FlowId start(std::span<const Use> uses, double bytes, double rate_limit_bytes_per_s = kNever);
  /// Ends a flow that is alive without reporting it, for background traffic; its FlowId is free at once.
  void cancel(FlowId flow);
  /// From now_s() on: a degraded link, one that failed (0), or came back.
  void set_capacity(std::uint32_t link, double bytes_per_s);

  double now_s() const;
  /// Time of the next completion; kNever when nothing flows. Live flows without an end are what stalled() tells.
  double next_s() const;
  /// Lets time pass up to `to_s`, with every completion on the way; `completed` is replaced by the flows that ended,
  /// ascending. An endless `to_s` stops at the last completion there is. An earlier time than now_s() does nothing.
  void advance(double to_s, std::vector<FlowId>& completed);

  std::size_t live() const;  ///< flows that have not been reported yet
  /// Replaces `flows` by those alive at rate 0, ascending: a link of theirs has no capacity.
  void stalled(std::vector<FlowId>& flows) const;
  double rate(FlowId flow) const;                     ///< bytes per second; 0 for a flow that is not alive
  double left_bytes(FlowId flow) const;               ///< still to be sent at now_s()
  double carried_bytes(std::uint32_t link) const;     ///< from the beginning up to now_s()
  double load_bytes_per_s(std::uint32_t link) const;  ///< sum of rates x weights at now_s()
  double capacity_bytes_per_s(std::uint32_t link) const;
  std::size_t flows_on(std::uint32_t link) const;  ///< live flows; O(1), for adaptive routes
  std::size_t links() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace chokepoint::flow
