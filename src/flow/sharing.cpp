// SPDX-License-Identifier: Apache-2.0
// Problem: max-min fair rates of weighted flows after a few of them changed.
// Idea: progressive filling of the part that the changed links reach. A link's level is the common rate at which it is
// full; the link with the lowest level stops its flows there, which can only raise the levels of other links, so a heap
// with keys that are corrected when they come to the top visits links in order. Flow limits are visited in between.
// Ends: every visit stops a flow, drops a link or corrects a key upwards, and a key is corrected only after a flow
// stopped. Cost: O(U log L) for U incidences and L links of the part.
#include "sharing.hpp"

#include <algorithm>
#include <cmath>

namespace chokepoint::flow {

namespace {
/// Rates that differ by less are one: else rounding alone would move every completion of a large part.
constexpr double kSameRate = 1e-14;
/// Where less than this share of a link's weights is still open, their sum is taken anew: the difference has lost
/// digits.
constexpr double kFewDigits = 1e-6;

double at_least_zero(double value) { return value > 0 ? value : 0; }
}  // namespace

Sharing::Sharing(std::vector<double> capacity_bytes_per_s) : links_(capacity_bytes_per_s.size() + 1) {
  for (std::size_t i = 0; i < capacity_bytes_per_s.size(); ++i)
    links_[i].capacity = at_least_zero(capacity_bytes_per_s[i]);
}

void Sharing::touch(std::uint32_t link) {
  if (links_[link].dirty) return;
  links_[link].dirty = true;
  dirty_.push_back(link);
}

void Sharing::join(std::uint32_t link, std::uint32_t place, FlowId id) {
  List& members = links_[link].members;
  if (members.size == members.room) {
    List larger = blocks_.take(members.room == 0 ? 2 : 2 * members.room);
    larger.size = members.size;
    for (std::uint32_t i = 0; i < members.size; ++i) {
      blocks_[larger.begin + i] = blocks_[members.begin + i];
      blocks_[blocks_[larger.begin + i].twin].twin = larger.begin + i;
    }
    blocks_.give_back(members);
    members = larger;
  }
  const std::uint32_t seat = members.begin + members.size++;
  blocks_[seat] = {id, place, blocks_[place].weight};
  blocks_[place].twin = seat;
}

void Sharing::leave(std::uint32_t link, std::uint32_t place) {
  List& members = links_[link].members;
  const std::uint32_t seat = blocks_[place].twin;
  const std::uint32_t last = members.begin + --members.size;
  if (seat == last) return;
  blocks_[seat] = blocks_[last];
  blocks_[blocks_[seat].twin].twin = seat;
}

void Sharing::add(FlowId id, std::span<const Use> uses, double limit_bytes_per_s) {
  if (id >= flows_.size()) flows_.resize(id + std::size_t{1});
  const auto nowhere = static_cast<std::uint32_t>(links_.size() - 1);
  Flow& flow = flows_[id];
  flow = {.limit = std::isnan(limit_bytes_per_s) ? 0 : std::max(limit_bytes_per_s, 0.0), .seen = flow.seen};
  flow.uses = blocks_.take(static_cast<std::uint32_t>(uses.size()));
  for (const Use& use : uses) {
    if (use.weight <= 0) continue;
    const bool sane = use.link < nowhere && std::isfinite(use.weight);
    const std::uint32_t link = sane ? use.link : nowhere;
    const std::uint32_t place = flow.uses.begin + flow.uses.size++;
    blocks_[place] = {link, 0, sane ? use.weight : 1};
    join(link, place, id);
    touch(link);
  }
  fresh_.push_back(id);
}

void Sharing::remove(FlowId id) {
  Flow& flow = flows_[id];
  for (std::uint32_t i = 0; i < flow.uses.size; ++i) {
    const std::uint32_t place = flow.uses.begin + i;
    leave(blocks_[place].other, place);
    touch(blocks_[place].other);
  }
  blocks_.give_back(flow.uses);
  flow.uses = {};
  flow.rate = 0;
}

void Sharing::set_capacity(std::uint32_t link, double bytes_per_s) {
  if (link >= links()) return;
  const double capacity = at_least_zero(bytes_per_s);
  if (links_[link].capacity == capacity) return;
  links_[link].capacity = capacity;
  touch(link);
}

/// All flows and links that the dirty links reach, with the sums that filling starts from.
void Sharing::collect() {
  ++round_;
  part_links_.clear();
  part_flows_.clear();
  const auto reach = [this](std::uint32_t index) {
    Link& link = links_[index];
    if (link.seen == round_) return;
    link.seen = round_;
    part_links_.push_back(index);
  };
  for (const FlowId id : fresh_) {
    Flow& flow = flows_[id];
    if (flow.uses.size > 0) continue;  // those with links are reached through them
    flow.seen = round_;
    part_flows_.push_back(id);
  }
  for (const std::uint32_t index : dirty_) {
    links_[index].dirty = false;
    reach(index);
  }
  for (std::size_t front = 0; front < part_links_.size(); ++front) {
    Link& link = links_[part_links_[front]];
    link.left = link.capacity;
    link.open = link.members.size;
    link.open_weight = 0;
    for (const Incidence& member : view(link.members)) {
      link.open_weight += member.weight;
      Flow& flow = flows_[member.other];
      if (flow.seen == round_) continue;
      flow.seen = round_;
      part_flows_.push_back(member.other);
      for (const Incidence& use : view(flow.uses)) reach(use.other);
    }
    link.all_weight = link.open_weight;
  }
  dirty_.clear();
  fresh_.clear();
}

double Sharing::level_of(Link& link) {
  if (link.open_weight < kFewDigits * link.all_weight) {
    link.open_weight = 0;
    for (const Incidence& member : view(link.members)) {
      if (flows_[member.other].open) link.open_weight += member.weight;
    }
    link.all_weight = link.open_weight;
  }
  const double level = link.left / link.open_weight;
  return level >= 0 ? level : 0;
}

void Sharing::stop(Flow& flow, double level) {
  flow.open = false;
  flow.level = level;
  for (const Incidence& use : view(flow.uses)) {
    Link& link = links_[use.other];
    link.left = at_least_zero(link.left - use.weight * level);
    link.open_weight -= use.weight;
    --link.open;
  }
}

/// Moves the entry at `at` of a 4-ary heap down to its place.
void Sharing::sift(std::size_t at) {
  const Level moving = heap_[at];
  for (;;) {
    const std::size_t first = 4 * at + 1;
    if (first >= heap_.size()) break;
    const std::size_t end = std::min(first + 4, heap_.size());
    std::size_t least = first;
    for (std::size_t child = first + 1; child < end; ++child) {
      if (heap_[child].level < heap_[least].level) least = child;
    }
    if (heap_[least].level >= moving.level) break;
    heap_[at] = heap_[least];
    at = least;
  }
  heap_[at] = moving;
}

void Sharing::fill() {
  limits_.clear();
  for (const FlowId id : part_flows_) {
    Flow& flow = flows_[id];
    flow.open = true;
    flow.level = kNever;
    if (flow.limit < kNever) limits_.emplace_back(flow.limit, id);
  }
  std::sort(limits_.begin(), limits_.end());
  heap_.clear();
  for (const std::uint32_t index : part_links_) {
    if (links_[index].open > 0) heap_.push_back({level_of(links_[index]), index});
  }
  for (std::size_t at = heap_.size() / 4 + 1; at-- > 0;) {
    if (at < heap_.size()) sift(at);
  }
  std::size_t limit = 0;
  for (;;) {
    const double lowest = heap_.empty() ? kNever : heap_.front().level;
    while (limit < limits_.size() && !flows_[limits_[limit].second].open) ++limit;
    if (limit < limits_.size() && limits_[limit].first <= lowest) {
      stop(flows_[limits_[limit].second], limits_[limit].first);
      continue;
    }
    if (lowest == kNever) break;  // what is still open has nothing that slows it
    Link& link = links_[heap_.front().link];
    const double level = link.open > 0 ? level_of(link) : kNever;
    if (link.open == 0) {
      heap_.front() = heap_.back();
      heap_.pop_back();
    } else if (level > lowest) {
      heap_.front().level = level;
    } else {
      for (const Incidence& member : view(link.members)) {
        if (flows_[member.other].open) stop(flows_[member.other], lowest);
      }
      continue;
    }
    if (!heap_.empty()) sift(0);
  }
}

void Sharing::settle(std::vector<FlowId>& changed) {
  if (dirty_.empty() && fresh_.empty()) return;
  collect();
  fill();
  for (const FlowId id : part_flows_) {
    Flow& flow = flows_[id];
    flow.open = false;
    if (flow.level == flow.rate || std::abs(flow.level - flow.rate) <= kSameRate * flow.rate) continue;
    flow.rate = flow.level;
    changed.push_back(id);
  }
}

}  // namespace chokepoint::flow
