// SPDX-License-Identifier: Apache-2.0
// One optimizer step of the slowest rank: layers -> stages -> pipeline -> data parallelism -> optimizer. Each part adds
// its time to one class of the bill; the step time is the bill's sum, so the two agree by construction.
#include <chokepoint/parallel/software.hpp>
#include <chokepoint/simulate/predict.hpp>

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "groups.hpp"
#include "layer.hpp"
#include "pieces.hpp"
#include "pipeline.hpp"
#include "sharing.hpp"
#include "uncertainty.hpp"

namespace chokepoint::simulate {

namespace {

using collective::Op;
using parallel::Strategy;

struct PassTotals {
  double compute = 0, tensor = 0, context = 0, expert = 0, host_excess = 0;
  double total() const { return compute + tensor + context + expert + host_excess; }
};

/// Sums passes of a stage; what the host needs beyond the device becomes host excess.
PassTotals sum_pass(const StepContext& c, const Pass& layer, double layers, const Pass* first, const Pass* last) {
  PassTotals t;
  double host = layer.host * layers;
  const auto add = [&](const Pass& pass, double times) {
    t.compute += pass.compute * times;
    t.tensor += pass.tensor * times;
    t.context += pass.context * times;
    t.expert += pass.expert * times;
  };
  add(layer, layers);
  for (const Pass* end : {first, last}) {
    if (end == nullptr) continue;
    add(*end, 1);
    host += end->host;
  }
  t.host_excess = c.software.serial_launches ? host : std::max(0.0, host - t.total());
  return t;
}

/// Stage that holds the head: the V of ZBV comes back to the first.
int last_stage(const Strategy& s) { return s.schedule == parallel::Schedule::kZeroBubbleV ? 0 : s.pipeline - 1; }

struct Stage {
  PassTotals forward, backward, recompute;
  StageCost cost;
  StageTimes times;
};

/// A rank of DualPipe works on two stages in turn and reduces the gradients of both.
Stage with_mirror(const Stage& a, const Stage& b) {
  const auto mean = [](const PassTotals& x, const PassTotals& y) {
    return PassTotals{(x.compute + y.compute) / 2, (x.tensor + y.tensor) / 2, (x.context + y.context) / 2,
                      (x.expert + y.expert) / 2, (x.host_excess + y.host_excess) / 2};
  };
  Stage out = a;
  out.forward = mean(a.forward, b.forward);
  out.backward = mean(a.backward, b.backward);
  out.recompute = mean(a.recompute, b.recompute);
  out.times = {(a.times.forward + b.times.forward) / 2, (a.times.backward + b.times.backward) / 2,
               (a.times.weight_gradient + b.times.weight_gradient) / 2};
  out.cost.forward_kernels = out.times.forward > 0 ? out.forward.compute / out.times.forward : 1;
  out.cost.backward_kernels = out.times.backward > 0 ? (out.backward.compute + out.recompute.compute) / out.times.backward : 1;
  out.cost.layers += b.cost.layers;
  out.cost.parameters += b.cost.parameters;
  out.cost.root_parameters += b.cost.root_parameters;
  out.cost.embedding_parameters += b.cost.embedding_parameters;
  out.cost.end_forward_s += b.cost.end_forward_s;
  out.cost.end_backward_s += b.cost.end_backward_s;
  return out;
}

/// Share of the expert exchanges that a pass shows beside another micro-batch's (Megatron's overlap of the all-to-all,
/// DualPipe): both passes' exchanges against both passes' kernels.
double paired_expert(const StepContext& c, const LayerCost& layer) {
  if (!c.strategy.overlap_expert || c.strategy.accumulate < 2 || c.strategy.schedule == parallel::Schedule::kGpipe) return 1;
  const double exchanges = layer.forward.expert + layer.backward.expert + layer.recompute.expert;
  const double kernels = layer.forward.compute + layer.backward.compute + layer.recompute.compute;
  if (exchanges <= 0) return 1;
  return std::min(1.0, (overlapped(kernels, exchanges, interference(c.job.accelerator, c.constants)) - kernels) / exchanges);
}

LayerCost with_expert_share(LayerCost layer, double share) {
  for (Pass* pass : {&layer.forward, &layer.backward, &layer.recompute}) pass->expert *= share;
  return layer;
}

/// Local SGD: the mean of a step that averages the replicas and those that do not.
void average_steps(int steps, DataPieces& data) {
  for (TransferPieces* t : {&data.reduce, &data.reduce_last}) {
    t->seconds /= steps;
    t->latency_s /= steps;
    t->bytes /= steps;
  }
}

/// Forward passes' worth of products in a step: frozen weights have input gradients only.
double passes_of(const parallel::Job& job) { return job.frozen_weights ? 2 : 3; }

/// Forward FLOPs of the head per rank, spread over the pipeline.
double last_flops(const StepContext& c) {
  return 2 * c.tokens * c.job.model.vocab / c.strategy.tensor * c.job.model.hidden / c.strategy.pipeline;
}

/// Pinned copies between an accelerator and its host's memory, one direction.
double host_copy_bytes_per_s(const hardware::Accelerator& accelerator, const Constants& constants) {
  const double pcie = hardware::pcie_bytes_per_s(std::max(3, accelerator.pcie_generation), 16).value_or(12e9);
  return std::max(pcie, accelerator.host_link_bytes_per_s) * constants.pinned_copy_share;
}

/// Specified memory rate of a host of two sockets that are as old as its accelerators, or of a Grace module for the two
/// accelerators that share it (512 GB/s: NVIDIA Grace data sheet).
double host_memory_bytes_per_s(const hardware::Accelerator& accelerator, double ranks_on_host) {
  if (accelerator.host_link_bytes_per_s > 0) return 512e9 * std::max(1.0, ranks_on_host / 2);
  return 2 * hardware::socket_memory_bytes_per_s(accelerator.pcie_generation);
}

/// Parameters that a rank holds of the mean layer of so many of each kind.
double layer_parameters(const StepContext& c, const model::ParameterCount& count, const model::LayerCounts& kinds) {
  double sum = 0;
  for (int i = 0; i < model::LayerCounts::kKinds; ++i) {
    if (kinds.at(i) == 0) continue;
    const model::LayerParameters one = model::layer_parameters(c.job.model, count, model::LayerCounts::kind(i));
    sum += kinds.at(i) * (one.dense + one.experts / c.strategy.expert);
  }
  return sum / std::max(1, kinds.total()) / c.strategy.tensor;
}

/// Modules that predict further tokens, on the last stage.
double further_parameters(const StepContext& c, const model::ParameterCount& count) {
  const model::Model& m = c.job.model;
  if (m.further.modules == 0) return 0;
  const model::LayerCounts kinds = m.further_kinds();
  double experts = 0;
  for (int i = 0; i < model::LayerCounts::kKinds; ++i) {
    if (kinds.at(i) > 0) experts += kinds.at(i) * model::layer_parameters(m, count, model::LayerCounts::kind(i)).experts;
  }
  experts *= m.further.shared_weights ? 1 : m.further.modules;
  return (count.further - experts * (1 - 1.0 / c.strategy.expert)) / c.strategy.tensor;
}

using KindCosts = std::vector<LayerCost>;  // by LayerCounts::index; empty where all layers are alike

KindCosts cost_of_kinds(const StepContext& c, const model::LayerCounts& kinds) {
  KindCosts costs(model::LayerCounts::kKinds);
  for (int i = 0; i < model::LayerCounts::kKinds; ++i) {
    if (kinds.at(i) > 0) costs[static_cast<std::size_t>(i)] = layer_cost(c, model::LayerCounts::kind(i));
  }
  return costs;
}

}  // namespace

struct Predictor::Impl {
  parallel::Job job;
  collective::Scale scale;
  Parameters parameters;
  collective::Network network;
  compute::KernelModel kernels;
  compute::LaunchModel launches;
  model::ParameterCount count;
  model::LayerCounts kinds;
  double sequence_flops;  ///< of one sequence, forward and backward

  Impl(const parallel::Job& j, const collective::Scale& s, const Parameters& constants)
      : job(j),
        scale(s),
        parameters(constants),
        network(j.cluster, j.accelerator, s, constants.collective),
        kernels(j.accelerator, compute::Clock::kSustained, constants.compute),
        launches(constants.compute),
        count(model::count_parameters(j.model)),
        kinds(j.model.kinds()),
        sequence_flops(passes_of(j) / 3 * model::step_flops(j.model, j.sequence, 1, model::FlopConvention::kModelFullAttention)) {}

  /// `record`: where the pieces of the step go, if anyone asks.
  Prediction evaluate(const Strategy& strategy, Pieces* record = nullptr) const;
  Stage stage(const StepContext& c, const LayerCost& layer, const model::LayerCounts& held, const EndCost& first,
              const EndCost& last, int index, int layers) const;
  void add_data_parallel(const StepContext& c, const std::vector<Stage>& stages, Prediction& p) const;
  void add_optimizer(const StepContext& c, const Stage& slowest, Prediction& p) const;
  void describe(const StepContext& c, const LayerCost& layer, Prediction& p) const;
};

Stage Predictor::Impl::stage(const StepContext& c, const LayerCost& layer, const model::LayerCounts& held, const EndCost& first,
                             const EndCost& last, int index, int stage_layers) const {
  const Strategy& s = c.strategy;
  const bool is_first = index == 0;
  const bool is_last = index == last_stage(s);
  Stage out;
  out.cost.layers = stage_layers;
  const double layers = out.cost.layers;
  out.forward = sum_pass(c, layer.forward, layers, is_first ? &first.forward : nullptr, is_last ? &last.forward : nullptr);
  out.backward = sum_pass(c, layer.backward, layers, is_first ? &first.backward : nullptr, is_last ? &last.backward : nullptr);
  out.recompute = sum_pass(c, layer.recompute, layers, nullptr, nullptr);
  out.times.forward = out.forward.total();
  out.times.backward = out.backward.total() + out.recompute.total();
  out.times.weight_gradient = 0.5 * (out.backward.compute);
  if (layers > 0) {
    const double end_forward = (is_first ? first.forward.device() : 0) + (is_last ? last.forward.device() : 0);
    const double end_backward = (is_first ? first.backward.device() : 0) + (is_last ? last.backward.device() : 0);
    out.cost.end_forward_s = std::min(end_forward, out.times.forward);
    out.cost.end_backward_s = std::min(end_backward, out.times.backward);
    out.cost.layer_forward_s = (out.times.forward - out.cost.end_forward_s) / layers;
    out.cost.layer_backward_s = (out.times.backward - out.cost.end_backward_s) / layers;
  }
  const double backward_kernels = out.backward.compute + out.recompute.compute;
  if (out.times.forward > 0) out.cost.forward_kernels = out.forward.compute / out.times.forward;
  if (out.times.backward > 0) out.cost.backward_kernels = backward_kernels / out.times.backward;
  out.cost.unit_parameters = layer_parameters(c, count, held);
  const double tied_copy = job.model.tied_embeddings && s.pipeline > 1 ? count.embedding : 0;
  out.cost.root_parameters = ((is_first ? count.embedding : 0) + (is_last ? count.head + count.final + (is_first ? 0 : tied_copy) : 0)) / s.tensor;
  if (is_last) out.cost.root_parameters += further_parameters(c, count);
  out.cost.embedding_parameters = is_first ? count.embedding / s.tensor : 0;
  out.cost.parameters = out.cost.unit_parameters * layers + out.cost.root_parameters;
  return out;
}

void Predictor::Impl::add_data_parallel(const StepContext& c, const std::vector<Stage>& stages, Prediction& p) const {
  // A later stage ends its last backward before the earlier ones: their backward time is its slack.
  Exposed worst;
  Slack slack;
  slack.chunks = c.strategy.virtual_stages;
  slack.hops = c.strategy.pipeline;
  const bool dual = c.strategy.schedule == parallel::Schedule::kDualPipe;
  const bool v = c.strategy.schedule == parallel::Schedule::kZeroBubbleV;
  if (dual) slack.chunks = 2;
  const int count_of_stages = c.strategy.pipeline;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    // The V comes back to its later stages at once; the other end's first micro-batch to the middle ones.
    const int at = static_cast<int>(i);
    if (v) slack.hops = 2 * (count_of_stages - 1 - at) + 1;
    if (dual) slack.hops = std::max(1, count_of_stages - 1 - 2 * std::min(at, count_of_stages - 1 - at));
    Exposed e = data_parallel(c, stages[i].cost, slack);
    if (c.strategy.local_steps > 1) e.reduce_s /= c.strategy.local_steps;
    if (e.gather_s + e.reduce_s > worst.gather_s + worst.reduce_s) worst = e;
    if (dual) continue;  // both ends begin and end together
    slack.gather_s += stages[i].times.forward / c.strategy.virtual_stages;
    slack.reduce_s += stages[i].times.backward / c.strategy.virtual_stages;
  }
  p.bill[static_cast<std::size_t>(Bill::kDataGather)] += worst.gather_s;
  p.bill[static_cast<std::size_t>(Bill::kDataReduce)] += worst.reduce_s;
  if (job.model.tied_embeddings && last_stage(c.strategy) > 0) {
    p.bill[static_cast<std::size_t>(Bill::kDataReduce)] += tied_pieces(c, count.embedding).seconds;
  }
}

void Predictor::Impl::add_optimizer(const StepContext& c, const Stage& slowest, Prediction& p) const {
  const Strategy& s = c.strategy;
  const double shard = s.zero >= 1 ? static_cast<double>(c.groups.shard.ranks) : 1.0;
  const double own = slowest.cost.parameters / shard;
  p.bill[static_cast<std::size_t>(Bill::kOptimizer)] += c.constants.machine_pace * kernels.memory_s(own * c.software.optimizer_bytes);
  const bool offloaded = s.offload == parallel::Offload::kOptimizer || s.offload == parallel::Offload::kAll;
  if (offloaded) {
    // Gradients down, parameters up over PCIe; Adam on the host is bound by its memory (28 bytes per parameter, shared
    // by the GPUs of a host).
    const double pcie = host_copy_bytes_per_s(job.accelerator, c.constants);
    const double ranks_on_host = std::min(job.gpus, job.cluster.gpus_per_host());
    p.bill[static_cast<std::size_t>(Bill::kOffload)] +=
        own * 6 / pcie + own * ranks_on_host * 28 / (c.constants.host_adam_share * host_memory_bytes_per_s(job.accelerator, ranks_on_host));
  }
  if (s.offload == parallel::Offload::kParameters || s.offload == parallel::Offload::kAll) {
    const double pcie = host_copy_bytes_per_s(job.accelerator, c.constants);
    p.bill[static_cast<std::size_t>(Bill::kOffload)] += s.accumulate * 2 * 2 * own / pcie;
  }
  if (s.offload == parallel::Offload::kActivations) {
    // What leaves the device in forward comes back in backward; only what outlasts the micro-step's kernels shows.
    Strategy kept = s;
    kept.offload = parallel::Offload::kNone;
    const double bytes = parallel::memory_per_rank(job, kept).allocated_bytes - parallel::memory_per_rank(job, s).allocated_bytes;
    const double pcie = host_copy_bytes_per_s(job.accelerator, c.constants);
    const double busy = slowest.times.forward + slowest.times.backward;
    p.bill[static_cast<std::size_t>(Bill::kOffload)] += s.accumulate * std::max(0.0, 2 * std::max(0.0, bytes) / pcie - busy);
  }
  p.bill[static_cast<std::size_t>(Bill::kOther)] += c.constants.step_fixed_s;
}

Prediction Predictor::Impl::evaluate(const Strategy& s, Pieces* record) const {
  Prediction p;
  p.strategy = s;
  const parallel::Software software = parallel::software_of(job, s);
  const Groups groups = groups_of(job, s);
  const double tokens = static_cast<double>(s.micro_batch) * job.sequence / s.context;
  const StepContext c{job, s, software, kernels, launches, network, groups, parameters.step, tokens};
  const bool uniform = kinds.uniform();
  const KindCosts costs = uniform ? KindCosts{} : cost_of_kinds(c, kinds);
  const LayerCost layer_cost = uniform ? simulate::layer_cost(c, job.model.kind_of(0)) : mixed(costs, kinds);
  const double paired = paired_expert(c, layer_cost);
  const LayerCost steady = with_expert_share(layer_cost, paired);
  const EndCost first = embedding(c);
  const EndCost last = head(c);
  std::vector<Stage> stages;
  std::vector<LayerCost> stage_layer;  // where the layers differ
  model::LayerCounts before;
  std::vector<StageTimes> times;
  const std::vector<int> layers = parallel::layers_per_stage(job, s);
  for (int i = 0; i < s.pipeline; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const model::LayerCounts held = uniform ? kinds : parallel::kinds_of_stage(job, s, layers, i);
    // Between the ends alike.
    const bool same = i > 1 && i + 1 < s.pipeline && layers[at] == layers[at - 1] && held == before;
    if (!uniform) stage_layer.push_back(same ? stage_layer.back() : mixed(costs, held));
    if (same) {
      stages.push_back(stages.back());
    } else {
      stages.push_back(stage(c, uniform ? steady : with_expert_share(stage_layer.back(), paired), held, first, last, i, layers[at]));
    }
    before = held;
    stages.back().cost.alone_forward_s = (1 - paired) * layer_cost.forward.expert * layers[at];
    stages.back().cost.alone_backward_s = (1 - paired) * (layer_cost.backward.expert + layer_cost.recompute.expert) * layers[at];
  }
  std::vector<Stage> single;
  if (s.schedule == parallel::Schedule::kDualPipe) {
    single = stages;
    for (std::size_t i = 0; i < stages.size(); ++i) stages[i] = with_mirror(single[i], single[single.size() - 1 - i]);
  }
  for (const Stage& st : single.empty() ? stages : single) times.push_back(st.times);
  // Tensor ranks send a slice each and gather on the other side (arXiv 2104.04473 section 4.1; DeepSpeed partitions too).
  const double activation = tokens * job.model.hidden * 2 / s.tensor;
  const collective::Cost hop = s.pipeline > 1 ? network.send(activation, groups.stage_distance, job.gpus) : collective::Cost{};
  const double wire = hop.time_s - hop.latency_s;
  double send = hop.time_s;
  if (s.pipeline > 1 && s.tensor > 1 && !s.sequence_parallel) {
    send += network.cost(Op::kAllGather, activation * s.tensor, groups.tensor).time_s;
  }
  const bool blocking = job.year <= 2022 && s.schedule == parallel::Schedule::kInterleaved;
  const PipelineTime pipe = pipeline_time(times, s.accumulate, s.virtual_stages, s.schedule, send, blocking, wire);
  const Stage& slow = stages[static_cast<std::size_t>(pipe.slowest)];
  const double m = s.accumulate;
  const auto bill = [&p](Bill item) -> double& { return p.bill[static_cast<std::size_t>(item)]; };
  bill(Bill::kCompute) = m * (slow.forward.compute + slow.backward.compute);
  bill(Bill::kRecompute) = m * slow.recompute.compute;
  bill(Bill::kTensor) = m * (slow.forward.tensor + slow.backward.tensor + slow.recompute.tensor);
  bill(Bill::kContext) = m * (slow.forward.context + slow.backward.context + slow.recompute.context);
  bill(Bill::kExpert) = m * (slow.forward.expert + slow.backward.expert + slow.recompute.expert);
  // A micro-batch that fills or drains the pipeline has no other beside it.
  const double exchanges = layer_cost.forward.expert + layer_cost.backward.expert + layer_cost.recompute.expert;
  bill(Bill::kExpert) += (1 - paired) * exchanges * job.model.layers / s.virtual_stages;
  bill(Bill::kHost) = m * (slow.forward.host_excess + slow.backward.host_excess + slow.recompute.host_excess);
  bill(Bill::kPipeline) = pipe.transfer;
  bill(Bill::kBubble) = pipe.bubble;
  add_data_parallel(c, stages, p);
  add_optimizer(c, slow, p);
  for (const double item : p.bill) p.step_time_s += item;
  if (record != nullptr) {
    *record = step_pieces(c, hop, send, blocking, p);
    for (std::size_t i = 0; i < stages.size(); ++i) {
      const Stage& st = single.empty() ? stages[i] : single[i];
      const EndCost* ends[] = {i == 0 ? &first : nullptr, static_cast<int>(i) == last_stage(s) ? &last : nullptr};
      record->stages.push_back(stage_pieces(c, uniform ? layer_cost : stage_layer[i], ends[0], ends[1], st.cost,
                                            {st.forward.host_excess, st.backward.host_excess, st.recompute.host_excess, st.times.weight_gradient}));
      StagePieces& piece = record->stages.back();
      piece.paired_expert = paired;
      if (s.schedule == parallel::Schedule::kDualPipe) piece.data = data_pieces(c, stages[i].cost);
      if (s.local_steps > 1) average_steps(s.local_steps, piece.data);
    }
    if (job.model.tied_embeddings && last_stage(s) > 0) record->tied_embedding = tied_pieces(c, count.embedding);
    return p;
  }
  const double sequences = job.global_batch;
  p.tokens_per_s_per_gpu = sequences * job.sequence / p.step_time_s / job.gpus;
  const double flops = sequences * sequence_flops;
  p.model_flops_per_s_per_gpu = flops / p.step_time_s / job.gpus;
  const double peak = job.accelerator.peak(job.dtype);
  p.mfu = peak > 0 ? p.model_flops_per_s_per_gpu / peak : 0;
  // Recomputed products against the useful ones, three times the forward's; the head is not recomputed.
  const double forward = layer_cost.matmul_flops * job.model.layers / s.pipeline + last_flops(c);
  p.hfu = forward > 0 ? p.mfu * (1 + layer_cost.recompute_flops * job.model.layers / s.pipeline / (passes_of(job) * forward)) : p.mfu;
  p.memory = parallel::memory_per_rank(job, s);
  set_band(job, parameters.step, p);
  return p;
}

void Predictor::Impl::describe(const StepContext& c, const LayerCost& layer_cost, Prediction& p) const {
  const double peak = job.accelerator.peak(job.dtype);
  const double ideal = p.model_flops_per_s_per_gpu * p.step_time_s / std::max(1.0, peak);
  if (peak <= 0 || ideal <= 0) return;
  const double micro_steps = c.strategy.accumulate;
  // Products at the sustained rate of large shapes, then at the rate of this job's shapes, then with everything else
  // that computes.
  const double sustained = ideal / std::max(0.05, kernels.sustained_fraction(job.dtype));
  const double compute = p.item(Bill::kCompute);
  const double layers = static_cast<double>(job.model.layers) / c.strategy.pipeline;
  const double products = std::clamp(passes_of(job) * micro_steps * layers * layer_cost.matmul_s, std::min(sustained, compute), compute);
  double elapsed = ideal;
  const auto rung = [&](const char* name, double until) {
    elapsed = std::max(elapsed, until);
    p.ladder.push_back({name, ideal / elapsed});
  };
  rung("peak", ideal);
  rung("sustained clocks", sustained);
  rung("kernel shapes", products);
  rung("memory-bound operators", compute);
  double at = std::max(elapsed, compute);
  const auto add = [&](const char* name, std::initializer_list<Bill> items) {
    double sum = 0;
    for (const Bill item : items) sum += p.item(item);
    if (sum <= 0) return;
    at += sum;
    rung(name, at);
  };
  add("recompute", {Bill::kRecompute});
  add("host and launch", {Bill::kHost});
  add("bubble", {Bill::kBubble});
  add("exposed tensor", {Bill::kTensor});
  add("exposed context", {Bill::kContext});
  add("exposed expert", {Bill::kExpert});
  add("exposed pipeline", {Bill::kPipeline});
  add("exposed data-gather", {Bill::kDataGather});
  add("exposed data-reduce", {Bill::kDataReduce});
  add("optimizer, offload and step overhead", {Bill::kOptimizer, Bill::kOffload, Bill::kOther});
}

Predictor::Predictor(const parallel::Job& job, const collective::Scale& scale, const Parameters& parameters)
    : impl_(std::make_unique<Impl>(job, scale, parameters)) {}
Predictor::~Predictor() = default;
Predictor::Predictor(Predictor&&) noexcept = default;
Predictor& Predictor::operator=(Predictor&&) noexcept = default;
const parallel::Job& Predictor::job() const { return impl_->job; }

void Predictor::set_parameters(const Parameters& parameters) {
  if (!(parameters.collective == impl_->parameters.collective)) {
    impl_->network = collective::Network(impl_->job.cluster, impl_->job.accelerator, impl_->scale, parameters.collective);
  }
  if (!(parameters.compute == impl_->parameters.compute)) {
    impl_->kernels = compute::KernelModel(impl_->job.accelerator, compute::Clock::kSustained, parameters.compute);
    impl_->launches = compute::LaunchModel(parameters.compute);
  }
  impl_->parameters = parameters;
}

Prediction Predictor::evaluate(const Strategy& completed) const { return impl_->evaluate(completed); }

Pieces Predictor::pieces(const Strategy& completed) const {
  Pieces pieces;
  impl_->evaluate(completed, &pieces);
  return pieces;
}

Result<Prediction> Predictor::predict(const Strategy& strategy) const {
  TRY_INTO(const Strategy full, parallel::completed(impl_->job, strategy));
  if (impl_->job.accelerator.peak(impl_->job.dtype) <= 0) {
    return fail(fmt::format("{} has no {} arithmetic", impl_->job.accelerator.name, hardware::name(impl_->job.dtype)));
  }
  Prediction p = impl_->evaluate(full);
  const parallel::Software software = parallel::software_of(impl_->job, full);
  const Groups groups = groups_of(impl_->job, full);
  const double tokens = static_cast<double>(full.micro_batch) * impl_->job.sequence / full.context;
  const StepContext c{impl_->job, full, software, impl_->kernels, impl_->launches, impl_->network, groups, impl_->parameters.step, tokens};
  impl_->describe(c, mixed(cost_of_kinds(c, impl_->kinds), impl_->kinds), p);
  p.assumptions = impl_->job.assumptions;
  for (Note& note : why_band_is_wide(impl_->job, p)) p.assumptions.push_back(std::move(note));
  const parallel::Job& job = impl_->job;
  const double square = model::forward_flops(job.model, job.sequence, false).total;
  const double half = model::forward_flops(job.model, job.sequence, true).total;
  if (job.causal && square > 1.1 * half) {
    p.assumptions.push_back({fmt::format("MFU counts the full attention square, as published tables do; counting the causal half it is {:.3f}",
                                         p.mfu * half / square), {}});
  }
  return p;
}

std::string_view name(Bill item) {
  switch (item) {
    case Bill::kCompute: return "compute";
    case Bill::kRecompute: return "recompute";
    case Bill::kTensor: return "tensor";
    case Bill::kContext: return "context";
    case Bill::kExpert: return "expert";
    case Bill::kPipeline: return "pipeline";
    case Bill::kDataGather: return "data-gather";
    case Bill::kDataReduce: return "data-reduce";
    case Bill::kBubble: return "bubble";
    case Bill::kHost: return "host";
    case Bill::kOptimizer: return "optimizer";
    case Bill::kOffload: return "offload";
    case Bill::kOther: return "other";
  }
  return "?";
}

}  // namespace chokepoint::simulate
