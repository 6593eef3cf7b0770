// SPDX-License-Identifier: Apache-2.0
#include "floor.hpp"

#include <chokepoint/simulate/pieces.hpp>

#include <algorithm>

namespace chokepoint::plan {

namespace {

using parallel::Recompute;
using parallel::Schedule;
using parallel::Strategy;

/// Exchanges that run beside another micro-batch may vanish behind it.
PassFloor floor_of(const simulate::PassPieces& p, bool experts_hidden = false) {
  return {p.device_s() - (experts_hidden ? p.expert_s : 0), p.host_s};
}

PassFloor smaller(const PassFloor& a, const PassFloor& b) { return {std::min(a.device_s, b.device_s), std::min(a.host_s, b.host_s)}; }

bool alike(const simulate::PassPieces& a, const simulate::PassPieces& b) {
  return a.device_s() == b.device_s() && a.host_s == b.host_s;
}

/// A stage of `layers` layers and the ends it holds, as the step model sums it: device and host apart, the longer counts.
double pass_s(const PassFloor& layer, double layers, const PassFloor* first, const PassFloor* last) {
  double device = layers * layer.device_s;
  double host = layers * layer.host_s;
  for (const PassFloor* end : {first, last}) {
    if (end == nullptr) continue;
    device += end->device_s;
    host += end->host_s;
  }
  return std::max(device, host);
}

/// Rounding of sums that the step model adds up in another order.
constexpr double kRounding = 1 - 1e-9;
/// More micro-steps than any job has: what a layer pays once per step (casts of weights) then vanishes.
constexpr int kManyMicroSteps = 1 << 30;

/// The kernels alone: one rank's layers in two stages, which tell embedding and head apart; its data-parallel collectives
/// do not matter here.
Strategy bare(Strategy s, const parallel::Job& job) {
  s.schedule = Schedule::kOneForwardOneBackward;
  s.virtual_stages = 1;
  s.stage_layers.clear();
  s.data = 1;
  s.shard_ranks = 0;
  s.offload = parallel::Offload::kNone;
  s.recompute = Recompute::kNone;
  s.accumulate = kManyMicroSteps;
  s.pipeline = job.model.layers >= 2 ? 2 : 1;
  return s;
}

}  // namespace

StageCounts stage_counts(const parallel::Job& job, const Strategy& strategy, bool uniform) {
  StageCounts out;
  out.stages = strategy.pipeline;
  const std::vector<int> layers = parallel::layers_per_stage(job, strategy);
  for (const int n : layers) out.total += n;
  if (!uniform) {
    // Which stage is the slowest is not known: at least the mean.
    out.first = out.last = out.most_between = out.total / strategy.pipeline;
    return out;
  }
  out.first = layers.front();
  out.last = layers.back();
  for (std::size_t i = 1; i + 1 < layers.size(); ++i) out.most_between = std::max(out.most_between, static_cast<double>(layers[i]));
  return out;
}

double bound_s(const Floor& f, const StageCounts& n, const Strategy& s) {
  const PassFloor& again = f.recompute[static_cast<std::size_t>(s.recompute)];
  const auto period = [&](double layers, bool first, bool last) {
    return pass_s(f.forward, layers, first ? &f.first_forward : nullptr, last ? &f.last_forward : nullptr) +
           pass_s(f.backward, layers, first ? &f.first_backward : nullptr, last ? &f.last_backward : nullptr) + again.of(layers);
  };
  const double m = s.accumulate;
  if (n.stages == 1) return kRounding * (m * period(n.total, true, true) + f.fixed_s);
  const double first = period(n.first, true, false);
  const double last = period(n.last, false, true);
  const double slowest = std::max({first, last, period(n.most_between, false, false)});
  const double sum = first + last + period(n.total - n.first - n.last, false, false);
  const double p = n.stages;
  // One micro-batch goes down all stages and back; of that at most the weight gradients are put off.
  const double way = sum - n.total * f.layer_weight_s - 2 * f.end_weight_s;
  double total = m * slowest;
  // Down to the last stage, all micro-batches there, and back. Where layers differ the last stage's share is not known.
  const double at_last = f.uniform ? last : 0;
  switch (s.schedule) {
    case Schedule::kGpipe: total = sum + (m - 1) * slowest; break;
    case Schedule::kOneForwardOneBackward: total = std::max({total, sum, sum + (m - 1) * at_last}); break;
    case Schedule::kInterleaved: total = std::max(total, m * at_last + (f.uniform ? (sum - last) / s.virtual_stages : 0)); break;
    case Schedule::kZeroBubble2: total = std::max(total, way); break;
    case Schedule::kZeroBubble1: {
      const double forward = pass_s(f.forward, n.first, &f.first_forward, nullptr) + f.forward.of(n.total - n.first - n.last);
      total = std::max({total, m * at_last + (f.uniform ? forward : 0), way});
      break;
    }
    // The V has embedding and head on its first stage; DualPipe pairs the first stage with the last.
    case Schedule::kZeroBubbleV: total = std::max(m * std::max(sum / p, period(n.first, true, true)), way); break;
    case Schedule::kDualPipe: total = std::max(m * std::max(sum / p, (first + last) / 2), way); break;
  }
  return kRounding * (total + f.fixed_s);
}

const Floor& Floors::of(const Strategy& s) { return slot(s); }

const Floor& Floors::with_recompute(const Strategy& strategy) {
  Floor& floor = slot(strategy);
  if (floor.has_recompute) return floor;
  Strategy s = bare(strategy, predictor_.job());
  for (const Recompute r : {Recompute::kSelective, Recompute::kFull}) {
    s.recompute = r;
    const simulate::Pieces with = predictor_.pieces(s);
    floor.recompute[static_cast<std::size_t>(r)] = smaller(floor_of(with.stages.front().recompute, s.overlap_expert), floor_of(with.stages.back().recompute, s.overlap_expert));
  }
  floor.has_recompute = true;
  return floor;
}

Floor& Floors::slot(const Strategy& s) {
  const auto bits = [](int value, int width) { return static_cast<std::uint64_t>(value) & ((std::uint64_t{1} << width) - 1); };
  // Degrees up to 2^13, micro-batches up to 2^13; what the software of the step depends on beside them.
  std::uint64_t key = bits(s.tensor, 13);
  key = key << 8 | bits(s.context, 8);
  key = key << 10 | bits(s.expert, 10);
  key = key << 14 | bits(s.micro_batch, 14);
  key = key << 2 | bits(s.zero, 2);
  key = key << 2 | bits(static_cast<int>(s.sharder), 2);
  key = key << 1 | bits(s.sequence_parallel ? 1 : 0, 1);
  key = key << 1 | bits(s.overlap_tensor ? 1 : 0, 1);
  key = key << 1 | bits(s.overlap_expert ? 1 : 0, 1);
  key = key << 1 | bits(s.pipeline > 1 ? 1 : 0, 1);
  const auto found = floors_.find(key);
  return found != floors_.end() ? found->second : floors_.emplace(key, measure(s)).first->second;
}

Floor Floors::measure(const Strategy& strategy) const {
  const Strategy s = bare(strategy, predictor_.job());
  const simulate::Pieces p = predictor_.pieces(s);
  Floor f;
  const simulate::StagePieces& first = p.stages.front();
  const simulate::StagePieces& last = p.stages.back();
  f.uniform = alike(first.forward, last.forward) && alike(first.backward, last.backward);
  f.forward = smaller(floor_of(first.forward, s.overlap_expert), floor_of(last.forward, s.overlap_expert));
  f.backward = smaller(floor_of(first.backward, s.overlap_expert), floor_of(last.backward, s.overlap_expert));
  f.fixed_s = p.fixed_s;
  f.layer_weight_s = 0.5 * std::max(first.backward.compute_s, last.backward.compute_s);
  f.end_weight_s = 0.5 * std::max(first.end_backward.compute_s, last.end_backward.compute_s);
  if (s.pipeline > 1) {
    f.first_forward = floor_of(first.end_forward);
    f.first_backward = floor_of(first.end_backward);
    f.last_forward = floor_of(last.end_forward);
    f.last_backward = floor_of(last.end_backward);
  } else {
    f.last_forward = floor_of(first.end_forward);
    f.last_backward = floor_of(first.end_backward);
  }
  return f;
}

}  // namespace chokepoint::plan
