// SPDX-License-Identifier: Apache-2.0
// torchtitan in both dialects: TOML of 2024-2026 ([training], [parallelism], before that [experimental]) and the keys
// of the Python configs since then (torchtitan/config/configs.py), as saved files or as --section.option.
#include "interpret.hpp"

#include <chokepoint/base/text.hpp>

#include <array>
#include <fmt/format.h>

namespace chokepoint::frameworks {

namespace {

constexpr std::array kNoEffect = {
    Known{"job.*", ""},
    Known{"profiling.*", ""},
    Known{"profiler.*", ""},
    Known{"metrics.*", ""},
    Known{"checkpoint.*", ""},
    Known{"lr_scheduler.*", ""},
    Known{"optimizer.lr", ""},
    Known{"optimizer.eps", ""},
    Known{"optimizer.beta*", ""},
    Known{"optimizer.weight_decay", ""},
    Known{"optimizer.implementation", "fused kernels are taken"},
    Known{"optimizer.name", ""},
    Known{"training.steps", ""},
    Known{"training.dataset*", ""},
    Known{"training.max_norm", ""},
    Known{"training.warmup_steps", ""},
    Known{"training.seed", ""},
    Known{"training.deterministic", ""},
    Known{"training.gc_freq", ""},
    Known{"training.gc_debug", ""},
    Known{"debug.*", ""},
    Known{"comm.*", ""},
    Known{"validation.*", ""},
    Known{"model.tokenizer_path", ""},
    Known{"model.hf_assets_path", ""},
    Known{"model.print_after_conversion", ""},
    Known{"memory_estimation.*", ""},
    Known{"experimental.custom_*", ""},
    Known{"dataloader.*", ""},
    Known{"tokenizer.*", ""},
    Known{"hf_assets_path", ""},
    Known{"dump_folder", ""},
    Known{"fault_tolerance.*", ""},
    Known{"loss.*", ""},
    Known{"model.norm_type", ""},
    Known{"job.config_file", ""},
    Known{"module", ""},
    Known{"config", ""},
};

constexpr std::array kNotModelled = {
    Known{"activation_checkpoint.early_stop", "not counted"},
    Known{"activation_checkpoint.per_op_sac*", "matrix products are kept every second time"},
    Known{"activation_checkpoint.selective_ac_option", "operator-wise selection is taken"},
    Known{"activation_checkpoint.memory_budget", "not counted"},
    Known{"activation_checkpoint.*", ""},
    Known{"parallelism.context_parallel_rotate_method", "ring exchange is taken"},
    Known{"experimental.context_parallel_rotate_method", "ring exchange is taken"},
    Known{"parallelism.context_parallel_load_balancer", "an even load is taken"},
    Known{"parallelism.enable_compiled_autograd", "not counted"},
    Known{"experimental.enable_compiled_autograd", "not counted"},
    Known{"parallelism.disable_loss_parallel", "the loss is taken as sharded"},
    Known{"training.disable_loss_parallel", "the loss is taken as sharded"},
    Known{"parallelism.pipeline_parallel_split_points", "stages are taken as even"},
    Known{"experimental.pipeline_parallel_split_points", "stages are taken as even"},
    Known{"parallelism.pipeline_parallel_schedule_csv", "the named schedule is taken"},
    Known{"parallelism.module_fqns_per_model_part", "stages are taken as even"},
    Known{"parallelism.enable_fsdp_symm_mem", "not counted"},
    Known{"parallelism.expert_tensor_parallel_degree", "experts are taken whole on each rank of the expert group"},
    Known{"parallelism.expert_parallel_comm_backend", ""},
    Known{"compile.components", "the whole layer is taken as compiled"},
    Known{"compile.backend", ""},
    Known{"compile.*", ""},
    Known{"float8.*", ""},
    Known{"quantize.*", ""},
    Known{"mx.*", ""},
    Known{"training.mixed_precision_param", ""},
    Known{"training.mixed_precision_reduce", ""},
    Known{"training.dtype", ""},
    Known{"model.*", ""},
    Known{"optimizer.early_step_in_backward", "the optimizer is taken after the backward"},
};

/// Training.local_batch_size and seq_len where a file does not set them (config/job_config.py).
constexpr int kDefaultLocalBatch = 8;
constexpr int kDefaultSequence = 2048;

/// The newer section first, then where the setting was before.
Result<std::optional<int>> integer(Settings& s, std::initializer_list<const char*> keys, int low, int high) {
  std::optional<int> value;
  for (const char* key : keys) {
    TRY_INTO(const auto found, s.integer(key, low, high));
    if (!value) value = found;
  }
  return value;
}

std::optional<std::string> text(Settings& s, std::initializer_list<const char*> keys) {
  std::optional<std::string> value;
  for (const char* key : keys) {
    const auto found = s.text(key);
    if (!value) value = found;
  }
  return value;
}

Result<bool> read_degrees(Settings& s, Reading& out) {
  parallel::Strategy& t = out.strategy;
  TRY_INTO(const auto replicate,
           integer(s, {"parallelism.data_parallel_replicate_degree", "training.data_parallel_replicate_degree"}, 1,
                   kMostRanks));
  TRY_INTO(const auto shard, integer(s,
                                     {"parallelism.data_parallel_shard_degree", "training.data_parallel_shard_degree",
                                      "training.data_parallel_degree"},
                                     -1, kMostRanks));
  TRY_INTO(const auto tensor,
           integer(s, {"parallelism.tensor_parallel_degree", "training.tensor_parallel_degree"}, 1, kMostRanks));
  TRY_INTO(
      const auto pipeline,
      integer(s, {"parallelism.pipeline_parallel_degree", "experimental.pipeline_parallel_degree"}, 1, kMostRanks));
  TRY_INTO(const auto context,
           integer(s, {"parallelism.context_parallel_degree", "experimental.context_parallel_degree"}, 1, kMostRanks));
  TRY_INTO(const auto expert, integer(s, {"parallelism.expert_parallel_degree"}, 1, kMostRanks));
  t.tensor = tensor.value_or(1);
  t.pipeline = pipeline.value_or(1);
  t.context = context.value_or(1);
  t.expert = expert.value_or(1);
  for (const char* key : {"parallelism.tensor_parallel_degree", "training.tensor_parallel_degree",
                          "parallelism.pipeline_parallel_degree", "parallelism.data_parallel_shard_degree"}) {
    if (out.strategy_pos.line == 0) out.strategy_pos = s.pos(key);
  }
  if (shard == 0)
    return fail("data_parallel_shard_degree is 0, expected -1 (the rest of the ranks) or at least 1", out.strategy_pos);
  const bool sharded = shard.value_or(-1) != 1;
  t.zero = sharded ? 3 : 0;
  t.sharder = sharded ? parallel::Sharder::kFsdp : parallel::Sharder::kDdp;
  out.replicas = sharded ? replicate.value_or(1) : 0;
  if (sharded && shard.value_or(-1) > 1) t.shard_ranks = *shard;
  if (!sharded) t.data = replicate.value_or(1);
  TRY_INTO(const auto sequence_parallel, s.boolean("parallelism.enable_sequence_parallel"));
  t.sequence_parallel = t.tensor > 1 && sequence_parallel.value_or(true);
  bool asynchronous = false;
  for (const char* key : {"parallelism.enable_async_tensor_parallel", "experimental.enable_async_tensor_parallel",
                          "compile.enable_async_tensor_parallel"}) {
    asynchronous = s.flag(key) || asynchronous;
    if (asynchronous && out.strategy.tensor == 1 && s.has(key)) {
      find(out, "async_tensor_parallel_without_tensor_parallel", false, s.pos(key),
           "asynchronous tensor parallelism does nothing: tensor_parallel_degree is 1", "drop it");
    }
  }
  t.overlap_tensor = asynchronous && t.tensor > 1;
  const auto reshard = text(s, {"parallelism.fsdp_reshard_after_forward"}).value_or("default");
  // "default": parameters stay gathered between micro-batches of a pipeline, are dropped otherwise (parallelize.py).
  t.reshard_after_forward = !sharded || reshard == "always" || (reshard != "never" && t.pipeline == 1);
  return true;
}

/// "layers.8,layers.20": the layers at which the next stage begins, one fewer than stages. Pieces for several chunks of a
/// stage stay as they were: not modelled.
void read_split_points(Settings& s, Reading& out) {
  parallel::Strategy& t = out.strategy;
  for (const char* key : {"parallelism.pipeline_parallel_split_points", "experimental.pipeline_parallel_split_points"}) {
    if (!s.has(key) || t.pipeline == 1) continue;
    const std::string points = s.text(key).value_or("");
    std::vector<int> stages;
    int before = 0;
    for (const std::string_view point : split(points, ',')) {
      const std::string_view plain = trim(point);
      const auto layer = plain.starts_with("layers.") ? to_int(plain.substr(7)) : std::nullopt;
      if (!layer || *layer < before || *layer > 100000) break;
      stages.push_back(*layer - before);
      before = *layer;
    }
    if (static_cast<int>(stages.size()) + 1 != t.pipeline) {
      s.mark(key, Use::kNotModelled, "stages are taken as even");
      continue;
    }
    stages.push_back(kRestOfLayers);
    t.stage_layers = std::move(stages);
  }
}

Result<bool> read_pipeline(Settings& s, Reading& out) {
  parallel::Strategy& t = out.strategy;
  using parallel::Schedule;
  const auto schedule = text(s, {"parallelism.pipeline_parallel_schedule", "experimental.pipeline_parallel_schedule"});
  TRY_INTO(const auto layers, integer(s, {"parallelism.pipeline_parallel_layers_per_stage"}, 1, 100000));
  TRY_INTO(const auto first_less, integer(s, {"parallelism.pipeline_parallel_first_stage_less_layers"}, 0, 1000));
  TRY_INTO(const auto last_less, integer(s, {"parallelism.pipeline_parallel_last_stage_less_layers"}, 0, 1000));
  out.layers_per_chunk = t.pipeline > 1 ? layers.value_or(0) : 0;
  // The embedding counts as one layer on the first stage and the head as one on the last unless they say otherwise.
  // Files with [experimental] are older than that rule.
  const int less = s.has("parallelism.pipeline_parallel_degree") ? 1 : 0;
  out.embedding_is_layer = t.pipeline > 1 && first_less.value_or(less) == 1;
  out.loss_is_layer = t.pipeline > 1 && last_less.value_or(less) == 1;
  if (first_less.value_or(0) > 1 || last_less.value_or(0) > 1) {
    s.mark("parallelism.pipeline_parallel_first_stage_less_layers", Use::kNotModelled,
           "at most one layer less is taken");
  }
  read_split_points(s, out);
  if (!schedule || t.pipeline == 1) return true;
  const std::string word = lower(*schedule);
  if (word == "gpipe") t.schedule = Schedule::kGpipe;
  if (word == "interleaved1f1b" || word == "loopedbfs") t.schedule = Schedule::kInterleaved, out.default_chunks = 2;
  if (word == "zbvzerobubble" || word == "dualpipev") {
    t.schedule = Schedule::kZeroBubbleV;
    t.virtual_stages = 2;
    if (word == "dualpipev") s.mark("parallelism.pipeline_parallel_schedule", Use::kUsed, "taken as ZBV");
  }
  if (word == "interleavedzerobubble") {
    t.schedule = Schedule::kZeroBubble1;
    s.mark("parallelism.pipeline_parallel_schedule", Use::kUsed, "taken as ZB-H1");
  }
  if (word != "gpipe" && word != "1f1b" && t.schedule == Schedule::kOneForwardOneBackward) {
    s.mark("parallelism.pipeline_parallel_schedule", Use::kNotModelled, "1F1B is taken");
  }
  return true;
}

Result<bool> read_batch(Settings& s, Reading& out) {
  parallel::Strategy& t = out.strategy;
  TRY_INTO(const auto local, integer(s, {"training.local_batch_size", "training.batch_size"}, 1, 1 << 24));
  TRY_INTO(const auto global, integer(s, {"training.global_batch_size"}, -1, 1 << 30));
  TRY_INTO(out.sequence, integer(s, {"training.seq_len", "training.max_context_length"}, 1, 1 << 26));
  TRY_INTO(const auto pipeline_micro, integer(s, {"parallelism.pipeline_parallel_microbatch_size"}, 1, 1 << 24));
  TRY_INTO(const auto pipeline_count,
           integer(s, {"parallelism.num_pp_microbatches", "experimental.pipeline_parallel_microbatches"}, 1, 1 << 20));
  TRY_INTO(const auto micro_tokens, s.number("training.num_tokens_per_microbatch_per_dp_rank", 1, 1e12));
  TRY_INTO(const auto step_tokens, s.number("training.num_tokens_per_train_step", -1, 1e15));
  const bool file = out.format == Format::kTorchtitan && !micro_tokens;
  const int chunk = local.value_or(file ? kDefaultLocalBatch : 1);
  out.micro_batch_given = local.has_value() || micro_tokens.has_value() || file;
  if (file && !out.sequence) out.sequence = kDefaultSequence;
  t.micro_batch = chunk;
  if (t.pipeline > 1 && !micro_tokens) {
    t.micro_batch = pipeline_count ? std::max(1, chunk / *pipeline_count) : pipeline_micro.value_or(1);
    if (chunk % t.micro_batch != 0) {
      find(out, "micro_batch_does_not_divide", true, s.pos("training.local_batch_size"),
           fmt::format("local_batch_size {} is no multiple of the pipeline's micro-batch {}", chunk, t.micro_batch),
           "make it a multiple");
    }
    // Without a global batch a step is the local batch: its micro-batches go through the pipeline once.
    t.accumulate = std::max(1, chunk / t.micro_batch);
  } else if (out.micro_batch_given) {
    t.accumulate = 1;
  }
  if (global && *global > 0) {
    out.batch = *global;
    t.accumulate = 0;
  }
  // Newer files give a micro-batch, and without tokens of a step one pass of the pipeline's micro-batches is a step.
  if (micro_tokens) out.micro_batch_tokens = *micro_tokens, t.accumulate = t.pipeline > 1 ? pipeline_count.value_or(1) : 1;
  if (step_tokens && *step_tokens > 0) out.batch_tokens = *step_tokens, t.accumulate = 0;
  return true;
}

void read_model(Settings& s, Reading& out) {
  const auto name = text(s, {"model.name", "module"});
  const auto flavor = text(s, {"model.flavor", "config"});
  if (!name && !flavor) return;
  std::string joined = name.value_or("");
  if (flavor) {
    std::string tail = *flavor;
    if (name && lower(tail).starts_with(lower(*name) + "_"))
      tail = tail.substr(name->size() + 1);  // --config llama3_8b
    joined += (joined.empty() ? "" : "-") + tail;
  }
  out.model_name = catalogue_model(joined);
  if (!out.model_name) {
    const char* key = s.has("model.flavor") ? "model.flavor"
                      : s.has("config")     ? "config"
                      : s.has("model.name") ? "model.name"
                                            : "module";
    s.mark(key, Use::kNotModelled, fmt::format("'{}' is not in the catalogue: --model says the sizes", joined));
  }
}

Result<bool> read_rest(Settings& s, Reading& out) {
  parallel::Strategy& t = out.strategy;
  const auto mode = text(s, {"activation_checkpoint.mode", "training.activation_checkpoint.mode"});
  // The defaults of torchtitan's own classes, where a TOML file leaves them out.
  if (out.format == Format::kTorchtitan && !s.has("activation_checkpoint.mode")) t.recompute = parallel::Recompute::kSelective;
  if (mode == "full") t.recompute = parallel::Recompute::kFull;
  if (mode == "selective") t.recompute = parallel::Recompute::kSelective;
  if (mode && *mode != "full" && *mode != "selective" && *mode != "none") {
    s.mark("activation_checkpoint.mode", Use::kNotModelled, "no recomputation is taken");
  }
  bool compiled = false;
  for (const char* key : {"compile.enable", "training.compile"}) compiled = s.flag(key) || compiled;
  out.compiled = compiled;
  const bool async_wanted =
      s.flag("parallelism.enable_async_tensor_parallel") || s.flag("experimental.enable_async_tensor_parallel");
  if (async_wanted && !compiled && t.tensor > 1) {
    find(out, "async_tensor_parallel_without_compile", true, out.strategy_pos,
         "asynchronous tensor parallelism is a pass of torch.compile, which is off", "set [compile] enable = true");
    t.overlap_tensor = false;
  }
  if (s.flag("training.enable_cpu_offload")) t.offload = parallel::Offload::kAll;
  bool fp8 = s.flag("float8.enable_float8_linear");
  for (const char* key : {"training.enable_float8_linear", "training.fp8_linear"}) fp8 = s.flag(key) || fp8;
  const auto converters = text(s, {"model.converters"});
  fp8 = fp8 || (converters && converters->find("float8") != std::string::npos);
  const auto recipe = text(s, {"float8.recipe_name", "quantize.linear.float8.recipe_name"});
  fp8 = fp8 || s.has("quantize.linear.float8.recipe_name");
  out.fp8_rowwise = recipe && recipe->starts_with("rowwise");
  out.dtype = fp8 ? hardware::Dtype::kFp8 : hardware::Dtype::kBf16;
  const auto reduce = text(s, {"training.mixed_precision_reduce"});
  if (reduce == "bfloat16") out.fp32_gradients = false;
  const auto parameter = text(s, {"training.mixed_precision_param"});
  if (parameter == "float32") out.dtype = hardware::Dtype::kFp32;
  const auto backend = text(s, {"parallelism.expert_parallel_comm_backend"});
  out.token_once_per_host = backend == "deepep" || backend == "hybridep";
  return true;
}

}  // namespace

Result<bool> read_torchtitan(Settings& s, Reading& out) {
  out.framework = "torchtitan";
  out.software = parallel::Framework::kTorchtitan;
  TRY_INTO([[maybe_unused]] const bool degrees, read_degrees(s, out));
  TRY_INTO([[maybe_unused]] const bool pipeline, read_pipeline(s, out));
  TRY_INTO([[maybe_unused]] const bool batch, read_batch(s, out));
  read_model(s, out);
  TRY_INTO([[maybe_unused]] const bool rest, read_rest(s, out));
  s.classify(kNoEffect, kNotModelled);
  return true;
}

}  // namespace chokepoint::frameworks
