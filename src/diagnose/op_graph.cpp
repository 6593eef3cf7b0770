// SPDX-License-Identifier: Apache-2.0
#include "op_graph.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

namespace chokepoint::diagnose {

using trace::OpTimeline;
using trace::OpType;

namespace {

constexpr double kEps_s = 5e-5;         // clocks of neighbouring workers agree within this
constexpr double kClockError_s = 1e-2;  // a transfer more negative than this is a broken record

bool is_compute(OpType t) { return t == OpType::kForwardCompute || t == OpType::kBackwardCompute; }
bool is_point_to_point(OpType t) {
  return t == OpType::kForwardSend || t == OpType::kForwardRecv || t == OpType::kBackwardSend || t == OpType::kBackwardRecv;
}
bool is_send(OpType t) { return t == OpType::kForwardSend || t == OpType::kBackwardSend; }
OpType compute_of(OpType t) { return t == OpType::kForwardSend || t == OpType::kForwardRecv ? OpType::kForwardCompute : OpType::kBackwardCompute; }
OpType peer_of(OpType t) {
  switch (t) {
    case OpType::kForwardSend: return OpType::kForwardRecv;
    case OpType::kForwardRecv: return OpType::kForwardSend;
    case OpType::kBackwardSend: return OpType::kBackwardRecv;
    default: return OpType::kBackwardSend;
  }
}
/// Stages from the operation's own to its peer's.
int peer_distance(OpType t) { return t == OpType::kForwardSend || t == OpType::kBackwardRecv ? 1 : -1; }

using OpKey = std::tuple<int, OpType, int>;  // stage, type, sequence

class GraphBuilder {
 public:
  GraphBuilder(const OpTimeline& timeline, OpTimes& measured) : t_(timeline), measured_(measured) {}

  Result<OpGraph> build() {
    if (const auto collected = collect_ops(); !collected) return tl::make_unexpected(collected.error());
    chunks_ = 1;
    for (const GraphOp& op : g_.ops) chunks_ = std::max(chunks_, op.chunk + 1);
    for (int stage = 0; stage < g_.stages; ++stage) {
      order_computations(stage);
      match_point_to_point(stage);
      if (use_data_) order_data_communication(stage);
      after_last_backward(stage);
    }
    pair_point_to_point();
    group_the_rest();
    return order() ? Result<OpGraph>(std::move(g_)) : fail("the operations wait for each other in a circle", {t_.file, 0, 0});
  }

 private:
  /// Operations of data rank 0 in the first step; every complete step must have the same.
  Result<bool> collect_ops() {
    g_.data_ranks = t_.data_ranks;
    g_.stages = t_.stages;
    for (std::size_t i = 0; i < t_.size(); ++i) {
      if (t_.step[i] != 0 || t_.data_rank[i] != 0) continue;
      const OpKey key{t_.stage[i], t_.type[i], t_.sequence[i]};
      if (!index_.try_emplace(key, static_cast<int>(g_.ops.size())).second) continue;
      g_.ops.push_back({t_.type[i], t_.stage[i], t_.sequence[i], t_.chunk[i], false, -1, {}});
    }
    if (g_.ops.empty()) return fail("data rank 0 has no operation in the first step", {t_.file, 0, 0});
    // Which steps are complete?
    const std::size_t data_ranks = static_cast<std::size_t>(t_.data_ranks);
    const std::size_t cells = g_.ops.size() * data_ranks;
    constexpr std::size_t kMostCells = std::size_t{1} << 28;
    if (cells * t_.steps.size() > kMostCells) return fail("more operations than can be replayed", {t_.file, 0, 0}, {"give fewer steps"});
    std::vector<std::size_t> seen(t_.steps.size(), 0);
    std::vector<std::int32_t> row(cells * t_.steps.size(), -1);
    for (std::size_t i = 0; i < t_.size(); ++i) {
      const auto at = index_.find({t_.stage[i], t_.type[i], t_.sequence[i]});
      if (at == index_.end()) continue;
      const auto step = static_cast<std::size_t>(t_.step[i]);
      std::int32_t& cell = row[step * cells + static_cast<std::size_t>(at->second) * data_ranks + static_cast<std::size_t>(t_.data_rank[i])];
      if (cell < 0) ++seen[step];
      cell = static_cast<std::int32_t>(i);
    }
    std::vector<std::size_t> complete;
    for (std::size_t s = 0; s < seen.size(); ++s) {
      if (seen[s] == cells) complete.push_back(s);
    }
    g_.dropped_steps = static_cast<int>(seen.size() - complete.size());
    if (complete.empty()) return fail("no step has all operations on all workers", {t_.file, 0, 0});
    for (const std::size_t s : complete) g_.steps.push_back(t_.steps[s]);
    fill_times(complete, row, cells);
    return true;
  }

  void fill_times(const std::vector<std::size_t>& complete, const std::vector<std::int32_t>& row, std::size_t cells) {
    measured_.start_s.assign(g_.ops.size() * g_.instances(), 0);
    measured_.end_s = measured_.start_s;
    const auto data_ranks = static_cast<std::size_t>(g_.data_ranks);
    for (std::size_t k = 0; k < complete.size(); ++k) {
      const auto cell_of = [&](std::size_t op, std::size_t d) { return static_cast<std::size_t>(row[complete[k] * cells + op * data_ranks + d]); };
      std::int64_t first = std::numeric_limits<std::int64_t>::max();
      for (std::size_t op = 0; op < g_.ops.size(); ++op) {
        for (std::size_t d = 0; d < data_ranks; ++d) first = std::min(first, t_.start_ns[cell_of(op, d)]);
      }
      for (std::size_t op = 0; op < g_.ops.size(); ++op) {
        for (std::size_t d = 0; d < data_ranks; ++d) {
          const std::size_t at = g_.at(op, g_.instance(k, static_cast<int>(d)));
          measured_.start_s[at] = static_cast<double>(t_.start_ns[cell_of(op, d)] - first) * 1e-9;
          measured_.end_s[at] = static_cast<double>(t_.end_ns[cell_of(op, d)] - first) * 1e-9;
        }
      }
    }
    for (const GraphOp& op : g_.ops) {
      use_data_ = use_data_ || op.type == OpType::kParamsGather || op.type == OpType::kGradsReduce;
      overlapped_ = overlapped_ || op.type == OpType::kSeparateGradsReduce;
    }
  }

  double start(int op) const { return measured_.start_s[g_.at(static_cast<std::size_t>(op), 0)]; }
  double end(int op) const { return measured_.end_s[g_.at(static_cast<std::size_t>(op), 0)]; }
  int find(int stage, OpType type, int sequence) const {
    const auto at = index_.find({stage, type, sequence});
    return at == index_.end() ? -1 : at->second;
  }
  GraphOp& op(int i) { return g_.ops[static_cast<std::size_t>(i)]; }
  void depend(int later, int earlier) {
    if (later >= 0 && earlier >= 0) op(later).after.push_back(earlier);
  }

  template <class Accept>
  std::vector<int> in_order(int stage, Accept accept) {
    std::vector<int> found;
    for (std::size_t i = 0; i < g_.ops.size(); ++i) {
      if (g_.ops[i].stage == stage && accept(g_.ops[i].type)) found.push_back(static_cast<int>(i));
    }
    std::stable_sort(found.begin(), found.end(), [this](int a, int b) {
      return start(a) != start(b) ? start(a) < start(b) : g_.ops[static_cast<std::size_t>(a)].sequence < g_.ops[static_cast<std::size_t>(b)].sequence;
    });
    return found;
  }
  void chain(const std::vector<int>& ops) {
    for (std::size_t i = 1; i < ops.size(); ++i) depend(ops[i], ops[i - 1]);
  }

  void order_computations(int stage) {
    const std::vector<int> compute = in_order(stage, is_compute);
    chain(compute);
    for (const OpType type : {OpType::kForwardSend, OpType::kForwardRecv, OpType::kBackwardSend, OpType::kBackwardRecv}) {
      chain(in_order(stage, [type](OpType t) { return t == type; }));
    }
    // The first backward's exchange is issued with the second forward before it.
    const auto first_backward = std::find_if(compute.begin(), compute.end(), [this](int i) { return op(i).type == OpType::kBackwardCompute; });
    if (first_backward != compute.end() && first_backward - compute.begin() >= 2) {
      for (const OpType type : {OpType::kBackwardRecv, OpType::kBackwardSend}) depend(find(stage, type, 0), *(first_backward - 2));
    }
  }

  /// Whether a chunk's sender or receiver has a neighbour on that side of the model.
  bool has_peer(const GraphOp& compute, OpType type) const {
    const int global = std::max(compute.chunk, 0) * g_.stages + compute.stage;
    const int peer = global + peer_distance(type);
    return peer >= 0 && peer < chunks_ * g_.stages;
  }

  /// Joins sends and receives with their computations, and lists those that really reach a neighbour.
  void match_point_to_point(int stage) {
    for (const OpType type : {OpType::kForwardSend, OpType::kForwardRecv, OpType::kBackwardSend, OpType::kBackwardRecv}) {
      const std::vector<int> comm = in_order(stage, [type](OpType t) { return t == type; });
      const std::vector<int> compute = in_order(stage, [type](OpType t) { return t == compute_of(type); });
      if (compute.empty()) continue;
      double last_start = 0;
      double first_end = std::numeric_limits<double>::max();
      for (const int c : compute) {
        last_start = std::max(last_start, start(c));
        first_end = std::min(first_end, end(c));
      }
      // Records before the first result or after the last computation moved nothing.
      const auto moves = [&](int c) { return is_send(type) ? end(c) >= first_end - kEps_s : start(c) <= last_start + kEps_s; };
      const auto count = static_cast<std::size_t>(std::count_if(comm.begin(), comm.end(), moves));
      int next = !is_send(type) && count + 1 == compute.size() ? 1 : 0;  // the model's first receive may be left out
      for (const int c : comm) {
        if (!moves(c)) continue;
        const int fed = find(stage, compute_of(type), next);
        if (fed >= 0) {
          if (is_send(type)) {
            depend(c, fed);
          } else {
            depend(fed, c);
            depend(c, find(stage, compute_of(type), next - 1));
          }
          if (has_peer(op(fed), type)) valid_[{stage, type}].push_back(c);
        }
        ++next;
      }
    }
  }

  /// The k-th send of a stage meets the k-th receive of its neighbour.
  void pair_point_to_point() {
    for (const auto& [key, ops] : valid_) {
      const auto& [stage, type] = key;
      if (!is_send(type)) continue;
      const int peer_stage = (stage + peer_distance(type) + g_.stages) % g_.stages;
      const auto peers = valid_.find({peer_stage, peer_of(type)});
      for (std::size_t k = 0; k < ops.size(); ++k) {
        if (peers != valid_.end() && k < peers->second.size()) add_group({ops[k], peers->second[k]}, false);
      }
    }
  }

  void order_data_communication(int stage) {
    chain(in_order(stage, [](OpType t) { return t == OpType::kParamsGather || t == OpType::kGradsReduce; }));
    const std::vector<int> compute = in_order(stage, is_compute);
    // Of several gathers of a chunk the last one counts; of several reductions the first.
    std::map<int, int> gather;
    std::map<int, int> reduce;
    for (std::size_t i = 0; i < g_.ops.size(); ++i) {
      const GraphOp& o = g_.ops[i];
      if (o.stage != stage) continue;
      if (o.type == OpType::kParamsGather) {
        const auto [at, fresh] = gather.try_emplace(o.chunk, static_cast<int>(i));
        if (!fresh && o.sequence > op(at->second).sequence) at->second = static_cast<int>(i);
      }
      if (o.type == OpType::kGradsReduce) {
        const auto [at, fresh] = reduce.try_emplace(o.chunk, static_cast<int>(i));
        if (!fresh && o.sequence < op(at->second).sequence) at->second = static_cast<int>(i);
      }
    }
    for (const auto& [chunk, g] : gather) {
      const auto first = std::find_if(compute.begin(), compute.end(), [this, c = chunk](int i) { return op(i).type == OpType::kForwardCompute && op(i).chunk == c; });
      if (first != compute.end()) depend(*first, g);
    }
    if (!overlapped_) return;
    for (const auto& [chunk, r] : reduce) {
      int last = -1;
      for (const int i : compute) {
        if (op(i).type == OpType::kBackwardCompute && op(i).chunk == chunk && (last < 0 || end(i) > end(last))) last = i;
      }
      depend(r, last);
    }
  }

  void after_last_backward(int stage) {
    int last = -1;
    for (const int i : in_order(stage, is_compute)) {
      if (last < 0 || end(i) > end(last)) last = i;
    }
    std::vector<int> line;
    const auto add = [&line](int i) {
      if (i >= 0) line.push_back(i);
    };
    const int collection = find(stage, OpType::kGarbageCollection, 0);
    depend(collection, last);
    add(find(stage, OpType::kLayerNormReduce, 0));
    if (stage == 0 || stage == g_.stages - 1) add(find(stage, OpType::kEmbeddingReduce, 0));
    const std::vector<int> reductions = in_order(stage, [](OpType t) { return t == OpType::kGradsReduce; });
    if (use_data_ && overlapped_) add(find(stage, OpType::kSeparateGradsReduce, 0));
    if (use_data_ && !overlapped_) line.insert(line.end(), reductions.begin(), reductions.end());
    add(find(stage, OpType::kClipGrads, 0));
    add(find(stage, OpType::kOptimizer, 0));
    if (line.empty()) return;
    depend(line.front(), collection >= 0 ? collection : last);
    if (use_data_ && overlapped_ && !reductions.empty()) depend(line.front(), reductions.back());
    chain(line);
  }

  void add_group(const std::vector<int>& members, bool over_data) {
    for (const int m : members) {
      op(m).group = static_cast<int>(g_.groups.size());
      op(m).communication = true;
    }
    g_.groups.push_back(members);
    g_.over_data.push_back(over_data);
  }

  void group_the_rest() {
    std::vector<int> embedding;
    std::vector<int> clip;
    for (std::size_t i = 0; i < g_.ops.size(); ++i) {
      const int at = static_cast<int>(i);
      switch (g_.ops[i].type) {
        case OpType::kEmbeddingReduce: embedding.push_back(at); break;
        case OpType::kClipGrads: clip.push_back(at); break;
        case OpType::kParamsGather:
        case OpType::kGradsReduce:
        case OpType::kSeparateGradsReduce: add_group({at}, true); break;
        default:
          if (is_point_to_point(g_.ops[i].type) && g_.ops[i].group < 0) add_group({at}, false);
      }
    }
    if (!embedding.empty()) add_group(embedding, false);
    if (!clip.empty()) add_group(clip, true);
  }

  /// Topological order over units: a group, or an operation without one (numbered after the groups).
  bool order() {
    const int groups = static_cast<int>(g_.groups.size());
    const int units = groups + static_cast<int>(g_.ops.size());
    const auto unit_of = [groups, this](int i) { return g_.ops[static_cast<std::size_t>(i)].group >= 0 ? g_.ops[static_cast<std::size_t>(i)].group : groups + i; };
    std::vector<std::vector<int>> next(static_cast<std::size_t>(units));
    std::vector<int> open(static_cast<std::size_t>(units), 0);
    std::vector<bool> used(static_cast<std::size_t>(units), false);
    for (int i = 0; i < static_cast<int>(g_.ops.size()); ++i) {
      const int to = unit_of(i);
      used[static_cast<std::size_t>(to)] = true;
      for (const int before : g_.ops[static_cast<std::size_t>(i)].after) {
        const int from = unit_of(before);
        if (from == to) return false;
        next[static_cast<std::size_t>(from)].push_back(to);
        ++open[static_cast<std::size_t>(to)];
      }
    }
    for (int u = 0; u < units; ++u) {
      if (used[static_cast<std::size_t>(u)] && open[static_cast<std::size_t>(u)] == 0) g_.order.push_back(u);
    }
    for (std::size_t k = 0; k < g_.order.size(); ++k) {
      for (const int to : next[static_cast<std::size_t>(g_.order[k])]) {
        if (--open[static_cast<std::size_t>(to)] == 0) g_.order.push_back(to);
      }
    }
    return g_.order.size() == static_cast<std::size_t>(std::count(used.begin(), used.end(), true));
  }

  const OpTimeline& t_;
  OpTimes& measured_;
  OpGraph g_;
  std::map<OpKey, int> index_;
  std::map<std::pair<int, OpType>, std::vector<int>> valid_;
  int chunks_ = 1;
  bool use_data_ = false;
  bool overlapped_ = false;
};

/// Latest of `value` over a group's members and, where they take part, the data ranks; per instance.
std::vector<double> latest_in_group(const OpGraph& g, std::size_t group, const std::vector<double>& value) {
  const std::size_t n = g.instances();
  std::vector<double> latest(n, -std::numeric_limits<double>::max());
  for (const int m : g.groups[group]) {
    for (std::size_t i = 0; i < n; ++i) latest[i] = std::max(latest[i], value[g.at(static_cast<std::size_t>(m), i)]);
  }
  if (g.over_data[group]) {
    for (std::size_t step = 0; step < g.steps.size(); ++step) {
      double most = latest[g.instance(step, 0)];
      for (int d = 1; d < g.data_ranks; ++d) most = std::max(most, latest[g.instance(step, d)]);
      for (int d = 0; d < g.data_ranks; ++d) latest[g.instance(step, d)] = most;
    }
  }
  return latest;
}

}  // namespace

Result<OpGraph> build_graph(const OpTimeline& timeline, OpTimes& measured) { return GraphBuilder(timeline, measured).build(); }

OpDurations own_durations(const OpGraph& g, const OpTimes& measured) {
  OpDurations d;
  d.seconds.resize(measured.start_s.size());
  for (std::size_t i = 0; i < d.seconds.size(); ++i) d.seconds[i] = measured.end_s[i] - measured.start_s[i];
  for (std::size_t group = 0; group < g.groups.size(); ++group) {
    const std::vector<double> latest = latest_in_group(g, group, measured.start_s);
    for (const int m : g.groups[group]) {
      for (std::size_t i = 0; i < g.instances(); ++i) {
        const std::size_t at = g.at(static_cast<std::size_t>(m), i);
        const double transfer = measured.end_s[at] - latest[i];
        d.seconds[at] = transfer <= -kClockError_s ? 0 : transfer;
      }
    }
  }
  return d;
}

std::vector<double> launch_delays(const OpGraph& g, const OpTimes& measured) {
  std::vector<double> delays(measured.start_s.size(), 0);
  for (std::size_t op = 0; op < g.ops.size(); ++op) {
    for (std::size_t i = 0; i < g.instances(); ++i) {
      double ready = 0;
      for (const int before : g.ops[op].after) ready = std::max(ready, measured.end_s[g.at(static_cast<std::size_t>(before), i)]);
      delays[g.at(op, i)] = std::max(0.0, measured.start_s[g.at(op, i)] - ready);
    }
  }
  return delays;
}

std::vector<double> replay(const OpGraph& g, const std::vector<double>& durations, const std::vector<double>& delays, OpTimes* times) {
  const std::size_t n = g.instances();
  std::vector<double> start(g.ops.size() * n, 0);
  std::vector<double> end(g.ops.size() * n, 0);
  const auto begin = [&](std::size_t op) {
    double* to = &start[g.at(op, 0)];
    for (const int before : g.ops[op].after) {
      const double* from = &end[g.at(static_cast<std::size_t>(before), 0)];
      for (std::size_t i = 0; i < n; ++i) to[i] = std::max(to[i], from[i]);
    }
    if (delays.empty()) return;
    for (std::size_t i = 0; i < n; ++i) to[i] += delays[g.at(op, i)];
  };
  const int groups = static_cast<int>(g.groups.size());
  for (const int unit : g.order) {
    if (unit >= groups) {
      const auto op = static_cast<std::size_t>(unit - groups);
      begin(op);
      for (std::size_t i = 0; i < n; ++i) end[g.at(op, i)] = start[g.at(op, i)] + durations[g.at(op, i)];
      continue;
    }
    const auto group = static_cast<std::size_t>(unit);
    for (const int m : g.groups[group]) begin(static_cast<std::size_t>(m));
    const std::vector<double> latest = latest_in_group(g, group, start);
    for (const int m : g.groups[group]) {
      const auto op = static_cast<std::size_t>(m);
      for (std::size_t i = 0; i < n; ++i) end[g.at(op, i)] = latest[i] + durations[g.at(op, i)];
    }
  }
  std::vector<double> step_s(g.steps.size(), 0);
  for (std::size_t op = 0; op < g.ops.size(); ++op) {
    for (std::size_t step = 0; step < g.steps.size(); ++step) {
      for (int d = 0; d < g.data_ranks; ++d) step_s[step] = std::max(step_s[step], end[g.at(op, g.instance(step, d))]);
    }
  }
  if (times != nullptr) *times = {std::move(start), std::move(end)};
  return step_s;
}

}  // namespace chokepoint::diagnose
