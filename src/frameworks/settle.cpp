// SPDX-License-Identifier: Apache-2.0
// What a reading means for one job: the degrees that follow from the number of GPUs, stages from the number of layers,
// the batch from its factors.
#include "interpret.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>

namespace chokepoint::frameworks {

namespace {

using parallel::Strategy;

Result<int> data_degree(const Reading& reading, const parallel::Job& job) {
  const Strategy& t = reading.strategy;
  const double group = static_cast<double>(t.tensor) * t.pipeline * t.context;
  if (group > job.gpus || job.gpus % static_cast<int>(group) != 0) {
    return fail(fmt::format("the degrees do not multiply to the world size: tensor {} x pipeline {} x context {} = "
                            "{:.0f} does not divide {} GPUs",
                            t.tensor, t.pipeline, t.context, group, job.gpus),
                reading.strategy_pos, {"change a degree, or the number of GPUs (--gpus)"});
  }
  const int data = job.gpus / static_cast<int>(group);
  if (t.data > 0 && t.data != data) {
    return fail(fmt::format("the degrees do not multiply to the world size: tensor {} x pipeline {} x context {} x "
                            "data {} = {:.0f}, but there are {} GPUs",
                            t.tensor, t.pipeline, t.context, t.data, group * t.data, job.gpus),
                reading.strategy_pos, {fmt::format("data-parallel degree {} would fit", data)});
  }
  return data;
}

Result<bool> settle_shards(const Reading& reading, Strategy& t) {
  if (reading.replicas < 1 || t.zero == 0) return true;
  const double product = static_cast<double>(t.shard_ranks) * reading.replicas;
  if (t.shard_ranks > 0 && product != t.data) {
    return fail(fmt::format("the degrees do not multiply to the world size: {} shards x {} replicas = {:.0f} "
                            "data-parallel ranks, but tensor, pipeline and "
                            "context leave {}",
                            t.shard_ranks, reading.replicas, product, t.data),
                reading.strategy_pos, {"set the shard degree to -1 to take the rest"});
  }
  if (t.data % reading.replicas != 0) {
    return fail(fmt::format("{} replicas do not divide the {} data-parallel ranks", reading.replicas, t.data),
                reading.strategy_pos);
  }
  t.shard_ranks = t.data / reading.replicas;
  return true;
}

/// Layers over chunks as evenly as they go, the first chunks taking the rest; what counts as a layer beside them taken
/// off.
std::vector<int> spread(int layers, int stages, int chunks, bool embedding, bool loss) {
  const int total = layers + (embedding ? 1 : 0) + (loss ? 1 : 0);
  std::vector<int> out(static_cast<std::size_t>(stages), 0);
  const int count = stages * chunks;
  for (int i = 0; i < count; ++i) {
    int own = total / count + (i < total % count ? 1 : 0);
    if (embedding && i == 0) --own;
    if (loss && i == count - 1) --own;
    out[static_cast<std::size_t>(i % stages)] += own;
  }
  return out;
}

Result<bool> settle_chunks(const Reading& reading, const parallel::Job& job, Strategy& t) {
  if (t.pipeline == 1) return true;
  if (reading.layers_per_chunk > 0) {
    const int layers = job.model.layers + (reading.embedding_is_layer ? 1 : 0) + (reading.loss_is_layer ? 1 : 0);
    const int chunks = (layers + reading.layers_per_chunk - 1) / reading.layers_per_chunk;
    if (chunks % t.pipeline != 0) {
      return fail(fmt::format("{} layers in pieces of {} make {} pieces, no multiple of the {} pipeline stages", layers,
                              reading.layers_per_chunk, chunks, t.pipeline),
                  reading.strategy_pos);
    }
    t.virtual_stages = chunks / t.pipeline;
  } else if (t.schedule == parallel::Schedule::kInterleaved && t.virtual_stages == 1) {
    t.virtual_stages = reading.default_chunks;
  }
  if (t.virtual_stages > 1 && t.schedule == parallel::Schedule::kOneForwardOneBackward)
    t.schedule = parallel::Schedule::kInterleaved;
  if (t.virtual_stages == 1 && t.schedule == parallel::Schedule::kInterleaved)
    t.schedule = parallel::Schedule::kOneForwardOneBackward;
  return true;
}

Result<bool> settle_stages(const Reading& reading, const parallel::Job& job, Strategy& t) {
  if (t.pipeline == 1) {
    t.stage_layers.clear();
    return true;
  }
  if (!t.stage_layers.empty() && t.stage_layers.back() == kRestOfLayers) {
    t.stage_layers.back() = 0;
    const int before = std::accumulate(t.stage_layers.begin(), t.stage_layers.end(), 0);
    if (before > job.model.layers) {
      return fail(fmt::format("the last stage begins at layer {}, but {} has {} layers", before, job.model.name, job.model.layers),
                  reading.strategy_pos, {"change the split points, or the model"});
    }
    t.stage_layers.back() = job.model.layers - before;
  }
  const int first = reading.first_stage_layers, last = reading.last_stage_layers;
  if (t.stage_layers.empty() && (reading.embedding_is_layer || reading.loss_is_layer)) {
    if (static_cast<double>(t.pipeline) * t.virtual_stages > job.model.layers + 2)
      return true;  // the strategy's own check says so
    t.stage_layers =
        spread(job.model.layers, t.pipeline, t.virtual_stages, reading.embedding_is_layer, reading.loss_is_layer);
  } else if (t.stage_layers.empty() && (first >= 0 || last >= 0)) {
    const int inner = t.pipeline - (first >= 0 ? 1 : 0) - (last >= 0 ? 1 : 0);
    const int rest = job.model.layers - std::max(first, 0) - std::max(last, 0);
    if (rest < 0 || (inner > 0 ? rest % inner != 0 : rest != 0)) {
      return fail(fmt::format("{} layers remain for the {} stages between; they must divide", rest, inner),
                  reading.strategy_pos, {"change the layers of the first or last stage"});
    }
    t.stage_layers.assign(static_cast<std::size_t>(t.pipeline), inner > 0 ? rest / inner : 0);
    if (first >= 0) t.stage_layers.front() = first;
    if (last >= 0) t.stage_layers.back() = last;
  }
  Strategy even = t;
  even.stage_layers.clear();
  if (parallel::layers_per_stage(job, even) == t.stage_layers) t.stage_layers.clear();
  return true;
}

Result<bool> settle_batch(Reading& reading, parallel::Job& job, bool batch_given, Strategy& t) {
  if (reading.micro_batch_tokens)
    t.micro_batch = std::max(1, static_cast<int>(std::min(1e6, *reading.micro_batch_tokens / job.sequence)));
  if (reading.batch_tokens && !reading.batch)
    reading.batch = std::max(1.0, std::floor(*reading.batch_tokens / job.sequence));
  const double once = static_cast<double>(t.micro_batch) * t.data;
  if (batch_given || reading.batch) {
    if (!batch_given) job.global_batch = *reading.batch;
    if (!reading.micro_batch_given) {
      const double own = job.global_batch / (std::max(1, t.accumulate) * static_cast<double>(t.data));
      const bool divides = own >= 1 && own == std::floor(own) && own <= 1 << 24;
      // DeepSpeed works out the missing one of the three; elsewhere one sequence at a time is the usual start.
      t.micro_batch = divides && t.accumulate > 0 ? static_cast<int>(own) : 1;
      job.assumptions.push_back({fmt::format("micro-batch {}: the settings do not say it", t.micro_batch), {}});
      t.accumulate = 0;
    } else if (t.accumulate > 0 && once * t.accumulate != job.global_batch) {
      find(reading, "batch_arithmetic_disagrees", !batch_given, reading.strategy_pos,
           fmt::format(
               "micro-batch {} x accumulation {} x {} data-parallel ranks = {:.0f} sequences, but the batch is {:.0f}",
               t.micro_batch, t.accumulate, t.data, once * t.accumulate, job.global_batch),
           batch_given ? "--batch is taken; accumulation follows from it" : "make the three multiply to the batch");
      t.accumulate = 0;
    }
    return true;
  }
  t.accumulate = std::max(1, t.accumulate);
  const double batch = once * t.accumulate;
  if (!(batch <= 1 << 30))
    return fail(fmt::format("a batch of {:g} sequences is beyond any training", batch), reading.strategy_pos);
  job.global_batch = batch;
  return true;
}

}  // namespace

void apply(const Reading& reading, parallel::Job& job) {
  job.framework = reading.software;
  job.framework_assumed = false;
  if (reading.compiled) job.compiled = *reading.compiled;
  if (reading.fp32_gradients) job.fp32_gradients = *reading.fp32_gradients;
  if (reading.optimizer_bytes_per_parameter) job.optimizer_bytes_per_parameter = *reading.optimizer_bytes_per_parameter;
  if (reading.adapter_rank) job.frozen_weights = true, job.adapter_rank = *reading.adapter_rank;
  job.fp8_rowwise = reading.fp8_rowwise;
  job.token_once_per_host = reading.token_once_per_host;
  job.fused_loss = reading.fused_loss;
  job.fused_operators = reading.fused_operators;
}

Result<Strategy> settle(Reading& reading, parallel::Job& job, bool batch_given) {
  Strategy t = reading.strategy;
  TRY_INTO(t.data, data_degree(reading, job));
  TRY_INTO([[maybe_unused]] const bool shards, settle_shards(reading, t));
  TRY_INTO([[maybe_unused]] const bool chunks, settle_chunks(reading, job, t));
  TRY_INTO([[maybe_unused]] const bool stages, settle_stages(reading, job, t));
  TRY_INTO([[maybe_unused]] const bool batch, settle_batch(reading, job, batch_given, t));
  if (t.shard_ranks == t.data) t.shard_ranks = 0;
  const double once = static_cast<double>(t.micro_batch) * t.data;
  const double steps = std::floor(job.global_batch / once);
  if (t.accumulate == 0 && steps >= 1 && steps * once == job.global_batch) t.accumulate = static_cast<int>(steps);
  if (t.accumulate == 1) t.sync_last_only = false;
  if (t.zero == 3 && t.data == 1 && t.context == 1) {
    find(reading, "sharding_over_one_rank", false, reading.strategy_pos,
         "there is one data-parallel rank: nothing is sharded", "use more ranks, or plain data parallelism");
  }
  return t;
}

}  // namespace chokepoint::frameworks
