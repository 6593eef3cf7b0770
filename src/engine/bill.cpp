// SPDX-License-Identifier: Apache-2.0
// Each moment of a rank in one class of the bill. Kernels count as what they are, less what transfers beside them slow
// them by; a gap is charged to what ended it: a transfer from its start on (wire), waiting for its members before, and
// before that whatever held up its lane; a message from another stage is pipeline while it travels and bubble before it
// was sent. A gap that nothing ended was the host's.
#include <chokepoint/engine/engine.hpp>

#include <algorithm>

namespace chokepoint::engine {

namespace {

using simulate::Bill;
using Items = std::array<double, simulate::kBillCount>;

struct Incoming {
  int stage = -1;
  std::uint32_t op = 0;
};

class Biller {
 public:
  Biller(const StepGraph& graph, const Fold& fold, const Run& run, std::size_t c, Items& bill, Items& wait)
      : g_(graph),
        fold_(fold),
        run_(run),
        c_(c),
        stage_(graph.stages[static_cast<std::size_t>(fold.classes[c].stage)]),
        bill_(bill),
        wait_(wait) {
    before_.resize(stage_.ops.size());
    incoming_.resize(stage_.ops.size());
    for (std::uint32_t i = 0; i < stage_.ops.size(); ++i) {
      for (std::uint32_t k = stage_.successor_begin[i]; k < stage_.successor_begin[i + 1]; ++k)
        before_[stage_.successors[k]].push_back(i);
    }
    const int own = fold_.classes[c_].stage;
    for (std::size_t s = 0; s < g_.stages.size(); ++s) {
      for (std::uint32_t i = 0; i < g_.stages[s].ops.size(); ++i) {
        const Op& op = g_.stages[s].ops[i];
        if (op.peer_stage == own) incoming_[op.peer_op] = {static_cast<int>(s), i};
      }
    }
    lane_before_.assign(stage_.ops.size(), -1);
    for (const auto& lane : stage_.lanes) {
      for (std::size_t k = 1; k < lane.size(); ++k) lane_before_[lane[k]] = lane[k - 1];
    }
  }

  void run() {
    bill_.fill(0);
    wait_.fill(0);
    double now = 0;
    for (const std::uint32_t i : stage_.lanes[static_cast<std::size_t>(Lane::kCompute)]) {
      const OpTime& t = time(i);
      if (t.arrive_s > now) gap(now, t.arrive_s, i);
      const Bill item = bill_of(stage_.ops[i].work);
      charge(item, t.start_s - t.arrive_s, true);
      kernels(i, t, item);
      now = t.end_s;
    }
    charge(Bill::kBubble, run_.end_s - now, true);
  }

 private:
  const OpTime& time(std::size_t i) const { return run_.times[c_][i]; }
  void charge(Bill item, double seconds, bool waiting) {
    if (seconds <= 0) return;
    bill_[static_cast<std::size_t>(item)] += seconds;
    if (waiting) wait_[static_cast<std::size_t>(item)] += seconds;
  }

  /// The transfer beside kernels takes what it slows them by.
  void kernels(std::uint32_t i, const OpTime& t, Bill item) {
    const double length = t.end_s - t.start_s;
    double slowed = 0;
    const Work work = stage_.ops[i].work;
    if (work == Work::kForward || work == Work::kBackward || work == Work::kRecompute ||
        work == Work::kWeightGradient) {
      for (const Lane lane : {Lane::kData, Lane::kReplicate}) {
        for (const auto& [at, end, op] : beside(lane, t)) {
          const double stretch = std::min((end - at) * (1 - 1 / g_.interference), length - slowed);
          charge(bill_of(stage_.ops[op].work), stretch, false);
          slowed += stretch;
        }
        if (slowed > 0) break;  // one is enough to slow them
      }
    }
    charge(item, length - slowed, false);
  }

  struct Beside {
    double at_s, end_s;
    std::uint32_t op;
  };
  std::vector<Beside> beside(Lane lane, const OpTime& t) {
    std::vector<Beside> found;
    const auto& line = stage_.lanes[static_cast<std::size_t>(lane)];
    std::size_t& next = next_[static_cast<std::size_t>(lane)];
    while (next < line.size() && time(line[next]).end_s <= t.start_s) ++next;
    for (std::size_t k = next; k < line.size() && time(line[k]).start_s < t.end_s; ++k) {
      const double at = std::max(t.start_s, time(line[k]).start_s);
      const double end = std::min(t.end_s, time(line[k]).end_s);
      if (end > at) found.push_back({at, end, line[k]});
    }
    return found;
  }

  void gap(double from, double to, std::uint32_t i) {
    // What ended it: the dependency that came last.
    double last = from;
    std::int64_t local = -1;
    for (const std::uint32_t b : before_[i]) {
      if (time(b).end_s > last) {
        last = time(b).end_s;
        local = b;
      }
    }
    if (incoming_[i].stage >= 0) {
      const Incoming& in = incoming_[i];
      const RankClass& own = fold_.classes[c_];
      const bool from_next = in.stage == (own.stage + 1) % static_cast<int>(g_.stages.size());
      const int peer = from_next ? own.next : own.previous;
      const OpTime& t = run_.times[static_cast<std::size_t>(peer)][in.op];
      if (t.end_s >= last) {
        const double sent = std::clamp(t.start_s, from, to);
        charge(Bill::kPipeline, to - sent, false);
        charge(Bill::kBubble, sent - from, true);
        return;
      }
    }
    double until = to;
    for (std::int64_t d = local; d >= 0 && until > from; d = lane_before_[static_cast<std::size_t>(d)]) {
      const auto k = static_cast<std::size_t>(d);
      if (time(k).end_s <= from) break;
      const Bill item = bill_of(stage_.ops[k].work);
      const double started = std::clamp(time(k).start_s, from, until);
      const double arrived = std::clamp(time(k).arrive_s, from, started);
      charge(item, until - started, false);
      charge(item, started - arrived, true);
      until = arrived;
    }
    charge(Bill::kHost, until - from, false);
  }

  const StepGraph& g_;
  const Fold& fold_;
  const Run& run_;
  std::size_t c_;
  const StageGraph& stage_;
  Items& bill_;
  Items& wait_;
  std::vector<std::vector<std::uint32_t>> before_;
  std::vector<Incoming> incoming_;
  std::vector<std::int64_t> lane_before_;
  std::array<std::size_t, kLaneCount> next_{};
};

}  // namespace

void bill_class(const StepGraph& graph, const Fold& fold, const Run& run, std::size_t rank_class, Items& bill,
                Items& wait_s) {
  Biller(graph, fold, run, rank_class, bill, wait_s).run();
}

}  // namespace chokepoint::engine
