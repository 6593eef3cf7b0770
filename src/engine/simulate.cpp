// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/engine/engine.hpp>

#include <algorithm>
#include <numeric>

namespace chokepoint::engine {

namespace {

using parallel::Strategy;

Layout layout_of(const parallel::Job& job, const Strategy& s) {
  Layout l;
  l.tensor = s.tensor;
  l.context = s.context;
  l.data = s.data;
  l.pipeline = s.pipeline;
  l.expert = std::max(1, s.expert);
  l.shard = s.shard_ranks > 0 ? s.shard_ranks * s.context : s.data * s.context;
  l.gpus_per_host = std::max(1, std::min(job.cluster.gpus_per_host(), job.gpus));
  l.tied = job.model.tied_embeddings;
  return l;
}

/// Share of a layer's products that experts do, by parameters that a token meets.
double expert_share(const model::Model& m) {
  if (!m.moe) return 0;
  const double matrices = m.gated_mlp ? 3 : 2;
  const double experts = matrices * m.hidden * static_cast<double>(m.moe->expert_ffn_hidden) * m.moe->top_k;
  const double attention = m.hidden * (2.0 * m.heads + 2.0 * m.kv_heads) * m.head_dim;
  const double shared = matrices * m.hidden * static_cast<double>(m.moe->shared_ffn_hidden);
  return experts / std::max(1.0, experts + attention + shared);
}

/// Attained share of the interfaces' line rate, which the closed form's own times reach.
double nic_share(const parallel::Job& job) {
  if (job.cluster.host_count() < 2) return 1;
  const topology::Host& host = job.cluster.hosts.front().host;
  double line = 0;
  for (const int nic : topology::compute_nics(host))
    line += host.devices[static_cast<std::size_t>(nic)].line_bytes_per_s;
  if (job.cluster.fabric.node_measured_bytes_per_s) line = std::min(line, *job.cluster.fabric.node_measured_bytes_per_s);
  const double attained = collective::Network(job.cluster, job.accelerator).host_egress_bytes_per_s();
  return line > 0 && attained > 0 ? std::min(1.0, attained / line) : 1;
}

/// Links of the transfers that the graph has.
Result<std::shared_ptr<const Ways>> ways_of(const parallel::Job& job, const StepGraph& graph, const Layout& layout,
                                            const SimulateOptions& options) {
  std::array<bool, kWayKinds> used{};
  for (const StageGraph& stage : graph.stages) {
    for (std::size_t meet = 0; meet < kMeetCount; ++meet) used[meet] = used[meet] || stage.meetings[meet] > 0;
  }
  used[kWaySendForward] = used[kWaySendBackward] = layout.pipeline > 1;
  WayOptions how{options.spread, options.imperfections.seed, nic_share(job)};
  TRY_INTO(Ways ways, find_ways(job.cluster, layout, used, how));
  return std::make_shared<const Ways>(std::move(ways));
}

/// Everything of a simulated step that does not depend on draws.
Result<Simulated> prepared(const simulate::Predictor& predictor, const Strategy& strategy,
                           const SimulateOptions& options, Imperfections& imperfections) {
  const parallel::Job& job = predictor.job();
  Simulated s;
  TRY_INTO(s.strategy, parallel::completed(job, strategy));
  if (job.accelerator.peak(job.dtype) <= 0)
    return fail(job.accelerator.name + " has no " + std::string(hardware::name(job.dtype)) + " arithmetic");
  s.layout = layout_of(job, s.strategy);
  imperfections = options.imperfections;
  imperfections.expert_share = expert_share(job.model);
  TRY_INTO([[maybe_unused]] const bool exist, check(imperfections, s.layout.ranks(), s.layout.hosts()));
  s.pieces = predictor.pieces(s.strategy);
  s.closed_form_s = s.pieces.closed_form_s;
  GraphOptions graph = options.graph;
  graph.by_layer = graph.by_layer || imperfections.jitter > 0;
  TRY_INTO(s.graph, build_graph(s.pieces, s.strategy, graph));
  if (options.contention) {
    TRY_INTO(s.ways, ways_of(job, s.graph, s.layout, options));
  }
  s.fold = fold_ranks(s.layout, imperfections, options.folded, s.ways.get());
  double all = 0;
  for (const RankClass& c : s.fold.classes)
    all += static_cast<double>(s.graph.stages[static_cast<std::size_t>(c.stage)].ops.size());
  constexpr double kMostOps = 3e7;  // some ten seconds and 1.5 GiB on one core
  if (all > kMostOps) {
    return fail("the step would have " + std::to_string(static_cast<long long>(all / 1e6)) +
                    " million operations over its distinct ranks",
                {}, {"at most 30 million are run: name fewer imperfections, none that makes every rank different (jitter), or take fewer ranks"});
  }
  return s;
}

/// How full short messages leave their links: time of bandwidth over all time, of one collective of a layer.
Wires wires_of(const simulate::Predictor& predictor, const Simulated& s, const SimulateOptions& options) {
  const parallel::Job& job = predictor.job();
  Wires wires;
  wires.record = options.record;
  if (s.ways == nullptr) return wires;
  const collective::Network network(job.cluster, job.accelerator);
  const auto use = [&](Meet meet, collective::Op op, double bytes, const collective::Group& group) {
    if (group.ranks < 2 || bytes <= 0) return;
    const collective::Cost cost = network.cost(op, bytes, group);
    if (cost.time_s > 0) wires.use[static_cast<std::size_t>(meet)] = 1 - std::min(1.0, cost.latency_s / cost.time_s);
  };
  const model::Model& m = job.model;
  const double tokens = static_cast<double>(s.strategy.micro_batch) * job.sequence / s.strategy.context;
  const simulate::GroupPieces& groups = s.pieces.groups;
  use(Meet::kTensor, collective::Op::kAllGather, s.pieces.activation_bytes, groups.tensor);
  use(Meet::kContext, collective::Op::kAllGather,
      4.0 * tokens * s.strategy.context * m.kv_heads * m.head_dim / s.strategy.tensor, groups.context);
  if (m.moe) {
    const double slice = s.strategy.sequence_parallel ? s.strategy.tensor : 1;
    use(Meet::kExpert, collective::Op::kAllToAll, 2 * tokens / slice * m.moe->top_k * m.hidden, groups.expert);
  }
  return wires;
}

/// Class whose device works longest; waiting does not count.
std::size_t busiest(const Simulated& s) {
  std::size_t best = 0;
  double most = -1;
  for (std::size_t c = 0; c < s.fold.classes.size(); ++c) {
    const StageGraph& stage = s.graph.stages[static_cast<std::size_t>(s.fold.classes[c].stage)];
    double busy = 0;
    for (const std::uint32_t i : stage.lanes[static_cast<std::size_t>(Lane::kCompute)])
      busy += s.run.times[c][i].end_s - s.run.times[c][i].start_s;
    if (busy > most * (1 + 1e-12)) {
      most = busy;
      best = c;
    }
  }
  return best;
}

double percentile(std::vector<double> sorted, double share) {
  std::sort(sorted.begin(), sorted.end());
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (at - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

struct Cause {
  const char* name;
  bool (*present)(const Imperfections&);
  void (*remove)(Imperfections&);
};
constexpr Cause kCauses[] = {
    {"slow ranks", [](const Imperfections& i) { return !i.slow_ranks.empty(); },
     [](Imperfections& i) { i.slow_ranks.clear(); }},
    {"slow hosts", [](const Imperfections& i) { return !i.slow_hosts.empty(); },
     [](Imperfections& i) { i.slow_hosts.clear(); }},
    {"stalls", [](const Imperfections& i) { return !i.stalls.empty(); }, [](Imperfections& i) { i.stalls.clear(); }},
    {"heavy last stage", [](const Imperfections& i) { return i.stage_load != 1; },
     [](Imperfections& i) { i.stage_load = 1; }},
    {"jitter", [](const Imperfections& i) { return i.jitter > 0; }, [](Imperfections& i) { i.jitter = 0; }},
    {"sequence lengths", [](const Imperfections& i) { return i.sequence_imbalance > 0; },
     [](Imperfections& i) { i.sequence_imbalance = 0; }},
    {"expert load", [](const Imperfections& i) { return i.expert_imbalance > 1; },
     [](Imperfections& i) { i.expert_imbalance = 1; }},
};

/// Mean over ranks of what they wait for others in a step.
double mean_wait_s(const StepGraph& graph, const Fold& fold, const Run& one) {
  double sum = 0;
  double ranks = 0;
  for (std::size_t c = 0; c < fold.classes.size(); ++c) {
    std::array<double, simulate::kBillCount> bill{};
    std::array<double, simulate::kBillCount> wait{};
    bill_class(graph, fold, one, c, bill, wait);
    sum += fold.classes[c].count * std::accumulate(wait.begin(), wait.end(), 0.0);
    ranks += fold.classes[c].count;
  }
  return ranks > 0 ? sum / ranks : 0;
}

/// Step times of `steps` draws on one graph; adds the mean waiting to `wait_s`.
Result<std::vector<double>> step_times(const Simulated& base, Imperfections imperfections, const Wires& wires,
                                       bool folded, int steps, double* wait_s = nullptr) {
  const Fold fold = fold_ranks(base.layout, imperfections, folded, base.ways.get());
  std::vector<double> times;
  for (int k = 0; k < steps; ++k) {
    imperfections.step = k;
    TRY_INTO(const Run one, run(base.graph, fold, base.layout, imperfections, wires));
    times.push_back(one.end_s);
    if (wait_s != nullptr) *wait_s += mean_wait_s(base.graph, fold, one) / steps;
  }
  return times;
}

}  // namespace

Result<Simulated> simulate_step(const simulate::Predictor& predictor, const Strategy& strategy,
                                const SimulateOptions& options) {
  Imperfections imperfections;
  TRY_INTO(Simulated s, prepared(predictor, strategy, options, imperfections));
  TRY_INTO(s.run, run(s.graph, s.fold, s.layout, imperfections, wires_of(predictor, s, options)));
  s.step_s = s.run.end_s;
  const std::size_t c = busiest(s);
  s.busiest_rank = s.fold.classes[c].representative;
  bill_class(s.graph, s.fold, s.run, c, s.bill, s.wait_s);
  return s;
}

Result<Spread> simulate_spread(const simulate::Predictor& predictor, const Strategy& strategy,
                               const SimulateOptions& options, int steps) {
  Imperfections imperfections;
  TRY_INTO(const Simulated base, prepared(predictor, strategy, options, imperfections));
  Wires wires = wires_of(predictor, base, options);
  wires.record = false;
  Spread out;
  TRY_INTO(out.step_s, step_times(base, imperfections, wires, options.folded, std::max(1, steps), &out.wait_s));
  TRY_INTO(const std::vector<double> even, step_times(base, {}, wires, options.folded, 1, &out.even_wait_s));
  out.even_s = even.front();
  out.mean_s = mean(out.step_s);
  out.p10_s = percentile(out.step_s, 0.1);
  out.p50_s = percentile(out.step_s, 0.5);
  out.p90_s = percentile(out.step_s, 0.9);
  for (const Cause& cause : kCauses) {
    if (!cause.present(imperfections)) continue;
    Imperfections without = imperfections;
    cause.remove(without);
    TRY_INTO(const std::vector<double> times,
             step_times(base, without, wires, options.folded, static_cast<int>(out.step_s.size())));
    std::vector<double> single;
    for (std::size_t k = 0; k < times.size(); ++k) single.push_back(out.step_s[k] - times[k]);
    out.losses.push_back({cause.name, out.mean_s - mean(times), percentile(single, 0.1), percentile(single, 0.9)});
  }
  std::stable_sort(out.losses.begin(), out.losses.end(),
                   [](const Spread::Loss& a, const Spread::Loss& b) { return a.cost_s > b.cost_s; });
  for (const StageGraph& stage : base.graph.stages) {
    int meetings = 0;
    for (const Op& op : stage.ops) meetings += op.meet != Meet::kNobody ? 1 : 0;
    out.meetings = std::max(out.meetings, meetings);
  }
  return out;
}

}  // namespace chokepoint::engine
