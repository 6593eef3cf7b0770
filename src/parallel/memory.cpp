// SPDX-License-Identifier: Apache-2.0
// Problem: peak memory of the fullest rank. Idea: what is resident all step long (exact counts over the ranks that share
// it) plus the larger of three moments: the loss (all activations and the logits), the backward of a layer (all
// activations and its working set) and the optimizer step (temporaries, no activations). Reserved memory adds what the
// caching allocator cannot reuse; when the device is full it gives a part of that back, so the verdict counts other
// bytes than a printed peak shows. The device's capacity is less by the context and the communicators.
#include <chokepoint/parallel/memory.hpp>
#include <chokepoint/parallel/memory_floor.hpp>
#include <chokepoint/parallel/software.hpp>

#include "activations.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace chokepoint::parallel {

namespace {

constexpr double kGiB = 1073741824.0;
/// CUDA context with the kernels PyTorch loads: nvidia-smi of an idle process, less what the allocator reserved.
constexpr double kContextBytes = 0.6 * kGiB;
/// NCCL buffers of one channel and peer: 4 MiB Simple, 4.7 MiB LL128, 0.5 MiB LL (src/init.cc, NCCL_BUFFSIZE and the
/// defaults beside it).
constexpr double kConnectionBytes = 9.2 * 1048576;
/// Peers that send to a rank in each channel: one in the ring, two more in the double tree. All were connected at start
/// until NCCL 2.19 (end of 2023, NCCL_RUNTIME_CONNECT), since then those of the algorithm that is used.
constexpr double kEagerPeers = 3;
constexpr int kLazyConnectYear = 2024;
/// Driver and ECC tables: an "80 GB" part offers 79.1-79.3 GiB to the allocator.
constexpr double kUsableShare = 0.989;
/// cuBLAS workspaces, rotary tables, input tokens, loss scalars: live tensors that do not grow with the model.
constexpr double kSmallTensorsBytes = 0.1e9;
/// Share of activations and transients that the caching allocator holds but cannot use (blocks of other sizes).
constexpr double kFragmentation = 0.03;
/// The same share of the activations where gathers come free late: the next one splits a block of activations, which
/// then takes a new block (c10 CUDACachingAllocator, best fit).
constexpr double kSplitShare = 0.1;
/// Gathered inputs that wait for their event at most: the host runs 1,024 launches ahead (the depth of a CUDA stream's
/// queue), about one gather in twenty of them.
constexpr double kWaitingGathers = 52;
/// Part of the waiting blocks that does not come back when the device is full: their segments hold other tensors too.
constexpr double kWaitingKept = 0.5;
/// Adapters train in fp32: weight, gradient, two Adam moments (PEFT casts them, autocast_adapter_dtype).
constexpr double kAdapterBytes = 16;
/// Two times the median error of the peaks that published runs print.
constexpr double kTightShare = 0.07;
/// DeepSpeed's gradients pass through buffers of the configured size: two with overlap_comm, the default of stage 3 alone.
double reduce_buffers(int zero) { return zero == 3 ? 2 : 1; }

struct StageShape {
  int index = 0;
  int layers = 0;
  model::LayerCounts kinds;
  bool first = false;
  bool last = false;
  double in_flight = 1;  ///< micro-batches (of all the stage's layers) held at once
};

double in_flight(const Strategy& s, int stage) {
  const double p = s.pipeline;
  const double m = s.accumulate;
  const double i = stage;
  switch (s.schedule) {
    case Schedule::kGpipe: return m;
    case Schedule::kInterleaved: {
      const double v = s.virtual_stages;
      return std::min(m, ((v - 1) * p + 2 * (p - i) - 1) / v);
    }
    // The bound of the schedule's authors: twice 1F1B's first stage, on every stage (arXiv 2401.10241, table 5).
    case Schedule::kZeroBubble2: return std::min(m, 2 * p - 1);
    // The V's two chunks are half a stage each, 2p of them at most (arXiv 2401.10241, section 6: memory of 1F1B).
    case Schedule::kZeroBubbleV: return std::min(m, p);
    // PP + 1 stages' worth on every rank, which holds two stages (arXiv 2412.19437, table 2).
    case Schedule::kDualPipe: return std::min(m, p + 1) / 2;
    // A weight gradient that waits keeps its input, so every stage holds what the first one does.
    case Schedule::kZeroBubble1: return std::min(m, p);
    case Schedule::kOneForwardOneBackward: break;
  }
  return std::min(m, p - i);
}

StageShape shape_of(const Job& job, const Strategy& s, const std::vector<int>& layers, int index) {
  StageShape stage;
  stage.index = index;
  const int mirror = static_cast<int>(layers.size()) - 1 - index;
  stage.layers = layers[static_cast<std::size_t>(index)];
  stage.first = index == 0;
  stage.last = s.schedule == Schedule::kZeroBubbleV ? index == 0 : mirror == 0;
  stage.in_flight = std::max(s.schedule == Schedule::kDualPipe ? 0.5 : 1.0, in_flight(s, index));
  stage.kinds = kinds_of_stage(job, s, layers, index);
  if (s.schedule != Schedule::kDualPipe || mirror == index) return stage;
  stage.layers += layers[static_cast<std::size_t>(mirror)];
  const model::LayerCounts mirrored = kinds_of_stage(job, s, layers, mirror);
  for (int i = 0; i < model::LayerCounts::kKinds; ++i) stage.kinds[model::LayerCounts::kind(i)] += mirrored.at(i);
  stage.first = stage.last = index == 0 || mirror == 0;
  return stage;
}

/// Parameters of a rank before data-parallel sharding.
struct StageParameters {
  double dense = 0;    ///< replicated over the data-parallel ranks unless sharded
  double experts = 0;  ///< already divided over the expert-parallel ranks
  double ends = 0;     ///< of `dense`: input table and head, one gathered unit each
  double shapes = 0;   ///< of one layer, each shape of matrix once: one expert stands for all
  double total() const { return dense + experts; }
};

/// Modules that predict further tokens, on the last stage; in a pipeline their embedding is a copy of the first stage's.
void add_further(const model::Model& m, const model::ParameterCount& count, const Strategy& s, StageParameters& out) {
  if (m.further.modules == 0) return;
  double experts = 0;
  const model::LayerCounts kinds = m.further_kinds();
  for (int i = 0; i < model::LayerCounts::kKinds; ++i) {
    if (kinds.at(i) > 0) experts += kinds.at(i) * model::layer_parameters(m, count, model::LayerCounts::kind(i)).experts;
  }
  experts *= m.further.shared_weights ? 1 : m.further.modules;
  out.experts += experts / std::max(1, s.expert);
  out.dense += count.further - experts;
  if (s.pipeline > 1 && !m.tied_embeddings) out.dense += count.embedding;
}

StageParameters parameters_of(const Job& job, const model::ParameterCount& count, const Strategy& s, const StageShape& stage) {
  const model::Model& m = job.model;
  StageParameters out;
  bool mlp = false;
  bool experts = false;
  double mixers = 0;  // each kind of matrix once
  const double scale = stage.layers / static_cast<double>(std::max(1, stage.kinds.total()));
  for (int i = 0; i < model::LayerCounts::kKinds; ++i) {
    if (stage.kinds.at(i) == 0) continue;
    const model::LayerKind kind = model::LayerCounts::kind(i);
    const model::LayerParameters one = model::layer_parameters(m, count, kind);
    out.dense += scale * stage.kinds.at(i) * one.dense;
    out.experts += scale * stage.kinds.at(i) * one.experts / std::max(1, s.expert);
    mlp = mlp || kind.channel == model::Channel::kMlp;
    experts = experts || kind.channel == model::Channel::kExperts;
    mixers = std::max(mixers, kind.recurs() ? std::max(count.mamba_per_layer, count.delta_per_layer) : kind.attends() ? count.attention_per_layer : 0);
  }
  if (stage.first) out.ends += count.embedding;
  const double copy = s.pipeline > 1 && m.tied_embeddings ? count.embedding : 0;
  if (stage.last) out.ends += count.head + copy;
  out.dense += out.ends;
  if (stage.last) add_further(m, count, s, out);
  if (stage.last) out.dense += count.final;
  const double matrices = m.gated_mlp ? 3 : 2;
  const double widths = (experts ? m.moe->expert_ffn_hidden + m.moe->shared_ffn_hidden : 0) + (mlp ? m.ffn_hidden : 0);
  out.shapes = (mixers + matrices * m.hidden * widths) / s.tensor;
  out.dense /= s.tensor;
  out.experts /= s.tensor;
  out.ends /= s.tensor;
  return out;
}

/// Parts that are live at once; a fixed array, for a plan asks for thousands.
class Moment {
 public:
  void add(const char* name, double bytes) {
    if (bytes <= 0) return;
    parts_[count_++] = {name, bytes};
    sum_ += bytes;
  }
  double sum() const { return sum_; }
  void append_to(std::vector<MemoryPart>& out) const { out.insert(out.end(), parts_.begin(), parts_.begin() + static_cast<std::ptrdiff_t>(count_)); }

 private:
  std::array<MemoryPart, 12> parts_{};
  std::size_t count_ = 0;
  double sum_ = 0;
};

struct StageModel {
  const Job& job;
  const Strategy& s;
  const Software& software;
  const StageShape& stage;
  StageParameters parameters;
  double shard = 1;         ///< ranks that share one copy
  double expert_shard = 1;  ///< ranks that share one copy of an expert
  double tokens = 0;        ///< of a micro-batch on this rank
  LayerActivations layer;

  StageModel(const Job& j, const model::ParameterCount& count, const Strategy& st, const Software& so, const StageShape& sh)
      : job(j), s(st), software(so), stage(sh), parameters(parameters_of(j, count, st, sh)) {
    shard = s.shard_ranks > 0 ? s.shard_ranks : static_cast<double>(s.data) * s.context;
    expert_shard = std::max(1.0, shard / std::max(1, s.expert));
    tokens = static_cast<double>(s.micro_batch) * job.sequence / s.context;
    layer = mean_activations(job, s, software, stage.kinds);
  }

  double held(bool sharded) const {
    return sharded ? parameters.dense / shard + parameters.experts / expert_shard : parameters.total();
  }
  double ranks_reducing() const { return static_cast<double>(s.data) * s.context; }
  /// Ranks of the shard inside one host.
  double host_ranks() const {
    const double inside = static_cast<double>(job.cluster.gpus_per_host()) / s.tensor;
    return std::clamp(inside, 1.0, std::max(1.0, shard));
  }
  /// Parameters of low-rank adapters beside each product: rank x (inputs + outputs).
  double adapters() const {
    const model::Model& m = job.model;
    const double q = static_cast<double>(m.heads) * m.head_dim;
    const double kv = static_cast<double>(m.kv_heads) * m.head_dim;
    const double sides = 4.0 * m.hidden + 2 * q + 2 * kv + (m.gated_mlp ? 3 : 2) * (m.hidden + static_cast<double>(m.ffn_hidden));
    return job.adapter_rank * sides * stage.layers / s.tensor;
  }
  /// Losses whose logits are live at once: the model's and those of further tokens.
  double losses() const { return 1 + job.model.further.modules; }
  /// Of all modules that predict further tokens, per token; one micro-batch is live on the last stage.
  double further_activations(bool checkpoint) const {
    const model::LayerCounts kinds = job.model.further_kinds();
    const LayerActivations one = mean_activations(job, s, software, kinds);
    return job.model.further.modules * kinds.total() * (checkpoint ? one.checkpoint : one.saved);
  }
  double vocab() const { return job.padded_vocab > 0 ? job.padded_vocab : job.model.vocab; }
  double logits() const { return head_tokens() * vocab() / s.tensor; }
  /// One per image, the decoder's of an encoder-decoder, else all.
  double head_tokens() const {
    if (job.model.patch_inputs > 0) return s.micro_batch;
    return job.model.encoder_layers == 0 ? tokens : tokens * job.model.tokens_of(model::Mixer::kCross, job.sequence) / job.sequence;
  }
  double head() const { return vocab() * job.model.hidden / s.tensor; }
};

bool offloads_optimizer(const Strategy& s) { return s.offload == Offload::kOptimizer || s.offload == Offload::kAll; }

Moment resident(const StageModel& m) {
  const Strategy& s = m.s;
  const Software& w = m.software;
  const bool offload_parameters = s.offload == Offload::kParameters || s.offload == Offload::kAll;
  Moment states;
  // FSDP's grad-op keeps its originals sharded too and only does not reshard after forward.
  const bool grad_op = s.zero == 2 && s.sharder == Sharder::kFsdp;
  if (s.secondary_shard) states.add("secondary shard", w.gather_bytes * m.parameters.total() / m.host_ranks());
  if (!offload_parameters) states.add("parameters", w.resident_parameter_bytes * m.held(s.zero == 3 || grad_op));
  // Parameters that stay gathered between forward and backward count as resident: they are whole at the loss.
  if (grad_op || (s.zero == 3 && !s.reshard_after_forward)) states.add("gathered parameters", w.gather_bytes * m.parameters.total());
  if (!offloads_optimizer(s)) {
    // DeepSpeed's own estimate for stage 2 keeps working gradients whole: 4 bytes per parameter replicated, 16 shared
    // (runtime/zero/stage_1_and_2.py, estimate_zero2_model_states_mem_needs).
    const bool whole = (s.zero == 2 && s.sharder == Sharder::kDeepspeed) || (s.sync_last_only && s.accumulate > 1);
    states.add("gradients", w.gradient_bytes * m.held(s.zero >= 2 && !whole));
    states.add("optimizer states", w.master_bytes * m.held(s.zero >= 1));
  }
  states.add("gradient accumulation", w.accumulation_bytes * m.held(s.zero >= 2));
  // DDP without peers has no buckets; ZeRO copies in any case.
  if (m.ranks_reducing() > 1 || s.zero > 0) states.add("gradient buckets", w.bucket_bytes * m.held(s.zero >= 2 || w.partitions_buckets));
  if (m.job.frozen_weights) states.add("adapters and their states", kAdapterBytes * m.adapters() / (s.zero >= 1 ? m.shard : 1));
  states.add("gradient placeholders", w.placeholder_bytes * m.parameters.shapes);
  states.add("workspaces", kSmallTensorsBytes);
  return states;
}

/// DeepSpeed's gradients pass through flat buffers of the configured size, allocated when a backward begins, whatever the
/// model (stage_1_and_2.py backward; stage3.py keeps it all the time).
double reduction_buckets(const StageModel& m) {
  if (m.s.zero == 0) return 0;
  return m.software.reduce_bucket_parameters * reduce_buffers(m.s.zero) * m.software.reduce_bytes;
}

Moment activations(const StageModel& m) {
  const Strategy& s = m.s;
  const double each = s.recompute == Recompute::kFull ? m.layer.checkpoint : m.layer.saved;
  double saved = m.stage.in_flight * m.stage.layers * each * m.tokens;
  if (m.stage.last && m.job.model.further.modules > 0) saved += m.further_activations(s.recompute == Recompute::kFull) * m.tokens;
  if (s.offload == Offload::kActivations) saved *= 0.1;
  Moment out;
  out.add("activations", saved);
  out.add("autocast copies", m.software.cast_bytes * m.held(s.zero == 3));
  out.add("reduction buckets", reduction_buckets(m));
  if (m.software.boundary_copies && s.pipeline > 1) {
    out.add("stage inputs and outputs", m.stage.in_flight * 2 * 2 * m.job.model.hidden * m.tokens);
  }
  return out;
}

/// Whole copies of sharded units around a layer. With gradients also those of one layer and their reduction input, unless
/// the framework reduces through buckets of its own (`reduction_buckets`).
double gathered_units(const StageModel& m, bool with_gradients) {
  const Software& w = m.software;
  if (m.s.zero < 2 || m.stage.layers == 0) return 0;
  const double unit = (m.parameters.total() - m.parameters.ends) / m.stage.layers;
  const bool bucketed = w.reduce_bucket_parameters > 0;
  // The reduction of the head, the first to be ready, runs under the backward of the last layer.
  const double head = m.stage.last ? m.head() : 0;
  const double reduced = with_gradients && !bucketed ? std::max(unit, head) * w.reduce_bytes + unit * 2 : 0;
  if (m.s.zero == 2 || !m.s.reshard_after_forward) return reduced;
  const double live = std::max(w.gathers_in_flight * unit, std::min(w.live_unit_parameters, m.parameters.total()));
  return live * w.gather_bytes + reduced;
}

Moment at_loss(const StageModel& m) {
  Moment out;
  if (!m.stage.last) return out;
  const double chunks = m.software.loss_chunks;
  const double head = m.head();
  out.add("logits and loss", m.losses() * m.logits() / chunks * m.software.logits_peak_bytes);
  if (m.s.sequence_parallel) out.add("gathered input of the head", 2 * m.tokens * m.job.model.hidden);
  if (m.s.zero == 3 && m.s.reshard_after_forward) out.add("gathered head", head * m.software.gather_bytes);
  // The head's gradient stays whole over the chunks; only the last one reduces it.
  if (m.s.zero == 3 && chunks > 1) out.add("gradient of the head", head * m.software.reduce_bytes);
  out.add("gathered units", 0.5 * gathered_units(m, false));
  return out;
}

Moment in_backward(const StageModel& m) {
  Moment out;
  double working = m.layer.gradients * m.tokens;
  if (m.s.recompute == Recompute::kFull) working += m.layer.recomputed * m.tokens;
  if (m.s.recompute == Recompute::kSelective) working += std::max(0.0, m.layer.recomputed - m.layer.saved) * m.tokens;
  out.add("working set", working);
  out.add("gathered units", gathered_units(m, true));
  return out;
}

Moment in_optimizer(const StageModel& m) {
  Moment out;
  if (offloads_optimizer(m.s)) return out;
  out.add("optimizer temporaries", m.software.step_bytes * m.held(m.s.zero >= 1));
  if (m.software.step_gathers_flat && m.ranks_reducing() > 1) {
    const double whole = m.software.gather_bytes * m.parameters.total();
    out.add("gathered parameters of the step", whole * (1 + 1 / m.shard));
  }
  return out;
}

/// Gathered inputs are freed at once but may only be reused when the communication stream has passed; a host that runs
/// ahead takes new blocks instead (c10::cuda allocator, record_stream). Without a pipeline it does so from one micro-batch
/// to the next; with one it waits for the first gradient, so the forwards before that count, less the two that overlap
/// with what comes back.
double waiting_gathers(const StageModel& m) {
  if (!m.software.queues_ahead || m.layer.gathers == 0) return 0;
  const double layer = m.layer.gathers * m.stage.layers;
  double gathers = layer * (m.s.pipeline == 1 ? 1 : std::max(0.0, m.stage.in_flight - 2));
  if (m.s.pipeline == 1 && m.s.accumulate > 1) gathers = kWaitingGathers;
  return std::min(gathers, kWaitingGathers) * m.layer.gathered * m.tokens;
}

/// Do gathers that come free late split blocks of activations? They do once backwards give blocks back for the next
/// forward, and while a gathered input fits into the largest block of a layer, the gate and up projection.
bool gathers_split_blocks(const StageModel& m) {
  return m.software.queues_ahead && m.layer.gathers > 0 && m.layer.widest > m.layer.gathered &&
         m.s.accumulate > m.stage.in_flight;
}

/// Channels that NCCL's search finds: rings over NVLink (12 on six links of a hybrid mesh, 24 on NVSwitch), else few.
double channels(hardware::Architecture architecture) {
  switch (architecture) {
    case hardware::Architecture::kVolta: return 12;
    case hardware::Architecture::kAmpere:
    case hardware::Architecture::kHopper:
    case hardware::Architecture::kBlackwell: return 24;
    default: return 16;
  }
}

double communicator_bytes(const Job& job, const Strategy& s, const Software& software) {
  if (job.gpus <= 1) return 0;
  double groups = 1;  // the default group
  for (const int degree : {s.tensor, s.pipeline, s.context, s.expert}) groups += degree > 1 ? software.groups_per_dimension : 0;
  if (s.data > 1 && s.data < job.gpus) groups += software.groups_per_dimension;
  if (s.pipeline > 1) groups += software.pipeline_groups;
  const double peers = job.year < kLazyConnectYear ? kEagerPeers : 1;
  return groups * peers * channels(job.accelerator.architecture) * kConnectionBytes;
}

/// What a full device lacks beyond the usual slack: the blocks of the logits, and the split ones of layers that gather.
double lost_blocks(const StageModel& m, double activations, double slack) {
  if (m.software.expandable_segments) return 0;
  double lost = m.layer.gathers > 0 ? std::max(0.0, kSplitShare * activations - slack) : 0;
  const bool fp32_copies = m.stage.last && m.software.loss_chunks == 1;
  // The fp32 copies are the largest blocks; optimizer states and gradients have split them by the second step, and then they
  // do not come together again.
  if (fp32_copies) lost += std::max(0.0, m.software.logits_peak_bytes - 2) * m.logits();
  return lost;
}

Memory stage_memory(const Job& job, const model::ParameterCount& count, const Strategy& s, const Software& software, const StageShape& stage) {
  const StageModel m(job, count, s, software, stage);
  const Moment states = resident(m);
  const Moment saved = activations(m);
  const Moment loss = at_loss(m);
  const Moment backward = in_backward(m);
  const Moment step = in_optimizer(m);
  const Moment& transient = loss.sum() > backward.sum() ? loss : backward;
  const bool step_is_peak = step.sum() > saved.sum() + transient.sum();
  Memory memory;
  memory.stage = stage.index;
  memory.parameters = m.parameters.total();
  memory.parts.reserve(16);
  states.append_to(memory.parts);
  memory.allocated_bytes = states.sum();
  double slack = 0;
  double returned = 0;  // by the allocator when the device is full
  if (step_is_peak) {
    step.append_to(memory.parts);
    memory.allocated_bytes += step.sum();
  } else {
    saved.append_to(memory.parts);
    transient.append_to(memory.parts);
    memory.allocated_bytes += saved.sum() + transient.sum();
    slack = (gathers_split_blocks(m) ? kSplitShare : kFragmentation) * saved.sum() + kFragmentation * transient.sum();
    const double waiting = waiting_gathers(m);
    if (waiting > 0) memory.parts.push_back({"gathers awaiting reuse", waiting});
    memory.reserved_bytes += waiting;
    returned = (1 - kWaitingKept) * waiting;
  }
  const double flat = offloads_optimizer(s) ? 0 : software.flat_step_bytes * m.held(s.zero >= 1);
  if (flat > 0) memory.parts.push_back({"flat gradients of the step", flat});
  memory.reserved_bytes += flat;
  if (slack > 0) memory.parts.push_back({"allocator slack", slack});
  memory.reserved_bytes += memory.allocated_bytes + slack;
  memory.needed_bytes = memory.reserved_bytes - returned + lost_blocks(m, saved.sum(), slack);
  memory.overhead_bytes = kContextBytes + communicator_bytes(job, s, software);
  memory.capacity_bytes = kUsableShare * job.accelerator.memory_bytes - memory.overhead_bytes;
  return memory;
}

}  // namespace

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFits: return "fits";
    case Verdict::kTight: return "tight";
    case Verdict::kDoesNotFit: break;
  }
  return "does not fit";
}

Verdict Memory::verdict() const {
  if (needed_bytes <= (1 - kTightShare) * capacity_bytes) return Verdict::kFits;
  if (needed_bytes <= capacity_bytes || allocated_bytes <= (1 - kTightShare) * capacity_bytes) return Verdict::kTight;
  return Verdict::kDoesNotFit;
}

Memory memory_of_stage(const Job& job, const Strategy& strategy, int stage) {
  const std::vector<int> layers = layers_per_stage(job, strategy);
  const int index = std::clamp(stage, 0, static_cast<int>(layers.size()) - 1);
  return stage_memory(job, model::count_parameters(job.model), strategy, software_of(job, strategy), shape_of(job, strategy, layers, index));
}

Memory memory_per_rank(const Job& job, const Strategy& strategy) {
  const Software software = software_of(job, strategy);
  const std::vector<int> layers = layers_per_stage(job, strategy);
  const int stages = static_cast<int>(layers.size());
  const model::ParameterCount count = model::count_parameters(job.model);
  const bool alike = job.model.kinds().uniform();
  model::LayerCounts second;
  Memory worst;
  double needed = 0;
  for (int i = 0; i < stages; ++i) {
    // Between the ends no stage needs more than the second one, unless it has more layers.
    const bool between = i > 1 && i + 1 < stages;
    if (between && alike && layers[static_cast<std::size_t>(i)] <= layers[1]) continue;
    const StageShape shape = shape_of(job, strategy, layers, i);
    if (between && shape.kinds == second) continue;
    if (i == 1) second = shape.kinds;
    Memory memory = stage_memory(job, count, strategy, software, shape);
    needed = std::max(needed, memory.needed_bytes);
    if (worst.parts.empty() || memory.reserved_bytes > worst.reserved_bytes) worst = std::move(memory);
  }
  worst.needed_bytes = needed;
  return worst;
}

double state_bytes(const Job& job, const Strategy& strategy) {
  const Software software = software_of(job, strategy);
  const std::vector<int> layers = layers_per_stage(job, strategy);
  const int last = static_cast<int>(layers.size()) - 1;
  const model::ParameterCount count = model::count_parameters(job.model);
  double most = 0;
  for (const int stage : {0, last}) {
    const StageShape shape = shape_of(job, strategy, layers, stage);
    most = std::max(most, resident(StageModel(job, count, strategy, software, shape)).sum());
  }
  return most;
}

double memory_capacity(const Job& job, const Strategy& strategy) {
  const double overhead_bytes = kContextBytes + communicator_bytes(job, strategy, software_of(job, strategy));
  return kUsableShare * job.accelerator.memory_bytes - overhead_bytes;
}

std::vector<Parameter> parameters() {
  constexpr ParameterKind kFitted = ParameterKind::kFitted;
  constexpr ParameterKind kPublished = ParameterKind::kPublished;
  constexpr ParameterKind kEstimate = ParameterKind::kEstimate;
  return {
      {"memory.context", kContextBytes, "B", "nvidia-smi figures of published runs less what the model counts", kEstimate},
      {"memory.connection", kConnectionBytes, "B", "NCCL 2.x: 4 MiB Simple + 4.7 MiB LL128 + 0.5 MiB LL a channel and peer", kPublished},
      {"memory.eager_peers", kEagerPeers, "", "ring and double tree, connected at start until NCCL 2.19", kPublished},
      {"memory.usable_share", kUsableShare, "", "A100 and H100 boards: 79.1 to 79.3 GiB of 80", kEstimate},
      {"memory.small_tensors", kSmallTensorsBytes, "B", "Ultra-Scale sweep: allocated after the step less parameters x 20 B", kFitted},
      {"memory.fragmentation", kFragmentation, "", "Ultra-Scale sweep, reserved memory", kFitted},
      {"memory.split_share", kSplitShare, "", "Ultra-Scale sweep, reserved memory at tensor degree 2 and 4", kFitted},
      {"memory.waiting_gathers", kWaitingGathers, "", "Ultra-Scale sweep, reserved memory; CUDA queues 1,024 launches", kFitted},
      {"memory.waiting_kept", kWaitingKept, "", "Ultra-Scale sweep, runs that ran out of memory", kFitted},
  };
}

}  // namespace chokepoint::parallel
