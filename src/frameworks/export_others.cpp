// SPDX-License-Identifier: Apache-2.0
// torchtitan TOML; DeepSpeed JSON and accelerate YAML with the launch line of a Hugging Face Trainer, which says the
// rest.
#include "express.hpp"

#include <chokepoint/base/text.hpp>

#include <algorithm>
#include <fmt/format.h>

namespace chokepoint::frameworks {

namespace {

using parallel::Offload;
using parallel::Recompute;
using parallel::Schedule;
using parallel::Strategy;

std::string torchtitan_model(Expressing& e) {
  const std::string& name = e.job().model.name;
  const std::size_t dash = name.rfind('-');
  if (!name.starts_with("llama-3-") || dash == std::string::npos) {
    e.note(fmt::format("[model]: torchtitan's name and flavor for {} are yours to add; reading it back needs --model",
                       name));
    return "# name and flavor: " + name + "\n";
  }
  std::string flavor = name.substr(dash + 1);
  std::transform(flavor.begin(), flavor.end(), flavor.begin(), [](char c) { return c == 'b' ? 'B' : c; });
  return fmt::format("name = \"llama3\"\nflavor = \"{}\"\n", flavor);
}

std::string torchtitan_pipeline(const Expressing& e) {
  const Strategy& s = e.strategy();
  std::string text = fmt::format("pipeline_parallel_degree = {}\n", s.pipeline);
  if (s.pipeline == 1) return text;
  const char* schedule = s.schedule == Schedule::kGpipe         ? "GPipe"
                         : s.schedule == Schedule::kZeroBubble1 ? "InterleavedZeroBubble"
                         : s.virtual_stages > 1                 ? "Interleaved1F1B"
                                                                : "1F1B";
  text += fmt::format("pipeline_parallel_schedule = \"{}\"\npipeline_parallel_microbatch_size = {}\n", schedule,
                      s.micro_batch);
  // Layers alone are spread, as even as possible; the embedding and the head come on top.
  text += "pipeline_parallel_first_stage_less_layers = 0\npipeline_parallel_last_stage_less_layers = 0\n";
  const int count = s.pipeline * s.virtual_stages;
  if (s.virtual_stages > 1)
    text += fmt::format("pipeline_parallel_layers_per_stage = {}\n", (e.job().model.layers + count - 1) / count);
  return text;
}

const char* truth(bool value) { return value ? "true" : "false"; }

/// Model, batch, checkpointing and precision in the Trainer's words.
std::string trainer_arguments(const Expressing& e, bool checkpointing) {
  const parallel::Job& job = e.job();
  const Strategy& s = e.strategy();
  std::string text = fmt::format(
      " \\\n    --model_name_or_path {} --max_seq_length {} \\\n    --per_device_train_batch_size {} "
      "--gradient_accumulation_steps {}",
      job.model.name, job.sequence, s.micro_batch, s.accumulate);
  if (job.dtype == hardware::Dtype::kFp16) text += " --fp16 True";
  if (job.dtype == hardware::Dtype::kBf16 || job.dtype == hardware::Dtype::kFp8) text += " --bf16 True";
  if (checkpointing) text += " --gradient_checkpointing True";
  return text;
}

void add_zero(const parallel::Job& job, const Strategy& s, std::vector<std::string>& fields) {
  fields.push_back(fmt::format("\"stage\": {}", s.zero));
  if (s.zero >= 2) fields.push_back(fmt::format("\"overlap_comm\": {}", truth(s.overlap_grad_reduce)));
  if (s.zero == 3)
    fields.push_back(fmt::format("\"stage3_prefetch_bucket_size\": {}", s.overlap_param_gather ? "5e7" : "0"));
  if (s.zero == 3 && s.shard_ranks > 0) fields.push_back(fmt::format("\"mics_shard_size\": {}", s.shard_ranks));
  if (s.secondary_shard)
    fields.push_back(fmt::format("\"zero_hpz_partition_size\": {}", std::max(2, job.cluster.gpus_per_host())));
  if (s.quantised_gathers) fields.emplace_back("\"zero_quantized_weights\": true");
  if (s.quantised_reduction) fields.emplace_back("\"zero_quantized_gradients\": true");
  const bool optimizer = s.offload == Offload::kOptimizer || s.offload == Offload::kAll;
  const bool parameters = s.offload == Offload::kParameters || s.offload == Offload::kAll;
  if (optimizer) fields.emplace_back("\"offload_optimizer\": {\"device\": \"cpu\", \"pin_memory\": true}");
  if (parameters) fields.emplace_back("\"offload_param\": {\"device\": \"cpu\", \"pin_memory\": true}");
}

}  // namespace

std::vector<File> write_torchtitan(Expressing& e) {
  const parallel::Job& job = e.job();
  const Strategy& s = e.strategy();
  const Machines machines = machines_of(job);
  std::string text = "# torchtitan: " + parallel::title(s) + "\n";
  for (const Variable& v : environment(job, s, Target::kTorchtitan))
    text += fmt::format("# export {}={}  # {}\n", v.name, v.value, v.reason);
  text += fmt::format(
      "# torchrun --nnodes {} --nproc-per-node {} --rdzv-backend c10d --rdzv-endpoint $MASTER_ADDR:29500 -m "
      "torchtitan.train --job.config_file train.toml\n",
      machines.hosts, machines.per_host);
  text += "\n[model]\n" + torchtitan_model(e);
  if (job.dtype == hardware::Dtype::kFp8) text += "converters = [\"float8\"]\n";
  const int local = s.pipeline > 1 ? s.micro_batch * s.accumulate : s.micro_batch;
  text += fmt::format("\n[training]\nlocal_batch_size = {}\nglobal_batch_size = {:.0f}\nseq_len = {}\n", local,
                      job.global_batch, job.sequence);
  if (s.offload == Offload::kAll) text += "enable_cpu_offload = true\n";
  if (!job.fp32_gradients) text += "mixed_precision_reduce = \"bfloat16\"\n";
  const int shards = s.zero == 0 ? 1 : s.shard_ranks > 0 ? s.shard_ranks : s.data;
  text += fmt::format("\n[parallelism]\ndata_parallel_replicate_degree = {}\ndata_parallel_shard_degree = {}\n",
                      std::max(1, s.data / shards), shards == 1 && s.zero == 3 ? -1 : shards);
  if (s.zero == 3)
    text += fmt::format("fsdp_reshard_after_forward = \"{}\"\n", s.reshard_after_forward ? "always" : "never");
  text += fmt::format("tensor_parallel_degree = {}\n", s.tensor);
  if (s.tensor > 1) text += fmt::format("enable_sequence_parallel = {}\n", truth(s.sequence_parallel));
  if (s.overlap_tensor) text += "enable_async_tensor_parallel = true\n";
  text += torchtitan_pipeline(e);
  text += fmt::format("context_parallel_degree = {}\nexpert_parallel_degree = {}\n", s.context, s.expert);
  text += fmt::format("\n[activation_checkpoint]\nmode = \"{}\"\n", parallel::name(s.recompute));
  if (s.overlap_tensor && !job.compiled)
    e.note("asynchronous tensor parallelism is a pass of torch.compile: switched on");
  text += fmt::format("\n[compile]\nenable = {}\n", truth(job.compiled || s.overlap_tensor));
  return {{"train.toml", text}};
}

std::vector<File> write_deepspeed(const Expressing& e) {
  const parallel::Job& job = e.job();
  const Strategy& s = e.strategy();
  const Machines machines = machines_of(job);
  std::vector<std::string> zero;
  add_zero(job, s, zero);
  std::string json = fmt::format(
      "{{\n  \"train_batch_size\": {:.0f},\n  \"train_micro_batch_size_per_gpu\": {},\n  "
      "\"gradient_accumulation_steps\": {},\n",
      job.global_batch, s.micro_batch, s.accumulate);
  if (job.dtype == hardware::Dtype::kFp16) json += "  \"fp16\": {\"enabled\": true},\n";
  if (job.dtype == hardware::Dtype::kBf16 || job.dtype == hardware::Dtype::kFp8)
    json += "  \"bf16\": {\"enabled\": true},\n";
  if (s.tensor > 1) json += fmt::format("  \"tensor_parallel\": {{\"autotp_size\": {}}},\n", s.tensor);
  if (s.expert > 1) json += fmt::format("  \"expert_parallel\": {{\"autoep_size\": {}}},\n", s.expert);
  if (s.context > 1) json += fmt::format("  \"sequence_parallel_size\": {},\n", s.context);
  json += fmt::format("  \"zero_optimization\": {{\n    {}\n  }}\n}}\n", fmt::join(zero, ",\n    "));
  std::string script = "#!/bin/bash\n# DeepSpeed: " + parallel::title(s) +
                       "\n# The script, its data and learning rate are yours to add.\n";
  script += environment_lines(job, s, Target::kDeepspeed);
  script += fmt::format("deepspeed {}--num_nodes {} --num_gpus {} train.py --deepspeed ds_config.json",
                        machines.hosts > 1 ? "--hostfile hostfile " : "", machines.hosts, machines.per_host);
  script += trainer_arguments(e, s.recompute == Recompute::kFull) + "\n";
  std::vector<File> files = {{"launch.sh", script}, {"ds_config.json", json}};
  if (machines.hosts > 1) files.push_back({"hostfile", hostfile(job)});
  return files;
}

std::vector<File> write_accelerate(const Expressing& e) {
  const parallel::Job& job = e.job();
  const Strategy& s = e.strategy();
  const Machines machines = machines_of(job);
  const char* precision = job.dtype == hardware::Dtype::kFp16   ? "fp16"
                          : job.dtype == hardware::Dtype::kFp8  ? "fp8"
                          : job.dtype == hardware::Dtype::kBf16 ? "bf16"
                                                                : "no";
  std::string yaml = fmt::format(
      "compute_environment: LOCAL_MACHINE\ndistributed_type: {}\nnum_machines: {}\nnum_processes: {}\nmachine_rank: "
      "0\nmixed_precision: {}\n",
      s.zero == 3 ? "FSDP" : "MULTI_GPU", machines.hosts, job.gpus, precision);
  if (s.zero == 3) {
    yaml += fmt::format(
        "fsdp_config:\n  fsdp_version: 2\n  fsdp_reshard_after_forward: {}\n  fsdp_auto_wrap_policy: "
        "TRANSFORMER_BASED_WRAP\n  fsdp_offload_params: {}\n"
        "  fsdp_activation_checkpointing: {}\n",
        truth(s.reshard_after_forward), truth(s.offload == Offload::kAll), truth(s.recompute == Recompute::kFull));
  }
  if (s.zero == 3 && (s.shard_ranks > 0 || s.tensor > 1 || s.context > 1)) {
    const int shards = s.shard_ranks > 0 ? s.shard_ranks : s.data;
    yaml += fmt::format(
        "parallelism_config:\n  parallelism_config_dp_replicate_size: {}\n  parallelism_config_dp_shard_size: {}\n  "
        "parallelism_config_tp_size: {}\n"
        "  parallelism_config_cp_size: {}\n",
        s.data / shards, shards, s.tensor, s.context);
  } else if (s.tensor > 1 || s.context > 1) {
    yaml += fmt::format("parallelism_config:\n  parallelism_config_tp_size: {}\n  parallelism_config_cp_size: {}\n",
                        s.tensor, s.context);
  }
  if (job.compiled) yaml += "dynamo_config:\n  dynamo_backend: INDUCTOR\n";
  std::string script = "#!/bin/bash\n# accelerate: " + parallel::title(s) +
                       "\n# The script, its data and learning rate are yours to add.\n";
  script += environment_lines(job, s, Target::kAccelerate);
  script += "accelerate launch --config_file accelerate.yaml train.py";
  script += trainer_arguments(e, s.recompute == Recompute::kFull && s.zero == 0);
  const bool each = s.zero == 3 ? !s.sync_last_only && s.accumulate > 1 : s.sync_every_micro_step;
  if (each) script += " \\\n    --accelerator_config '{\"gradient_accumulation_kwargs\": {\"sync_each_batch\": true}}'";
  return {{"launch.sh", script + "\n"}, {"accelerate.yaml", yaml}};
}

}  // namespace chokepoint::frameworks
