// SPDX-License-Identifier: Apache-2.0
// Megatron-LM's arguments (megatron/training/arguments.py, megatron/core/model_parallel_config.py). NeMo and
// Megatron-Bridge use the same words in sections; nemo.cpp brings them here.
#include "interpret.hpp"
#include "pipeline_layout.hpp"

#include <chokepoint/base/text.hpp>

#include <array>
#include <fmt/format.h>

namespace chokepoint::frameworks {

namespace {

constexpr std::array kNoEffect = {
    Known{"save*", ""},
    Known{"load*", ""},
    Known{"no_load_*", ""},
    Known{"no_save_*", ""},
    Known{"ckpt_*", ""},
    Known{"checkpoint*", ""},
    Known{"use_checkpoint_args", ""},
    Known{"use_checkpoint_opt_param_scheduler", ""},
    Known{"auto_detect_ckpt_format", ""},
    Known{"dist_ckpt*", ""},
    Known{"use_dist_ckpt*", ""},
    Known{"async_save", ""},
    Known{"use_persistent_ckpt_worker", ""},
    Known{"finetune", ""},
    Known{"pretrained_checkpoint", ""},
    Known{"exit_*", ""},
    Known{"non_persistent_*", ""},
    Known{"lr*", ""},
    Known{"min_lr", ""},
    Known{"decoupled_*", ""},
    Known{"calculate_per_token_loss", ""},
    Known{"no_pipeline_parallel", ""},
    Known{"num_workers", "data loading is taken to keep up"},
    Known{"override_opt_param_scheduler", ""},
    Known{"weight_decay*", ""},
    Known{"start_weight_decay", ""},
    Known{"end_weight_decay", ""},
    Known{"clip_grad", ""},
    Known{"adam_*", ""},
    Known{"sgd_momentum", ""},
    Known{"use_checkpoint_*", ""},
    Known{"init_method*", ""},
    Known{"use_mcore_models", ""},
    Known{"use_legacy_models", ""},
    Known{"train_iters", ""},
    Known{"train_samples", ""},
    Known{"eval_*", ""},
    Known{"skip_train", ""},
    Known{"full_validation", ""},
    Known{"log_*", ""},
    Known{"tensorboard_*", ""},
    Known{"wandb_*", ""},
    Known{"timing_log_*", ""},
    Known{"barrier_with_L1_time", ""},
    Known{"no_barrier_with_level_1_timing", ""},
    Known{"no_log_*", ""},
    Known{"one_logger*", ""},
    Known{"enable_one_logger", ""},
    Known{"data_path*", ""},
    Known{"train_data_path", ""},
    Known{"valid_data_path", ""},
    Known{"test_data_path", ""},
    Known{"data_args_path", ""},
    Known{"data_cache_path", ""},
    Known{"mock_data", ""},
    Known{"split", ""},
    Known{"vocab_file", ""},
    Known{"merge_file", ""},
    Known{"tiktoken_*", ""},
    Known{"tokenizer_*", ""},
    Known{"data_impl", ""},
    Known{"dataloader_type", ""},
    Known{"num_dataset_builder_threads", ""},
    Known{"no_mmap_bin_files", ""},
    Known{"s3_cache_path", ""},
    Known{"no_create_attention_mask_in_dataloader", ""},
    Known{"eod_mask_loss", ""},
    Known{"reset_*", ""},
    Known{"seed", ""},
    Known{"data_parallel_random_init", ""},
    Known{"te_rng_tracker", ""},
    Known{"inference_rng_tracker", ""},
    Known{"distributed_timeout_minutes", ""},
    Known{"distributed_timeout_seconds", ""},
    Known{"local_rank", ""},
    Known{"lazy_mpu_init", ""},
    Known{"loss_scale*", ""},
    Known{"initial_loss_scale", ""},
    Known{"min_loss_scale", ""},
    Known{"hysteresis", ""},
    Known{"rotary_*", ""},
    Known{"use_rope_scaling", ""},
    Known{"rope_*", ""},
    Known{"no_rope_*", ""},
    Known{"mscale*", ""},
    Known{"no_rope_fusion", ""},
    Known{"use_rotary_position_embeddings", ""},
    Known{"norm_epsilon", ""},
    Known{"layernorm_epsilon", ""},
    Known{"apply_layernorm_1p", ""},
    Known{"apply_query_key_layer_scaling", ""},
    Known{"attention_softmax_in_fp32", ""},
    Known{"transformer_impl", ""},
    Known{"spec", ""},
    Known{"moe_aux_loss_coeff", ""},
    Known{"moe_z_loss_coeff", ""},
    Known{"moe_router_load_balancing_type", ""},
    Known{"moe_router_dtype", ""},
    Known{"moe_router_score_function", ""},
    Known{"moe_router_enable_expert_bias", ""},
    Known{"moe_router_bias_update_rate", ""},
    Known{"moe_router_group_topk", ""},
    Known{"moe_router_num_groups", ""},
    Known{"moe_router_pre_softmax", ""},
    Known{"moe_router_topk_scaling_factor", ""},
    Known{"moe_per_layer_logging", ""},
    Known{"moe_input_jitter_eps", ""},
    Known{"moe_permute_fusion", ""},
    Known{"moe_router_fusion", ""},
    Known{"mtp_loss_scaling_factor", ""},
    Known{"kitchen*", ""},
    Known{"fp8_amax_*", ""},
    Known{"fp8_margin", ""},
    Known{"fp8_interval", ""},
    Known{"no_check_for_nan_in_loss_and_grad", ""},
    Known{"check_for_*", ""},
    Known{"rerun_mode", ""},
    Known{"error_injection*", ""},
    Known{"profile*", ""},
    Known{"use_pytorch_profiler", ""},
    Known{"record_memory_history", ""},
    Known{"memory_snapshot_path", ""},
    Known{"result_rejected_tracker_filename", ""},
    Known{"straggler_*", ""},
    Known{"disable_straggler_on_startup", ""},
    Known{"manual_gc*", "garbage collection by hand avoids pauses; none are modelled"},
    Known{"distributed_backend", ""},
    Known{"use_cpu_initialization", ""},
    Known{"perform_initialization", ""},
    Known{"config_logger_dir", ""},
    Known{"logging_level", ""},
    Known{"no_async_tensor_model_parallel_allreduce", ""},
    Known{"empty_unused_memory_level", ""},
    Known{"accumulate_allreduce_grads_in_fp32", "gradients accumulate in fp32, as taken"},
    Known{"enable_gloo_process_groups", ""},
    Known{"disable_gloo_process_groups", ""},
    Known{"nccl_communicator_config_path", ""},
    Known{"use_ring_exchange_p2p", ""},
    Known{"export_*", ""},
    Known{"enable_ft_package", ""},
    Known{"calc_ft_timeouts", ""},
    Known{"max_position_embeddings", "the length of rotary tables; no weights"},
    Known{"no_position_embedding", ""},
    Known{"bert_no_binary_head", ""},
    Known{"fp16_lm_cross_entropy", ""},
    Known{"position_embedding_type", ""},
    Known{"deterministic_mode", ""},
    Known{"replication*", ""},
    Known{"inference_*", ""},
    Known{"retro_*", ""},
    Known{"use_legacy_static_engine", ""},
    Known{"run_workload_inspector_server", ""},
    Known{"inprocess_*", ""},
    Known{"app_tag_*", ""},
    Known{"openai_gelu", ""},
    Known{"onnx_safe", ""},
    Known{"squared_relu", ""},
    Known{"use_fused_weighted_squared_relu", ""},
    Known{"glu_linear_offset", ""},
    Known{"activation_func_clamp_value", ""},
    Known{"relative_attention_*", ""},
    Known{"mrope_section", ""},
    Known{"output_bert_embeddings", ""},
    Known{"bert_embedder_type", ""},
    Known{"flash_decode", ""},
    Known{"decode_only_cuda_graphs", ""},
    Known{"iterations_to_skip", ""},
    Known{"no_clone_scatter_output_in_embedding", ""},
    Known{"check_weight_hash_*", ""},
    Known{"dump_param_*", ""},
    Known{"distrib_optim_*", ""},
    Known{"no_ckpt_*", ""},
    Known{"enable_experimental", ""},
    Known{"original_max_position_embeddings", ""},
    Known{"apply_residual_connection_post_layernorm", ""},
    Known{"dataset*", ""},
    Known{"enable_msc", ""},
    Known{"disable_msc", ""},
    Known{"mid_level_dataset_surplus", ""},
    Known{"object_storage_cache_path", ""},
    Known{"sft*", ""},
    Known{"cuda_graph_warmup_steps", ""},
    Known{"train_sync_interval", ""},
    Known{"phase_transition_iterations", ""},
    Known{"suggested_communication_unit_size", ""},
    Known{"attention_output_gate", ""},
};

constexpr std::array kNotModelled = {
    Known{"ddp_bucket_size", "buckets are taken at Megatron's default size"},
    Known{"ddp_num_buckets", "buckets are taken at Megatron's default size"},
    Known{"ddp_average_in_collective", "the division costs next to nothing"},
    Known{"ddp_pad_buckets_for_high_nccl_busbw", "padding is not counted"},
    Known{"attention_dropout", "Megatron's default is assumed by model and year"},
    Known{"hidden_dropout", "Megatron's default is assumed by model and year"},
    Known{"no_gradient_accumulation_fusion", "fused accumulation is taken"},
    Known{"gradient_accumulation_fusion", ""},
    Known{"no_masked_softmax_fusion", "fused kernels are taken"},
    Known{"no_bias_*", "fused kernels are taken"},
    Known{"no_persist_layer_norm", "fused kernels are taken"},
    Known{"tp_comm_*", "user-buffer overlap is taken as a whole"},
    Known{"tp_comm_overlap_cfg", "user-buffer overlap is taken as a whole"},
    Known{"disable_tp_comm_*", "user-buffer overlap is taken as a whole"},
    Known{"delay_wgrad_compute", "weight gradients run with the others"},
    Known{"overlap_p2p_communication*", "transfers between stages overlap where the schedule allows it"},
    Known{"no_overlap_p2p_communication", "transfers between stages overlap where the schedule allows it"},
    Known{"batch_p2p_communication", "transfers between stages overlap where the schedule allows it"},
    Known{"align_grad_reduce", ""},
    Known{"no_align_grad_reduce", ""},
    Known{"align_param_gather", ""},
    Known{"overlap_param_gather_with_optimizer_step", "the gather hides behind the next forward"},
    Known{"expert_tensor_parallel_size", "experts are taken whole on each rank of the expert group"},
    Known{"moe_expert_capacity_factor", "dropless routing with even load is taken"},
    Known{"moe_pad_expert_input_to_capacity", "dropless routing with even load is taken"},
    Known{"moe_token_drop_policy", "dropless routing with even load is taken"},
    Known{"moe_extended_tp", ""},
    Known{"moe_upcycling*", ""},
    Known{"moe_use_legacy_grouped_gemm", "grouped products are taken"},
    Known{"moe_grouped_gemm", "grouped products are taken"},
    Known{"moe_shared_expert_overlap", "shared experts run after the routed ones"},
    Known{"overlap_moe_expert_parallel_comm", "all-to-all is not overlapped"},
    Known{"moe_layer_recompute", "not counted"},
    Known{"moe_router_force_load_balancing", "even load is taken"},
    Known{"moe_router_padding_for_fp8", ""},
    Known{"moe_deepep_num_sms", "not counted"},
    Known{"moe_hybridep_num_sms", "not counted"},
    Known{"moe_enable_deepep", ""},
    Known{"cp_comm_type", "context parallelism is taken as ring exchange"},
    Known{"hierarchical_context_parallel_sizes", "context parallelism is taken as one ring"},
    Known{"enable_cuda_graph", ""},
    Known{"external_cuda_graph", ""},
    Known{"cuda_graph_*", "graphs are taken for the whole step"},
    Known{"fp8_param_gather", "parameters are gathered in 16 bits"},
    Known{"fp8_recipe", "products at the fp8 rate; scales are not counted"},
    Known{"fp8_wgrad", ""},
    Known{"no_fp8_wgrad", "weight gradients are taken in fp8 as well"},
    Known{"first_last_layers_bf16", "all layers are taken in the same precision"},
    Known{"num_layers_at_start_in_bf16", "all layers are taken in the same precision"},
    Known{"num_layers_at_end_in_bf16", "all layers are taken in the same precision"},
    Known{"cross_entropy_fusion_impl", ""},
    Known{"rampup_batch_size", "the final batch is taken"},
    Known{"decrease_batch_size_if_needed", ""},
    Known{"optimizer_offload_fraction", "the whole optimizer is taken off"},
    Known{"overlap_cpu_optimizer_d2h_h2d", "copies are not overlapped"},
    Known{"use_torch_optimizer_for_cpu_offload", ""},
    Known{"outer_dp_sharding_strategy", "replicas keep whole copies of their shards"},
    Known{"suggested_*", ""},
    Known{"init_model_with_meta_device", ""},
    Known{"encoder_*model_parallel_size", "encoders of their own are not modelled"},
    Known{"cpu_offloading_*", "activations of all layers are taken off"},
    Known{"fine_grained_activation_offloading", "activations of all layers are taken off"},
    Known{"offload_modules", "activations of all layers are taken off"},
    Known{"hybrid_*", "a pattern of layers says more: hybrid-layer-pattern"},
    Known{"mamba_*", "not counted"},
    Known{"mtp_*", "not counted"},
    Known{"is_hybrid_model", "the pattern of layers decides"},
    Known{"fp32_residual_connection", "the residual is taken in 16 bits"},
    Known{"disable_bf16_reduced_precision_matmul", "products at their full rate are taken"},
    Known{"reuse_grad_buf_for_mxfp8_param_ag", "not counted"},
    Known{"ddp_reduce_scatter_with_fp32_accumulation", "a ring reduce-scatter is taken"},
    Known{"disable_symmetric_registration", "user buffers are not counted"},
    Known{"no_scatter_gather_tensors_in_pipeline", "transfers between stages are split over the tensor ranks"},
    Known{"no_pin_cpu_*", "pinned memory is taken"},
    Known{"fp4_*", "products at the fp4 rate; scales are not counted"},
    Known{"symmetric_ar_type", "NCCL's collectives are taken"},
    Known{"encoder_num_layers", "encoders are not modelled: all layers are taken as a decoder's"},
    Known{"encoder_seq_length", "encoders are not modelled"},
    Known{"decoder_num_layers", "encoders are not modelled: all layers are taken as a decoder's"},
    Known{"decoder_seq_length", "encoders are not modelled"},
    Known{"moe_act_recompute", "not counted"},
    Known{"muon_*", "Adam's states are taken"},
    Known{"cuda_graph_scope", "graphs are taken for the whole step"},
    Known{"window_attn_skip_freq", "a list of layers: windows in equal steps are taken"},
    Known{"softmax_type", ""},
    Known{"deepspeed*", ""},
    Known{"zero_*", "the file of --deepspeed_config decides"},
    Known{"microbatch_group_size_per_virtual_pipeline_stage", "as many as stages"},
    Known{"microbatch_group_size_per_vp_stage", "as many as stages"},
    Known{"defer_embedding_wgrad_compute", "not deferred"},
    Known{"wgrad_deferral_limit", "not deferred"},
    Known{"high_priority_stream_groups", "streams are taken as equal"},
    Known{"use_sharp", "not counted here: NCCL decides"},
    Known{"sharp_enabled_group", ""},
    Known{"gradient_reduce_div_fusion", ""},
    Known{"use_tp_pp_dp_mapping", "the pipeline is taken as the slowest dimension"},
    Known{"nccl_ub", "user buffers are not counted"},
    Known{"use_nccl_ub", "user buffers are not counted"},
    Known{"fsdp_double_buffer", "not counted"},
    Known{"keep_fp8_transpose_cache*", "not counted"},
    Known{"qk_clip*", ""},
    Known{"use_transformer_engine_op_fuser", "not counted"},
};

/// Megatron's own choices that the model takes as well.
constexpr std::array kTaken = {Taken{"moe_grouped_gemm", ""}, Taken{"cp_comm_type", "p2p"},
                               Taken{"expert_tensor_parallel_size", "1"}, Taken{"main_grads_dtype", "fp32"},
                               Taken{"main_params_dtype", "fp32"}};
/// Models with a gated MLP are trained without dropout, and the step model takes them so.
constexpr std::array kNoDropout = {Taken{"attention_dropout", "0"}, Taken{"hidden_dropout", "0"}};

Result<bool> read_degrees(Settings& s, Reading& out) {
  parallel::Strategy& t = out.strategy;
  TRY_INTO(const auto tensor, s.integer("tensor_model_parallel_size", 1, kMostRanks));
  TRY_INTO(const auto pipeline, s.integer("pipeline_model_parallel_size", 1, kMostRanks));
  TRY_INTO(const auto context, s.integer("context_parallel_size", 1, kMostRanks));
  TRY_INTO(const auto expert, s.integer("expert_model_parallel_size", 1, kMostRanks));
  TRY_INTO(const auto micro, s.integer("micro_batch_size", 1, 1 << 24));
  TRY_INTO(const auto batch, s.integer("global_batch_size", 1, 1 << 30));
  TRY_INTO(const auto sequence, s.integer("seq_length", 1, 1 << 26));
  t.tensor = tensor.value_or(1);
  t.pipeline = pipeline.value_or(1);
  t.context = context.value_or(1);
  t.expert = expert.value_or(1);
  t.micro_batch = micro.value_or(1);
  out.micro_batch_given = micro.has_value();
  if (batch) out.batch = *batch;
  out.sequence = sequence;
  out.strategy_pos = tensor ? s.pos("tensor_model_parallel_size") : s.pos("pipeline_model_parallel_size");
  TRY_INTO(const auto sequence_parallel, s.boolean("sequence_parallel"));
  t.sequence_parallel = sequence_parallel.value_or(false);
  if (t.sequence_parallel && t.tensor == 1) {
    find(out, "sequence_parallel_without_tensor_parallel", false, s.pos("sequence_parallel"),
         "sequence_parallel shards activations over the tensor ranks, and there is only one",
         "drop it, or set tensor-model-parallel-size above 1");
    t.sequence_parallel = false;
  }
  if (t.tensor > 1 && t.expert > 1 && !t.sequence_parallel) {
    find(out, "experts_with_tensor_parallel_need_sequence_parallel", true, s.pos("expert_model_parallel_size"),
         "experts beside tensor parallelism need sequence parallelism; Megatron-Core refuses to train without",
         "add sequence-parallel");
  }
  return true;
}

Result<bool> read_pipeline(Settings& s, Reading& out) {
  parallel::Strategy& t = out.strategy;
  TRY_INTO(const auto chunks, s.integer("num_virtual_stages_per_pipeline_rank", 1, 4096));
  TRY_INTO(const auto bridge_chunks, s.integer("virtual_pipeline_model_parallel_size", 1, 4096));
  TRY_INTO(const auto layers, s.integer("num_layers_per_virtual_pipeline_stage", 1, 100000));
  TRY_INTO(const auto first, s.integer("decoder_first_pipeline_num_layers", 0, 100000));
  TRY_INTO(const auto last, s.integer("decoder_last_pipeline_num_layers", 0, 100000));
  TRY_INTO(const auto first_bridge, s.integer("num_layers_in_first_pipeline_stage", 0, 100000));
  TRY_INTO(const auto last_bridge, s.integer("num_layers_in_last_pipeline_stage", 0, 100000));
  t.virtual_stages = chunks ? *chunks : bridge_chunks.value_or(1);
  out.layers_per_chunk = layers.value_or(0);
  out.first_stage_layers = first ? *first : first_bridge.value_or(-1);
  out.last_stage_layers = last ? *last : last_bridge.value_or(-1);
  out.embedding_is_layer = s.flag("account_for_embedding_in_pipeline_split");
  out.loss_is_layer = s.flag("account_for_loss_in_pipeline_split");
  if (chunks && layers) {
    find(out, "virtual_stages_said_twice", true, s.pos("num_layers_per_virtual_pipeline_stage"),
         "virtual stages are given both by number and by layers", "keep num-virtual-stages-per-pipeline-rank");
  }
  if ((t.virtual_stages > 1 || layers) && t.pipeline == 1) {
    find(out, "virtual_stages_without_pipeline", true,
         s.pos(layers ? "num_layers_per_virtual_pipeline_stage" : "num_virtual_stages_per_pipeline_rank"),
         "virtual stages need a pipeline, and pipeline-model-parallel-size is 1",
         "drop it, or set pipeline-model-parallel-size above 1");
    t.virtual_stages = 1;
    out.layers_per_chunk = 0;
  }
  if (const auto layout = s.text("pipeline_model_parallel_layout")) {
    TRY_INTO(const std::vector<int> stages, parse_layout(*layout, s.pos("pipeline_model_parallel_layout")));
    if (stages.size() % static_cast<std::size_t>(t.pipeline) != 0) {
      return fail(
          fmt::format("pipeline-model-parallel-layout has {} stages, not a multiple of pipeline-model-parallel-size {}",
                      stages.size(), t.pipeline),
          s.pos("pipeline_model_parallel_layout"));
    }
    t.virtual_stages = static_cast<int>(stages.size()) / t.pipeline;
    t.stage_layers.assign(static_cast<std::size_t>(t.pipeline), 0);
    for (std::size_t i = 0; i < stages.size(); ++i) t.stage_layers[i % t.stage_layers.size()] += stages[i];
  }
  return true;
}

Result<bool> read_sharding(Settings& s, Reading& out) {
  parallel::Strategy& t = out.strategy;
  const bool optimizer = s.flag("use_distributed_optimizer");
  const bool own_fsdp = s.flag("use_megatron_fsdp") || s.flag("use_custom_fsdp");
  const bool torch_fsdp = s.flag("use_torch_fsdp2");
  const bool fsdp = own_fsdp || torch_fsdp;
  const auto way = s.text("data_parallel_sharding_strategy");
  TRY_INTO(const auto instances, s.integer("num_distributed_optimizer_instances", 1, kMostRanks));
  t.overlap_grad_reduce = s.flag("overlap_grad_reduce");
  t.overlap_param_gather = s.flag("overlap_param_gather");
  out.replicas = instances.value_or(0);
  if (optimizer) t.zero = 1;
  if (torch_fsdp) t.zero = 3;
  if (way && !own_fsdp) {
    find(
        out, "sharding_strategy_without_fsdp", false, s.pos("data_parallel_sharding_strategy"),
        fmt::format("data-parallel-sharding-strategy {} belongs to Megatron-FSDP, which is off: it does nothing", *way),
        "add use-megatron-fsdp, or drop it");
  } else if (own_fsdp) {
    const std::string word = lower(way.value_or("no_shard"));
    t.zero = word == "optim_grads_params" ? 3 : word == "optim_grads" ? 2 : word == "optim" ? 1 : 0;
    if (t.zero == 0 && word != "no_shard") {
      return fail(
          fmt::format(
              "data-parallel-sharding-strategy is '{}', expected no_shard, optim, optim_grads or optim_grads_params",
              word),
          s.pos("data_parallel_sharding_strategy"));
    }
  }
  t.sharder = t.zero == 0   ? parallel::Sharder::kDdp
              : t.zero == 1 ? parallel::Sharder::kMegatronOptimizer
                            : parallel::Sharder::kFsdp;
  if (t.zero == 2) t.reshard_after_forward = false;
  if (fsdp && t.zero >= 2) t.overlap_grad_reduce = true;  // FSDP reduces unit by unit as the backward goes
  if (fsdp && t.zero == 3) t.overlap_param_gather = true;
  if (t.overlap_param_gather && !optimizer && !fsdp) {
    find(out, "overlap_param_gather_without_distributed_optimizer", true, s.pos("overlap_param_gather"),
         "overlap-param-gather hides the gather of the distributed optimizer, which is off",
         "add use-distributed-optimizer");
  }
  if (t.zero == 1 && t.overlap_param_gather && !t.overlap_grad_reduce) {
    find(out, "overlap_param_gather_without_overlap_grad_reduce", true, s.pos("overlap_param_gather"),
         "overlap-param-gather works only beside overlap-grad-reduce", "add overlap-grad-reduce");
    t.overlap_param_gather = false;
  }
  if (t.zero == 1 && t.overlap_grad_reduce && !t.overlap_param_gather) {
    find(out, "param_gather_not_overlapped", false, s.pos("use_distributed_optimizer"),
         "the gather of updated parameters waits at the end of the step", "add overlap-param-gather");
  }
  if (t.zero <= 1 && !t.overlap_grad_reduce) {
    find(out, "grad_reduce_not_overlapped", false, out.strategy_pos,
         "gradients are reduced after the last backward, in the open", "add overlap-grad-reduce");
  }
  if (instances && *instances > 1 && t.zero == 0) {
    find(out, "optimizer_instances_without_distributed_optimizer", true, s.pos("num_distributed_optimizer_instances"),
         "num-distributed-optimizer-instances needs the distributed optimizer, which is off",
         "add use-distributed-optimizer");
    out.replicas = 0;
  }
  if (t.zero == 0) t.overlap_param_gather = true;  // nothing to gather
  return true;
}

/// Megatron-DeepSpeed: --deepspeed with a stage of its own; its engine then owns reduction and optimizer.
Result<bool> read_deepspeed_fork(Settings& s, Reading& out) {
  if (!s.flag("deepspeed")) return true;
  parallel::Strategy& t = out.strategy;
  TRY_INTO(const auto stage, s.integer("zero_stage", 0, 3));
  out.framework = "Megatron-DeepSpeed";
  out.software = parallel::Framework::kMegatronDeepspeed;
  t.zero = stage.value_or(0);
  t.sharder = t.zero == 0 ? parallel::Sharder::kDdp : parallel::Sharder::kDeepspeed;
  t.sync_every_micro_step = t.zero >= 2;
  t.overlap_grad_reduce = t.overlap_param_gather = true;
  std::erase_if(out.findings, [](const Finding& f) { return f.id == "grad_reduce_not_overlapped"; });
  return true;
}

Result<bool> read_recompute(Settings& s, Reading& out) {
  parallel::Strategy& t = out.strategy;
  const auto granularity = s.text("recompute_granularity");
  const bool activations = s.flag("recompute_activations");
  const bool checkpoint = s.flag("checkpoint_activations");  // until 2022
  const auto method = s.text("recompute_method");
  const auto modules = s.text("recompute_modules");
  TRY_INTO(const auto layers, s.integer("recompute_num_layers", 1, 100000));
  s.flag("distribute_saved_activations");
  if (granularity && *granularity != "full" && *granularity != "selective") {
    return fail(fmt::format("recompute-granularity is '{}', expected full or selective", *granularity),
                s.pos("recompute_granularity"));
  }
  if (granularity == "full" || checkpoint) t.recompute = parallel::Recompute::kFull;
  if (granularity == "selective" || (activations && !granularity)) t.recompute = parallel::Recompute::kSelective;
  if (granularity == "full" && activations) {
    find(out, "recompute_full_and_selective", false, s.pos("recompute_activations"),
         "recompute-activations asks for selective recomputation beside recompute-granularity full; full is taken",
         "keep one of the two");
  }
  if (t.recompute == parallel::Recompute::kSelective && method) {
    find(out, "recompute_method_with_selective", true, s.pos("recompute_method"),
         "recompute-method is for full recomputation; Megatron refuses it beside selective", "drop it");
  }
  if (granularity == "full" && !method) {
    find(out, "recompute_full_without_method", true, s.pos("recompute_granularity"),
         "full recomputation needs recompute-method and recompute-num-layers",
         "add recompute-method uniform and recompute-num-layers 1");
  }
  if (!granularity && !activations && !checkpoint && (method || layers || modules)) {
    find(out, "recompute_options_without_granularity", false,
         s.pos(method   ? "recompute_method"
               : layers ? "recompute_num_layers"
                        : "recompute_modules"),
         "nothing is recomputed: recompute-granularity is not set", "add recompute-granularity full or selective");
  }
  if (method == "block" && layers) {
    s.mark("recompute_num_layers", Use::kNotModelled,
           "all layers of a stage are taken as recomputed, not the first ones alone");
  }
  if (modules)
    s.mark("recompute_modules", Use::kNotModelled, "selective recomputation is taken as that of the attention scores");
  return true;
}

Result<bool> read_precision(Settings& s, Reading& out) {
  const bool bf16 = s.flag("bf16");
  const bool fp16 = s.flag("fp16");
  const bool fp4 = s.has("fp4_format") && s.text("fp4_format").has_value();
  const bool fp8 =
      (s.has("fp8_format") && s.text("fp8_format").has_value()) || (s.has("fp8") && s.text("fp8").has_value());
  if (bf16 && fp16) {
    find(out, "two_precisions", true, s.pos("fp16"), "both bf16 and fp16 are asked for", "keep one of the two");
  }
  out.dtype = fp4    ? hardware::Dtype::kFp4
              : fp8  ? hardware::Dtype::kFp8
              : bf16 ? hardware::Dtype::kBf16
              : fp16 ? hardware::Dtype::kFp16
                     : hardware::Dtype::kFp32;
  if (!bf16 && !fp16 && !fp8 && !fp4) {
    find(out, "trains_in_fp32", false, out.strategy_pos, "neither bf16 nor fp16 is asked for: Megatron trains in fp32",
         "add bf16");
  }
  if (s.flag("grad_reduce_in_bf16")) out.fp32_gradients = false;
  return true;
}

/// --use-precision-aware-optimizer keeps each state in a type of its own.
Result<bool> read_optimizer(Settings& s, Reading& out) {
  if (const auto optimizer = s.text("optimizer"); optimizer && *optimizer != "adam") {
    if (*optimizer == "sgd") out.optimizer_bytes_per_parameter = 8;
    if (*optimizer != "sgd") s.mark("optimizer", Use::kNotModelled, "Adam's states are taken");
  }
  if (!s.flag("use_precision_aware_optimizer")) return true;
  double bytes = 0;
  for (const char* key : {"main_params_dtype", "exp_avg_dtype", "exp_avg_sq_dtype"}) {
    const auto word = s.text(key);
    const auto dtype = hardware::parse_dtype(word.value_or("fp32"));
    if (!dtype)
      return fail(fmt::format("{} is '{}', expected fp32, fp16, bf16 or fp8", key, word->substr(0, 60)), s.pos(key));
    bytes += hardware::bytes_per_element(*dtype);
  }
  out.optimizer_bytes_per_parameter = bytes;
  if (const auto gradients = s.text("main_grads_dtype"); gradients == "bf16") out.fp32_gradients = false;
  return true;
}

Result<bool> read_rest(Settings& s, Reading& out) {
  parallel::Strategy& t = out.strategy;
  t.overlap_tensor = s.flag("tp_comm_overlap");
  if (t.overlap_tensor && !t.sequence_parallel) {
    find(out, "tp_comm_overlap_without_sequence_parallel", true, s.pos("tp_comm_overlap"),
         "tp-comm-overlap splits the gathers and scatters of sequence parallelism, which is off",
         "add sequence-parallel and tensor parallelism");
    t.overlap_tensor = false;
  }
  if (s.flag("optimizer_cpu_offload")) t.offload = parallel::Offload::kOptimizer;
  if (s.flag("cpu_offloading") || s.has("cpu_offloading_num_layers")) t.offload = parallel::Offload::kActivations;
  s.flag("cpu_offloading_num_layers");
  if (s.flag("enable_cuda_graph") || s.flag("external_cuda_graph")) out.compiled = true;
  if (s.flag("cross_entropy_loss_fusion")) out.fused_loss = true;
  if (const auto dispatcher = s.text("moe_flex_dispatcher_backend"))
    out.token_once_per_host = *dispatcher == "deepep" || *dispatcher == "hybridep";
  if (s.flag("moe_enable_deepep")) out.token_once_per_host = true;
  if (const auto type = s.text("moe_token_dispatcher_type"); type == "allgather" && t.expert > 1) {
    s.mark("moe_token_dispatcher_type", Use::kNotModelled, "all-to-all is taken");
    find(out, "tokens_gathered_to_all_experts", false, s.pos("moe_token_dispatcher_type"),
         "the allgather dispatcher sends every token to every expert rank", "use moe-token-dispatcher-type alltoall");
  }
  if (const auto graphs = s.text("cuda_graph_impl"); graphs && *graphs != "none") out.compiled = true;
  if (const auto backend = s.text("distributed_backend"); backend && *backend != "nccl") {
    find(out, "backend_is_not_nccl", false, s.pos("distributed_backend"),
         fmt::format("{} moves GPU tensors through the host; the prediction is for NCCL", *backend),
         "use distributed-backend nccl");
  }
  if (s.flag("use_flash_attn") && !out.attention) out.attention = std::nullopt;
  if (const auto kernel = s.text("attention_backend"); kernel == "unfused" || kernel == "local")
    out.attention = compute::AttentionKernel::kUnfused;
  return true;
}

}  // namespace

Result<bool> read_megatron(Settings& s, Reading& out) {
  out.framework = "Megatron-LM";
  out.software = parallel::Framework::kMegatron;
  TRY_INTO([[maybe_unused]] const bool degrees, read_degrees(s, out));
  TRY_INTO([[maybe_unused]] const bool pipeline, read_pipeline(s, out));
  TRY_INTO([[maybe_unused]] const bool sharding, read_sharding(s, out));
  TRY_INTO([[maybe_unused]] const bool fork, read_deepspeed_fork(s, out));
  TRY_INTO([[maybe_unused]] const bool recompute, read_recompute(s, out));
  TRY_INTO([[maybe_unused]] const bool precision, read_precision(s, out));
  TRY_INTO([[maybe_unused]] const bool optimizer, read_optimizer(s, out));
  TRY_INTO([[maybe_unused]] const bool rest, read_rest(s, out));
  TRY_INTO(out.model, read_megatron_model(s, out));
  s.as_taken(kTaken);
  if (!out.model || out.model->gated_mlp) s.as_taken(kNoDropout);
  s.classify(kNoEffect, kNotModelled);
  return true;
}

}  // namespace chokepoint::frameworks
