// SPDX-License-Identifier: Apache-2.0
// DeepSpeed's JSON (deepspeed/runtime/config.py, deepspeed/runtime/zero/config.py).
#include "interpret.hpp"

#include <chokepoint/base/text.hpp>

#include <array>
#include <fmt/format.h>

namespace chokepoint::frameworks {

namespace {

constexpr std::array kNoEffect = {
    Known{"steps_per_print", ""},
    Known{"wall_clock_breakdown", ""},
    Known{"dump_state", ""},
    Known{"optimizer.params*", ""},
    Known{"scheduler*", ""},
    Known{"gradient_clipping", ""},
    Known{"comms_logger*", ""},
    Known{"flops_profiler*", ""},
    Known{"autotuning*", ""},
    Known{"tensorboard*", ""},
    Known{"wandb*", ""},
    Known{"csv_monitor*", ""},
    Known{"comet*", ""},
    Known{"monitor*", ""},
    Known{"checkpoint*", ""},
    Known{"data_types*", ""},
    Known{"fp16.*", ""},
    Known{"bf16.*", ""},
    Known{"bfloat16.*", ""},
    Known{"zero_allow_untested_optimizer", ""},
    Known{"zero_force_ds_cpu_optimizer", ""},
    Known{"prescale_gradients", ""},
    Known{"gradient_predivide_factor", ""},
    Known{"seed", ""},
    Known{"zero_optimization.stage3_gather_16bit_weights_on_model_save", ""},
    Known{"zero_optimization.stage3_gather_fp16_weights_on_model_save", ""},
    Known{"zero_optimization.load_from_fp32_weights", ""},
    Known{"zero_optimization.elastic_checkpoint", ""},
    Known{"zero_optimization.ignore_unused_parameters", ""},
    Known{"zero_optimization.legacy_stage1", ""},
    Known{"elasticity*", ""},
    Known{"curriculum_learning*", ""},
    Known{"data_efficiency*", ""},
    Known{"disable_allgather", ""},
    Known{"dataloader_drop_last", ""},
    Known{"sparse_gradients", ""},
    Known{"nebula*", ""},
    Known{"memory_breakdown", ""},
    Known{"graph_harvesting", ""},
    Known{"timers*", ""},
    Known{"amp.*", ""},
    Known{"zero_optimization.log_trace_cache_warnings", ""},
};

constexpr std::array kNotModelled = {
    Known{"zero_optimization.contiguous_gradients", "gradients are taken as contiguous"},
    Known{"zero_optimization.reduce_scatter", "reduce-scatter is taken"},
    Known{"zero_optimization.round_robin_gradients", "not counted"},
    Known{"zero_optimization.allgather_partitions", "all-gather is taken"},
    Known{"zero_optimization.allgather_bucket_size", "500 million elements are taken"},
    Known{"zero_optimization.reduce_bucket_size", "500 million elements are taken"},
    Known{"zero_optimization.sub_group_size", "not counted"},
    Known{"zero_optimization.stage3_max_live_parameters", "1 billion elements are taken"},
    Known{"zero_optimization.stage3_max_reuse_distance", "parameters are gathered again for the backward"},
    Known{"zero_optimization.stage3_param_persistence_threshold", "small parameters are gathered with the others"},
    Known{"zero_optimization.stage3_model_persistence_threshold", "small parameters are gathered with the others"},
    Known{"zero_optimization.stage3_module_granularity_threshold", "layers are gathered one by one"},
    Known{"zero_optimization.stage3_use_all_reduce_for_fetch_params", "not counted"},
    Known{"zero_optimization.mics_hierarchical_params_gather", "not counted"},
    Known{"zero_optimization.offload_param.*", "copies at the rate of the host's PCIe links"},
    Known{"zero_optimization.offload_optimizer.*", "copies at the rate of the host's PCIe links"},
    Known{"zero_optimization.zenflow*", "not counted"},
    Known{"zero_optimization.memory_efficient_linear", "not counted"},
    Known{"zero_optimization.pipeline_loading_checkpoint", ""},
    Known{"zero_optimization.zero_quantized_nontrainable_weights", "not counted"},
    Known{"zero_optimization.cpu_offload_use_pin_memory", "pinned memory is taken"},
    Known{"activation_checkpointing*",
          "it configures checkpoints that the model's code asks for; --gradient_checkpointing or --strategy says "
          "whether it does"},
    Known{"aio*", "NVMe is not modelled"},
    Known{"compression_training*", "not counted"},
    Known{"hybrid_engine*", "generation is not part of a step"},
    Known{"pipeline*", "pipelines of DeepSpeed are built in the model's code"},
    Known{"sparse_attention*", "full attention is taken"},
    Known{"tensor_parallel.*", "only autotp_size counts"},
    Known{"expert_parallel.*", "only autoep_size counts"},
    Known{"compile.*", "only 'enabled' counts"},
    Known{"communication_data_type", ""},
    Known{"use_data_before_expert_parallel_", "ranks in the default order are taken"},
    Known{"gradient_accumulation_dtype", ""},
    Known{"torch_autocast*", "16-bit products are taken"},
    Known{"seq_parallel_communication_data_type", "the model's type is taken"},
    Known{"quantize_training*", "not counted"},
    Known{"eigenvalue*", ""},
    Known{"progressive_layer_drop*", "all layers are taken"},
};

constexpr std::array kTaken = {
    Taken{"zero_optimization.contiguous_gradients", "true"},
    Taken{"zero_optimization.reduce_scatter", "true"},
    Taken{"zero_optimization.allgather_partitions", "true"},
    Taken{"zero_optimization.allgather_bucket_size", "5e8"},
    Taken{"zero_optimization.reduce_bucket_size", "5e8"},
    Taken{"zero_optimization.stage3_max_live_parameters", "1e9"},
    Taken{"zero_optimization.round_robin_gradients", "false"},
    Taken{"zero_optimization.offload_optimizer.pin_memory", "true"},
    Taken{"zero_optimization.offload_param.pin_memory", "true"},
};

Result<bool> read_batch(Settings& s, Reading& out) {
  TRY_INTO(const auto batch, s.integer("train_batch_size", 1, 1 << 30));
  TRY_INTO(const auto micro, s.integer("train_micro_batch_size_per_gpu", 1, 1 << 24));
  TRY_INTO(const auto accumulate, s.integer("gradient_accumulation_steps", 1, 1 << 24));
  if (batch) out.batch = *batch;
  if (micro) out.strategy.micro_batch = *micro, out.micro_batch_given = true;
  if (accumulate) out.strategy.accumulate = *accumulate;
  if (batch || micro) out.strategy_pos = s.pos(batch ? "train_batch_size" : "train_micro_batch_size_per_gpu");
  return true;
}

/// {"device": "cpu"}; older files say cpu_offload: true.
Result<bool> read_offload(Settings& s, Reading& out) {
  const auto device = [&](const char* key, const char* old) {
    const auto text = s.text(key);
    const bool before = s.flag(old);
    if (text == "nvme") s.mark(key, Use::kNotModelled, "NVMe is taken as host memory");
    return before || (text && *text != "none");
  };
  const bool optimizer = device("zero_optimization.offload_optimizer.device", "zero_optimization.cpu_offload");
  const bool parameters = device("zero_optimization.offload_param.device", "zero_optimization.cpu_offload_params");
  parallel::Strategy& t = out.strategy;
  if (optimizer) t.offload = parallel::Offload::kOptimizer;
  if (parameters) t.offload = optimizer ? parallel::Offload::kAll : parallel::Offload::kParameters;
  if (parameters && t.zero < 3) {
    find(out, "parameter_offload_without_stage_3", true, s.pos("zero_optimization.offload_param.device"),
         "offload_param belongs to stage 3", "set \"stage\": 3, or drop offload_param");
    t.offload = optimizer ? parallel::Offload::kOptimizer : parallel::Offload::kNone;
  }
  if (optimizer && t.zero == 0) {
    find(out, "optimizer_offload_without_zero", true, s.pos("zero_optimization.offload_optimizer.device"),
         "offload_optimizer needs ZeRO, and stage is 0", "set \"stage\": 1 or 2");
    t.offload = parallel::Offload::kNone;
  }
  return true;
}

Result<bool> read_quantised(Settings& s, Reading& out) {
  parallel::Strategy& t = out.strategy;
  TRY_INTO(const auto partition, s.integer("zero_optimization.zero_hpz_partition_size", 1, kMostRanks));
  TRY_INTO(const auto mics, s.integer("zero_optimization.mics_shard_size", -1, kMostRanks));
  t.quantised_gathers = s.flag("zero_optimization.zero_quantized_weights");
  t.quantised_reduction = s.flag("zero_optimization.zero_quantized_gradients");
  t.secondary_shard = partition.value_or(1) > 1;
  if (mics && *mics > 0) t.shard_ranks = *mics;
  if (t.zero < 3 && (t.quantised_gathers || t.quantised_reduction || t.secondary_shard)) {
    const char* key = t.quantised_gathers ? "zero_optimization.zero_quantized_weights"
                      : t.secondary_shard ? "zero_optimization.zero_hpz_partition_size"
                                          : "zero_optimization.zero_quantized_gradients";
    find(out, "zero_plus_plus_without_stage_3", false, s.pos(key),
         "ZeRO++ works on the gathers and reductions of stage 3; here it does nothing", "set \"stage\": 3, or drop it");
    t.quantised_gathers = t.quantised_reduction = t.secondary_shard = false;
  }
  return true;
}

Result<bool> read_zero(Settings& s, Reading& out) {
  parallel::Strategy& t = out.strategy;
  TRY_INTO(const auto stage, s.integer("zero_optimization.stage", 0, 3));
  t.zero = stage.value_or(0);
  t.sharder = t.zero == 0 ? parallel::Sharder::kDdp : parallel::Sharder::kDeepspeed;
  TRY_INTO(const auto overlap, s.boolean("zero_optimization.overlap_comm"));
  // The documentation says false; the code resolves an absent value to true for stage 3 and false otherwise.
  t.overlap_grad_reduce = overlap.value_or(t.zero == 3);
  if (t.zero <= 1) {
    if (overlap && *overlap) {
      find(out, "overlap_comm_without_stage_2", false, s.pos("zero_optimization.overlap_comm"),
           fmt::format("overlap_comm hides nothing at stage {}: gradients are reduced at the end of the accumulation",
                       t.zero),
           "use stage 2 with gradient_accumulation_steps 1, or drop it");
    }
    t.overlap_grad_reduce = true;  // no such choice below stage 2: the engine knows
  } else if (!t.overlap_grad_reduce) {
    find(out, "reduction_not_overlapped", false,
         overlap ? s.pos("zero_optimization.overlap_comm") : s.pos("zero_optimization.stage"),
         fmt::format("overlap_comm is off{}: each bucket's reduction stops the backward",
                     overlap ? "" : " by default at this stage"),
         "set \"overlap_comm\": true");
  }
  TRY_INTO(const auto prefetch, s.number("zero_optimization.stage3_prefetch_bucket_size", 0, 1e15));
  t.overlap_param_gather = !(t.zero == 3 && prefetch && *prefetch == 0);
  if (!t.overlap_param_gather) {
    find(out, "no_prefetch", false, s.pos("zero_optimization.stage3_prefetch_bucket_size"),
         "a prefetch bucket of 0 gathers each layer when it is needed, in the open",
         "leave stage3_prefetch_bucket_size out (5e7 elements)");
  }
  TRY_INTO([[maybe_unused]] const bool offload, read_offload(s, out));
  return read_quantised(s, out);
}

Result<bool> read_types(Settings& s, Reading& out) {
  TRY_INTO(const auto bf16, s.boolean("bf16.enabled"));
  TRY_INTO(const auto bfloat16, s.boolean("bfloat16.enabled"));
  TRY_INTO(const auto fp16, s.boolean("fp16.enabled"));
  const bool brain = bf16.value_or(false) || bfloat16.value_or(false);
  if (brain && fp16.value_or(false)) {
    find(out, "two_precisions", true, s.pos("fp16.enabled"), "both bf16 and fp16 are enabled", "keep one of the two");
  }
  if (brain) out.dtype = hardware::Dtype::kBf16;
  if (!brain && fp16.value_or(false)) out.dtype = hardware::Dtype::kFp16;
  const bool left_open = s.has("bf16.enabled") || s.has("fp16.enabled");
  if (!brain && !fp16.value_or(false) && !left_open && !out.dtype) out.dtype = hardware::Dtype::kFp32;
  const auto wire = s.text("communication_data_type");
  if (wire && (*wire == "fp32" || *wire == "float32")) {
    out.fp32_gradients = true;
    s.mark("communication_data_type", Use::kNotModelled, "gradients travel in the model's type");
  }
  if (wire && *wire == "fp32" && out.dtype && *out.dtype != hardware::Dtype::kFp32) {
    find(out, "gradients_travel_in_fp32", false, s.pos("communication_data_type"),
         "gradients travel in fp32: twice the bytes of the model's type",
         "leave communication_data_type out where the loss allows it");
  }
  return true;
}

/// Keys that hold objects; "bf16": "yes" would else stand for nothing.
Result<bool> check_objects(const Settings& s) {
  for (const char* key : {"bf16", "bfloat16", "fp16", "zero_optimization", "optimizer", "scheduler", "activation_checkpointing",
                          "tensor_parallel", "expert_parallel", "compile", "data_types"}) {
    const Setting* found = s.find(key);
    if (found == nullptr || found->value == "null" || found->value == "auto" || found->value.empty()) continue;
    return fail(fmt::format("'{}' is {}, expected an object", key, found->value), found->pos,
                {fmt::format("for example \"{}\": {{{}}}", key, std::string_view(key) == "zero_optimization" ? "\"stage\": 2" : "\"enabled\": true")});
  }
  return true;
}

}  // namespace

Result<bool> read_deepspeed(Settings& s, Reading& out) {
  TRY_INTO([[maybe_unused]] const bool objects, check_objects(s));
  if (out.framework.empty() || out.framework == "Hugging Face Trainer" || out.framework == "accelerate")
    out.framework = "DeepSpeed";
  if (out.software != parallel::Framework::kMegatronDeepspeed) out.software = parallel::Framework::kDeepspeed;
  TRY_INTO([[maybe_unused]] const bool batch, read_batch(s, out));
  TRY_INTO([[maybe_unused]] const bool zero, read_zero(s, out));
  TRY_INTO([[maybe_unused]] const bool types, read_types(s, out));
  TRY_INTO(const auto tensor, s.integer("tensor_parallel.autotp_size", 1, kMostRanks));
  TRY_INTO(const auto expert, s.integer("expert_parallel.autoep_size", 1, kMostRanks));
  TRY_INTO(const auto context, s.integer("sequence_parallel_size", 1, kMostRanks));
  if (tensor) out.strategy.tensor = *tensor;
  if (expert) out.strategy.expert = *expert;
  if (context) out.strategy.context = *context;
  if (tensor) out.strategy.sequence_parallel = false;
  TRY_INTO(const auto compiled, s.boolean("compile.enabled"));
  if (compiled) out.compiled = *compiled;
  if (const auto optimizer = s.text("optimizer.type")) {
    const std::string word = lower(*optimizer);
    if (word.find("adam") == std::string::npos) s.mark("optimizer.type", Use::kNotModelled, "Adam's states are taken");
  }
  // Stage 2 and above reduce in each micro-step; below, at the end of the accumulation (runtime/engine.py).
  out.strategy.sync_every_micro_step = out.strategy.zero >= 2;
  if (out.strategy.zero >= 2 && out.strategy.accumulate > 1) {
    find(out, "accumulation_reduces_each_micro_step", false, s.pos("gradient_accumulation_steps"),
         fmt::format("stage {} reduces gradients in each of the {} micro-steps; accumulation saves no traffic",
                     out.strategy.zero, out.strategy.accumulate),
         "use stage 1 if it fits, or a larger train_micro_batch_size_per_gpu with fewer steps");
  }
  s.as_taken(kTaken);
  s.classify(kNoEffect, kNotModelled);
  return true;
}

}  // namespace chokepoint::frameworks
