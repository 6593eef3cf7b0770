// SPDX-License-Identifier: Apache-2.0
// Parallel side of a row: degrees, sharding, batch, schedule, overlap.
#include "run_job.hpp"
#include "run_words.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace chokepoint::validate {
namespace {

using parallel::Framework;
using parallel::Sharder;

/// Tokens of a step when a row with a measured rate says nothing about its batch.
constexpr double kUsualBatchTokens = 1 << 20;
/// Frozen weights stay in 16 bits and have nothing beside them.
constexpr double kFrozenBytesPerParameter = 2;
/// States above this share of the memory do not leave room for activations.
constexpr double kStatesShare = 0.6;

void note(MappedRun& run, std::string text) { run.job.assumptions.push_back({std::move(text), {}}); }

bool is_megatron(Framework framework) {
  return framework == Framework::kMegatron || framework == Framework::kMegatronDeepspeed;
}

int gpus_per_host(const MappedRun& run) { return std::max(1, run.job.cluster.gpus_per_host()); }

/// Smallest tensor degree within a host, then pipeline degree, with which the states fit.
void choose_degrees(MappedRun& run, bool tensor_free, bool pipeline_free) {
  parallel::Strategy& s = run.strategy;
  const double parameters = model::count_parameters(run.job.model).total;
  const double room = kStatesShare * run.job.accelerator.memory_bytes;
  const auto fits = [&] { return parameters * kStateBytesPerParameter / (s.tensor * s.pipeline) <= room; };
  const auto divides = [&](int degree) { return run.job.gpus % degree == 0; };
  while (tensor_free && !fits() && divides(s.tensor * 2 * s.pipeline * s.context) &&
         s.tensor * 2 <= gpus_per_host(run) && run.job.model.heads % (s.tensor * 2) == 0) {
    s.tensor *= 2;
  }
  for (int p = s.pipeline + 1; pipeline_free && !fits() && p <= run.job.model.layers; ++p) {
    if (divides(s.tensor * p * s.context)) s.pipeline = p;
  }
}

}  // namespace

Result<bool> fill_degrees(const RunFields& row, MappedRun& run) {
  parallel::Strategy& s = run.strategy;
  const int gpus = run.job.gpus;
  s.tensor = row.tp.value_or(1);
  s.pipeline = row.pp.value_or(1);
  s.context = row.cp.value_or(1);
  s.expert = row.ep.value_or(1);
  const bool sharded = row.shard.find("fsdp") != std::string::npos || row.shard == "zero3" || row.shard == "hsdp";
  if (row.dp && (!row.tp || !row.pp || !row.cp)) {
    const int rest = gpus / std::max(1, s.tensor * s.pipeline * s.context * *row.dp);
    int& open = !row.tp ? s.tensor : !row.pp ? s.pipeline : s.context;
    open = std::max(1, rest);
  } else if (!row.dp && is_megatron(run.job.framework) && !sharded && (!row.tp || !row.pp)) {
    choose_degrees(run, !row.tp, !row.pp);
  }
  if (!row.tp || !row.pp) {
    note(run, fmt::format("degrees not stated in full: tensor {} pipeline {} context {}", s.tensor, s.pipeline,
                          s.context));
  }
  const int group = s.tensor * s.pipeline * s.context;
  if (gpus % group != 0) {
    return fail(fmt::format("tensor {} x pipeline {} x context {} does not divide {} GPUs", s.tensor, s.pipeline,
                            s.context, gpus));
  }
  s.data = gpus / group;
  if (row.dp && *row.dp != s.data) {
    return fail(fmt::format("data degree {} contradicts {} GPUs / (tensor {} x pipeline {} x context {})", *row.dp, gpus,
                            s.tensor, s.pipeline, s.context));
  }
  return true;
}

namespace {

/// Stage and owner when the row leaves `shard` empty: what the framework's published recipes do.
std::string usual_shard(const RunFields& row, const MappedRun& run) {
  const double each = run.job.frozen_weights ? kFrozenBytesPerParameter : kStateBytesPerParameter;
  const double states = model::count_parameters(run.job.model).total * each;
  const bool fits = states / (run.strategy.tensor * run.strategy.pipeline) <= kStatesShare * run.job.accelerator.memory_bytes;
  switch (run.job.framework) {
    case Framework::kMegatron:
      if (mentions(row.notes, {"distributed optimizer"}) || is_megatron_core(row.framework, run.job.year)) return "zero1";
      return "none";
    case Framework::kMegatronDeepspeed: return "zero1";
    case Framework::kDeepspeed: return fits ? "zero2" : "zero3";
    case Framework::kNanotron: return "zero1";
    case Framework::kPytorch: return fits ? "none" : "fsdp-full";
    default: return "fsdp-full";
  }
}

Sharder sharder_of(Framework framework, int stage) {
  switch (framework) {
    case Framework::kMegatron:
    case Framework::kNanotron: return Sharder::kMegatronOptimizer;
    case Framework::kMegatronDeepspeed:
    case Framework::kDeepspeed: return Sharder::kDeepspeed;
    default: return stage >= 3 ? Sharder::kFsdp : Sharder::kDeepspeed;
  }
}

}  // namespace

void fill_sharding(const RunFields& row, MappedRun& run) {
  parallel::Strategy& s = run.strategy;
  std::string shard = row.shard;
  if (shard.empty()) {
    shard = usual_shard(row, run);
    note(run, fmt::format("sharding not stated: {}", shard));
  }
  if (shard.rfind("zero", 0) == 0 && shard.size() == 5) {
    s.zero = shard[4] - '0';
    s.sharder = sharder_of(run.job.framework, s.zero);
  } else if (shard == "fsdp-full" || shard == "fsdp-shard-grad-op" || shard == "hsdp") {
    s.zero = 3;
    s.sharder = Sharder::kFsdp;
    s.reshard_after_forward = shard != "fsdp-shard-grad-op";
  } else if (shard != "none") {
    note(run, fmt::format("sharding '{}' not known: none", shard));
  }
  if (shard == "hsdp") {
    // Inside what NVLink or ICI joins: a host, or all hosts of one such domain.
    const int domain = gpus_per_host(run) * run.job.cluster.hosts.front().host.nvlink_domain_hosts;
    const int inside = std::max(1, domain / std::max(1, s.tensor));
    if (inside < s.data && s.data % inside == 0) s.shard_ranks = inside;
    note(run, fmt::format("hybrid sharding inside a host or slice: {} ranks", s.shard_ranks > 0 ? s.shard_ranks : s.data));
  }
  if (const auto ranks = number_after(row.notes, "zero-1 within "); ranks && s.zero == 1) {
    const int inside = static_cast<int>(*ranks);
    if (inside >= 1 && inside < s.data && s.data % inside == 0) s.shard_ranks = inside;
  }
  if (s.zero == 3 && s.sharder == Sharder::kDeepspeed && mentions(row.notes, {"zero++;", "zero++ with"})) {
    s.quantised_gathers = s.quantised_reduction = s.secondary_shard = true;
  }
  // Recomputed or accumulated micro-steps reduce each time unless the framework holds gradients back (no_sync).
  const Framework f = run.job.framework;
  s.sync_every_micro_step = s.zero >= 2 && f != Framework::kPytorch && f != Framework::kMegatron;
}

Result<bool> fill_batch(const RunFields& row, MappedRun& run) {
  parallel::Strategy& s = run.strategy;
  parallel::Job& job = run.job;
  const double replicas = s.data;
  std::optional<double> micro = row.micro_batch, accumulate = row.grad_accum, batch = row.global_batch;
  run.batch_assumed = !micro && !batch;
  run.micro_batch_assumed = run.batch_assumed && s.zero == 3 && row.seq_len;  // else the tokens of a GPU are stated
  if (!batch && micro && accumulate) batch = *micro * *accumulate * replicas;
  if (batch && !micro && accumulate) micro = std::max(1.0, *batch / replicas / *accumulate);
  if (!micro && batch && job.framework == Framework::kMaxtext) {
    micro = std::max(1.0, *batch / replicas);  // MaxText has no accumulation unless it is asked for
    note(run, fmt::format("micro-batch not stated: {:.0f}, the whole batch of a replica", *micro));
  }
  if (!micro) {
    micro = 1;
    note(run, "micro-batch not stated: 1");
  }
  if (!batch) {
    if (!accumulate) {
      const bool gathers = s.zero >= 2 || !is_megatron(job.framework);
      const double usual = kUsualBatchTokens / (job.sequence * replicas * *micro);
      accumulate = gathers ? 1.0 : std::max<double>(s.pipeline, std::floor(usual));
      note(run, fmt::format("batch not stated: {:.0f} micro-steps", *accumulate));
    }
    batch = *micro * *accumulate * replicas;
  }
  const double per_replica = *batch / replicas;
  if (*micro > per_replica) micro = per_replica;
  // A last micro-batch may be short ("grad_accum is a ceiling"): the step has ceil(batch / micro) micro-steps.
  s.micro_batch = std::max(1, static_cast<int>(std::lround(*micro)));
  s.accumulate = std::max(1, static_cast<int>(std::ceil(per_replica / s.micro_batch - 1e-9)));
  job.global_batch = static_cast<double>(s.micro_batch) * s.accumulate * replicas;
  if (std::abs(job.global_batch - *batch) > 0.5) {
    note(run, fmt::format("a batch of {:g} taken as {:g}: full micro-batches on every replica", *batch, job.global_batch));
  }
  if (per_replica < 1) {
    return fail(fmt::format("a batch of {:g} sequences is less than one for each of {} replicas", *batch, s.data));
  }
  return true;
}

namespace {

parallel::Recompute usual_recompute(const RunFields& row, const MappedRun& run) {
  using parallel::Recompute;
  // Fine-tuning scripts around the HF Trainer turn gradient checkpointing on: Qwen finetune/*.sh, FastChat, LLaMA-Factory.
  if (mentions(row.framework, {"hf trainer", "llama-factory"})) return Recompute::kFull;
  switch (run.job.framework) {
    case Framework::kMegatronDeepspeed: return Recompute::kFull;
    case Framework::kMegatron: return run.job.year <= 2021 ? Recompute::kFull : Recompute::kNone;
    case Framework::kTorchtitan: return mentions(row.framework, {"torchtitan"}) ? Recompute::kSelective : Recompute::kNone;
    case Framework::kMaxtext: return Recompute::kFull;
    default: return Recompute::kNone;
  }
}

void fill_recompute(const RunFields& row, MappedRun& run) {
  using parallel::Recompute;
  Recompute& recompute = run.strategy.recompute;
  if (row.recompute == "none") {
    recompute = Recompute::kNone;
  } else if (mentions(row.recompute, {"selective"})) {
    recompute = Recompute::kSelective;
  } else if (mentions(row.recompute, {"full"})) {
    recompute = Recompute::kFull;
  } else {
    recompute = usual_recompute(row, run);
    run.recompute_assumed = true;
    note(run, fmt::format("recomputation not stated: {}", parallel::name(recompute)));
  }
}

void fill_offload(const RunFields& row, MappedRun& run) {
  using parallel::Offload;
  Offload& offload = run.strategy.offload;
  if (row.offload == "optimizer") offload = Offload::kOptimizer;
  if (row.offload == "params") offload = Offload::kParameters;
  if (row.offload == "both") offload = Offload::kAll;
  if (row.offload == "activations") offload = Offload::kActivations;
}

/// Uneven stages that the notes describe.
void fill_stage_layers(const RunFields& row, MappedRun& run) {
  parallel::Strategy& s = run.strategy;
  if (!mentions(row.notes, {"first and last stage have one layer less"}) || s.pipeline < 2) return;
  const int full = (run.job.model.layers + 2) / s.pipeline;
  if (full * s.pipeline != run.job.model.layers + 2 || s.virtual_stages > 1) return;
  s.stage_layers.assign(static_cast<std::size_t>(s.pipeline), full);
  s.stage_layers.front() -= 1;
  s.stage_layers.back() -= 1;
}

}  // namespace

Result<bool> fill_schedule(const RunFields& row, MappedRun& run) {
  using parallel::Schedule;
  parallel::Strategy& s = run.strategy;
  fill_recompute(row, run);
  fill_offload(row, run);
  s.virtual_stages = s.pipeline > 1 ? row.vpp.value_or(1) : 1;
  if (mentions(row.pp_schedule, {"zb-2p", "zb2p"})) {
    s.schedule = Schedule::kZeroBubble2;
  } else if (mentions(row.pp_schedule, {"zb", "dualpipe"})) {
    s.schedule = Schedule::kZeroBubble1;
  } else if (mentions(row.pp_schedule, {"gpipe"})) {
    s.schedule = Schedule::kGpipe;
  } else if (mentions(row.pp_schedule, {"interleaved"}) || s.virtual_stages > 1) {
    s.schedule = Schedule::kInterleaved;
    if (s.virtual_stages == 1 && s.pipeline > 1 && run.job.model.layers % (2 * s.pipeline) == 0) {
      s.virtual_stages = 2;
      note(run, "interleaved schedule without its number of chunks: 2");
    }
    if (s.virtual_stages == 1) s.schedule = Schedule::kOneForwardOneBackward;
  }
  fill_stage_layers(row, run);
  return true;
}

void fill_overlap(const RunFields& row, MappedRun& run) {
  parallel::Strategy& s = run.strategy;
  const Framework f = run.job.framework;
  const bool core = is_megatron_core(row.framework, run.job.year);
  if (s.tensor > 1) {
    if (!row.sequence_parallel.empty()) {
      s.sequence_parallel = row.sequence_parallel == "yes";
    } else {
      s.sequence_parallel = core || f == Framework::kTorchtitan || f == Framework::kMaxtext || f == Framework::kNanotron;
      note(run, fmt::format("sequence parallelism not stated: {}", s.sequence_parallel ? "yes" : "no"));
    }
  }
  // Megatron-LM and Megatron-DeepSpeed reduce after the last backward by default; Megatron-Core's recipes, PyTorch DDP,
  // FSDP and ZeRO-3 overlap.
  const bool plain_megatron = is_megatron(f) && !core && s.zero < 3 && !mentions(row.framework, {"internevo", "oneflow"});
  s.overlap_grad_reduce = !plain_megatron;
  // Colossal-AI's Gemini fetches a chunk when it is used, without prefetch (its default until 2024).
  const bool fetches_on_use = mentions(row.framework, {"colossal", "gemini"}) && run.job.year < 2024;
  s.overlap_param_gather = (core || s.zero >= 3) && !fetches_on_use;
  if (f == Framework::kMaxtext) {
    s.overlap_tensor = s.tensor > 1;  // XLA cuts products and collectives into pieces (Wang et al., ASPLOS 2023)
  } else if (mentions(row.notes, {"no tp comm overlap", "vanilla tp"})) {
    s.overlap_tensor = false;
  } else if (mentions(row.notes, {"async tp", "with async communication", "tp comm overlap", "userbuffer"})) {
    s.overlap_tensor = s.tensor > 1;
  } else {
    // The vendors' recipes turn on user-buffer overlap with sequence parallelism (NeMo, Megatron-Bridge).
    s.overlap_tensor = s.tensor > 1 && s.sequence_parallel && mentions(row.framework, {"nemo", "megatron-bridge"}) && core;
  }
  // Its recipes for hosts of eight run the all-to-all of one micro-batch beside another's passes where the pipeline is
  // interleaved (moe_a2a_overlap); those for rack-scale NVLink domains dispatch by fused kernels instead.
  s.overlap_expert = s.expert > 1 && s.virtual_stages > 1 && core && mentions(row.framework, {"megatron-bridge"}) &&
                     !mentions(row.accelerator, {"gb200", "gb300"});
}

}  // namespace chokepoint::validate
