// SPDX-License-Identifier: Apache-2.0
// Orders of passes: GPipe (arXiv 1811.06965), 1F1B and interleaved as in Megatron-LM (arXiv 2104.04473; the order
// within warm-up, steady state and cool-down of core/pipeline_parallel/schedules.py), ZB-H1 and ZB-H2 (arXiv
// 2401.10241): forwards and backwards in the order of 1F1B (H2: with twice the warm-up), weight gradients where a stage
// would idle or has no room for another micro-batch's activations. ZBV (its section 6) and DualPipe (arXiv 2412.19437,
// section 3.2.1) are laid by list scheduling: backwards first, then forwards, weight gradients into the gaps, as many
// micro-batches under way as their memory allows. Like the authors' automatic scheduler these try a few rules of when a
// weight gradient fills a gap and keep the shortest order.
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

/// The passes of all chunks in the order in which micro-batches walk through them, a group at a time (fewer in
/// the last one).
std::vector<Slot> walk(Kind kind, int group, int m, int v) {
  std::vector<Slot> order;
  for (int first = 0; first < m; first += group) {
    const int last = std::min(m, first + group);
    for (int c = 0; c < v; ++c) {
      for (int k = first; k < last; ++k) order.push_back({kind, k, kind == Kind::kForward ? c : v - 1 - c});
    }
  }
  return order;
}

std::vector<Slot> interleaved(int stage, int p, int m, int v) {
  const int group = simulate::interleaved_group(p, m);
  const std::vector<Slot> forward = walk(Kind::kForward, group, m, v);
  const std::vector<Slot> backward = walk(Kind::kBackward, group, m, v);
  const auto total = static_cast<int>(forward.size());
  const int warm = std::min(total, 2 * (p - 1 - stage) + (v - 1) * group);
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

/// List scheduling of passes whose micro-batches walk through given places (a V, or from both ends).
class Walks {
 public:
  /// `under_way`: micro-batches that a direction lets in; `most_live`: passes whose inputs a stage has room for.
  Walks(const parallel::Strategy& s, const std::vector<SlotTimes>& stages, int under_way, int most_live, double fits)
      : s_(s),
        times_(stages),
        p_(static_cast<int>(stages.size())),
        length_(p_ * chunks_of(s)),
        fits_(fits),
        directions_(s.schedule == Schedule::kDualPipe ? 2 : 1),
        under_way_(under_way),
        most_live_(most_live),
        state_(stages.size()),
        order_(stages.size()) {
    for (int d = 0; d < directions_; ++d) enter(d, 0);
  }

  std::vector<std::vector<Slot>> run() {
    const std::size_t slots = 3 * static_cast<std::size_t>(s_.accumulate) * static_cast<std::size_t>(length_);
    for (std::size_t done = 0; done < slots; ++done) {
      std::size_t best = state_.size();
      Choice chosen;
      for (std::size_t i = 0; i < state_.size(); ++i) {
        const Choice c = next(i);
        if (c.at >= chosen.at) continue;
        chosen = c;
        best = i;
      }
      if (best == state_.size()) break;
      place(best, chosen);
    }
    return order_;
  }
  double end_s() const {
    double end = 0;
    for (const State& s : state_) end = std::max(end, s.free);
    return end;
  }

 private:
  static constexpr double kNot = std::numeric_limits<double>::infinity();
  struct Item {
    double ready = 0;
    int micro_batch = 0;
    int position = 0;
  };
  struct State {
    double free = 0;
    int live = 0;  ///< passes whose inputs are held
    std::vector<Item> forwards, backwards, weights;
  };
  struct Choice {
    double at = kNot;
    Kind kind = Kind::kForward;
    std::size_t item = 0;
  };

  /// Lets the next micro-batch of a direction in.
  void enter(int direction, double now) {
    while (entered_[static_cast<std::size_t>(direction)] * directions_ + direction < s_.accumulate && inside_[static_cast<std::size_t>(direction)] < under_way_) {
      const int micro_batch = entered_[static_cast<std::size_t>(direction)]++ * directions_ + direction;
      ++inside_[static_cast<std::size_t>(direction)];
      const Place at = place_of(s_, 0, micro_batch);
      state_[static_cast<std::size_t>(at.stage)].forwards.push_back({now, micro_batch, 0});
    }
  }
  SlotTimes times_of(std::size_t stage, int micro_batch) const {
    const bool mirrored = directions_ == 2 && micro_batch % 2 == 1;
    SlotTimes t = times_[mirrored ? times_.size() - 1 - stage : stage];
    const double chunks = chunks_of(s_);
    return {t.forward_s / chunks, t.backward_s / chunks, t.weight_gradient_s / chunks};
  }
  /// First that could start; of those that wait the furthest on its way, then the oldest.
  static std::size_t first_of(const std::vector<Item>& items, double free) {
    std::size_t best = 0;
    for (std::size_t k = 1; k < items.size(); ++k) {
      const double a = std::max(free, items[k].ready);
      const double b = std::max(free, items[best].ready);
      const bool later = items[k].position > items[best].position;
      const bool older = items[k].position == items[best].position && items[k].micro_batch < items[best].micro_batch;
      if (a < b || (a == b && (later || older))) best = k;
    }
    return best;
  }
  Choice next(std::size_t i) const {
    const State& s = state_[i];
    Choice c;
    if (!s.backwards.empty()) {
      c.item = first_of(s.backwards, s.free);
      c.at = std::max(s.free, s.backwards[c.item].ready);
      c.kind = Kind::kBackward;
    }
    if (!s.forwards.empty()) {
      const std::size_t item = first_of(s.forwards, s.free);
      const double at = std::max(s.free, s.forwards[item].ready);
      if (at < c.at) c = {at, Kind::kForward, item};
    }
    if (s.weights.empty()) return c;
    const double weight = times_of(i, s.weights.front().micro_batch).weight_gradient_s;
    const bool gap = c.at > s.free && s.free + fits_ * weight <= c.at;
    // A gradient that waits holds its input: with all the memory taken it goes before another forward.
    const bool full = c.kind == Kind::kForward && s.live >= most_live_;
    if (gap || full) c = {s.free, Kind::kWeightGradient, 0};
    return c;
  }
  void place(std::size_t i, const Choice& c) {
    State& s = state_[i];
    std::vector<Item>& from = c.kind == Kind::kForward    ? s.forwards
                              : c.kind == Kind::kBackward ? s.backwards
                                                          : s.weights;
    const Item item = from[c.item];
    from.erase(from.begin() + static_cast<std::ptrdiff_t>(c.item));
    const SlotTimes t = times_of(i, item.micro_batch);
    const Place at = place_of(s_, item.position, item.micro_batch);
    order_[i].push_back({c.kind, item.micro_batch, at.chunk});
    if (c.kind == Kind::kWeightGradient) {
      s.free = c.at + t.weight_gradient_s;
      --s.live;
      return;
    }
    if (c.kind == Kind::kForward) ++s.live;
    s.free = c.at + (c.kind == Kind::kForward ? t.forward_s : t.backward_s);
    const double now = s.free;
    if (c.kind == Kind::kBackward) s.weights.push_back(item);
    const int further = item.position + (c.kind == Kind::kForward ? 1 : -1);
    if (c.kind == Kind::kForward && further == length_) {
      s.backwards.push_back({now, item.micro_batch, item.position});
    } else if (further < 0) {
      --inside_[static_cast<std::size_t>(item.micro_batch % directions_)];
      enter(item.micro_batch % directions_, now);
    } else {
      State& to = state_[static_cast<std::size_t>(place_of(s_, further, item.micro_batch).stage)];
      (c.kind == Kind::kForward ? to.forwards : to.backwards).push_back({now, item.micro_batch, further});
    }
  }

  const parallel::Strategy& s_;
  const std::vector<SlotTimes>& times_;
  int p_;
  int length_;
  double fits_;
  int directions_;
  int under_way_;
  int most_live_;
  std::array<int, 2> entered_{};
  std::array<int, 2> inside_{};
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

int chunks_of(const parallel::Strategy& s) {
  const bool chunked = s.schedule == Schedule::kInterleaved || s.schedule == Schedule::kZeroBubbleV;
  return s.pipeline > 1 && chunked ? std::max(1, s.virtual_stages) : 1;
}

int position_of(const parallel::Strategy& s, int stage, int chunk, int micro_batch) {
  if (s.schedule == Schedule::kZeroBubbleV && chunk == 1) return 2 * s.pipeline - 1 - stage;
  if (s.schedule == Schedule::kDualPipe && micro_batch % 2 == 1) return s.pipeline - 1 - stage;
  return chunk * s.pipeline + stage;
}

Place place_of(const parallel::Strategy& s, int position, int micro_batch) {
  if (s.schedule == Schedule::kZeroBubbleV && position >= s.pipeline) return {2 * s.pipeline - 1 - position, 1};
  if (s.schedule == Schedule::kDualPipe && micro_batch % 2 == 1) return {s.pipeline - 1 - position, 0};
  return {position % s.pipeline, position / s.pipeline};
}

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
    case Schedule::kZeroBubbleV:
      return shortest(6.0 * m * p * p, [&](double fits) { return Walks(s, stages, p, 2 * p, fits); });
    case Schedule::kDualPipe:
      return shortest(3.0 * m * p * p, [&](double fits) { return Walks(s, stages, p / 2 + 1, p + 1, fits); });
    case Schedule::kOneForwardOneBackward:
      break;
  }
  for (int i = 0; i < p; ++i) orders.push_back(one_forward_one_backward(i, p, m));
  return orders;
}

}  // namespace chokepoint::engine
