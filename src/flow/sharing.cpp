// SPDX-License-Identifier: Apache-2.0
// Problem: max-min fair rates of weighted flows after a few of them changed.
//
// Idea: progressive filling, of which only what changes is replayed. In a full filling a common rate rises; a link that
// gets full stops its flows and holds them. A change to a link leaves everything below its first new event as it was,
// so the replay starts with all flows standing at their old rates and opens (lets rise) only
// - new flows;
// - flows whose holder is not full any more when the common rate gets to where it held them;
// - on a link that is full: flows that stand above the common rate.
// Every opened flow puts its links into a queue by the level at which something can happen there: the link is full, or
// the rate at which it held others is reached. Links whose level only rose are corrected when they come to the top.
// At the end every flow has a full link where none is faster, or its limit: that is the definition of max-min fairness.
//
// Ends: in exact arithmetic a flow is opened only while it stands at the common rate or above, and the common rate
// never falls. Where weights of very different size leave a sum with few digits that may not hold; visits are counted,
// and too many of them end in a filling of all that is reached from 0, in which every visit stops flows for good. Cost:
// of a change that moves k flows with u incidences in all: O(u log u), and one pass over the flows of each link of
// theirs. Rejected: filling whole connected parts (300 times slower where flows end one by one), and guessing a part,
// checking and growing it (passes repeat the work: 1.5 to 5 times slower on dense traffic).
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
/// A link is full, and a flow as fast as another, up to this share: rounding of sums over flows stays far below.
constexpr double kEqual = 1e-11;

/// Visits for each link and flow of a filling; ordinary ones need fewer than two.
constexpr std::size_t kMostVisits = 16;

/// Beyond these no bandwidth and no share of one lies; their quotients stay numbers of full precision.
constexpr double kLeast = 1e-100;
constexpr double kMost = 1e100;

/// A capacity or a limit: no number and less than anything counts as none.
double bandwidth(double value) { return value >= kLeast ? value : 0; }
}  // namespace

Sharing::Sharing(std::vector<double> capacity_bytes_per_s) : links_(capacity_bytes_per_s.size() + 1) {
  for (std::size_t i = 0; i < capacity_bytes_per_s.size(); ++i)
    links_[i].capacity = bandwidth(capacity_bytes_per_s[i]);
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
  flow = {.limit = bandwidth(limit_bytes_per_s), .seen = flow.seen};
  flow.uses = blocks_.take(static_cast<std::uint32_t>(uses.size()));
  for (const Use& use : uses) {
    if (use.weight < kLeast) continue;
    const bool sane = use.link < nowhere && std::isfinite(use.weight);
    const std::uint32_t link = sane ? use.link : nowhere;
    const std::uint32_t place = flow.uses.begin + flow.uses.size++;
    blocks_[place] = {link, 0, sane ? std::min(use.weight, kMost) : 1};
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
  if (flow.held != kNone) --links_[flow.held].held;
  blocks_.give_back(flow.uses);
  flow.uses = {};
  flow.held = kNone;
  flow.rate = flow.level = 0;
}

void Sharing::set_capacity(std::uint32_t link, double bytes_per_s) {
  if (link >= links()) return;
  const double capacity = bandwidth(bytes_per_s);
  if (links_[link].capacity == capacity) return;
  links_[link].capacity = capacity;
  touch(link);
}

/// Brings a link into the filling: what the flows that stand there leave of it.
void Sharing::enter(std::uint32_t index) {
  Link& link = links_[index];
  if (link.seen == round_) return;
  link.seen = round_;
  link.left = link.capacity;
  link.open = 0;
  link.open_weight = link.all_weight = 0;
  link.queued = kNever;
  for (const Incidence& member : view(link.members)) link.left -= member.weight * flows_[member.other].level;
  link.largest = std::max(link.capacity, link.capacity - link.left);
  entered_.push_back(index);
}

/// Lets a standing flow rise. Its links are entered first, while it stands: it may be on one of them twice.
void Sharing::open(FlowId id) {
  Flow& flow = flows_[id];
  if (flow.open) return;
  for (const Incidence& use : view(flow.uses)) enter(use.other);
  if (flow.held != kNone) --links_[flow.held].held;
  flow.held = kNone;
  flow.open = true;
  if (flow.seen != round_) opened_.push_back(id);
  flow.seen = round_;
  for (const Incidence& use : view(flow.uses)) {
    Link& link = links_[use.other];
    link.left += use.weight * flow.level;
    link.open_weight += use.weight;
    link.all_weight = std::max(link.all_weight, link.open_weight);
    ++link.open;
  }
  if (filling_) {
    for (const Incidence& use : view(flow.uses)) queue(use.other);
  }
  if (flow.limit < kNever) push({flow.limit, id, true});
}

void Sharing::stop(FlowId id, double level, std::uint32_t held) {
  Flow& flow = flows_[id];
  flow.open = false;
  flow.level = level;
  flow.held = held;
  if (held != kNone) ++links_[held].held;
  for (const Incidence& use : view(flow.uses)) {
    Link& link = links_[use.other];
    link.left -= use.weight * level;
    link.open_weight -= use.weight;
    --link.open;
  }
}

/// The level at which what the standing flows leave is used up by those that rise. Too low while some stand higher.
double Sharing::full_at(Link& link) const {
  if (link.open == 0 || link.capacity == kNever) return kNever;
  if (link.open_weight < kFewDigits * link.all_weight || link.left < kFewDigits * link.largest) {
    link.left = link.capacity;
    link.open_weight = 0;
    for (const Incidence& member : view(link.members)) {
      const Flow& flow = flows_[member.other];
      if (flow.open)
        link.open_weight += member.weight;
      else
        link.left -= member.weight * flow.level;
    }
    link.all_weight = link.open_weight;
    link.largest = link.left;
  }
  return bandwidth(link.left) / link.open_weight;
}

double Sharing::next_level(Link& link) const {
  const double full = full_at(link);
  return link.held > 0 ? std::min(full, link.hold) : full;
}

void Sharing::queue(std::uint32_t index) {
  Link& link = links_[index];
  const double level = next_level(link);
  if (!(level < link.queued)) return;
  link.queued = level;
  push({level, index, false});
}

bool Sharing::too_fast(const Link& link, double level) const {
  const double most = level * (1 + kEqual);
  const auto members = view(link.members);
  return std::any_of(members.begin(), members.end(), [this, most](const Incidence& member) {
    return !flows_[member.other].open && flows_[member.other].level > most;
  });
}

/// Opens what stands above the rate that is fair among the flows of this link: that at which it would be full if flows
/// below it stay and all others have it. Found from an equal share upwards.
bool Sharing::open_above_share(std::uint32_t index) {
  const Link& link = links_[index];
  double share = 0;
  for (;;) {
    double left = link.capacity;
    double weight = 0;
    for (const Incidence& member : view(link.members)) {
      const Flow& flow = flows_[member.other];
      if (!flow.open && flow.level <= share)
        left -= member.weight * flow.level;
      else
        weight += member.weight;
    }
    const double next = weight > 0 ? bandwidth(left) / weight : kNever;
    if (!(next > share * (1 + kEqual))) break;
    share = next;
  }
  bool opened = false;
  for (const Incidence& member : view(link.members)) {
    const Flow& flow = flows_[member.other];
    if (flow.open || flow.level <= share * (1 + kEqual)) continue;
    open(member.other);
    opened = true;
  }
  return opened;
}

/// The common rate is `level`, which is where something may happen on this link.
void Sharing::visit(std::uint32_t index, double level) {
  Link& link = links_[index];
  const double full = full_at(link);
  const bool is_full = link.open > 0 ? full <= level * (1 + kEqual) : link.left <= kEqual * link.capacity;
  if (!is_full && !plain_) {  // it held flows at this level and has room now
    for (const Incidence& member : view(link.members)) {
      if (flows_[member.other].held == index) open(member.other);
    }
    queue(index);
    return;
  }
  if (link.open == 0) return;  // as full as it was: those it holds stay
  if (!plain_ && too_fast(link, full) && open_above_share(index)) {
    queue(index);
    return;
  }
  link.hold = full;
  for (const Incidence& member : view(link.members)) {
    if (flows_[member.other].open) stop(member.other, full, index);
  }
}

/// Opens what the changes since the last filling touch at first.
void Sharing::begin() {
  ++round_;
  entered_.clear();
  opened_.clear();
  queue_.clear();
  filling_ = false;
  for (const FlowId id : fresh_) open(id);
  for (const std::uint32_t index : dirty_) {
    links_[index].dirty = false;
    enter(index);
    const Link& link = links_[index];
    if (link.open == 0 && link.left < -kEqual * link.capacity) open_above_share(index);
  }
  dirty_.clear();
  fresh_.clear();
  make_queue();
}

void Sharing::make_queue() {
  for (const std::uint32_t index : entered_) {
    Link& link = links_[index];
    link.queued = next_level(link);
    if (link.queued < kNever) queue_.push_back({link.queued, index, false});
  }
  for (std::size_t at = queue_.size() / 4 + 1; at-- > 0;) {
    if (at < queue_.size()) sift(at);
  }
  filling_ = true;
}

/// Everything that changes can reach, rising from 0.
void Sharing::open_all_reached() {
  plain_ = true;
  filling_ = false;
  for (std::size_t front = 0; front < entered_.size(); ++front) {
    for (const Incidence& member : view(links_[entered_[front]].members)) open(member.other);
  }
  queue_.clear();
  for (const FlowId id : opened_) {
    if (flows_[id].limit < kNever) push({flows_[id].limit, id, true});
  }
  for (const std::uint32_t index : entered_) {
    Link& link = links_[index];
    link.left = link.largest = link.capacity;
    link.open = link.members.size;
    link.open_weight = 0;
    for (const Incidence& member : view(link.members)) link.open_weight += member.weight;
    link.all_weight = link.open_weight;
  }
  make_queue();
}

void Sharing::fill() {
  plain_ = false;
  std::size_t visits = 0;
  while (!queue_.empty()) {
    const Level next = queue_.front();
    pop();
    if (next.flow) {
      if (flows_[next.index].open) stop(next.index, next.level, kNone);
      continue;
    }
    Link& link = links_[next.index];
    if (next.level != link.queued) continue;  // a lower entry came in between
    link.queued = kNever;
    if (next_level(link) > next.level)
      queue(next.index);
    else
      visit(next.index, next.level);
    if (!plain_ && ++visits > kMostVisits * (entered_.size() + opened_.size())) open_all_reached();
  }
  filling_ = false;
}

void Sharing::push(const Level& level) {
  queue_.push_back(level);
  if (!filling_) return;  // begin() makes the heap
  std::size_t at = queue_.size() - 1;
  while (at > 0 && queue_[(at - 1) / 4].level > level.level) {
    queue_[at] = queue_[(at - 1) / 4];
    at = (at - 1) / 4;
  }
  queue_[at] = level;
}

void Sharing::pop() {
  queue_.front() = queue_.back();
  queue_.pop_back();
  if (!queue_.empty()) sift(0);
}

/// Moves the entry at `at` of the 4-ary heap down to its place.
void Sharing::sift(std::size_t at) {
  const Level moving = queue_[at];
  for (;;) {
    const std::size_t first = 4 * at + 1;
    if (first >= queue_.size()) break;
    const std::size_t end = std::min(first + 4, queue_.size());
    std::size_t least = first;
    for (std::size_t child = first + 1; child < end; ++child) {
      if (queue_[child].level < queue_[least].level) least = child;
    }
    if (queue_[least].level >= moving.level) break;
    queue_[at] = queue_[least];
    at = least;
  }
  queue_[at] = moving;
}

void Sharing::settle(std::vector<FlowId>& changed) {
  if (dirty_.empty() && fresh_.empty()) return;
  begin();
  fill();
  for (const FlowId id : opened_) {
    Flow& flow = flows_[id];
    if (flow.open) {  // nothing slows it
      flow.open = false;
      flow.level = kNever;
    }
    if (flow.level == flow.rate || std::abs(flow.level - flow.rate) <= kSameRate * flow.rate) {
      flow.level = flow.rate;
      continue;
    }
    flow.rate = flow.level;
    changed.push_back(id);
  }
}

}  // namespace chokepoint::flow
