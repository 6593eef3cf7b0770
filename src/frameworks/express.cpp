// SPDX-License-Identifier: Apache-2.0
#include "express.hpp"

#include <chokepoint/base/text.hpp>

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace chokepoint::frameworks {

namespace {

using parallel::Offload;
using parallel::Recompute;
using parallel::Schedule;
using parallel::Sharder;
using parallel::Strategy;

struct Name {
  std::string_view word;
  Target target;
};
constexpr std::array kTargets = {Name{"megatron", Target::kMegatron},
                                 Name{"deepspeed", Target::kDeepspeed},
                                 Name{"torchtitan", Target::kTorchtitan},
                                 Name{"accelerate", Target::kAccelerate},
                                 Name{"nemo", Target::kNemo},
                                 Name{"hostfile", Target::kHostfile},
                                 Name{"rankmap", Target::kRankmap}};

void drop_quantised(Expressing& e, std::string_view framework) {
  for (bool Strategy::*field :
       {&Strategy::quantised_gathers, &Strategy::quantised_reduction, &Strategy::secondary_shard}) {
    e.take(field, false, fmt::format("ZeRO++ is DeepSpeed's; {} sends parameters and gradients whole", framework));
  }
}

/// Stages as even as they come by themselves need not be listed.
void drop_even_stages(Expressing& e) {
  Strategy even = e.strategy();
  even.stage_layers.clear();
  if (parallel::layers_per_stage(e.job(), even) == e.strategy().stage_layers)
    e.plain(&Strategy::stage_layers, std::vector<int>{});
}

Result<bool> no_pipeline(const Expressing& e, std::string_view framework) {
  if (e.strategy().pipeline == 1) return true;
  return fail(
      fmt::format("{} has no settings for pipeline parallelism: its stages are written in the model's code", framework),
      {}, {"--to megatron, nemo or torchtitan; or a strategy without pipeline"});
}

}  // namespace

Result<Target> parse_target(std::string_view text) {
  std::vector<std::string> known;
  for (const Name& name : kTargets) {
    if (name.word == lower(text)) return name.target;
    known.emplace_back(name.word);
  }
  std::vector<std::string> notes;
  if (const auto close = nearest(text, known)) notes.push_back(fmt::format("did you mean '{}'?", *close));
  return fail(fmt::format("unknown target '{}'; expected one of: {}", text.substr(0, 60), fmt::join(known, ", ")), {},
              std::move(notes));
}

std::string_view name(Target target) {
  return std::find_if(kTargets.begin(), kTargets.end(), [&](const Name& n) { return n.target == target; })->word;
}

Machines machines_of(const parallel::Job& job) {
  const int per_host = std::max(1, std::min(job.cluster.gpus_per_host(), job.gpus));
  return {std::max(1, (job.gpus + per_host - 1) / per_host), per_host};
}

std::vector<int> chunk_layers(const parallel::Job& job, const Strategy& s) {
  const int count = s.pipeline * s.virtual_stages;
  if (s.pipeline == 1 || (s.stage_layers.empty() && job.model.layers % count == 0)) return {};
  const std::vector<int> stages = parallel::layers_per_stage(job, s);
  std::vector<int> out(static_cast<std::size_t>(count), 0);
  for (int i = 0; i < count; ++i) {
    const int own = stages[static_cast<std::size_t>(i % s.pipeline)];
    out[static_cast<std::size_t>(i)] = own / s.virtual_stages + (i / s.pipeline < own % s.virtual_stages ? 1 : 0);
  }
  return out;
}

Result<bool> express_megatron(Expressing& e) {
  const Strategy& s = e.strategy();
  if (s.offload == Offload::kParameters || s.offload == Offload::kAll) {
    return fail("Megatron-LM has no offload of parameters", {}, {"offload=optimizer, or --to deepspeed"});
  }
  e.take(&Strategy::schedule, s.virtual_stages > 1 ? Schedule::kInterleaved : Schedule::kOneForwardOneBackward,
         "Megatron-LM runs 1F1B, interleaved where there are virtual stages; the schedule asked for has no argument");
  if (s.expert > 1 && s.tensor > 1)
    e.take(&Strategy::sequence_parallel, true,
           "Megatron-Core trains experts beside tensor parallelism with sequence parallelism only: switched on");
  if (s.tensor == 1) e.plain(&Strategy::sequence_parallel, false);
  if (!s.sequence_parallel)
    e.take(&Strategy::overlap_tensor, false, "tp-comm-overlap needs sequence parallelism: left out");
  if (s.zero == 0) e.plain(&Strategy::sharder, Sharder::kDdp);
  if (s.zero == 1)
    e.take(&Strategy::sharder, Sharder::kMegatronOptimizer, "ZeRO-1 is Megatron's distributed optimizer");
  if (s.zero >= 2) e.take(&Strategy::sharder, Sharder::kFsdp, fmt::format("ZeRO-{} is Megatron-FSDP", s.zero));
  if (s.zero == 2) e.plain(&Strategy::reshard_after_forward, false);
  if (s.zero == 3) e.take(&Strategy::reshard_after_forward, true, "Megatron-FSDP drops parameters after the forward");
  if (s.zero < 2) e.plain(&Strategy::reshard_after_forward, true);
  if (s.zero == 0) e.plain(&Strategy::shard_ranks, 0);
  if (s.zero == 0) e.plain(&Strategy::overlap_param_gather, true);
  if (s.zero == 1 && !s.overlap_grad_reduce)
    e.take(&Strategy::overlap_param_gather, false,
           "overlap-param-gather works beside overlap-grad-reduce only: left out");
  if (s.zero >= 2)
    e.take(&Strategy::overlap_grad_reduce, true, "Megatron-FSDP reduces gradients while the backward runs");
  if (s.zero == 3) e.take(&Strategy::overlap_param_gather, true, "Megatron-FSDP gathers ahead");
  e.take(&Strategy::sync_every_micro_step, false, "Megatron-LM reduces gradients once a step");
  e.take(&Strategy::sync_last_only, false,
         "Megatron-FSDP has no argument for keeping gradients whole between micro-steps");
  drop_quantised(e, "Megatron-LM");
  drop_even_stages(e);
  return true;
}

Result<bool> express_torchtitan(Expressing& e) {
  const Strategy& s = e.strategy();
  if (s.zero == 1 || s.zero == 2) {
    return fail(fmt::format("torchtitan shards parameters too or nothing; it has no ZeRO-{}", s.zero), {},
                {"fsdp or ddp in the strategy, or --to megatron or deepspeed"});
  }
  if (s.offload != Offload::kNone && s.offload != Offload::kAll)
    return fail("torchtitan offloads all states or none", {}, {"offload=all"});
  if (s.offload == Offload::kAll && s.zero == 0)
    return fail("torchtitan's offload belongs to FSDP", {}, {"fsdp in the strategy"});
  e.plain(&Strategy::sharder, s.zero == 3 ? Sharder::kFsdp : Sharder::kDdp);
  if (s.zero == 0) e.plain(&Strategy::shard_ranks, 0), e.plain(&Strategy::reshard_after_forward, true);
  if (s.tensor == 1) e.plain(&Strategy::sequence_parallel, false), e.plain(&Strategy::overlap_tensor, false);
  e.take(&Strategy::overlap_grad_reduce, true, "torchtitan reduces gradients while the backward runs");
  e.take(&Strategy::overlap_param_gather, true, "FSDP2 gathers ahead");
  e.take(&Strategy::sync_every_micro_step, false, "torchtitan has no setting for when gradients are reduced");
  e.take(&Strategy::sync_last_only, false, "torchtitan reduces gradients in each micro-step");
  if (s.schedule == Schedule::kZeroBubble2)
    e.take(&Strategy::schedule, Schedule::kZeroBubble1, "the zero-bubble schedule with its smaller memory is taken");
  drop_quantised(e, "torchtitan");
  drop_even_stages(e);
  if (s.pipeline > 1 && s.virtual_stages > 1) {
    const int count = s.pipeline * s.virtual_stages;
    const int each = (e.job().model.layers + count - 1) / count;
    if ((e.job().model.layers + each - 1) / each != count) {
      return fail(
          fmt::format(
              "{} layers in pieces of {} do not make the {} chunks of the strategy; torchtitan counts layers per stage",
              e.job().model.layers, each, count),
          {}, {"another virtual, or --to megatron"});
    }
  }
  e.take(&Strategy::stage_layers, std::vector<int>{},
         "torchtitan lists uneven stages by module names; even ones are written");
  return true;
}

Result<bool> express_deepspeed(Expressing& e) {
  const Strategy& s = e.strategy();
  TRY_INTO([[maybe_unused]] const bool flat, no_pipeline(e, "DeepSpeed's JSON"));
  if (s.offload == Offload::kActivations)
    return fail("DeepSpeed's JSON has no offload of activations by itself", {}, {"--to megatron"});
  const bool parameters = s.offload == Offload::kParameters || s.offload == Offload::kAll;
  if (parameters && s.zero < 3)
    return fail("DeepSpeed offloads parameters at stage 3 only", {}, {"zero=3 in the strategy"});
  if (s.offload == Offload::kOptimizer && s.zero == 0)
    return fail("DeepSpeed offloads the optimizer from stage 1 on", {}, {"zero=1 in the strategy"});
  e.take(&Strategy::sequence_parallel, false, "automatic tensor parallelism has no sequence parallelism");
  e.take(&Strategy::overlap_tensor, false, "automatic tensor parallelism does not overlap its collectives");
  if (s.zero == 0) e.plain(&Strategy::sharder, Sharder::kDdp);
  if (s.zero >= 1)
    e.take(&Strategy::sharder, Sharder::kDeepspeed, fmt::format("the sharding is DeepSpeed's ZeRO-{}", s.zero));
  if (s.zero < 3) e.take(&Strategy::shard_ranks, 0, "only stage 3 shards over a part of the ranks (MiCS)");
  if (s.zero == 3) e.take(&Strategy::reshard_after_forward, true, "ZeRO-3 drops parameters after the forward");
  if (s.zero < 3)
    e.plain(&Strategy::reshard_after_forward, true),
        e.take(&Strategy::overlap_param_gather, true, "prefetching parameters is a choice of stage 3 only");
  if (s.zero < 2)
    e.take(&Strategy::overlap_grad_reduce, true,
           "below stage 2 DeepSpeed has no choice of overlap: gradients are reduced at the end of the accumulation");
  const bool each = s.zero >= 2;
  if (s.accumulate == 1) e.plain(&Strategy::sync_every_micro_step, each);
  e.take(&Strategy::sync_every_micro_step, each,
         each ? "from stage 2 on gradients are reduced in each micro-step"
              : "below stage 2 gradients are reduced once a step");
  e.take(&Strategy::sync_last_only, false, "DeepSpeed keeps no whole gradients between micro-steps");
  if (s.recompute == Recompute::kSelective)
    e.take(&Strategy::recompute, Recompute::kFull,
           "models of transformers recompute whole layers or nothing: whole layers");
  return true;
}

Result<bool> express_accelerate(Expressing& e) {
  const Strategy& s = e.strategy();
  TRY_INTO([[maybe_unused]] const bool flat, no_pipeline(e, "accelerate"));
  if (s.expert > 1)
    return fail("accelerate has no settings for expert parallelism", {}, {"--to megatron or torchtitan"});
  if (s.zero == 1 || s.zero == 2)
    return fail(fmt::format("accelerate shards parameters too (FSDP) or nothing; ZeRO-{} is DeepSpeed's", s.zero), {},
                {"--to deepspeed"});
  if (s.zero == 0 && (s.tensor > 1 || s.context > 1) && s.data > 1) {
    return fail("accelerate refuses replicas beside tensor or context parallelism without sharding", {},
                {"fsdp in the strategy"});
  }
  if (s.zero == 3 && s.shard_ranks == 1)
    return fail("one rank shares nothing: accelerate refuses replicas without shards", {}, {"a larger hsdp, or ddp"});
  if (s.offload != Offload::kNone && (s.offload != Offload::kAll || s.zero == 0))
    return fail("accelerate's FSDP offloads all states or none", {}, {"offload=all with fsdp, or --to deepspeed"});
  e.plain(&Strategy::sharder, s.zero == 3 ? Sharder::kFsdp : Sharder::kDdp);
  if (s.zero == 0) e.plain(&Strategy::shard_ranks, 0), e.plain(&Strategy::reshard_after_forward, true);
  e.take(&Strategy::sequence_parallel, false, "tensor parallelism of transformers has no sequence parallelism");
  e.take(&Strategy::overlap_tensor, false, "tensor parallelism of transformers does not overlap its collectives");
  e.take(&Strategy::overlap_grad_reduce, true, "DDP and FSDP reduce gradients while the backward runs");
  e.take(&Strategy::overlap_param_gather, true, "FSDP2 gathers ahead");
  if (s.zero == 3) e.take(&Strategy::sync_every_micro_step, false, "FSDP reduces its units one by one");
  if (s.accumulate == 1 || s.zero == 0) e.plain(&Strategy::sync_last_only, false);
  if (s.recompute == Recompute::kSelective)
    e.take(&Strategy::recompute, Recompute::kFull,
           "models of transformers recompute whole layers or nothing: whole layers");
  drop_quantised(e, "FSDP");
  return true;
}

}  // namespace chokepoint::frameworks
