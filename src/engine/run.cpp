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
        flows_ended(ended);
      } else {
        const Event event = events_.top();
        events_.pop();
        now_ = event.at_s;
        serve(event);
      }
    }
    if (done_ != total_) return fail(fmt::format("{} of {} operations of the step never ran", total_ - done_, total_));
    out_.end_s = now_;
    for (std::size_t link = 0; link < fold_.links.size(); ++link)
      out_.link_busy_s.push_back(fluid_.carried_bytes(static_cast<std::uint32_t>(link)) / kUnit);
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
    std::vector<double> all;
    for (const SharedLink& link : fold_.links) all.push_back(kUnit * link.share);
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
    if (!wires_.record) return;
    if (begun_.size() <= flow) begun_.resize(flow + 1u);
    begun_[flow].clear();
    for (const flow::Use& use : uses_) begun_[flow].push_back({static_cast<int>(use.link), now_, 0, use.weight * wire});
  }

  /// What one end sets off may take the number of another flow that ended with it: transfers are looked up first.
  void flows_ended(const std::vector<flow::FlowId>& flows) {
    ended_.clear();
    for (const flow::FlowId flow : flows) {
      ended_.push_back(transfer_of_flow_[flow]);
      if (!wires_.record) continue;
      for (Run::Passage& passage : begun_[flow]) {
        passage.end_s = now_;
        out_.passages.push_back(passage);
      }
    }
    for (const std::uint32_t transfer : ended_) transfer_ended(transfer);
  }

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
      unblock(static_cast<std::size_t>(to_next(rank, op) ? rank.next : rank.previous), op.peer_op);
    }
    if (holds_lane) try_lane(c, static_cast<std::size_t>(op.lane));
  }

  /// Whether a message goes to the stage behind the sender's (round the end), else to the one before it.
  bool to_next(const RankClass& rank, const Op& op) const {
    return op.peer_stage == (rank.stage + 1) % layout_.pipeline;
  }

  void unblock(std::size_t c, std::uint32_t i) {
    if (--classes_[c].open[i] > 0) return;
    out_.times[c][i].ready_s = now_;
    try_lane(c, static_cast<std::size_t>(op_of(c, i).lane));
  }

  /// Bytes on a link of a ring (of an exchange's messages) for each byte of nccl-tests' size.
  static double passes_of(const Op& op, double n) {
    switch (op.collective) {
      case collective::Op::kAllReduce:
        return 2 * (n - 1) / n;
      case collective::Op::kAllGather:
      case collective::Op::kReduceScatter:
        return (n - 1) / n;
      case collective::Op::kAllToAll:
      case collective::Op::kBroadcast:
      case collective::Op::kReduce:
      case collective::Op::kSendRecv:
        return 1;
    }
    return 1;
  }

  /// What a transfer takes of each link at the speed it has alone. Its siblings of the same kind have that speed beside
  /// it, so together they never take more than there is; where hashing lets them collide, they may.
  void find_uses(int group, std::size_t c, const Op& op, double wire_s) {
    uses_.clear();
    if (wire_s <= 0 || fold_.links.empty()) return;
    const bool send = is_send(op.work);
    if (!send && group < 0) return;
    const RankClass& rank = fold_.classes[c];
    const std::vector<ClassLoad>& loads = !send ? fold_.groups[static_cast<std::size_t>(group)].loads
                                          : to_next(rank, op) ? rank.forward_loads
                                                              : rank.backward_loads;
    if (loads.empty()) return;
    const auto kind = send ? static_cast<std::size_t>(to_next(rank, op) ? kWaySendForward : kWaySendBackward)
                           : static_cast<std::size_t>(op.meet);
    const std::vector<double>& siblings = fold_.siblings[kind];
    double rate = 0;
    if (op.bytes > 0) {
      rate = op.bytes / wire_s * passes_of(op, send ? 1 : fold_.groups[static_cast<std::size_t>(group)].size);
    } else {
      // Size unknown: the siblings together fill the link that most of them pass, as far as their messages do.
      double most = 0;
      for (const ClassLoad& load : loads) most = std::max(most, siblings[static_cast<std::size_t>(load.link)]);
      rate = (send ? 1 : wires_.use[static_cast<std::size_t>(op.meet)]) / most;
    }
    for (const ClassLoad& load : loads) {
      const auto link = static_cast<std::size_t>(load.link);
      const double together = fold_.links[link].collides ? 1 : std::max(1.0, siblings[link] * rate);
      uses_.push_back({static_cast<std::uint32_t>(load.link), load.weight * rate / together});
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
  std::vector<std::uint32_t> ended_;  ///< transfers whose flows end now
  std::vector<flow::Use> uses_;
  std::vector<std::vector<Run::Passage>> begun_;  ///< by flow, where recorded
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
