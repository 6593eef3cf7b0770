// SPDX-License-Identifier: Apache-2.0
// A launch script for Megatron-LM, and the same words as a recipe for NeMo / Megatron-Bridge.
#include "express.hpp"
#include "pipeline_layout.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace chokepoint::frameworks {

namespace {

using parallel::Strategy;

/// One argument: its name with underscores, its value (empty for a switch), the section of a recipe it belongs to.
struct Argument {
  std::string key;
  std::string value;
  std::string_view section;
};

class Arguments {
 public:
  void set(std::string key, double value, std::string_view section) {
    list_.push_back({std::move(key), fmt::format("{:.0f}", value), section});
  }
  void word(std::string key, std::string value, std::string_view section) {
    list_.push_back({std::move(key), std::move(value), section});
  }
  void flag(bool on, std::string key, std::string_view section) {
    if (on) list_.push_back({std::move(key), "", section});
  }
  const std::vector<Argument>& list() const { return list_; }

 private:
  std::vector<Argument> list_;
};

void add_experts(const model::Model& m, Arguments& out, bool recipe) {
  if (!m.moe) return;
  out.set(recipe ? "num_moe_experts" : "num_experts", m.moe->experts, "model");
  out.set("moe_router_topk", m.moe->top_k, "model");
  out.set("moe_ffn_hidden_size", m.moe->expert_ffn_hidden, "model");
  if (m.moe->shared_ffn_hidden > 0) out.set("moe_shared_expert_intermediate_size", m.moe->shared_ffn_hidden, "model");
  out.flag(m.moe->shared_gate, "moe_shared_expert_gate", "model");
  if (m.moe->latent > 0) out.set("moe_latent_size", m.moe->latent, "model");
  if (m.moe->first_layer > 0) {
    out.word("moe_layer_freq", fmt::format("([0]*{}+[1]*{})", m.moe->first_layer, m.layers - m.moe->first_layer),
             "model");
  } else if (m.moe->every > 1) {
    out.set("moe_layer_freq", m.moe->every, "model");
  }
  out.word("moe_token_dispatcher_type", "alltoall", "model");
  out.flag(true, "moe_grouped_gemm", "model");
}

void add_mixed_layers(const model::Model& m, Arguments& out) {
  // Megatron has letters for halves of layers alone; what cannot be written shows when the model is compared.
  if (!m.pattern.empty() && m.pattern.find_first_of("mgTw") == std::string::npos) {
    std::string pattern = m.pattern;
    for (int i = 0; i < m.further.modules && !m.further_pattern.empty(); ++i) pattern += "/" + m.further_pattern;
    out.word("hybrid_layer_pattern", pattern, "model");
  } else if (m.further.modules > 0) {
    out.set("mtp_num_layers", m.further.modules, "model");
  }
  out.flag(m.further.modules > 1 && m.further.shared_weights, "mtp_use_repeated_layer", "model");
  if (m.mamba) {
    out.set("mamba_num_heads", m.mamba->heads, "model");
    out.set("mamba_head_dim", m.mamba->head_dim, "model");
    out.set("mamba_state_dim", m.mamba->state, "model");
    out.set("mamba_num_groups", m.mamba->groups, "model");
  }
  if (m.sliding_window > 0) {
    out.word("window_size", fmt::format("({},0)", m.sliding_window - 1), "model");
    if (m.full_attention_every > 0) out.set("window_attn_skip_freq", m.full_attention_every, "model");
  }
}

void add_model(const parallel::Job& job, Arguments& out, bool recipe) {
  const model::Model& m = job.model;
  out.set("num_layers", m.layers, "model");
  out.set("hidden_size", m.hidden, "model");
  out.set("ffn_hidden_size", m.ffn_hidden, "model");
  out.set("num_attention_heads", m.heads, "model");
  if (m.kv_heads != m.heads) {
    if (!recipe) out.flag(true, "group_query_attention", "model");
    out.set("num_query_groups", m.kv_heads, "model");
  } else if (recipe) {
    out.set("num_query_groups", m.heads, "model");
  }
  if (m.head_dim * m.heads != m.hidden) out.set("kv_channels", m.head_dim, "model");
  if (m.mla) {
    out.flag(true, "multi_latent_attention", "model");
    if (m.mla->q_lora_rank > 0) out.set("q_lora_rank", m.mla->q_lora_rank, "model");
    out.set("kv_lora_rank", m.mla->kv_lora_rank, "model");
    out.set("qk_head_dim", m.mla->qk_nope_head_dim, "model");
    out.set("qk_pos_emb_head_dim", m.mla->qk_rope_head_dim, "model");
    out.set("v_head_dim", m.mla->v_head_dim, "model");
  }
  out.set("seq_length", job.sequence, "model");
  out.set("max_position_embeddings", m.max_positions > 0 ? m.max_positions : job.sequence, "model");
  out.word("position_embedding_type", m.max_positions > 0 ? "learned_absolute" : "rope", "model");
  out.set("vocab_size", m.vocab, "model");
  out.flag(m.gated_mlp, recipe ? "gated_linear_unit" : "swiglu", "model");
  out.word("normalization", m.rms_norm ? "RMSNorm" : "LayerNorm", "model");
  if (recipe) {
    out.word("add_bias_linear", m.mlp_bias ? "true" : "false", "model");
    out.word("share_embeddings_and_output_weights", m.tied_embeddings ? "true" : "false", "model");
  } else {
    out.flag(!m.mlp_bias, "disable_bias_linear", "model");
    out.flag(!m.tied_embeddings, "untie_embeddings_and_output_weights", "model");
  }
  out.flag(m.qkv_bias && !m.mlp_bias, "add_qkv_bias", "model");
  out.flag(m.qk_norm, "qk_layernorm", "model");
  add_experts(m, out, recipe);
  add_mixed_layers(m, out);
}

void add_pipeline(const parallel::Job& job, const Strategy& s, Arguments& out, bool recipe) {
  out.set("pipeline_model_parallel_size", s.pipeline, "model");
  if (s.pipeline == 1) return;
  const std::vector<int> chunks = chunk_layers(job, s);
  if (!chunks.empty()) {
    out.word("pipeline_model_parallel_layout", layout_text(chunks), "model");
  } else if (s.virtual_stages > 1) {
    out.set(recipe ? "virtual_pipeline_model_parallel_size" : "num_virtual_stages_per_pipeline_rank", s.virtual_stages,
            "model");
  }
}

void add_sharding(const Strategy& s, Arguments& out) {
  if (s.zero >= 1) out.flag(true, "use_distributed_optimizer", "optimizer");
  if (s.zero >= 2) {
    out.flag(true, "use_megatron_fsdp", "dist");
    out.word("data_parallel_sharding_strategy", s.zero == 2 ? "optim_grads" : "optim_grads_params", "ddp");
  }
  if (s.zero >= 1 && s.shard_ranks > 0) out.set("num_distributed_optimizer_instances", s.data / s.shard_ranks, "dist");
  out.flag(s.overlap_grad_reduce, "overlap_grad_reduce", "ddp");
  out.flag(s.zero >= 1 && s.overlap_param_gather, "overlap_param_gather", "ddp");
}

void add_precision(const parallel::Job& job, Arguments& out, bool recipe) {
  using hardware::Dtype;
  if (recipe) {
    const char* word = job.dtype == Dtype::kFp8    ? "bf16_with_fp8_delayed_scaling_mixed"
                       : job.dtype == Dtype::kFp16 ? "fp16_mixed"
                                                   : "bf16_mixed";
    if (job.dtype != Dtype::kFp32 && job.dtype != Dtype::kTf32) out.word("mixed_precision", word, "");
    out.word("grad_reduce_in_fp32", job.fp32_gradients ? "true" : "false", "ddp");
    return;
  }
  out.flag(job.dtype == Dtype::kBf16 || job.dtype == Dtype::kFp8, "bf16", "");
  out.flag(job.dtype == Dtype::kFp16, "fp16", "");
  if (job.dtype == Dtype::kFp8) out.word("fp8_format", "hybrid", "");
  out.flag(!job.fp32_gradients, "grad_reduce_in_bf16", "ddp");
}

Arguments arguments_of(const Expressing& e, bool recipe) {
  const parallel::Job& job = e.job();
  const Strategy& s = e.strategy();
  Arguments out;
  add_model(job, out, recipe);
  out.set("tensor_model_parallel_size", s.tensor, "model");
  out.flag(s.sequence_parallel, "sequence_parallel", "model");
  add_pipeline(job, s, out, recipe);
  if (s.context > 1) out.set("context_parallel_size", s.context, "model");
  if (s.expert > 1) out.set("expert_model_parallel_size", s.expert, "model");
  out.set("micro_batch_size", s.micro_batch, "train");
  out.set("global_batch_size", job.global_batch, "train");
  add_sharding(s, out);
  out.flag(s.overlap_tensor, "tp_comm_overlap", "comm_overlap");
  if (s.recompute == parallel::Recompute::kFull) {
    out.word("recompute_granularity", "full", "model");
    out.word("recompute_method", "uniform", "model");
    out.set("recompute_num_layers", 1, "model");
  } else if (s.recompute == parallel::Recompute::kSelective) {
    out.word("recompute_granularity", "selective", "model");
  }
  out.flag(s.offload == parallel::Offload::kOptimizer, "optimizer_cpu_offload", "optimizer");
  if (s.offload == parallel::Offload::kActivations) out.flag(true, "cpu_offloading", "model");
  add_precision(job, out, recipe);
  return out;
}

std::string dashed(std::string key) {
  std::replace(key.begin(), key.end(), '_', '-');
  return key;
}

}  // namespace

std::vector<File> write_megatron(const Expressing& e) {
  const Machines machines = machines_of(e.job());
  std::string text = "#!/bin/bash\n# Megatron-LM: " + parallel::title(e.strategy()) +
                     "\n# Tokenizer, data, learning rate and checkpoints are yours to add.\n";
  text += environment_lines(e.job(), e.strategy(), Target::kMegatron);
  text += fmt::format(
      "torchrun --nnodes {} --nproc-per-node {} --rdzv-backend c10d --rdzv-endpoint \"$MASTER_ADDR:29500\" \\\n    "
      "pretrain_gpt.py",
      machines.hosts, machines.per_host);
  const Arguments arguments = arguments_of(e, false);
  for (const Argument& argument : arguments.list()) {
    const bool quote = argument.value.find_first_of("|*()[]") != std::string::npos;
    // --cpu-offloading is a field of the transformer's config; its argument is the number of layers.
    if (argument.key == "cpu_offloading") {
      text += fmt::format(" \\\n    --cpu-offloading-num-layers {}",
                          std::max(1, e.job().model.layers / e.strategy().pipeline));
      continue;
    }
    text += fmt::format(" \\\n    --{}{}", dashed(argument.key),
                        argument.value.empty() ? ""
                        : quote                ? " '" + argument.value + "'"
                                               : " " + argument.value);
  }
  return {{"train.sh", text + "\n"}};
}

std::vector<File> write_nemo(const Expressing& e) {
  const Machines machines = machines_of(e.job());
  std::string text = "# Megatron-Bridge: " + parallel::title(e.strategy()) + "\n";
  for (const Variable& v : environment(e.job(), e.strategy(), Target::kNemo))
    text += fmt::format("# export {}={}  # {}\n", v.name, v.value, v.reason);
  text += fmt::format(
      "# torchrun --nnodes {} --nproc-per-node {} --rdzv-backend c10d --rdzv-endpoint $MASTER_ADDR:29500 train.py "
      "--config-file recipe.yaml\n",
      machines.hosts, machines.per_host);
  const Arguments arguments = arguments_of(e, true);
  for (const std::string_view section : {"model", "train", "optimizer", "ddp", "dist", "comm_overlap"}) {
    std::string lines;
    for (const Argument& argument : arguments.list()) {
      if (argument.section != section) continue;
      const bool quote = argument.value.find_first_of("|*[]") != std::string::npos;
      lines += fmt::format("  {}: {}\n", argument.key,
                           argument.value.empty() ? "true"
                           : quote                ? "\"" + argument.value + "\""
                                                  : argument.value);
    }
    if (!lines.empty()) text += fmt::format("{}:\n{}", section, lines);
  }
  for (const Argument& argument : arguments.list()) {
    if (argument.section.empty()) text += fmt::format("{}: {}\n", argument.key, argument.value);
  }
  return {{"recipe.yaml", text}};
}

}  // namespace chokepoint::frameworks
