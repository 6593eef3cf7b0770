// SPDX-License-Identifier: Apache-2.0
// Problem: peak memory of the fullest rank. Idea: states are exact counts over the ranks that share them; activations
// are the tensors each operator saves for its backward (arXiv 2205.05198, section 4, extended to gated MLPs, grouped
// queries and flash attention), times the micro-batches in flight; transients are gathered units, the logits and one
// layer's working set. Reserved memory adds what the caching allocator cannot reuse, the CUDA context and NCCL buffers.
#include <chokepoint/parallel/memory.hpp>
#include <chokepoint/parallel/software.hpp>

#include <algorithm>
#include <cmath>

namespace chokepoint::parallel {

namespace {

/// CUDA context, cuBLAS workspaces and NCCL channels of one process: 0.6-1.5 GiB on V100..H100 (nvidia-smi beside
/// torch.cuda.memory_reserved in published reports).
constexpr double kContextBytes = 0.9 * 1073741824.0;
/// Share of activations and transients that fragmentation of the caching allocator adds.
constexpr double kFragmentation = 0.06;

struct StageShape {
  int layers = 0;
  bool first = false;
  bool last = false;
  double in_flight = 1;  ///< micro-batches (of all the stage's layers) held at once
};

std::vector<StageShape> stages_of(const Job& job, const Strategy& s) {
  std::vector<StageShape> stages(static_cast<std::size_t>(s.pipeline));
  const std::vector<int> layers = layers_per_stage(job, s);
  for (int i = 0; i < s.pipeline; ++i) {
    StageShape& stage = stages[static_cast<std::size_t>(i)];
    stage.layers = layers[static_cast<std::size_t>(i)];
    stage.first = i == 0;
    stage.last = i == s.pipeline - 1;
    const double p = s.pipeline;
    const double m = s.accumulate;
    switch (s.schedule) {
      case Schedule::kGpipe: stage.in_flight = m; break;
      case Schedule::kInterleaved: {
        const double v = s.virtual_stages;
        stage.in_flight = std::min(m, ((v - 1) * p + 2 * (p - i) - 1) / v);
        break;
      }
      case Schedule::kZeroBubble2: stage.in_flight = std::min(m, 2 * p - 1 - i); break;
      case Schedule::kZeroBubble1:
      case Schedule::kOneForwardOneBackward: stage.in_flight = std::min(m, p - i); break;
    }
    stage.in_flight = std::max(1.0, stage.in_flight);
  }
  return stages;
}

/// Bytes one layer saves for backward, per token of the micro-batch on this rank.
struct LayerActivations {
  double saved = 0;       ///< without recomputation
  double checkpoint = 0;  ///< layer input only
  double working = 0;     ///< live while one layer is recomputed or run
};

LayerActivations layer_activations(const Job& job, const Strategy& s, const Software& software) {
  const model::Model& m = job.model;
  const double t = s.tensor;
  const double outside = s.sequence_parallel ? t : 1.0;  // norms, residuals and dropout outside the split
  const double h = m.hidden;
  const double q = static_cast<double>(m.heads) * m.head_dim;
  const double kv = static_cast<double>(m.kv_heads) * m.head_dim;
  const double norms = m.parallel_block ? 1 : 2;
  double outer = norms * 2 * h                              // norm inputs
                 + (software.dropout ? 2 * h : 0);          // two dropout masks, one byte
  if (software.elementwise == Elementwise::kPrimitive && m.rms_norm) outer += norms * 4 * h;  // the fp32 copy
  double inner = norms * 2 * h;                             // norm outputs = GEMM inputs (gathered under SP)
  if (s.sequence_parallel) inner *= 1.0 / t;                // kept sharded, gathered again in backward
  double split = 2 * (q + 2 * kv) + 2 * q;                  // q, k, v and attention output
  const bool unfused = job.attention == compute::AttentionKernel::kUnfused;
  const double scores = static_cast<double>(m.heads) * job.sequence * (software.dropout ? 5 : 4);
  if (unfused && s.recompute != Recompute::kSelective) split += scores;
  double width = m.ffn_hidden;
  if (m.moe) width = static_cast<double>(m.moe->expert_ffn_hidden) * m.moe->top_k + m.moe->shared_ffn_hidden;
  const bool keeps_product = !software.compiled;
  const double mlp = m.gated_mlp ? 2 * width * (keeps_product ? 4 : 3) : 4 * width;
  LayerActivations a;
  a.saved = outer / outside + inner + (split + mlp) / t;
  if (m.moe) a.saved += 2 * h * m.moe->top_k * 2;  // dispatched inputs and outputs
  a.checkpoint = 2 * h / outside;
  a.working = a.saved + (unfused && s.recompute == Recompute::kSelective ? scores / t : 0) + 4 * h;
  return a;
}

struct Parts {
  std::vector<MemoryPart> list;
  double sum = 0;
  void add(const char* name, double bytes) {
    if (bytes <= 0) return;
    list.push_back({name, bytes});
    sum += bytes;
  }
};

double stage_parameters(const Job& job, const Strategy& s, const StageShape& stage) {
  const model::ParameterCount count = model::count_parameters(job.model);
  const double per_layer = job.model.layers > 0
                               ? (count.total - count.embedding - count.head - count.final) / job.model.layers
                               : 0;
  double expert_share = 1;
  if (job.model.moe && s.expert > 1) {
    const double experts = count.moe_per_layer;
    expert_share = per_layer > 0 ? (per_layer - experts * (1.0 - 1.0 / s.expert)) / per_layer : 1;
  }
  double parameters = per_layer * stage.layers * expert_share;
  if (stage.first) parameters += count.embedding;
  if (stage.last) parameters += (count.head > 0 ? count.head : s.pipeline > 1 ? count.embedding : 0) + count.final;
  return parameters / s.tensor;
}

Memory stage_memory(const Job& job, const Strategy& s, const Software& software, const StageShape& stage, int index) {
  const double parameters = stage_parameters(job, s, stage);
  const double shard = s.shard_ranks > 0 ? s.shard_ranks : static_cast<double>(s.data) * s.context;
  const bool offload_optimizer = s.offload == Offload::kOptimizer || s.offload == Offload::kAll;
  const bool offload_parameters = s.offload == Offload::kParameters || s.offload == Offload::kAll;
  Parts parts;
  const double resident = software.resident_parameter_bytes * parameters / (s.zero == 3 ? shard : 1);
  parts.add("parameters", offload_parameters ? 0 : resident);
  // DeepSpeed's own estimate for stage 2 keeps working gradients whole: 4 bytes per parameter replicated, 16 shared
  // (deepspeed/runtime/zero/stage_1_and_2.py, estimate_zero2_model_states_mem_needs); 13B needs eight 80 GB ranks with it.
  const bool whole_gradients = s.zero == 2 && s.sharder == Sharder::kDeepspeed;
  const double gradient_share = s.zero >= 2 && !whole_gradients ? shard : 1;
  parts.add("gradients", offload_optimizer ? 0 : software.gradient_bytes * parameters / gradient_share);
  const double optimizer_share = s.zero >= 1 ? shard : 1;
  parts.add("gradient accumulation", software.accumulation_bytes * parameters / (s.zero >= 1 ? optimizer_share : 1));
  parts.add("optimizer states", offload_optimizer ? 0 : software.master_bytes * parameters / optimizer_share);

  const double tokens = static_cast<double>(s.micro_batch) * job.sequence / s.context;
  const LayerActivations a = layer_activations(job, s, software);
  const double layers = stage.layers;
  double live = 0;
  double saved = stage.in_flight * layers * a.saved * tokens;
  if (s.recompute == Recompute::kFull) {
    saved = stage.in_flight * layers * a.checkpoint * tokens;
    live = a.working * tokens;
  } else {
    live = 0.5 * a.working * tokens;
  }
  if (s.offload == Offload::kActivations) saved *= 0.1;
  parts.add("activations", saved);
  parts.add("working set", live);
  double transient = 0;
  if (s.zero == 3 && layers > 0) {
    const double unit = parameters / layers;
    transient = unit * (2 * software.gather_bytes + software.reduce_bytes);
    parts.add("gathered units", transient);
  } else if (s.zero == 2) {
    transient = std::min(parameters, 5e8) * software.reduce_bytes;
    parts.add("reduction buckets", transient);
  }
  double logits = 0;
  if (stage.last) {
    const double vocab = job.padded_vocab > 0 ? job.padded_vocab : job.model.vocab;
    logits = tokens * vocab / s.tensor * software.logits_peak_bytes;
    parts.add("logits and loss", logits);
  }
  // The logits live when no layer is being recomputed, and optimizer temporaries when no activation is.
  const double overlap = std::min(live, logits);
  Memory memory;
  memory.stage = index;
  memory.allocated_bytes = parts.sum - overlap;
  if (overlap > 0) parts.add("(working set and logits not at once)", 0);
  parts.add("allocator slack", kFragmentation * (saved + live + transient + logits));
  memory.reserved_bytes = parts.sum - overlap;
  if (overlap > 0) {
    parts.list.push_back({"working set and logits alternate", -overlap});
  }
  memory.parts = std::move(parts.list);
  memory.capacity_bytes = job.accelerator.memory_bytes - kContextBytes;
  return memory;
}

}  // namespace

Memory memory_per_rank(const Job& job, const Strategy& strategy) {
  const Software software = software_of(job, strategy);
  const std::vector<StageShape> stages = stages_of(job, strategy);
  Memory worst;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (i > 1 && i + 1 < stages.size() && stages[i].layers <= stages[1].layers) continue;  // between the ends nothing is larger
    Memory memory = stage_memory(job, strategy, software, stages[i], static_cast<int>(i));
    if (worst.parts.empty() || memory.reserved_bytes > worst.reserved_bytes) worst = std::move(memory);
  }
  return worst;
}

}  // namespace chokepoint::parallel
