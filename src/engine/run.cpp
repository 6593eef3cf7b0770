// SPDX-License-Identifier: Apache-2.0
// Discrete events over classes of ranks. State is one counter of open dependencies per operation and one pointer per
// lane. A transfer that uses links is a flow of flow::Fluid whose size is its time alone on the wires and whose rate is
// at most 1 s per s: alone it takes exactly as long as the closed form says; with others on a full link it takes
// longer. Its latency follows the flow. Events at one time are served in the order in which they were made, flows by
// number, so that results never depend on anything but the input. Cost: O(operations x classes x log) plus the flows'
// sharing.
#include <chokepoint/engine/engine.hpp>
#include <chokepoint/flow/fluid.hpp>

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <queue>

namespace chokepoint::engine {

namespace {

constexpr double kUnit = 1e9;  // "bytes" of a flow per second of transfer alone

bool is_kernels(Work work) {
  return work == Work::kForward || work == Work::kBackward || work == Work::kRecompute || work == Work::kWeightGradient;
}
bool is_send(Work work) { return work == Work::kSendForward || work == Work::kSendBackward; }

class Engine {
 public:
  Engine(const StepGraph& graph, const Fold& fold, const Layout& layout, const Imperfections& imperfections,
         const Wires& wires)
      : g_(graph),
        fold_(fold),
        layout_(layout),
        imperfections_(imperfections),
        wires_(wires),
        fluid_(capacities()),
        classes_(fold.classes.size()) {
    for (const StageGraph& stage : g_.stages) index_meetings(stage);
    for (const GroupClass& group : fold_.groups) {
      const auto stage = static_cast<std::size_t>(fold_.classes[static_cast<std::size_t>(group.members.front())].stage);
      arrived_.emplace_back(g_.stages[stage].meetings[static_cast<std::size_t>(group.meet)], 0u);
    }
    for (std::size_t c = 0; c < classes_.size(); ++c) {
      const StageGraph& stage = stage_of(c);
      classes_[c].open.assign(stage.waits_for.begin(), stage.waits_for.end());
      out_.times.emplace_back(stage.ops.size());
      total_ += stage.ops.size();
    }
  }

  Result<Run> run() {
    for (std::size_t c = 0; c < classes_.size(); ++c) {
      const int rank = fold_.classes[c].representative;
      if (const double stall = stall_s(imperfections_, rank); stall > 0) {
        classes_[c].stalled = true;
        push(stall, Event::Kind::kWake, c, 0, 0);
      }
    }
    for (std::size_t c = 0; c < classes_.size(); ++c) {
      for (std::size_t lane = 0; lane < kLaneCount; ++lane) try_lane(c, lane);
    }
    std::vector<flow::FlowId> ended;
    for (;;) {
      const double flows_at = fluid_.next_s();
      const double event_at = events_.empty() ? flow::kNever : events_.top().at_s;
      if (flows_at == flow::kNever && event_at == flow::kNever) break;
      ++out_.events;
      if (flows_at <= event_at) {
        now_ = std::max(now_, flows_at);
        fluid_.advance(flows_at, ended);
        for (const flow::FlowId flow : ended) flow_ended(flow);
      } else {
        const Event event = events_.top();
        events_.pop();
        now_ = event.at_s;
        serve(event);
      }
    }
    if (done_ != total_) return fail(fmt::format("{} of {} operations of the step never ran", total_ - done_, total_));
    out_.end_s = now_;
    for (std::size_t h = 0; h < fold_.hosts.size(); ++h) {
      out_.out_busy_s.push_back(fluid_.carried_bytes(static_cast<std::uint32_t>(2 * h)) / kUnit);
      out_.in_busy_s.push_back(fluid_.carried_bytes(static_cast<std::uint32_t>(2 * h + 1)) / kUnit);
    }
    return std::move(out_);
  }

 private:
  struct Event {
    enum class Kind : std::uint8_t { kWork, kTransfer, kWake };
    double at_s = 0;
    std::uint64_t number = 0;
    Kind kind = Kind::kWork;
    std::uint32_t rank_class = 0;
    std::uint32_t index = 0;  ///< operation, or transfer
    std::uint32_t version = 0;
    bool operator<(const Event& o) const {
      return at_s != o.at_s ? at_s > o.at_s : number > o.number;
    }  // earliest on top
  };
  struct ClassState {
    std::vector<std::uint32_t> open;
    std::array<std::uint32_t, kLaneCount> head{};
    std::array<bool, kLaneCount> busy{};
    bool stalled = false;
    int beside = 0;  ///< data-parallel transfers under way
    // Kernels that run now.
    std::int64_t working = -1;
    double left_s = 0;  ///< at full speed
    double since_s = 0;
    std::uint32_t version = 0;
  };
  struct Transfer {
    int group = -1;  ///< all its classes; -1: one class
    std::uint32_t rank_class = 0;
    std::uint32_t op = 0;  ///< of rank_class
    double latency_s = 0;
    bool released = false;  ///< a send whose lane goes on while the message still travels
  };

  std::vector<double> capacities() const {
    std::vector<double> all(2 * std::max<std::size_t>(1, fold_.hosts.size()), kUnit);
    for (std::size_t h = 0; h < fold_.hosts.size(); ++h) {
      for (const SlowHost& slow : imperfections_.slow_hosts) {
        if (slow.host == fold_.hosts[h].representative) all[2 * h] = all[2 * h + 1] = kUnit * slow.share;
      }
    }
    return all;
  }

  const StageGraph& stage_of(std::size_t c) const {
    return g_.stages[static_cast<std::size_t>(fold_.classes[c].stage)];
  }
  const Op& op_of(std::size_t c, std::size_t i) const { return stage_of(c).ops[i]; }

  void index_meetings(const StageGraph& stage) {
    std::array<std::vector<std::uint32_t>, kMeetCount> ops;
    for (std::size_t i = 0; i < stage.ops.size(); ++i)
      ops[static_cast<std::size_t>(stage.ops[i].meet)].push_back(static_cast<std::uint32_t>(i));
    meeting_ops_.push_back(std::move(ops));
  }

  void push(double at, typename Event::Kind kind, std::size_t c, std::size_t index, std::uint32_t version) {
    events_.push({at, next_number_++, kind, static_cast<std::uint32_t>(c), static_cast<std::uint32_t>(index), version});
  }

  void serve(const Event& event) {
    ClassState& s = classes_[event.rank_class];
    switch (event.kind) {
      case Event::Kind::kWake:
        s.stalled = false;
        try_lane(event.rank_class, static_cast<std::size_t>(Lane::kCompute));
        return;
      case Event::Kind::kWork:
        if (event.version != s.version) return;  // its speed changed meanwhile
        s.working = -1;
        finish(event.rank_class, event.index, true);
        return;
      case Event::Kind::kTransfer:
        transfer_ended(event.index);
        return;
    }
  }

  void try_lane(std::size_t c, std::size_t lane) {
    ClassState& s = classes_[c];
    const auto& line = stage_of(c).lanes[lane];
    if (s.busy[lane] || s.head[lane] >= line.size()) return;
    if (s.stalled && lane == static_cast<std::size_t>(Lane::kCompute)) return;
    const std::uint32_t i = line[s.head[lane]];
    if (s.open[i] > 0) return;
    s.busy[lane] = true;
    ++s.head[lane];
    begin(c, i);
  }

  void begin(std::size_t c, std::uint32_t i) {
    const Op& op = op_of(c, i);
    OpTime& time = out_.times[c][i];
    time.arrive_s = time.start_s = now_;
    const int group = op.meet == Meet::kNobody ? -1 : fold_.classes[c].group[static_cast<std::size_t>(op.meet)];
    if (group >= 0) {
      const auto g = static_cast<std::size_t>(group);
      if (++arrived_[g][op.ordinal] == fold_.groups[g].members.size()) start_transfer(group, c, i);
      return;
    }
    if (op.meet != Meet::kNobody || is_send(op.work)) return start_transfer(-1, c, i);
    start_work(c, i);
  }

  double factor_of(std::size_t c, std::uint32_t i) const {
    const RankClass& rank = fold_.classes[c];
    const Op& op = op_of(c, i);
    if (!is_kernels(op.work)) return 1;
    const bool last = layout_.pipeline > 1 && rank.stage == layout_.pipeline - 1;
    const bool hot = layout_.expert > 1 && rank.representative % layout_.expert == 0;
    return work_factor(imperfections_, rank.representative, layout_.data_index(rank.representative), op.micro_batch, i,
                       last, hot);
  }

  void start_work(std::size_t c, std::uint32_t i) {
    const Op& op = op_of(c, i);
    ClassState& s = classes_[c];
    s.working = is_kernels(op.work) ? static_cast<std::int64_t>(i) : -1;
    s.left_s = op.seconds * factor_of(c, i);
    s.since_s = now_;
    const double slow = s.working >= 0 && s.beside > 0 ? g_.interference : 1;
    push(now_ + s.left_s * slow, Event::Kind::kWork, c, i, s.version);
  }

  /// Transfers begin or end beside the kernels of a class: their speed changes.
  void change_speed(std::size_t c, int by) {
    ClassState& s = classes_[c];
    const double before = s.beside > 0 ? g_.interference : 1;
    s.beside += by;
    const double after = s.beside > 0 ? g_.interference : 1;
    if (s.working < 0 || before == after) return;
    s.left_s = std::max(0.0, s.left_s - (now_ - s.since_s) / before);
    s.since_s = now_;
    push(now_ + s.left_s * after, Event::Kind::kWork, c, static_cast<std::size_t>(s.working), ++s.version);
  }

  template <class Visit>
  void for_members(const Transfer& t, Visit visit) {
    if (t.group < 0) return visit(std::size_t{t.rank_class}, t.op);
    const Op& op = op_of(t.rank_class, t.op);
    for (const int m : fold_.groups[static_cast<std::size_t>(t.group)].members) {
      const auto stage = static_cast<std::size_t>(fold_.classes[static_cast<std::size_t>(m)].stage);
      visit(static_cast<std::size_t>(m), meeting_ops_[stage][static_cast<std::size_t>(op.meet)][op.ordinal]);
    }
  }

  void start_transfer(int group, std::size_t c, std::uint32_t i) {
    const Op& op = op_of(c, i);
    const double more = op.work == Work::kExpert ? imperfections_.expert_imbalance : 1;
    Transfer t{group, static_cast<std::uint32_t>(c), i, std::min(op.latency_s, op.seconds), false};
    const double wire = (op.seconds - t.latency_s) * more;
    for_members(t, [&](std::size_t m, std::uint32_t own) {
      out_.times[m][own].start_s = now_;
      if (op.overlaps) change_speed(m, 1);
    });
    const auto id = static_cast<std::uint32_t>(free_.empty() ? transfers_.size() : free_.back());
    if (free_.empty()) {
      transfers_.push_back(t);
    } else {
      free_.pop_back();
      transfers_[id] = t;
    }
    find_uses(group, c, op, wire);
    if (uses_.empty() || wire <= 0) {
      if (is_send(op.work) && t.latency_s > 0) return push(now_ + wire, Event::Kind::kTransfer, 0, id, 0);
      transfers_[id].latency_s = 0;
      return push(now_ + wire + t.latency_s, Event::Kind::kTransfer, 0, id, 0);
    }
    ++out_.flows;
    fluid_.advance(now_, spare_);
    for (const flow::FlowId tiny : spare_)
      push(now_, Event::Kind::kTransfer, 0, transfer_of_flow_[tiny], 0);  // shorter than the clock resolves
    const flow::FlowId flow = fluid_.start(uses_, wire * kUnit, kUnit);
    if (transfer_of_flow_.size() <= flow) transfer_of_flow_.resize(flow + 1u, 0);
    transfer_of_flow_[flow] = id;
  }

  void flow_ended(flow::FlowId flow) { transfer_ended(transfer_of_flow_[flow]); }

  void transfer_ended(std::uint32_t id) {
    const Transfer t = transfers_[id];
    const Op& op = op_of(t.rank_class, t.op);
    if (t.latency_s > 0) {  // the last byte is on its way
      transfers_[id].latency_s = 0;
      if (is_send(op.work) && op.lane != Lane::kCompute) {
        transfers_[id].released = true;
        release_lane(t.rank_class, static_cast<std::size_t>(op.lane));
      }
      return push(now_ + t.latency_s, Event::Kind::kTransfer, 0, id, 0);
    }
    free_.push_back(id);
    for_members(t, [&](std::size_t m, std::uint32_t own) {
      if (op.overlaps) change_speed(m, -1);
      out_.times[m][own].end_s = now_;
    });
    for_members(t, [&](std::size_t m, std::uint32_t own) { finish(m, own, !t.released); });
  }

  void release_lane(std::size_t c, std::size_t lane) {
    classes_[c].busy[lane] = false;
    try_lane(c, lane);
  }

  void finish(std::size_t c, std::uint32_t i, bool holds_lane) {
    ++done_;
    out_.times[c][i].end_s = now_;
    const StageGraph& stage = stage_of(c);
    const Op& op = stage.ops[i];
    if (holds_lane) classes_[c].busy[static_cast<std::size_t>(op.lane)] = false;
    for (std::uint32_t k = stage.successor_begin[i]; k < stage.successor_begin[i + 1]; ++k)
      unblock(c, stage.successors[k]);
    if (op.peer_stage >= 0) {
      const RankClass& rank = fold_.classes[c];
      unblock(static_cast<std::size_t>(op.work == Work::kSendForward ? rank.next : rank.previous), op.peer_op);
    }
    if (holds_lane) try_lane(c, static_cast<std::size_t>(op.lane));
  }

  void unblock(std::size_t c, std::uint32_t i) {
    if (--classes_[c].open[i] > 0) return;
    out_.times[c][i].ready_s = now_;
    try_lane(c, static_cast<std::size_t>(op_of(c, i).lane));
  }

  /// Share of a host's interfaces that one group's member host needs at the speed it has alone.
  double share_of_host(const Op& op, int ranks, int hosts, double wire_s) const {
    const double per_host = std::max(1.0, static_cast<double>(ranks) / hosts);
    const double siblings = std::max(1.0, std::floor(layout_.gpus_per_host / per_host));
    if (op.bytes <= 0 || wires_.host_bytes_per_s <= 0)
      return 1 / siblings;  // sizes unknown: the siblings fill it together
    const double n = ranks;
    double bytes = op.bytes;
    switch (op.collective) {
      case collective::Op::kAllReduce:
        bytes *= 2 * (n - 1) / n;
        break;
      case collective::Op::kAllGather:
      case collective::Op::kReduceScatter:
        bytes *= (n - 1) / n;
        break;
      case collective::Op::kAllToAll:
        bytes *= per_host * (1 - per_host / n);
        break;
      case collective::Op::kBroadcast:
      case collective::Op::kReduce:
      case collective::Op::kSendRecv:
        break;
    }
    return std::min(1 / siblings, bytes / wire_s / wires_.host_bytes_per_s);
  }

  void find_uses(int group, std::size_t c, const Op& op, double wire_s) {
    uses_.clear();
    if (!wires_.contention || wire_s <= 0 || op.work == Work::kNorm) return;
    const RankClass& rank = fold_.classes[c];
    if (is_send(op.work)) {
      const int to = op.work == Work::kSendForward ? rank.next : rank.previous;
      const int stage = layout_.stage_ranks();
      const int peer =
          (rank.representative + (op.work == Work::kSendForward ? stage : layout_.ranks() - stage)) % layout_.ranks();
      const int host = layout_.host_of(rank.representative);
      if (host == layout_.host_of(peer)) return;
      int senders = 0;
      for (int k = 0; k < layout_.gpus_per_host && host * layout_.gpus_per_host + k < layout_.ranks(); ++k) {
        senders +=
            fold_.class_of[static_cast<std::size_t>(host * layout_.gpus_per_host + k)] == static_cast<int>(c) ? 1 : 0;
      }
      const double share = share_of_host(op, 1, 1, wire_s) * senders;
      uses_.push_back({static_cast<std::uint32_t>(2 * rank.host), share});
      uses_.push_back({static_cast<std::uint32_t>(2 * fold_.classes[static_cast<std::size_t>(to)].host + 1), share});
      return;
    }
    if (group < 0) return;
    const GroupClass& g = fold_.groups[static_cast<std::size_t>(group)];
    if (g.spans_hosts < 2) return;
    const double share = share_of_host(op, g.size, g.spans_hosts, wire_s);
    for (const GroupClass::OnHost& on : g.hosts) {
      uses_.push_back({static_cast<std::uint32_t>(2 * on.host), share * on.groups});
      uses_.push_back({static_cast<std::uint32_t>(2 * on.host + 1), share * on.groups});
    }
  }

  const StepGraph& g_;
  const Fold& fold_;
  const Layout& layout_;
  const Imperfections& imperfections_;
  const Wires& wires_;
  flow::Fluid fluid_;
  std::vector<ClassState> classes_;
  std::vector<std::array<std::vector<std::uint32_t>, kMeetCount>> meeting_ops_;  ///< by stage
  std::vector<std::vector<std::uint32_t>> arrived_;                              ///< by group class, by ordinal
  std::priority_queue<Event> events_;
  std::vector<Transfer> transfers_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> transfer_of_flow_;
  std::vector<flow::Use> uses_;
  std::vector<flow::FlowId> spare_;
  std::uint64_t next_number_ = 0;
  double now_ = 0;
  std::size_t total_ = 0;
  std::size_t done_ = 0;
  Run out_;
};

}  // namespace

Result<Run> run(const StepGraph& graph, const Fold& fold, const Layout& layout, const Imperfections& imperfections,
                const Wires& wires) {
  return Engine(graph, fold, layout, imperfections, wires).run();
}

}  // namespace chokepoint::engine
