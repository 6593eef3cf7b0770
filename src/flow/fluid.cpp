// SPDX-License-Identifier: Apache-2.0
// Time: each live flow knows what it had moved when its rate last changed; a heap holds the times at which flows end.
#include <chokepoint/flow/fluid.hpp>

#include <algorithm>
#include <cmath>

#include "sharing.hpp"

namespace chokepoint::flow {

namespace {
/// Completions closer than this share of the time since the start are one event: their order is rounding.
constexpr double kSameTime = 1e-13;
constexpr std::uint32_t kNotQueued = 0xffffffff;

struct Progress {
  double bytes = 0;
  double moved = 0;  ///< up to `since_s`
  double since_s = 0;
  double rate = 0;  ///< from `since_s` on
  double end_s = kNever;
  std::uint32_t seat = kNotQueued;  ///< in the queue
  bool alive = false;

  double moved_by(double time_s) const {
    if (rate == kNever) return bytes;
    return std::min(bytes, moved + rate * (time_s - since_s));
  }
};
}  // namespace

struct Fluid::State {
  explicit State(std::vector<double> capacity) : carried(capacity.size(), 0.0), sharing(std::move(capacity)) {}

  bool sooner(FlowId a, FlowId b) const {
    const double end_a = flows[a].end_s;
    const double end_b = flows[b].end_s;
    return end_a < end_b || (end_a == end_b && a < b);
  }
  void seat(std::size_t at, FlowId id) {
    queue[at] = id;
    flows[id].seat = static_cast<std::uint32_t>(at);
  }
  void rise(std::size_t at);
  void sink(std::size_t at);
  void requeue(FlowId id, double end_s);
  void settle();
  void finish(FlowId id);

  double now = 0;
  std::size_t live = 0;
  std::vector<Progress> flows;
  std::vector<FlowId> free;
  std::vector<FlowId> queue;  ///< 4-ary heap by (end, id) of flows that end
  std::vector<FlowId> changed;
  std::vector<double> carried;  ///< by flows that ended
  Sharing sharing;
};

void Fluid::State::rise(std::size_t at) {
  const FlowId moving = queue[at];
  while (at > 0) {
    const std::size_t parent = (at - 1) / 4;
    if (!sooner(moving, queue[parent])) break;
    seat(at, queue[parent]);
    at = parent;
  }
  seat(at, moving);
}

void Fluid::State::sink(std::size_t at) {
  const FlowId moving = queue[at];
  for (;;) {
    const std::size_t first = 4 * at + 1;
    if (first >= queue.size()) break;
    const std::size_t end = std::min(first + 4, queue.size());
    std::size_t least = first;
    for (std::size_t child = first + 1; child < end; ++child) {
      if (sooner(queue[child], queue[least])) least = child;
    }
    if (!sooner(queue[least], moving)) break;
    seat(at, queue[least]);
    at = least;
  }
  seat(at, moving);
}

void Fluid::State::requeue(FlowId id, double end_s) {
  Progress& flow = flows[id];
  const bool later = end_s > flow.end_s;
  flow.end_s = end_s;
  if (flow.seat == kNotQueued) {
    if (end_s == kNever) return;
    queue.push_back(id);
    rise(queue.size() - 1);
  } else if (end_s == kNever) {
    const std::size_t at = flow.seat;
    const FlowId last = queue.back();
    queue.pop_back();
    flow.seat = kNotQueued;
    if (last == id) return;
    seat(at, last);
    sink(at);
    rise(flows[last].seat);
  } else if (later) {
    sink(flow.seat);
  } else {
    rise(flow.seat);
  }
}

void Fluid::State::settle() {
  changed.clear();
  sharing.settle(changed);
  for (const FlowId id : changed) {
    Progress& flow = flows[id];
    flow.moved = flow.moved_by(now);
    flow.since_s = now;
    flow.rate = sharing.rate(id);
    const double left = flow.bytes - flow.moved;
    double end_s = kNever;
    if (left <= 0 || flow.rate == kNever)
      end_s = now;
    else if (flow.rate > 0)
      end_s = now + left / flow.rate;
    requeue(id, end_s);
  }
}

/// Takes a flow off its links, with what it has moved.
void Fluid::State::finish(FlowId id) {
  Progress& flow = flows[id];
  const double moved = flow.moved_by(now);
  for (const Incidence& use : sharing.uses_of(id)) {
    if (use.other < carried.size()) carried[use.other] += use.weight * moved;
  }
  sharing.remove(id);
  requeue(id, kNever);
  flow.alive = false;
  --live;
}

Fluid::Fluid(std::vector<double> capacity_bytes_per_s)
    : state_(std::make_unique<State>(std::move(capacity_bytes_per_s))) {}
Fluid::~Fluid() = default;
Fluid::Fluid(Fluid&& other) noexcept = default;
Fluid& Fluid::operator=(Fluid&& other) noexcept = default;

FlowId Fluid::start(std::span<const Use> uses, double bytes, double rate_limit_bytes_per_s) {
  State& state = *state_;
  FlowId id = static_cast<FlowId>(state.flows.size());
  if (state.free.empty()) {
    state.flows.emplace_back();
  } else {
    id = state.free.back();
    state.free.pop_back();
  }
  Progress& flow = state.flows[id];
  flow = {.bytes = bytes > 0 ? bytes : 0, .since_s = state.now, .alive = true};
  ++state.live;
  if (flow.bytes > 0) {
    state.sharing.add(id, uses, rate_limit_bytes_per_s);
  } else {
    state.sharing.add(id, {}, kNever);
  }
  return id;
}

void Fluid::cancel(FlowId flow) {
  if (flow >= state_->flows.size() || !state_->flows[flow].alive) return;
  state_->settle();
  state_->finish(flow);
  state_->free.push_back(flow);
}

void Fluid::set_capacity(std::uint32_t link, double bytes_per_s) { state_->sharing.set_capacity(link, bytes_per_s); }

double Fluid::now_s() const { return state_->now; }

double Fluid::next_s() const {
  state_->settle();
  return state_->queue.empty() ? kNever : state_->flows[state_->queue.front()].end_s;
}

void Fluid::advance(double to_s, std::vector<FlowId>& completed) {
  State& state = *state_;
  completed.clear();
  if (!(to_s >= state.now)) return;
  for (;;) {
    const double next = next_s();
    if (next == kNever || next > to_s) break;
    state.now = std::max(state.now, next);
    const double together = state.now + kSameTime * state.now;
    while (!state.queue.empty() && state.flows[state.queue.front()].end_s <= together) {
      const FlowId id = state.queue.front();
      Progress& flow = state.flows[id];
      flow.moved = flow.bytes;
      flow.since_s = state.now;
      state.finish(id);
      completed.push_back(id);
    }
  }
  if (to_s < kNever) state.now = to_s;
  std::sort(completed.begin(), completed.end());
  state.free.insert(state.free.end(), completed.rbegin(), completed.rend());
}

std::size_t Fluid::live() const { return state_->live; }

void Fluid::stalled(std::vector<FlowId>& flows) const {
  state_->settle();
  flows.clear();
  for (std::size_t i = 0; i < state_->flows.size(); ++i) {
    const Progress& flow = state_->flows[i];
    if (flow.alive && flow.rate == 0 && flow.seat == kNotQueued) flows.push_back(static_cast<FlowId>(i));
  }
}

double Fluid::rate(FlowId flow) const {
  if (flow >= state_->flows.size() || !state_->flows[flow].alive) return 0;
  state_->settle();
  return state_->flows[flow].rate;
}

double Fluid::left_bytes(FlowId flow) const {
  if (flow >= state_->flows.size() || !state_->flows[flow].alive) return 0;
  state_->settle();
  const Progress& progress = state_->flows[flow];
  return progress.bytes - progress.moved_by(state_->now);
}

double Fluid::carried_bytes(std::uint32_t link) const {
  if (link >= links()) return 0;
  state_->settle();
  double sum = state_->carried[link];
  for (const Incidence& member : state_->sharing.members_of(link)) {
    sum += member.weight * state_->flows[member.other].moved_by(state_->now);
  }
  return sum;
}

double Fluid::load_bytes_per_s(std::uint32_t link) const {
  if (link >= links()) return 0;
  state_->settle();
  double sum = 0;
  for (const Incidence& member : state_->sharing.members_of(link)) {
    const double rate = state_->flows[member.other].rate;
    if (rate < kNever) sum += member.weight * rate;
  }
  return sum;
}

double Fluid::capacity_bytes_per_s(std::uint32_t link) const {
  return link < links() ? state_->sharing.capacity(link) : 0;
}
std::size_t Fluid::flows_on(std::uint32_t link) const { return link < links() ? state_->sharing.flows_on(link) : 0; }
std::size_t Fluid::links() const { return state_->sharing.links(); }

}  // namespace chokepoint::flow
