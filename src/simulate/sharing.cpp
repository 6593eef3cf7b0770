// SPDX-License-Identifier: Apache-2.0
// DDP, ZeRO and FSDP exposure (MODEL section 3(a), 3(b)). Gradients become ready evenly over backward, bucket by bucket;
// a communicator runs one collective at a time; overlapped products lose the SMs communication kernels hold.
#include "sharing.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace chokepoint::simulate {

namespace {

using collective::Op;
using parallel::Framework;
using parallel::Sharder;

/// Elements of one bucket where a framework cuts gradients at a fixed size. 0: buckets are made of whole tensors. Sources:
/// Megatron-Core distributed_data_parallel.py max(40 M, 1 M x dp); DeepSpeed reduce_bucket_size 5e8.
double cut_bucket_elements(const StepContext& c) {
  switch (c.job.framework) {
    case Framework::kMegatron: return std::max(40e6, 1e6 * c.strategy.data);
    case Framework::kMegatronDeepspeed:
    case Framework::kDeepspeed: return 5e8;
    case Framework::kNanotron:
    case Framework::kPytorch:
    case Framework::kTorchtitan:
    case Framework::kLlmFoundry:
    case Framework::kFmsFsdp:
    case Framework::kMaxtext: break;
  }
  return 0;
}

}  // namespace

double ddp_buckets(const model::Model& m, double tensor_degree, double parameters, double cap, bool merged) {
  const double mlp = static_cast<double>(m.hidden) * m.ffn_hidden / tensor_degree;
  const double head = static_cast<double>(m.hidden) * m.head_dim / tensor_degree;
  std::array<double, 7> tensors{};
  std::size_t count = 0;
  tensors[count++] = mlp;
  if (m.gated_mlp && !merged) tensors[count++] = mlp;
  tensors[count++] = m.gated_mlp && merged ? 2 * mlp : mlp;
  tensors[count++] = head * m.heads;
  if (merged || !m.gated_mlp) {
    tensors[count++] = head * (m.heads + 2.0 * m.kv_heads);
  } else {
    tensors[count++] = head * m.heads;
    tensors[count++] = 2 * head * m.kv_heads;
  }
  double per_layer = 0;
  for (std::size_t i = 0; i < count; ++i) per_layer += tensors[i];
  const double layers = per_layer > 0 ? std::min(parameters / per_layer, 1e4) : 0;
  double buckets = 0;
  double open = 0;
  for (int layer = 0; layer < static_cast<int>(layers); ++layer) {
    for (std::size_t i = 0; i < count; ++i) {
      open += tensors[i];
      if (open >= cap) {
        buckets += 1;
        open = 0;
      }
    }
  }
  return std::max(1.0, buckets + (open > 0 ? 1 : 0));
}

namespace {

/// bucket_cap_mb of DistributedDataParallel, 25 MiB, in elements of the parameter's type.
double bucket_cap(const StepContext& c) { return 25.0 * 1048576 / (c.software.resident_parameter_bytes > 2 ? 4 : 2); }

/// Time of an operation on all buckets, and of the last bucket alone.
struct Buckets {
  double total = 0;
  double last = 0;
  double count = 1;
};
double bucket_s(const StepContext& c, Op op, double bytes, const collective::Group& group) {
  const collective::Cost cost = c.network.cost(op, bytes, group);
  return std::max(cost.time_s, cost.call_s);
}

Buckets in_equal_buckets(const StepContext& c, Op op, double parameters, double count, double element_bytes, const collective::Group& group) {
  Buckets b;
  if (parameters <= 0 || group.ranks <= 1) return b;
  b.count = count;
  b.last = bucket_s(c, op, parameters / count * element_bytes, group);
  b.total = count * b.last;
  return b;
}

/// Whole tensors: layers in buckets of at least the cap, a head in one of its own at the start of backward, an embedding in
/// one at its end; what is smaller than a bucket (the last norm) joins those of the layers.
Buckets in_whole_tensors(const StepContext& c, Op op, const StageCost& stage, double element_bytes, const collective::Group& group) {
  const double cap = bucket_cap(c);
  double layers = stage.parameters - stage.root_parameters;
  const std::array<double, 2> roots{stage.root_parameters - stage.embedding_parameters, stage.embedding_parameters};
  for (const double root : roots) layers += root < cap ? root : 0;
  const bool merged = c.job.framework == Framework::kNanotron;
  const double count = layers > 0 ? ddp_buckets(c.job.model, c.strategy.tensor, layers, cap, merged) : 0;
  Buckets b = in_equal_buckets(c, op, layers, count, element_bytes, group);
  if (group.ranks <= 1) return b;
  b.count = count;
  for (const double root : roots) {
    if (root < cap) continue;
    b.last = bucket_s(c, op, root * element_bytes, group);
    b.total += b.last;
    b.count += 1;
  }
  return b;
}

Buckets in_buckets(const StepContext& c, Op op, const StageCost& stage, double element_bytes, const collective::Group& group) {
  const double cut = cut_bucket_elements(c);
  if (cut <= 0) return in_whole_tensors(c, op, stage, element_bytes, group);
  return in_equal_buckets(c, op, stage.parameters, std::max(1.0, std::ceil(stage.parameters / cut)), element_bytes, group);
}

/// How much slower a pass is beside a transfer when only its kernels are.
double slowdown_of(const StepContext& c, double kernels) { return 1 + kernels * (interference(c.job.accelerator, c.constants) - 1); }

/// What reduction adds behind a window of backward: all but the last bucket may hide.
double exposed_behind(const Buckets& b, double window_s, double slack_s, double slowdown) {
  if (b.total <= 0) return 0;
  const double window = window_s * (b.count - 1) / b.count;
  const double hideable = b.total - b.last;
  const double excess = overlapped(window, hideable, slowdown) - window;
  return std::max(0.0, excess + b.last - slack_s);
}

/// The same where a stage's chunks finish (or begin) one after the other: the buckets of the k chunks that come last (first)
/// have their own pass and the way round all stages between them to hide behind. `pass_s`: all chunks of one
/// micro-batch. Linear in k, so its ends decide.
double exposed_in_chunks(const Buckets& b, double pass_s, const Slack& slack, double slack_s, double slowdown) {
  double worst = 0;
  for (const double k : {1.0, slack.chunks}) {
    Buckets part = b;
    part.total = b.last + (b.total - b.last) * k / slack.chunks;
    part.count = std::max(1.0, b.count * k / slack.chunks);
    worst = std::max(worst, exposed_behind(part, pass_s * (1 + (k - 1) * slack.hops) / slack.chunks, slack_s, slowdown));
  }
  return worst;
}

/// Gradient reduction once per step (DDP, ZeRO-1), with the cross-replica part of HSDP-like layouts.
double reduce_once(const StepContext& c, const StageCost& stage, const Slack& slack) {
  const double slow = slowdown_of(c, stage.backward_kernels);
  const bool whole = c.software.reduces_whole;
  const Op op = c.strategy.zero == 0 || whole ? Op::kAllReduce : Op::kReduceScatter;
  const Buckets b = whole ? in_equal_buckets(c, op, stage.parameters, 1, c.software.reduce_bytes, c.groups.data)
                          : in_buckets(c, op, stage, c.software.reduce_bytes, c.groups.data);
  if (!c.software.buckets_overlap || whole) return std::max(0.0, b.total - slack.reduce_s);
  return exposed_in_chunks(b, stage.backward(), slack, slack.reduce_s, slow);
}

/// Tensors of one layer where q, k and v are one and gate and up are one: four matrices, two norms.
constexpr double kMergedTensors = 6;

/// The first bucket of updated parameters holds up the first layers; the rest hides behind the step's first forward.
double gather_exposed(const StepContext& c, const Buckets& b, const StageCost& stage, const Slack& slack) {
  const double slow = slowdown_of(c, stage.forward_kernels);
  double worst = 0;
  for (const double k : {1.0, slack.chunks}) {
    const double window = stage.forward() * (1 + (k - 1) * slack.hops) / slack.chunks;
    const double rest = (b.total - b.last) * k / slack.chunks;
    worst = std::max(worst, b.last + std::max(0.0, overlapped(window, rest, slow) - window) - slack.gather_s);
  }
  return worst;
}

Exposed replicated(const StepContext& c, const StageCost& stage, const Slack& slack) {
  Exposed e;
  const bool each = c.strategy.zero == 2 || c.strategy.sync_every_micro_step;
  const double last = reduce_once(c, stage, slack);
  e.reduce_s = last;
  if (each && c.strategy.accumulate > 1) e.reduce_s += (c.strategy.accumulate - 1) * reduce_once(c, stage, {});
  if (c.strategy.zero >= 1) {
    const Buckets b = c.software.step_gathers_flat
                          ? in_equal_buckets(c, Op::kAllGather, stage.parameters, 1, c.software.gather_bytes, c.groups.data)
                          : in_buckets(c, Op::kAllGather, stage, c.software.gather_bytes, c.groups.data);
    if (b.total > 0) {
      e.gather_s = c.software.gather_overlap ? gather_exposed(c, b, stage, slack) : b.total;
    }
    if (c.software.copies_slices) {
      e.gather_s += stage.layers * kMergedTensors * c.groups.data.ranks * c.constants.slice_copy_s;
    }
  }
  return e;
}

/// What communication adds beside `compute_s` when only a share of it can hide.
double added(double compute_s, double communication_s, double share, double slowdown) {
  const double hideable = share * communication_s;
  return communication_s - hideable + overlapped(compute_s, hideable, slowdown) - compute_s;
}

/// ZeRO++ (arXiv 2306.10209; DeepSpeed runtime/comm/coalesced_collectives.py, all_to_all_quant_reduce): gradients go in four
/// bits to the ranks of the host, are summed in 16 bits there, and a share of them goes in four bits across the hosts.
double quantised_reduction_s(const StepContext& c, double parameters) {
  const collective::Group& shard = c.groups.shard;
  collective::Group inside = shard;
  inside.ranks = shard.ranks_per_host;
  collective::Group across;
  across.ranks = shard.ranks / shard.ranks_per_host;
  constexpr double kFourBits = 0.5;
  const double share = parameters / shard.ranks_per_host;
  double time = c.kernels.memory_s((2 + kFourBits) * parameters) + c.kernels.memory_s((2 * kFourBits + 2) * parameters);
  if (inside.ranks > 1) time += c.network.cost(Op::kAllToAll, kFourBits * parameters, inside).time_s;
  if (across.ranks > 1) time += c.network.cost(Op::kAllToAll, kFourBits * share, across).time_s;
  return time;
}

/// Time of a parameter gather over `group`, with the copies around it and, in eight bits, the conversions.
double gather_s(const StepContext& c, double parameters, const collective::Group& group, bool quantised) {
  const parallel::Software& sw = c.software;
  const double wire = quantised ? 1 : sw.gather_bytes;
  const double fetch_s_per_byte = sw.fetches_by_tensor ? c.constants.fetch_s_per_byte : 0;
  const double pieces = sw.gathers_per_unit;
  const double passes = 2 * sw.gather_bytes + (quantised ? 2 : 0);
  return pieces * c.network.cost(Op::kAllGather, parameters * wire / pieces, group).time_s + parameters * wire * fetch_s_per_byte +
         c.kernels.memory_s(passes * parameters);
}

/// Parameters gathered unit by unit in forward and backward, gradients scattered in backward.
Exposed sharded(const StepContext& c, const StageCost& stage) {
  const double slow_forward = slowdown_of(c, stage.forward_kernels);
  const double slow_backward = slowdown_of(c, stage.backward_kernels);
  const parallel::Software& sw = c.software;
  const double unit = stage.unit_parameters;
  const double overlap_share = sw.fetches_by_tensor ? c.constants.fetch_overlap_share : 1;
  const double gather = gather_s(c, unit, c.groups.shard, c.strategy.quantised_gathers);
  collective::Group host = c.groups.shard;
  host.ranks = host.ranks_per_host;
  const double gather_again = c.strategy.secondary_shard ? gather_s(c, unit, host, false) : gather;
  const double scatter = c.strategy.quantised_reduction
                             ? quantised_reduction_s(c, unit)
                             : c.network.cost(Op::kReduceScatter, unit * sw.reduce_bytes, c.groups.shard).time_s +
                                   c.kernels.memory_s(2 * unit * sw.reduce_bytes);
  double replicate = 0;
  if (c.groups.replicate.ranks > 1) {
    replicate = c.network.cost(Op::kAllReduce, unit * sw.reduce_bytes / c.groups.shard.ranks, c.groups.replicate).time_s;
  }
  const double root_gather = c.network.cost(Op::kAllGather, stage.root_parameters * sw.gather_bytes, c.groups.shard).time_s;
  const double root_scatter =
      c.network.cost(Op::kReduceScatter, stage.root_parameters * sw.reduce_bytes, c.groups.shard).time_s;
  const double root_replicate =
      c.groups.replicate.ranks > 1
          ? c.network.cost(Op::kAllReduce, stage.root_parameters * sw.reduce_bytes / c.groups.shard.ranks, c.groups.replicate).time_s
          : 0;
  const double layers = stage.layers;
  const double f = stage.layer_forward_s;
  const double b = stage.layer_backward_s;
  const bool overlap = sw.gather_overlap;
  const bool gathers_again = c.strategy.zero == 3 && c.strategy.reshard_after_forward;
  const double forward_gathers = root_gather + gather + (layers - 1) * (overlap ? added(f, gather, overlap_share, slow_forward) : gather);
  const double again = gathers_again ? gather_again : 0;
  // Gather and reduce-scatter share a communicator and therefore queue; the replica all-reduce has its own.
  const auto backward = [&](bool reduces) {
    const double scattered = reduces ? scatter : 0;
    const double replicated = reduces ? replicate : 0;
    const double queue = std::max(again + scattered, replicated);
    const double excess = overlap ? added(b, queue, overlap_share, slow_backward) : again + scattered + replicated;
    const double parts = again + std::max(scattered, replicated);
    const double gather_part = parts > 0 ? (layers - 1) * excess * again / parts : 0;
    const double tail = reduces ? scatter + replicate + root_scatter + root_replicate : 0;
    return Exposed{again + gather_part, (layers - 1) * excess - gather_part + tail};
  };
  const Exposed last = backward(true);
  const Exposed other = backward(!c.strategy.sync_last_only);
  const double others = c.strategy.accumulate - 1;
  return {c.strategy.accumulate * forward_gathers + last.gather_s + others * other.gather_s, last.reduce_s + others * other.reduce_s};
}

}  // namespace

Exposed data_parallel(const StepContext& c, const StageCost& stage, const Slack& slack) {
  if (c.groups.data.ranks <= 1) return {};
  const bool by_unit = c.strategy.zero == 3 || (c.strategy.zero == 2 && c.strategy.sharder == Sharder::kFsdp);
  return by_unit ? sharded(c, stage) : replicated(c, stage, slack);
}

namespace {

TransferPieces transfer(const StepContext& c, Op op, double bytes, const collective::Group& group, double around_s = 0) {
  if (bytes <= 0 || group.ranks <= 1) return {op, 0, 0, 0};
  const collective::Cost cost = c.network.cost(op, bytes, group);
  return {op, cost.time_s + around_s, std::min(cost.latency_s, cost.time_s), bytes};
}

DataPieces unit_pieces(const StepContext& c, const StageCost& stage) {
  const parallel::Software& sw = c.software;
  const double unit = stage.unit_parameters;
  DataPieces d;
  d.by_unit = true;
  d.overlap_share = sw.fetches_by_tensor ? c.constants.fetch_overlap_share : 1;
  d.prefetch = std::max(1, sw.gathers_in_flight - 1);
  d.scatters_last_only = c.strategy.sync_last_only;
  d.reduces_behind_backward = d.gathers_behind_forward = sw.gather_overlap;
  const double shards = c.groups.shard.ranks;
  d.gather = transfer(c, Op::kAllGather, unit * sw.gather_bytes, c.groups.shard);
  d.gather.seconds = gather_s(c, unit, c.groups.shard, c.strategy.quantised_gathers);
  if (c.strategy.zero == 3 && c.strategy.reshard_after_forward) {
    collective::Group host = c.groups.shard;
    host.ranks = host.ranks_per_host;
    d.gather_again = d.gather;
    if (c.strategy.secondary_shard) d.gather_again.seconds = gather_s(c, unit, host, false);
  }
  d.scatter = transfer(c, Op::kReduceScatter, unit * sw.reduce_bytes, c.groups.shard, c.kernels.memory_s(2 * unit * sw.reduce_bytes));
  if (c.strategy.quantised_reduction) d.scatter.seconds = quantised_reduction_s(c, unit);
  d.replicate = transfer(c, Op::kAllReduce, unit * sw.reduce_bytes / shards, c.groups.replicate);
  d.root_gather = transfer(c, Op::kAllGather, stage.root_parameters * sw.gather_bytes, c.groups.shard);
  d.root_scatter = transfer(c, Op::kReduceScatter, stage.root_parameters * sw.reduce_bytes, c.groups.shard);
  d.root_replicate = transfer(c, Op::kAllReduce, stage.root_parameters * sw.reduce_bytes / shards, c.groups.replicate);
  for (TransferPieces* t : {&d.gather, &d.gather_again, &d.scatter}) t->latency_s = std::min(t->latency_s, t->seconds);
  return d;
}

/// All buckets but one alike; the odd one (an embedding, a rest) takes what is left of the total.
TransferPieces of_bucket(const StepContext& c, Op op, const Buckets& b, double bytes, double seconds) {
  return {op, seconds, std::min(c.network.cost(op, bytes, c.groups.data).latency_s, seconds), b.count > 0 ? bytes : 0};
}

void bucket_pieces(const StepContext& c, const StageCost& stage, DataPieces& d) {
  const parallel::Software& sw = c.software;
  const bool whole = sw.reduces_whole;
  const auto set = [&](Op op, bool one, double element_bytes, int& count, TransferPieces& each, TransferPieces& odd) {
    const Buckets b = one ? in_equal_buckets(c, op, stage.parameters, 1, element_bytes, c.groups.data) : in_buckets(c, op, stage, element_bytes, c.groups.data);
    count = static_cast<int>(std::clamp(b.count, 1.0, 1e6));
    const double bytes = stage.parameters / count * element_bytes;
    each = of_bucket(c, op, b, bytes, count > 1 ? (b.total - b.last) / (count - 1) : b.last);
    odd = of_bucket(c, op, b, bytes, b.last);
  };
  set(c.strategy.zero == 0 || whole ? Op::kAllReduce : Op::kReduceScatter, whole, sw.reduce_bytes, d.buckets, d.reduce, d.reduce_last);
  d.each_micro_step = c.strategy.zero == 2 || c.strategy.sync_every_micro_step;
  d.reduces_behind_backward = sw.buckets_overlap && !whole;
  d.gathers_behind_forward = sw.gather_overlap;
  if (c.strategy.zero < 1) return;
  set(Op::kAllGather, sw.step_gathers_flat, sw.gather_bytes, d.gather_buckets, d.parameters, d.parameters_first);
  if (sw.copies_slices) {
    const double copies = stage.layers * kMergedTensors * c.groups.data.ranks * c.constants.slice_copy_s;
    d.parameters_first.seconds += copies;
    d.parameters_first.latency_s += copies;
  }
}

}  // namespace

DataPieces data_pieces(const StepContext& c, const StageCost& stage) {
  DataPieces d;
  if (c.groups.data.ranks <= 1) return d;
  const bool by_unit = c.strategy.zero == 3 || (c.strategy.zero == 2 && c.strategy.sharder == Sharder::kFsdp);
  if (by_unit) {
    d = unit_pieces(c, stage);
  } else if (stage.parameters > 0) {
    bucket_pieces(c, stage, d);
  }
  d.active = true;
  return d;
}

}  // namespace chokepoint::simulate
