// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/diagnose/straggler.hpp>

#include <algorithm>
#include <chokepoint/base/units.hpp>
#include <cmath>
#include <cstdio>
#include <functional>
#include <numeric>

#include "choke_sentence.hpp"
#include "op_graph.hpp"
#include "shapley.hpp"
#include "spread.hpp"

namespace chokepoint::diagnose {

using simulate::Bill;
using trace::OpType;

namespace {

/// Operations whose ideal is a median (they wait and spread widely) and not a mean.
bool is_conceptual_communication(OpType t) {
  return t != OpType::kForwardCompute && t != OpType::kBackwardCompute && t != OpType::kOptimizer && t != OpType::kGarbageCollection;
}

double mean(const std::vector<double>& values) {
  return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Middle value; of an even number the mean of the two.
double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const std::size_t half = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(half), values.end());
  const double upper = values[half];
  if (values.size() % 2 == 1) return upper;
  return (upper + *std::max_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(half))) / 2;
}

/// Same duration for all operations of a kind, over all workers, steps and micro-batches.
std::vector<double> ideal_durations(const OpGraph& g, const std::vector<double>& own) {
  std::vector<double> ideal(own.size(), 0);
  for (int t = 0; t < static_cast<int>(OpType::kCount); ++t) {
    const auto type = static_cast<OpType>(t);
    std::vector<double> values;
    for (std::size_t op = 0; op < g.ops.size(); ++op) {
      if (g.ops[op].type != type) continue;
      const auto from = own.begin() + static_cast<std::ptrdiff_t>(g.at(op, 0));
      values.insert(values.end(), from, from + static_cast<std::ptrdiff_t>(g.instances()));
    }
    const double one = is_conceptual_communication(type) ? median(std::move(values)) : mean(values);
    for (std::size_t op = 0; op < g.ops.size(); ++op) {
      if (g.ops[op].type != type) continue;
      for (std::size_t i = 0; i < g.instances(); ++i) ideal[g.at(op, i)] = one;
    }
  }
  return ideal;
}

/// Copies `from` into `to` where `pick(operation, data rank)` holds.
std::vector<double> mixed(const OpGraph& g, std::vector<double> to, const std::vector<double>& from, const std::function<bool(const GraphOp&, int)>& pick) {
  for (std::size_t op = 0; op < g.ops.size(); ++op) {
    for (int d = 0; d < g.data_ranks; ++d) {
      if (!pick(g.ops[op], d)) continue;
      for (std::size_t step = 0; step < g.steps.size(); ++step) {
        const std::size_t at = g.at(op, g.instance(step, d));
        to[at] = from[at];
      }
    }
  }
  return to;
}

/// The published study joins sends and receives of one direction.
std::string type_name(OpType type) {
  if (type == OpType::kForwardSend || type == OpType::kForwardRecv) return "forward-pp-comm";
  if (type == OpType::kBackwardSend || type == OpType::kBackwardRecv) return "backward-pp-comm";
  return std::string(trace::name(type));
}

enum class Kind { kWorker, kStage, kMicroBatch, kDrift, kPipelineWire, kDataWire, kRest, kCount };
constexpr int kKinds = static_cast<int>(Kind::kCount);
constexpr std::string_view kIds[kKinds] = {"slow-worker", "stage-imbalance", "micro-batch-imbalance", "drift-over-steps", "pipeline-wire", "data-wire",
                                           "other-operations"};

class Analysis {
 public:
  Analysis(const OpGraph& g, const OpTimes& measured, StragglerReport& report)
      : g_(g), measured_(measured), r_(report), own_(own_durations(g, measured).seconds), ideal_(ideal_durations(g, own_)) {}

  void run() {
    step_times();
    slowdowns();
    metrics();
    workers();
    causes();
  }

 private:
  double replayed(const std::vector<double>& durations) const { return mean(replay(g_, durations, {})); }

  void step_times() {
    const std::vector<double> without_delay = replay(g_, own_, {});
    const std::vector<double> ideal = replay(g_, ideal_, {});
    for (std::size_t s = 0; s < g_.steps.size(); ++s) {
      double last = 0;
      for (std::size_t op = 0; op < g_.ops.size(); ++op) {
        for (int d = 0; d < g_.data_ranks; ++d) last = std::max(last, measured_.end_s[g_.at(op, g_.instance(s, d))]);
      }
      r_.steps.push_back({g_.steps[s], last, without_delay[s], ideal[s]});
      r_.measured_s += last / static_cast<double>(g_.steps.size());
    }
    r_.without_delay_s = mean(without_delay);
    r_.ideal_s = mean(ideal);
    r_.slowdown = r_.ideal_s > 0 ? r_.without_delay_s / r_.ideal_s : 1;
    r_.launch_slowdown = r_.without_delay_s > 0 ? r_.measured_s / r_.without_delay_s : 1;
  }

  double slowdown_of(const std::function<bool(const GraphOp&, int)>& pick) const {
    return r_.ideal_s > 0 ? replayed(mixed(g_, ideal_, own_, pick)) / r_.ideal_s : 1;
  }

  void slowdowns() {
    for (const GraphOp& op : g_.ops) r_.by_type.try_emplace(type_name(op.type), 1.0);
    for (auto& [type, slowdown] : r_.by_type) {
      slowdown = slowdown_of([&name = type](const GraphOp& op, int) { return type_name(op.type) == name; });
    }
    for (int d = 0; d < g_.data_ranks; ++d) r_.by_data_rank.push_back(slowdown_of([d](const GraphOp&, int rank) { return rank == d; }));
    for (int s = 0; s < g_.stages; ++s) r_.by_stage.push_back(slowdown_of([s](const GraphOp& op, int) { return op.stage == s; }));
    for (int s = 0; s < g_.stages; ++s) {
      for (int d = 0; d < g_.data_ranks; ++d) {
        Worker w;
        w.stage = s;
        w.data_rank = d;
        w.slowdown = std::min(r_.by_data_rank[static_cast<std::size_t>(d)], r_.by_stage[static_cast<std::size_t>(s)]);
        r_.workers.push_back(w);
      }
    }
  }

  /// Share of the slowdown that leaves when the picked operations take their ideal time.
  double explained_by(const std::function<bool(const GraphOp&, int)>& pick) const {
    const double gap = r_.without_delay_s - r_.ideal_s;
    return gap > 0 ? (r_.without_delay_s - replayed(mixed(g_, own_, ideal_, pick))) / gap : 0;
  }

  void metrics() {
    std::vector<int> order(r_.workers.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [this](int a, int b) { return r_.workers[static_cast<std::size_t>(a)].slowdown > r_.workers[static_cast<std::size_t>(b)].slowdown; });
    order.resize((order.size() * 3 + 99) / 100);
    r_.slowest = order;
    r_.worker_metric = explained_by([this](const GraphOp& op, int d) {
      return std::any_of(r_.slowest.begin(), r_.slowest.end(), [&](int w) {
        const Worker& worker = r_.workers[static_cast<std::size_t>(w)];
        return worker.stage == op.stage && worker.data_rank == d;
      });
    });
    r_.stage_metric = explained_by([this](const GraphOp& op, int) { return op.stage == g_.stages - 1; });
  }

  /// Bill of each worker: computing, transferring, waiting; what is left is bubble and host.
  void workers() {
    for (Worker& w : r_.workers) {
      for (std::size_t step = 0; step < g_.steps.size(); ++step) bill_step(w, step);
    }
  }

  void bill_step(Worker& w, std::size_t step) {
    const auto ns = [](double s) { return static_cast<std::int64_t>(std::llround(s * 1e9)); };
    std::vector<Interval> compute;
    std::vector<Interval> communication;
    std::vector<Interval> wire[2];  // pipeline, data
    std::vector<Interval> optimizer;
    for (std::size_t op = 0; op < g_.ops.size(); ++op) {
      if (g_.ops[op].stage != w.stage) continue;
      const std::size_t at = g_.at(op, g_.instance(step, w.data_rank));
      const Interval span{ns(measured_.start_s[at]), ns(measured_.end_s[at])};
      const OpType type = g_.ops[op].type;
      if (type == OpType::kForwardCompute || type == OpType::kBackwardCompute) {
        compute.push_back(span);
      } else if (type == OpType::kOptimizer) {
        optimizer.push_back(span);
      } else if (is_conceptual_communication(type)) {
        communication.push_back(span);
        const bool pipeline = g_.ops[op].type >= OpType::kForwardSend && g_.ops[op].type <= OpType::kBackwardRecv;
        wire[pipeline ? 0 : 1].push_back({std::max(span.begin_ns, span.end_ns - ns(std::max(0.0, own_[at]))), span.end_ns});
      }
    }
    const std::int64_t wall = ns(r_.steps[step].measured_s);
    const Intervals computing = united(std::move(compute));
    const Intervals optimizing = without(united(std::move(optimizer)), computing);
    const Intervals busy = united(computing, optimizing);
    const Intervals all_communication = united(std::move(communication));
    const Intervals exposed = without(all_communication, busy);
    const Intervals pipeline_wire = common(exposed, united(std::move(wire[0])));
    const Intervals data_wire = without(common(exposed, united(std::move(wire[1]))), pipeline_wire);
    const std::int64_t waiting = length(exposed) - length(pipeline_wire) - length(data_wire);
    const auto add = [&w](Bill item, std::int64_t value) { w.bill.ns[static_cast<std::size_t>(item)] += value; };
    add(Bill::kCompute, length(computing));
    add(Bill::kOptimizer, length(optimizing));
    add(Bill::kPipeline, length(pipeline_wire) + waiting);
    w.bill.wait_ns[static_cast<std::size_t>(Bill::kPipeline)] += waiting;
    add(Bill::kDataReduce, length(data_wire));
    add(Bill::kOther, wall - length(busy) - length(exposed));
    w.time.span_ns += wall;
    w.time.compute_ns += length(busy);
    w.time.communication_ns += length(all_communication);
    w.time.exposed_communication_ns += length(exposed);
    w.time.overlap_ns += length(all_communication) - length(exposed);
    w.time.busy_ns += length(united(busy, all_communication));
  }

  void causes();
  void name_cause(Cause& cause, Kind kind, const Spread& spread);
  void name_worker(Cause& cause, const Spread& spread);
  void name_stage(Cause& cause, const Spread& spread);

  const OpGraph& g_;
  const OpTimes& measured_;
  StragglerReport& r_;
  std::vector<double> own_;
  std::vector<double> ideal_;
};

/// The class whose deviation from the ideal an operation's duration carries, for operations without parts.
Kind kind_of(OpType type) {
  switch (type) {
    case OpType::kForwardSend:
    case OpType::kForwardRecv:
    case OpType::kBackwardSend:
    case OpType::kBackwardRecv: return Kind::kPipelineWire;
    case OpType::kParamsGather:
    case OpType::kGradsReduce:
    case OpType::kSeparateGradsReduce:
    case OpType::kEmbeddingReduce: return Kind::kDataWire;
    default: return Kind::kRest;
  }
}

/// Launching late comes off first (gaps that the graph does not explain would otherwise hide what shortening an operation
/// brings); the other classes share the rest by Shapley value.
void Analysis::causes() {
  const Spread spread = spread_of(g_, own_, ideal_);
  const auto time_without = [&](unsigned mask) {
    const auto present = [mask](Kind kind) { return (mask & (1u << static_cast<unsigned>(kind))) == 0; };
    std::vector<double> durations = ideal_;
    for (std::size_t op = 0; op < g_.ops.size(); ++op) {
      const OpType type = g_.ops[op].type;
      const bool split = type == OpType::kForwardCompute || type == OpType::kBackwardCompute;
      for (std::size_t i = 0; i < g_.instances(); ++i) {
        const std::size_t at = g_.at(op, i);
        if (!split) {
          if (present(kind_of(type))) durations[at] = own_[at];
          continue;
        }
        if (present(Kind::kStage)) durations[at] += spread.stage[at];
        if (present(Kind::kWorker)) durations[at] += spread.worker[at];
        if (present(Kind::kDrift)) durations[at] += spread.drift[at];
        if (present(Kind::kMicroBatch)) durations[at] += spread.micro_batch[at];
      }
    }
    return replayed(durations);
  };
  const std::vector<double> value = shapley(kKinds, time_without);
  for (int k = 0; k < kKinds; ++k) {
    Cause cause;
    cause.id = std::string(kIds[k]);
    cause.cost_s = value[static_cast<std::size_t>(k)];
    cause.step_time_without_s = r_.measured_s - r_.without_delay_s + time_without(1u << k);
    name_cause(cause, static_cast<Kind>(k), spread);
    r_.causes.push_back(std::move(cause));
  }
  Cause launch;
  launch.id = "launch-delay";
  launch.where = "hosts";
  launch.what = "Operations start later than they could (the host launches late, data loading)";
  launch.remedy = "look at the host: data loader workers, garbage collection, CUDA_DEVICE_MAX_CONNECTIONS=1 with overlap";
  launch.cost_s = r_.measured_s - r_.without_delay_s;
  launch.step_time_without_s = r_.without_delay_s;
  r_.causes.push_back(std::move(launch));
  std::stable_sort(r_.causes.begin(), r_.causes.end(), [](const Cause& a, const Cause& b) { return a.cost_s > b.cost_s; });
  const Cause& first = r_.causes.front();
  constexpr double kWorthNaming = 0.02;  // of a step
  r_.choke_point = first.cost_s > kWorthNaming * r_.measured_s
                       ? choke_sentence(first, r_.measured_s)
                       : "No straggler: no cause takes more than 2 % of a step (" + format_duration(r_.measured_s) + ")";
}

std::string times(double factor) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f×", factor);
  return text;
}

/// Mean of a part over the computations of a worker (data rank -1: of a stage), and of the ideal there.
struct PartMean {
  double part = 0;
  double ideal = 0;
};

PartMean part_mean(const OpGraph& g, const std::vector<double>& part, const std::vector<double>& ideal, int stage, int data_rank) {
  PartMean m;
  for (std::size_t op = 0; op < g.ops.size(); ++op) {
    if (g.ops[op].stage != stage || (g.ops[op].type != OpType::kForwardCompute && g.ops[op].type != OpType::kBackwardCompute)) continue;
    for (std::size_t step = 0; step < g.steps.size(); ++step) {
      for (int d = 0; d < g.data_ranks; ++d) {
        if (data_rank >= 0 && d != data_rank) continue;
        m.part += part[g.at(op, g.instance(step, d))];
        m.ideal += ideal[g.at(op, g.instance(step, d))];
      }
    }
  }
  return m;
}

/// The largest of several means, and how much longer it is than the mean of the others.
struct Longest {
  std::size_t at = 0;
  double factor = 1;
};

Longest longest_of(const std::vector<PartMean>& means) {
  Longest l;
  double others = 0;
  for (std::size_t i = 0; i < means.size(); ++i) {
    if (means[i].part > means[l.at].part) l.at = i;
    others += means[i].part + means[i].ideal;
  }
  const double longest = means[l.at].part + means[l.at].ideal;
  others -= longest;
  if (means.size() > 1 && others > 0) l.factor = longest / (others / static_cast<double>(means.size() - 1));
  return l;
}

void Analysis::name_worker(Cause& c, const Spread& spread) {
  std::vector<PartMean> means;
  for (const Worker& w : r_.workers) means.push_back(part_mean(g_, spread.worker, ideal_, w.stage, w.data_rank));
  const Longest worst = longest_of(means);
  c.where = "data rank " + std::to_string(r_.workers[worst.at].data_rank) + ", stage " + std::to_string(r_.workers[worst.at].stage);
  c.what = "The worker of " + c.where + " computes " + times(worst.factor) + " as long as its peers";
  c.remedy = "exchange or check that host's accelerators (clocks, throttling, ECC, another process); restart the job without it";
}

void Analysis::name_stage(Cause& c, const Spread& spread) {
  std::vector<PartMean> means;
  for (int s = 0; s < g_.stages; ++s) means.push_back(part_mean(g_, spread.stage, ideal_, s, -1));
  const Longest slow = longest_of(means);
  const bool last = static_cast<int>(slow.at) == g_.stages - 1;
  c.where = "stage " + std::to_string(slow.at);
  c.what = "Pipeline stage " + std::to_string(slow.at) + (last ? " (the last one, with head and loss)" : "") + " computes " + times(slow.factor) +
           " as long as the others";
  c.remedy = last ? "give the last stage fewer layers: Megatron-LM --decoder-last-pipeline-num-layers, or --account-for-loss-in-pipeline-split"
                  : "even out the layers of the stages: Megatron-LM --pipeline-model-parallel-layout";
}

void Analysis::name_cause(Cause& c, Kind kind, const Spread& spread) {
  constexpr double kDataDecides = 0.7;  // correlation of forward and backward; jitter alone stays near 0
  switch (kind) {
    case Kind::kWorker: return name_worker(c, spread);
    case Kind::kStage: return name_stage(c, spread);
    case Kind::kMicroBatch:
      c.where = "micro-batches";
      if (spread.forward_backward_correlation > kDataDecides) {
        c.what = "Micro-batches differ in work (sequence lengths: forward and backward vary together)";
        c.remedy = "balance a batch's sequences by the square of their lengths; pack them to equal work per micro-batch";
      } else {
        c.what = "Computations jitter from micro-batch to micro-batch";
        c.remedy = "look for other processes, garbage collection (gc.disable and a collection every N steps) and clocks that change";
      }
      return;
    case Kind::kDrift:
      c.where = "steps";
      c.what = "Some steps compute longer than others on all workers";
      c.remedy = "compare the slow steps with the clocks and temperatures of their time";
      return;
    case Kind::kPipelineWire:
      c.where = "sends and receives between stages";
      c.what = "Transfers between stages take longer than their median";
      c.remedy = "check the links between neighbouring stages; Megatron-LM --overlap-p2p-communication";
      return;
    case Kind::kDataWire:
      c.where = "gathers and reductions of parameters and gradients";
      c.what = "Gathers and reductions over data ranks take longer than their median";
      c.remedy = "overlap them: Megatron-LM --overlap-grad-reduce --overlap-param-gather";
      return;
    default:
      c.where = "other operations";
      c.what = "Optimizer, clipping and collection differ from their mean";
  }
}

}  // namespace

Result<StragglerReport> find_stragglers(const trace::OpTimeline& timeline) {
  OpTimes measured;
  TRY_INTO(const OpGraph graph, build_graph(timeline, measured));
  StragglerReport report;
  report.file = timeline.file;
  if (graph.dropped_steps > 0) report.notes.push_back({std::to_string(graph.dropped_steps) + " steps lack operations and are left out", {timeline.file, 0, 0}});
  if (timeline.unknown > 0) report.notes.push_back({std::to_string(timeline.unknown) + " rows are of no known operation and are left out", {timeline.file, 0, 0}});
  if (timeline.negative > 0) report.notes.push_back({std::to_string(timeline.negative) + " operations end before they start, by the clocks' error", {timeline.file, 0, 0}});
  Analysis(graph, measured, report).run();
  return report;
}

}  // namespace chokepoint::diagnose
