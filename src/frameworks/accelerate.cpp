// SPDX-License-Identifier: Apache-2.0
// accelerate's YAML (accelerate/commands/config/cluster.py, parallelism_config.py) and the arguments of the Hugging
// Face Trainer (transformers/training_args.py), which say the rest: micro-batch, accumulation, checkpointing.
#include "interpret.hpp"

#include <chokepoint/base/text.hpp>

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace chokepoint::frameworks {

namespace {

constexpr std::array kAccelerateQuiet = {
    Known{"compute_environment", ""},
    Known{"debug", ""},
    Known{"machine_rank", ""},
    Known{"main_*", ""},
    Known{"rdzv_*", ""},
    Known{"same_network", ""},
    Known{"tpu_*", ""},
    Known{"use_cpu", ""},
    Known{"command*", ""},
    Known{"commands", ""},
    Known{"gpu_ids", ""},
    Known{"deepspeed_config.deepspeed_multinode_launcher", ""},
    Known{"deepspeed_config.deepspeed_hostfile", ""},
    Known{"deepspeed_config.deepspeed_*filter", ""},
    Known{"deepspeed_config.zero3_*", ""},
    Known{"deepspeed_config.gradient_clipping", ""},
    Known{"fsdp_config.fsdp_state_dict_type", ""},
    Known{"fsdp_config.fsdp_sync_module_states", ""},
    Known{"fsdp_config.fsdp_cpu_ram_efficient_loading", ""},
    Known{"fsdp_config.fsdp_use_orig_params", ""},
    Known{"megatron_lm_config.megatron_lm_gradient_clipping", ""},
    Known{"fsdp_config.fsdp_auto_wrap_policy", "one unit per layer is taken"},
    Known{"fsdp_config.fsdp_transformer_layer_cls_to_wrap", "one unit per layer is taken"},
    Known{"enable_cpu_affinity", ""},
    Known{"downcast_bf16", "of TPUs"},
    Known{"ipex_config*", ""},
    Known{"mpirun_config*", ""},
    Known{"main_training_function", ""},
};
constexpr std::array kAccelerateOpen = {
    Known{"fsdp_config.fsdp_min_num_params", "one unit per layer is taken"},
    Known{"fsdp_config.fsdp_forward_prefetch", "the next layer is prefetched"},
    Known{"fsdp_config.*", ""},
    Known{"dynamo_config.*", ""},
    Known{"fp8_config.*", "products at the fp8 rate"},
    Known{"parallelism_config.*", ""},
    Known{"megatron_lm_config.*", ""},
    Known{"deepspeed_config.deepspeed_moe_layer_cls_names", ""},
    Known{"deepspeed_config.*", ""},
};

constexpr std::array kTrainerQuiet = {
    Known{"output_dir", ""},
    Known{"overwrite_output_dir", ""},
    Known{"do_*", ""},
    Known{"evaluation_strategy", ""},
    Known{"eval_*", ""},
    Known{"per_device_eval_batch_size", ""},
    Known{"save_*", ""},
    Known{"logging_*", ""},
    Known{"report_to", ""},
    Known{"run_name", ""},
    Known{"learning_rate", ""},
    Known{"weight_decay", ""},
    Known{"warmup_*", ""},
    Known{"lr_scheduler_*", ""},
    Known{"adam_*", ""},
    Known{"max_grad_norm", ""},
    Known{"num_train_epochs", ""},
    Known{"max_steps", ""},
    Known{"seed", ""},
    Known{"data_seed", ""},
    Known{"dataset*", ""},
    Known{"data_path", ""},
    Known{"train_file", ""},
    Known{"validation_file", ""},
    Known{"data_args*", ""},
    Known{"cache_dir", ""},
    Known{"resume_from_checkpoint", ""},
    Known{"hub_*", ""},
    Known{"push_to_hub", ""},
    Known{"remove_unused_columns", ""},
    Known{"ddp_timeout", ""},
    Known{"local_rank", ""},
    Known{"tokenizer_name*", ""},
    Known{"trust_remote_code", ""},
    Known{"template", ""},
    Known{"stage", ""},
    Known{"plot_loss", ""},
    Known{"lazy_preprocess", ""},
    Known{"preprocessing_num_workers", ""},
    Known{"validation_split_percentage", ""},
    Known{"lora_alpha", ""},
    Known{"lora_dropout", ""},
    Known{"lora_target*", "adapters on every product are taken"},
    Known{"config_name", ""},
    Known{"log_level*", ""},
    Known{"disable_tqdm", ""},
    Known{"include_*", ""},
    Known{"load_best_model_at_end", ""},
    Known{"metric_for_best_model", ""},
    Known{"tf32", ""},
    Known{"streaming", ""},
    Known{"use_fast_tokenizer", ""},
    Known{"model_revision", ""},
    Known{"token", ""},
    Known{"overwrite_cache", ""},
    Known{"checkpointing_steps", ""},
    Known{"with_tracking", ""},
};
constexpr std::array kTrainerOpen = {
    Known{"dataloader_*", "data loading is taken to keep up"},
    Known{"group_by_length", "sequences of full length are taken"},
    Known{"packing", "sequences of full length are taken"},
    Known{"ddp_bucket_cap_mb", "buckets of 25 MiB are taken"},
    Known{"ddp_find_unused_parameters", "not counted"},
    Known{"ddp_broadcast_buffers", "not counted"},
    Known{"fsdp_*", ""},
    Known{"torch_compile_*", ""},
    Known{"torch_dtype", ""},
    Known{"gradient_checkpointing_kwargs", ""},
    Known{"accelerator_config", ""},
    Known{"optim_args", ""},
    Known{"neftune_noise_alpha", ""},
    Known{"auto_find_batch_size", "the given batch is taken"},
    Known{"length_column_name", ""},
    Known{"load_in_*bit", "weights are taken in 16 bits"},
    Known{"quantization_bit", "weights are taken in 16 bits"},
    Known{"use_unsloth", "not counted"},
    Known{"low_cpu_mem_usage", ""},
    Known{"bits", "weights are taken in 16 bits"},
};

/// FULL_SHARD and friends, by name or by their old numbers.
Result<bool> shard_as(const std::string& word, const SourcePos& pos, Reading& out) {
  parallel::Strategy& t = out.strategy;
  const std::string w = lower(word);
  const bool full = w == "full_shard" || w == "1", grad = w == "shard_grad_op" || w == "2",
             none = w == "no_shard" || w == "3";
  const bool hybrid = w == "hybrid_shard" || w == "4", hybrid_grad = w == "hybrid_shard_zero2" || w == "5";
  if (!full && !grad && !none && !hybrid && !hybrid_grad) {
    return fail(fmt::format("fsdp_sharding_strategy is '{}', expected FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, "
                            "HYBRID_SHARD or HYBRID_SHARD_ZERO2",
                            word.substr(0, 60)),
                pos);
  }
  t.zero = none ? 0 : 3;
  t.sharder = none ? parallel::Sharder::kDdp : parallel::Sharder::kFsdp;
  t.reshard_after_forward = !(grad || hybrid_grad);
  if (hybrid || hybrid_grad) t.shard_ranks = -1;
  return true;
}

Result<bool> read_fsdp(Settings& s, Reading& out) {
  parallel::Strategy& t = out.strategy;
  t.zero = 3;
  t.sharder = parallel::Sharder::kFsdp;
  TRY_INTO(const auto version, s.integer("fsdp_config.fsdp_version", 1, 2));
  if (const auto word = s.text("fsdp_config.fsdp_sharding_strategy")) {
    TRY_INTO([[maybe_unused]] const bool ok, shard_as(*word, s.pos("fsdp_config.fsdp_sharding_strategy"), out));
    if (version == 2) {
      find(out, "sharding_strategy_of_fsdp_1", false, s.pos("fsdp_config.fsdp_sharding_strategy"),
           "fsdp_sharding_strategy is FSDP1's; version 2 ignores it",
           "use fsdp_reshard_after_forward (accelerate to-fsdp2 converts files)");
    }
  }
  if (s.has("fsdp_config.fsdp_reshard_after_forward")) {
    const auto word = s.text("fsdp_config.fsdp_reshard_after_forward");
    const bool truth = word && (lower(*word) == "true" || lower(*word) == "false");
    if (truth) {
      t.reshard_after_forward = lower(*word) == "true";
    } else if (word) {
      TRY_INTO([[maybe_unused]] const bool ok, shard_as(*word, s.pos("fsdp_config.fsdp_reshard_after_forward"), out));
    }
  }
  for (const char* key : {"fsdp_config.fsdp_backward_prefetch", "fsdp_config.fsdp_backward_prefetch_policy"}) {
    const auto prefetch = s.text(key);
    if (prefetch != "NO_PREFETCH" || !t.overlap_param_gather) continue;
    t.overlap_param_gather = false;
    find(out, "no_prefetch", false, s.pos(key), "NO_PREFETCH gathers each layer when it is needed, in the open", "use BACKWARD_PRE");
  }
  if (s.flag("fsdp_config.fsdp_activation_checkpointing")) t.recompute = parallel::Recompute::kFull;
  if (s.flag("fsdp_config.fsdp_offload_params")) t.offload = parallel::Offload::kAll;
  return true;
}

Result<bool> read_parallelism(Settings& s, Reading& out) {
  parallel::Strategy& t = out.strategy;
  const auto degree = [&](const char* name) -> Result<std::optional<int>> {
    TRY_INTO(const auto with_prefix,
             s.integer(fmt::format("parallelism_config.parallelism_config_{}", name), 1, kMostRanks));
    TRY_INTO(const auto plain, s.integer(fmt::format("parallelism_config.{}", name), 1, kMostRanks));
    return with_prefix ? with_prefix : plain;
  };
  TRY_INTO(const auto replicate, degree("dp_replicate_size"));
  TRY_INTO(const auto shard, degree("dp_shard_size"));
  TRY_INTO(const auto tensor, degree("tp_size"));
  TRY_INTO(const auto context, degree("cp_size"));
  TRY_INTO(const auto sequence, degree("sp_size"));
  if (tensor) t.tensor = *tensor;
  if (context) t.context = *context;
  if (sequence && *sequence > 1) t.context = *sequence;
  if (shard && *shard > 1) {
    t.zero = 3;
    t.sharder = parallel::Sharder::kFsdp;
    t.shard_ranks = *shard;
    out.replicas = replicate.value_or(1);
  } else if (replicate && *replicate > 1) {
    const char* key = s.has("parallelism_config.dp_replicate_size")
                          ? "parallelism_config.dp_replicate_size"
                          : "parallelism_config.parallelism_config_dp_replicate_size";
    find(out, "replicas_without_shards", true, s.pos(key), "dp_replicate_size above 1 with dp_shard_size 1 is refused",
         "set dp_shard_size as well, or leave parallelism_config out");
  }
  return true;
}

Result<bool> read_megatron_plugin(Settings& s, Reading& out) {
  parallel::Strategy& t = out.strategy;
  out.software = parallel::Framework::kMegatron;
  TRY_INTO(const auto tensor, s.integer("megatron_lm_config.megatron_lm_tp_degree", 1, kMostRanks));
  TRY_INTO(const auto pipeline, s.integer("megatron_lm_config.megatron_lm_pp_degree", 1, kMostRanks));
  TRY_INTO(const auto micro_batches, s.integer("megatron_lm_config.megatron_lm_num_micro_batches", 1, 1 << 20));
  t.tensor = tensor.value_or(1);
  t.pipeline = pipeline.value_or(1);
  t.accumulate = micro_batches.value_or(0);
  t.sequence_parallel = t.tensor > 1 && s.flag("megatron_lm_config.megatron_lm_sequence_parallelism");
  if (s.flag("megatron_lm_config.megatron_lm_use_distributed_optimizer"))
    t.zero = 1, t.sharder = parallel::Sharder::kMegatronOptimizer;
  if (s.flag("megatron_lm_config.megatron_lm_recompute_activations")) t.recompute = parallel::Recompute::kSelective;
  return true;
}

Result<bool> read_deepspeed_plugin(Settings& s, Reading& out, std::string& deepspeed_config) {
  parallel::Strategy& t = out.strategy;
  out.software = parallel::Framework::kDeepspeed;
  deepspeed_config = s.text("deepspeed_config.deepspeed_config_file").value_or("");
  TRY_INTO(const auto stage, s.integer("deepspeed_config.zero_stage", 0, 3));
  TRY_INTO(const auto accumulate, s.integer("deepspeed_config.gradient_accumulation_steps", 1, 1 << 24));
  if (stage) t.zero = *stage;
  t.sharder = t.zero == 0 ? parallel::Sharder::kDdp : parallel::Sharder::kDeepspeed;
  t.sync_every_micro_step = t.zero >= 2;
  t.overlap_grad_reduce = t.zero == 3;  // DeepSpeed's own default of overlap_comm; a file of its own says it again
  if (accumulate) t.accumulate = *accumulate;
  const bool optimizer = s.text("deepspeed_config.offload_optimizer_device").value_or("none") != "none";
  const bool parameters = s.text("deepspeed_config.offload_param_device").value_or("none") != "none";
  if (optimizer) t.offload = parallel::Offload::kOptimizer;
  if (parameters && t.zero == 3) t.offload = optimizer ? parallel::Offload::kAll : parallel::Offload::kParameters;
  return true;
}

void mixed_precision(const std::optional<std::string>& word, Reading& out) {
  if (!word) return;
  if (const auto dtype = hardware::parse_dtype(*word == "no" ? "fp32" : *word)) out.dtype = *dtype;
}

/// "full_shard auto_wrap offload", "hybrid_shard".
Result<bool> read_fsdp_words(Settings& s, Reading& out) {
  const auto words = s.text("fsdp");
  if (!words) return true;
  for (const std::string_view word : split_blanks(*words)) {
    if (word == "auto_wrap") continue;
    if (word == "offload") {
      out.strategy.offload = parallel::Offload::kAll;
    } else {
      TRY_INTO([[maybe_unused]] const bool ok, shard_as(std::string(word), s.pos("fsdp"), out));
    }
  }
  return true;
}

Result<bool> read_trainer_model(Settings& s, Reading& out) {
  for (const char* key : {"model_name_or_path", "model_name", "model"}) {
    const auto name = s.text(key);
    if (!name) continue;
    out.model_name = catalogue_model(*name);
    if (!out.model_name)
      s.mark(key, Use::kNotModelled,
             fmt::format("'{}' is not in the catalogue: --model says the sizes", name->substr(0, 60)));
  }
  for (const char* key :
       {"max_seq_length", "max_length", "model_max_length", "cutoff_len", "block_size", "max_seq_len"}) {
    TRY_INTO(const auto tokens, s.integer(key, 1, 1 << 26));
    if (tokens) out.sequence = *tokens;
  }
  TRY_INTO(const auto rank, s.integer("lora_r", 1, 1 << 14));
  TRY_INTO(const auto factory_rank, s.integer("lora_rank", 1, 1 << 14));
  const bool lora = s.flag("use_peft") || s.flag("use_lora") || s.text("finetuning_type").value_or("") == "lora";
  if (rank || factory_rank || lora) out.adapter_rank = rank ? *rank : factory_rank.value_or(8);
  return true;
}

}  // namespace

Result<bool> read_accelerate(Settings& s, Reading& out, std::string& deepspeed_config) {
  out.framework = "accelerate";
  out.software = parallel::Framework::kPytorch;
  parallel::Strategy& t = out.strategy;
  TRY_INTO(const auto hosts, s.integer("num_machines", 1, kMostRanks));
  TRY_INTO(const auto processes, s.integer("num_processes", 1, kMostRanks));
  if (!out.hosts) out.hosts = hosts;
  if (!out.gpus) out.gpus = processes;
  const std::string type = s.text("distributed_type").value_or("MULTI_GPU");
  out.strategy_pos = s.pos("distributed_type");
  if (type == "FSDP") {
    TRY_INTO([[maybe_unused]] const bool fsdp, read_fsdp(s, out));
  } else if (type == "DEEPSPEED") {
    TRY_INTO([[maybe_unused]] const bool deepspeed, read_deepspeed_plugin(s, out, deepspeed_config));
  } else if (type == "MEGATRON_LM") {
    TRY_INTO([[maybe_unused]] const bool megatron, read_megatron_plugin(s, out));
  }
  if (type != "FSDP" && s.has("fsdp_config.fsdp_version") + s.has("fsdp_config.fsdp_sharding_strategy") > 0) {
    find(out, "fsdp_config_without_fsdp", false, s.pos("distributed_type"),
         fmt::format("fsdp_config does nothing: distributed_type is {}", type), "set distributed_type: FSDP");
  }
  TRY_INTO([[maybe_unused]] const bool parallelism, read_parallelism(s, out));
  mixed_precision(s.text("mixed_precision"), out);
  if (const auto backend = s.text("dynamo_config.dynamo_backend")) out.compiled = *backend != "NO";
  if (processes && hosts && *processes % *hosts != 0) {
    find(out, "processes_do_not_fill_hosts", true, s.pos("num_processes"),
         fmt::format("num_processes {} (all hosts together) does not spread over {} machines", *processes, *hosts),
         "num_processes counts all GPUs, not those of one host");
  } else if (processes && hosts && *hosts > 1 && *processes == *hosts) {
    find(out, "one_process_a_host", false, s.pos("num_processes"),
         "num_processes counts all hosts together: this starts one process a host",
         "multiply it by the GPUs of a host");
  }
  // Accelerator.accumulate() and the Trainer skip the reduction of all but the last micro-step, for FSDP as well.
  t.sync_last_only = t.zero == 3 && t.sharder == parallel::Sharder::kFsdp;
  s.classify(kAccelerateQuiet, kAccelerateOpen);
  return true;
}

Result<bool> read_trainer(Settings& s, Reading& out) {
  if (out.framework.empty()) out.framework = "Hugging Face Trainer", out.software = parallel::Framework::kPytorch;
  parallel::Strategy& t = out.strategy;
  TRY_INTO([[maybe_unused]] const bool model, read_trainer_model(s, out));
  TRY_INTO(const auto micro, s.integer("per_device_train_batch_size", 1, 1 << 24));
  TRY_INTO(const auto accumulate, s.integer("gradient_accumulation_steps", 1, 1 << 24));
  if (micro) out.micro_batch_given = true, t.micro_batch = *micro;
  t.accumulate = accumulate ? *accumulate : t.accumulate > 0 ? t.accumulate : micro ? 1 : 0;
  if (out.strategy_pos.line == 0) out.strategy_pos = s.pos("per_device_train_batch_size");
  TRY_INTO([[maybe_unused]] const bool fsdp, read_fsdp_words(s, out));
  if (s.has("fsdp")) t.sync_last_only = t.zero == 3;
  if (s.flag("gradient_checkpointing")) {
    if (t.recompute == parallel::Recompute::kFull) {
      find(out, "checkpointing_said_twice", false, s.pos("gradient_checkpointing"),
           "both FSDP and the Trainer checkpoint activations: layers would be recomputed twice",
           "keep fsdp_activation_checkpointing");
    }
    t.recompute = parallel::Recompute::kFull;
  }
  TRY_INTO(const auto bf16, s.boolean("bf16"));
  TRY_INTO(const auto fp16, s.boolean("fp16"));
  if (bf16.value_or(false) && fp16.value_or(false)) {
    find(out, "two_precisions", true, s.pos("fp16"), "both bf16 and fp16 are asked for", "keep one of the two");
  }
  if (fp16.value_or(false)) out.dtype = hardware::Dtype::kFp16;
  if (bf16.value_or(false)) out.dtype = hardware::Dtype::kBf16;
  if (s.flag("torch_compile")) out.compiled = true;
  if (s.flag("use_liger_kernel") || s.flag("use_liger")) out.fused_operators = out.fused_loss = true;
  const auto kernel = s.text("attn_implementation");
  if (kernel == "eager") out.attention = compute::AttentionKernel::kUnfused;
  if (kernel == "flash_attention_2") out.attention = compute::AttentionKernel::kFlash2;
  if (kernel == "flash_attention_3") out.attention = compute::AttentionKernel::kFlash3;
  if (const auto backend = s.text("ddp_backend"); backend && *backend != "nccl") {
    find(out, "backend_is_not_nccl", false, s.pos("ddp_backend"),
         fmt::format("{} moves GPU tensors through the host; the prediction is for NCCL", *backend), "use nccl");
  }
  if (const auto optimizer = s.text("optim"); optimizer && optimizer->find("adamw") == std::string::npos) {
    s.mark("optim", Use::kNotModelled, "Adam's states are taken");
  } else if (optimizer && optimizer->find("8bit") != std::string::npos) {
    out.optimizer_bytes_per_parameter = 6;  // fp32 master and two 8-bit moments
  }
  const auto config = s.text("accelerator_config");
  if (config && config->find("sync_each_batch") != std::string::npos && config->find("true") != std::string::npos) {
    s.mark("accelerator_config", Use::kUsed, "gradients are reduced in each micro-step");
    if (t.zero == 0) t.sync_every_micro_step = true;
    t.sync_last_only = false;
    if (t.zero == 0 && t.accumulate > 1) {
      find(out, "accumulation_without_no_sync", false, s.pos("accelerator_config"),
           fmt::format("sync_each_batch reduces all gradients in each of the {} micro-steps", t.accumulate),
           "leave sync_each_batch out: DDP keeps whole gradients anyway");
    }
  }
  s.classify(kTrainerQuiet, kTrainerOpen);
  return true;
}

namespace {

struct Renamed {
  std::string_view theirs;
  std::string_view ours;
};
/// axolotl's names for what the Trainer and accelerate call otherwise.
constexpr std::array kAxolotl = {
    Renamed{"base_model", "model_name_or_path"},
    Renamed{"sequence_len", "max_seq_length"},
    Renamed{"micro_batch_size", "per_device_train_batch_size"},
    Renamed{"optimizer", "optim"},
    Renamed{"dp_shard_size", "parallelism_config.dp_shard_size"},
    Renamed{"dp_replicate_size", "parallelism_config.dp_replicate_size"},
    Renamed{"tensor_parallel_size", "parallelism_config.tp_size"},
    Renamed{"context_parallel_size", "parallelism_config.cp_size"},
    Renamed{"sequence_parallel_degree", "parallelism_config.cp_size"},
    Renamed{"fsdp_version", "fsdp_config.fsdp_version"},
};
constexpr std::array kTrainerFileQuiet = {
    Known{"datasets*", ""},       Known{"val_set_size", ""},      Known{"test_datasets*", ""}, Known{"wandb_*", ""},
    Known{"num_epochs", ""},      Known{"lr_*", ""},              Known{"lr", ""},             Known{"train_on_inputs", ""},
    Known{"special_tokens*", ""}, Known{"evals_per_epoch", ""},   Known{"saves_per_epoch", ""}, Known{"strict", ""},
    Known{"tokenizer_*", ""},     Known{"model_type", ""},        Known{"is_llama_derived_model", ""}, Known{"plugins*", ""},
    Known{"chat_template*", ""},  Known{"shuffle_*", ""},         Known{"base_model_config", ""}, Known{"loss_watchdog_*", ""},
    Known{"max_samples", ""},     Known{"val_size", ""},          Known{"overwrite_*", ""},    Known{"group_by_length", ""},
    Known{"hub_model_id", ""},    Known{"saves_*", ""},           Known{"early_stopping_patience", ""}, Known{"debug", ""},
};
constexpr std::array kTrainerFileOpen = {
    Known{"sample_packing", "sequences of full length are taken"},
    Known{"pad_to_sequence_len", "sequences of full length are taken"},
    Known{"eval_sample_packing", ""},
    Known{"adapter", "adapters on every product are taken"},
    Known{"fsdp_config.*", ""},
    Known{"parallelism_config.*", ""},
    Known{"expert_parallel_size", "experts are taken whole on each rank"},
    Known{"xformers_attention", "flash attention is taken"},
};

/// The Trainer's and accelerate's names in place of axolotl's.
std::vector<Setting> with_trainer_names(const Settings& s) {
  std::vector<Setting> out;
  for (Setting setting : s.list()) {
    for (const Renamed& r : kAxolotl) {
      if (setting.key == r.theirs) setting.key = std::string(r.ours);
    }
    constexpr std::string_view kFsdp = "fsdp_config.";
    if (setting.key.starts_with(kFsdp) && !std::string_view(setting.key).substr(kFsdp.size()).starts_with("fsdp_")) {
      setting.key.insert(kFsdp.size(), "fsdp_");
      if (setting.key.ends_with("fsdp_activation_checkpointing") || setting.key.ends_with("fsdp_offload_params")) setting.value = lower(setting.value);
    }
    if (setting.key == "bf16" && lower(setting.value) == "auto") setting.value = "true";
    if (setting.key == "fp16" && lower(setting.value) == "auto") setting.value = "false";
    if (setting.key.starts_with("liger_")) setting.key = "use_liger_kernel", setting.value = "true";
    out.push_back(std::move(setting));
  }
  return out;
}

}  // namespace

Result<bool> read_trainer_file(Settings& s, Reading& out, std::string& deepspeed_config) {
  out.framework = s.has("base_model") ? "axolotl" : "LLaMA-Factory";
  out.software = parallel::Framework::kPytorch;
  s = Settings(with_trainer_names(s));
  const auto begins = [&](std::string_view word) {
    return std::any_of(s.list().begin(), s.list().end(), [&](const Setting& x) { return x.key.starts_with(word); });
  };
  deepspeed_config = s.text("deepspeed").value_or("");
  if (begins("fsdp_config.")) {
    TRY_INTO([[maybe_unused]] const bool fsdp, read_fsdp(s, out));
  }
  TRY_INTO([[maybe_unused]] const bool parallelism, read_parallelism(s, out));
  out.strategy.sync_last_only = out.strategy.zero == 3 && out.strategy.sharder == parallel::Sharder::kFsdp;
  if (s.text("adapter").value_or("").find("lora") != std::string::npos && !s.has("lora_r")) out.adapter_rank = 8;
  if (const auto flash = s.boolean("flash_attention"); flash && *flash == true) out.attention = compute::AttentionKernel::kFlash2;
  TRY_INTO([[maybe_unused]] const bool trainer, read_trainer(s, out));
  s.classify(kTrainerFileQuiet, kTrainerFileOpen);
  return true;
}

}  // namespace chokepoint::frameworks
