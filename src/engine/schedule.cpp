// SPDX-License-Identifier: Apache-2.0
// Orders of passes: GPipe (arXiv 1811.06965), 1F1B and interleaved as in Megatron-LM (arXiv 2104.04473; the order
// within warm-up, steady state and cool-down of core/pipeline_parallel/schedules.py), ZB-H1 and ZB-H2 (arXiv
// 2401.10241): forwards and backwards in the order of 1F1B (H2: with twice the warm-up), weight gradients where a stage
// would idle or has no room for another micro-batch's activations. Like the
// authors' automatic scheduler (section 3.1) these try a few rules of when a weight gradient fills a gap and keep the
// shortest order.
#include <chokepoint/engine/graph.hpp>

#include <algorithm>
#include <array>
#include <limits>

namespace chokepoint::engine {

namespace {

using Kind = Slot::Kind;
using parallel::Schedule;

std::vector<Slot> all_forward_then_backward(int m) {
  std::vector<Slot> order;
  for (int k = 0; k < m; ++k) order.push_back({Kind::kForward, k, 0});
  for (int k = 0; k < m; ++k) order.push_back({Kind::kBackward, k, 0});
  return order;
}

std::vector<Slot> one_forward_one_backward(int stage, int p, int m) {
  std::vector<Slot> order;
  const int warm = std::min(m, p - 1 - stage);
  for (int k = 0; k < warm; ++k) order.push_back({Kind::kForward, k, 0});
  for (int k = 0; k < m; ++k) {
    if (warm + k < m) order.push_back({Kind::kForward, warm + k, 0});
    order.push_back({Kind::kBackward, k, 0});
  }
  return order;
}

/// The passes of all chunks in the order in which micro-batches walk through them, p at a time (fewer in the last
/// group).
std::vector<Slot> walk(Kind kind, int p, int m, int v) {
  std::vector<Slot> order;
  for (int first = 0; first < m; first += p) {
    const int last = std::min(m, first + p);
    for (int c = 0; c < v; ++c) {
      for (int k = first; k < last; ++k) order.push_back({kind, k, kind == Kind::kForward ? c : v - 1 - c});
    }
  }
  return order;
}

std::vector<Slot> interleaved(int stage, int p, int m, int v) {
  const std::vector<Slot> forward = walk(Kind::kForward, p, m, v);
  const std::vector<Slot> backward = walk(Kind::kBackward, p, m, v);
  const auto total = static_cast<int>(forward.size());
  const int warm = std::min(total, 2 * (p - 1 - stage) + (v - 1) * p);
  std::vector<Slot> order(forward.begin(), forward.begin() + warm);
  for (int k = 0; k < total; ++k) {
    if (warm + k < total) order.push_back(forward[static_cast<std::size_t>(warm + k)]);
    order.push_back(backward[static_cast<std::size_t>(k)]);
  }
  return order;
}

/// Runs the zero-bubble rule against the clock and writes down what each stage did.
class ZeroBubble {
 public:
  /// `fits`: a weight gradient runs where the gap is at least this share of it.
  ZeroBubble(const std::vector<SlotTimes>& stages, int m, int warm_ups, int most_live, double fits)
      : times_(stages),
        fits_(fits),
        m_(m),
        warm_ups_(warm_ups),
        most_live_(most_live),
        state_(stages.size()),
        order_(stages.size()) {
    for (State& s : state_) {
      s.forward_end.assign(static_cast<std::size_t>(m), kNot);
      s.backward_end.assign(static_cast<std::size_t>(m), kNot);
    }
  }

  /// When the last stage is done.
  double end_s() const {
    double end = 0;
    for (const State& s : state_) end = std::max(end, s.free);
    return end;
  }

  std::vector<std::vector<Slot>> run() {
    const std::size_t slots = 3 * static_cast<std::size_t>(m_) * state_.size();
    for (std::size_t done = 0; done < slots; ++done) {
      // The stage that can go on first; ties by stage.
      int best = -1;
      double start = kNot;
      Kind kind = Kind::kForward;
      for (std::size_t i = 0; i < state_.size(); ++i) {
        Kind k = Kind::kForward;
        const double at = next(i, k);
        if (at < start) {
          start = at;
          best = static_cast<int>(i);
          kind = k;
        }
      }
      if (best < 0) break;
      place(static_cast<std::size_t>(best), kind, start);
    }
    return order_;
  }

 private:
  static constexpr double kNot = std::numeric_limits<double>::infinity();
  struct State {
    double free = 0;
    int forward = 0, backward = 0, weight = 0;
    std::vector<double> forward_end, backward_end;
  };

  double forward_ready(std::size_t i) const {
    return i == 0 ? 0 : state_[i - 1].forward_end[static_cast<std::size_t>(state_[i].forward)];
  }
  double backward_ready(std::size_t i) const {
    const auto k = static_cast<std::size_t>(state_[i].backward);
    return i + 1 == state_.size() ? state_[i].forward_end[k] : state_[i + 1].backward_end[k];
  }
  /// When the stage's next pass starts, and which it is. 1F1B goes on with a forward once as many backwards are done as
  /// forwards beyond the warm-up. A weight gradient runs where it fits before the next pass, or where none may run.
  double next(std::size_t i, Kind& kind) const {
    const State& s = state_[i];
    const int warm = std::min(m_, warm_ups_ * (static_cast<int>(state_.size()) - 1 - static_cast<int>(i)));
    const bool forward = s.forward < m_ && s.forward - s.backward <= warm;
    const bool blocked = forward ? s.forward - s.weight >= most_live_ : s.backward >= m_;
    const double ready = blocked ? kNot : forward ? forward_ready(i) : backward_ready(i);
    kind = forward ? Kind::kForward : Kind::kBackward;
    const bool fits = ready < kNot && s.free + fits_ * times_[i].weight_gradient_s <= ready && ready > s.free;
    if (s.weight < s.backward && (blocked || fits)) {
      kind = Kind::kWeightGradient;
      return s.free;
    }
    return std::max(s.free, ready);
  }
  void place(std::size_t i, Kind kind, double start) {
    State& s = state_[i];
    switch (kind) {
      case Kind::kForward:
        s.free = start + times_[i].forward_s;
        s.forward_end[static_cast<std::size_t>(s.forward)] = s.free;
        order_[i].push_back({kind, s.forward++, 0});
        return;
      case Kind::kBackward:
        s.free = start + times_[i].backward_s;
        s.backward_end[static_cast<std::size_t>(s.backward)] = s.free;
        order_[i].push_back({kind, s.backward++, 0});
        return;
      case Kind::kWeightGradient:
        s.free = start + times_[i].weight_gradient_s;
        order_[i].push_back({kind, s.weight++, 0});
        return;
    }
  }

  const std::vector<SlotTimes>& times_;
  double fits_;
  int m_;
  int warm_ups_;
  int most_live_;
  std::vector<State> state_;
  std::vector<std::vector<Slot>> order_;
};

/// Shares of a weight gradient that a gap must hold; the first also where a search would take long.
constexpr std::array<double, 4> kFits = {1, 0.5, 0.25, 0.05};
constexpr double kMostSearched = 2e6;  // slots x stages

/// The shortest order of those that `make(fits)` schedules.
template <class Make>
std::vector<std::vector<Slot>> shortest(double size, Make make) {
  std::vector<std::vector<Slot>> best;
  double least = std::numeric_limits<double>::infinity();
  for (const double fits : kFits) {
    auto scheduler = make(fits);
    std::vector<std::vector<Slot>> order = scheduler.run();
    if (scheduler.end_s() >= least * (1 - 1e-9)) continue;
    least = scheduler.end_s();
    best = std::move(order);
    if (size > kMostSearched) break;
  }
  return best;
}

}  // namespace

std::vector<std::vector<Slot>> schedule_order(const parallel::Strategy& s, const std::vector<SlotTimes>& stages) {
  const auto p = static_cast<int>(stages.size());
  const int m = s.accumulate;
  std::vector<std::vector<Slot>> orders;
  switch (p == 1 ? Schedule::kOneForwardOneBackward : s.schedule) {
    case Schedule::kGpipe:
      for (int i = 0; i < p; ++i) orders.push_back(all_forward_then_backward(m));
      return orders;
    case Schedule::kInterleaved:
      for (int i = 0; i < p; ++i) orders.push_back(interleaved(i, p, m, s.virtual_stages));
      return orders;
    case Schedule::kZeroBubble1:
      return shortest(3.0 * m * p * p, [&](double fits) { return ZeroBubble(stages, m, 1, p, fits); });
    case Schedule::kZeroBubble2:
      return shortest(3.0 * m * p * p, [&](double fits) { return ZeroBubble(stages, m, 2, 2 * p - 1, fits); });
    case Schedule::kOneForwardOneBackward:
      break;
  }
  for (int i = 0; i < p; ++i) orders.push_back(one_forward_one_backward(i, p, m));
  return orders;
}

}  // namespace chokepoint::engine
