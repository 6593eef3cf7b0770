// SPDX-License-Identifier: Apache-2.0
// Problem: peak memory of the fullest rank. Idea: what is resident all step long (exact counts over the ranks that share
// it) plus the larger of three moments: the loss (all activations and the logits), the backward of a layer (all
// activations and its working set) and the optimizer step (temporaries, no activations). Reserved memory adds what the
// caching allocator cannot reuse. The device's capacity is less by the context and the communicators.
#include <chokepoint/parallel/memory.hpp>
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
/// NCCL buffers of one communicator: 16 channels x (4 MiB Simple + 4.7 MiB LL128 + 0.5 MiB LL) in both directions,
/// src/include/comm.h and src/init.cc of NCCL 2.x.
constexpr double kCommunicatorBytes = 0.25 * kGiB;
/// Driver and ECC tables: an "80 GB" part offers 79.1-79.3 GiB to the allocator.
constexpr double kUsableShare = 0.989;
/// cuBLAS workspaces, rotary tables, input tokens, loss scalars: live tensors that do not grow with the model.
constexpr double kSmallTensorsBytes = 0.1e9;
/// Share of activations and transients that the caching allocator holds but cannot use (blocks of other sizes).
constexpr double kFragmentation = 0.03;
/// DeepSpeed's gradients pass through buffers of the configured size: two with overlap_comm, the default of stage 3 alone.
double reduce_buffers(int zero) { return zero == 3 ? 2 : 1; }

struct StageShape {
  int index = 0;
  int layers = 0;
  int moe_layers = 0;
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
    // A weight gradient that waits keeps its input, so every stage holds what the first one does.
    case Schedule::kZeroBubble1: return std::min(m, p);
    case Schedule::kOneForwardOneBackward: break;
  }
  return std::min(m, p - i);
}

StageShape shape_of(const Job& job, const Strategy& s, const std::vector<int>& layers, int index) {
  StageShape stage;
  stage.index = index;
  stage.layers = layers[static_cast<std::size_t>(index)];
  stage.first = index == 0;
  stage.last = index + 1 == static_cast<int>(layers.size());
  stage.in_flight = std::max(1.0, in_flight(s, index));
  if (!job.model.moe) return stage;
  int begin = 0;
  for (int i = 0; i < index; ++i) begin += layers[static_cast<std::size_t>(i)];
  for (int layer = begin; layer < begin + stage.layers; ++layer) stage.moe_layers += job.model.is_moe_layer(layer);
  return stage;
}

/// Parameters of a rank before data-parallel sharding.
struct StageParameters {
  double dense = 0;    ///< replicated over the data-parallel ranks unless sharded
  double experts = 0;  ///< already divided over the expert-parallel ranks
  double ends = 0;     ///< of `dense`: input table and head, one gathered unit each
  double total() const { return dense + experts; }
};

StageParameters parameters_of(const Job& job, const Strategy& s, const StageShape& stage) {
  const model::Model& m = job.model;
  const model::ParameterCount count = model::count_parameters(m);
  StageParameters out;
  const double attention = count.attention_per_layer + count.norms_per_layer;
  out.dense = attention * stage.layers + count.mlp_per_layer * (stage.layers - stage.moe_layers);
  if (m.moe && stage.moe_layers > 0) {
    const double matrices = m.gated_mlp ? 3 : 2;
    const double experts = matrices * m.hidden * m.moe->expert_ffn_hidden * static_cast<double>(m.moe->experts);
    out.experts = stage.moe_layers * experts / std::max(1, s.expert);
    out.dense += stage.moe_layers * std::max(0.0, count.moe_per_layer - experts);
  }
  if (stage.first) out.ends += count.embedding;
  if (stage.last) out.ends += count.head > 0 ? count.head : s.pipeline > 1 ? count.embedding : 0;
  out.dense += out.ends;
  if (stage.last) out.dense += count.final;
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
  std::array<MemoryPart, 8> parts_{};
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

  StageModel(const Job& j, const Strategy& st, const Software& so, const StageShape& sh)
      : job(j), s(st), software(so), stage(sh), parameters(parameters_of(j, st, sh)) {
    shard = s.shard_ranks > 0 ? s.shard_ranks : static_cast<double>(s.data) * s.context;
    expert_shard = std::max(1.0, shard / std::max(1, s.expert));
    tokens = static_cast<double>(s.micro_batch) * job.sequence / s.context;
    layer = layer_activations(job, s, software);
  }

  double held(bool sharded) const {
    return sharded ? parameters.dense / shard + parameters.experts / expert_shard : parameters.total();
  }
  double ranks_reducing() const { return static_cast<double>(s.data) * s.context; }
};

bool offloads_optimizer(const Strategy& s) { return s.offload == Offload::kOptimizer || s.offload == Offload::kAll; }

Moment resident(const StageModel& m) {
  const Strategy& s = m.s;
  const Software& w = m.software;
  const bool offload_parameters = s.offload == Offload::kParameters || s.offload == Offload::kAll;
  Moment states;
  // FSDP's grad-op keeps its originals sharded too and only does not reshard after forward.
  const bool grad_op = s.zero == 2 && s.sharder == Sharder::kFsdp;
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
  if (m.ranks_reducing() > 1 || s.zero > 0) states.add("gradient buckets", w.bucket_bytes * m.held(s.zero >= 2));
  states.add("workspaces", kSmallTensorsBytes);
  return states;
}

Moment activations(const StageModel& m) {
  const Strategy& s = m.s;
  const double each = s.recompute == Recompute::kFull ? m.layer.checkpoint : m.layer.saved;
  double saved = m.stage.in_flight * m.stage.layers * each * m.tokens;
  if (s.offload == Offload::kActivations) saved *= 0.1;
  Moment out;
  out.add("activations", saved);
  out.add("autocast copies", m.software.cast_bytes * m.held(s.zero == 3));
  if (m.software.boundary_copies && s.pipeline > 1) {
    out.add("stage inputs and outputs", m.stage.in_flight * 2 * 2 * m.job.model.hidden * m.tokens);
  }
  return out;
}

/// Whole copies of sharded units around a layer; `ends` adds the head.
double gathered_units(const StageModel& m, bool with_gradients) {
  const Software& w = m.software;
  const bool bucketed = m.s.zero == 1 && w.reduce_bucket_parameters > 0;
  if ((m.s.zero < 2 && !bucketed) || m.stage.layers == 0) return 0;
  const double unit = (m.parameters.total() - m.parameters.ends) / m.stage.layers;
  const double bucket = w.reduce_bucket_parameters > 0 ? std::min(m.parameters.total(), w.reduce_bucket_parameters) * reduce_buffers(m.s.zero) : unit;
  const double reduced = with_gradients ? bucket * w.reduce_bytes + (w.reduce_bucket_parameters > 0 ? 0 : unit * 2) : 0;
  if (m.s.zero <= 2) return reduced;
  if (!m.s.reshard_after_forward) return reduced;
  const double live = std::max(w.gathers_in_flight * unit, std::min(w.live_unit_parameters, m.parameters.total()));
  return live * w.gather_bytes + reduced;
}

Moment at_loss(const StageModel& m) {
  Moment out;
  if (!m.stage.last) return out;
  const double vocab = m.job.padded_vocab > 0 ? m.job.padded_vocab : m.job.model.vocab;
  if (!m.job.chunked_loss) out.add("logits and loss", m.tokens * vocab / m.s.tensor * m.software.logits_peak_bytes);
  if (m.s.sequence_parallel) out.add("gathered input of the head", 2 * m.tokens * m.job.model.hidden);
  if (m.s.zero == 3 && m.s.reshard_after_forward) {
    out.add("gathered head", vocab * m.job.model.hidden / m.s.tensor * m.software.gather_bytes);
  }
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
  if (!offloads_optimizer(m.s)) out.add("optimizer temporaries", m.software.step_bytes * m.held(m.s.zero >= 1));
  return out;
}

/// Gathered inputs are freed at once but may only be reused when the communication stream has passed; a host that runs
/// ahead takes new blocks instead (c10::cuda allocator, record_stream). The stage's first forwards do, until the
/// pipeline makes the host wait.
double waiting_gathers(const StageModel& m) {
  if (!m.software.queues_ahead) return 0;
  const double micro_batches = m.s.pipeline == 1 ? 1 : std::max(0.0, m.stage.in_flight - 2);
  return micro_batches * m.stage.layers * m.layer.gathered * m.tokens;
}

double communicators(const Strategy& s) {
  double count = 1;  // the default group
  for (const int degree : {s.tensor, s.pipeline, s.context, s.expert}) count += degree > 1;
  return count;
}

Memory stage_memory(const Job& job, const Strategy& s, const Software& software, const StageShape& stage) {
  const StageModel m(job, s, software, stage);
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
  if (step_is_peak) {
    step.append_to(memory.parts);
    memory.allocated_bytes += step.sum();
  } else {
    saved.append_to(memory.parts);
    transient.append_to(memory.parts);
    memory.allocated_bytes += saved.sum() + transient.sum();
    slack = kFragmentation * (saved.sum() + transient.sum());
    const double waiting = waiting_gathers(m);
    if (waiting > 0) memory.parts.push_back({"gathers awaiting reuse", waiting});
    memory.reserved_bytes += waiting;
  }
  const double flat = offloads_optimizer(s) ? 0 : software.flat_step_bytes * m.held(s.zero >= 1);
  if (flat > 0) memory.parts.push_back({"flat gradients of the step", flat});
  memory.reserved_bytes += flat;
  if (slack > 0) memory.parts.push_back({"allocator slack", slack});
  memory.reserved_bytes += memory.allocated_bytes + slack;
  memory.overhead_bytes = kContextBytes + (job.gpus > 1 ? kCommunicatorBytes * communicators(s) : 0);
  memory.capacity_bytes = kUsableShare * job.accelerator.memory_bytes - memory.overhead_bytes;
  return memory;
}

}  // namespace

Memory memory_of_stage(const Job& job, const Strategy& strategy, int stage) {
  const std::vector<int> layers = layers_per_stage(job, strategy);
  const int index = std::clamp(stage, 0, static_cast<int>(layers.size()) - 1);
  return stage_memory(job, strategy, software_of(job, strategy), shape_of(job, strategy, layers, index));
}

Memory memory_per_rank(const Job& job, const Strategy& strategy) {
  const Software software = software_of(job, strategy);
  const std::vector<int> layers = layers_per_stage(job, strategy);
  const int stages = static_cast<int>(layers.size());
  Memory worst;
  for (int i = 0; i < stages; ++i) {
    // Between the ends no stage needs more than the second one, unless it has more layers.
    const bool between = i > 1 && i + 1 < stages;
    if (between && !job.model.moe && layers[static_cast<std::size_t>(i)] <= layers[1]) continue;
    Memory memory = stage_memory(job, strategy, software, shape_of(job, strategy, layers, i));
    if (worst.parts.empty() || memory.reserved_bytes > worst.reserved_bytes) worst = std::move(memory);
  }
  return worst;
}

std::vector<Parameter> parameters() {
  return {
      {"memory.context", kContextBytes, "B", "estimate; compared with the nvidia-smi figures of published runs (in sample)"},
      {"memory.communicator", kCommunicatorBytes, "B", "estimate from NCCL 2.x channel buffers (16 channels, three protocols), not measured"},
      {"memory.usable_share", kUsableShare, "", "estimate for A100 and H100 boards, not measured here"},
      {"memory.small_tensors", kSmallTensorsBytes, "B", "allocated after the step less parameters x 20 B (Ultra-Scale sweep, no activations)"},
      {"memory.fragmentation", kFragmentation, "", "set by hand on the Ultra-Scale sweep (in sample)"},
  };
}

}  // namespace chokepoint::parallel
