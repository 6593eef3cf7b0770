// SPDX-License-Identifier: Apache-2.0
// 1F1B, interleaved, GPipe and zero-bubble schedules in closed form (MODEL section 3(c); arXiv 2104.04473 section 2.2;
// arXiv 2401.10241 sections 2 and 6; arXiv 2412.19437 section 3.2.1).
//
// A stage runs its passes in a fixed order, so a step takes the longest chain of passes and transfers in which each waits
// for the one before: on the same stage or for its micro-batch. Every time below is the length of one such chain, which no
// run undercuts; the longest of them is the answer. is_exact() says where no longer chain exists: there it is the time.
#include "pipeline.hpp"

#include <chokepoint/simulate/pieces.hpp>

#include <algorithm>
#include <cmath>

namespace chokepoint::simulate {

namespace {

using parallel::Schedule;
using Stages = std::vector<StageTimes>;

/// Sums and extremes over all stages.
struct Sums {
  double forward = 0, backward = 0, all = 0;
  double most_forward = 0, most_backward = 0;
  double least_forward = 0, least_backward = 0;
};

Sums sums_of(const Stages& stages) {
  Sums s;
  s.least_forward = stages.front().forward;
  s.least_backward = stages.front().backward;
  for (const StageTimes& t : stages) {
    s.forward += t.forward;
    s.backward += t.backward;
    s.all += t.period();
    s.most_forward = std::max(s.most_forward, t.forward);
    s.most_backward = std::max(s.most_backward, t.backward);
    s.least_forward = std::min(s.least_forward, t.forward);
    s.least_backward = std::min(s.least_backward, t.backward);
  }
  return s;
}

/// Micro-batches, chunks of a stage, a transfer and the part of it that holds the link.
struct Run {
  double m = 1;
  double v = 1;
  double send = 0;
  double wire = 0;
};

/// Down to a stage, all micro-batches there, and the last one's way back.
double through_each_stage(const Stages& stages, const Run& r) {
  double longest = 0;
  double before = 0;
  for (std::size_t k = 0; k < stages.size(); ++k) {
    longest = std::max(longest, before / r.v + r.m * stages[k].period() + 2 * static_cast<double>(k) * r.send);
    before += stages[k].period();
  }
  return longest;
}

/// A flow shop in each direction, and the links are machines of it: exact.
double gpipe(const Stages& stages, const Sums& sums, const Run& r) {
  const double hops = static_cast<double>(stages.size() - 1);
  const double slowest = std::max(sums.most_forward, r.wire) + std::max(sums.most_backward, r.wire);
  return sums.all + 2 * hops * r.send + (r.m - 1) * slowest;
}

double one_forward_one_backward(const Stages& stages, const Sums& sums, const Run& r) {
  const std::size_t p = stages.size();
  const double way = sums.all + 2 * static_cast<double>(p - 1) * r.send;  // of one micro-batch, there and back
  double longest = std::max(through_each_stage(stages, r), way + (r.m - 1) * r.wire);
  // A stage that waits for its first micro-batch to come back has only its forwards of the warm-up done.
  for (std::size_t k = 0; k < p; ++k) {
    const double rest = std::max(0.0, r.m - static_cast<double>(p - k));
    const StageTimes& t = stages[k];
    longest = std::max(longest, way + (r.m - 1) * t.backward + rest * t.forward);
    longest = std::max(longest, way + (r.m - 1) * t.forward + rest * t.backward);
  }
  // With n stages from here to the end, micro-batch k + n leaves when k has come back: as many rounds as fit, the rest in
  // one shorter round or on the last stage.
  const auto micro_batches = static_cast<std::size_t>(r.m);
  const auto round = [&](std::size_t n, double passes) {
    return n == 0 ? 0 : passes + 2 * static_cast<double>(n - 1) * r.send;
  };
  double behind = 0;
  for (std::size_t n = 1; n <= p; ++n) {
    behind += stages[p - n].period();
    const std::size_t rounds = (micro_batches - 1) / n;
    const std::size_t rest = (micro_batches - 1) % n;
    if (rounds == 0) continue;
    double shorter = 0;
    for (std::size_t k = 1; k <= rest; ++k) shorter += stages[p - k].period();
    const double last = std::max(static_cast<double>(rest) * stages.back().period(), round(rest, shorter));
    longest = std::max(longest, way + static_cast<double>(rounds) * round(n, behind) + last);
  }
  return longest;
}

/// Groups of n >= p micro-batches walk through all chunks (the last of `rest`); a chunk later the first of a group is back
/// where it started, after the group has passed or after its way round, whichever takes longer.
double interleaved(const Stages& stages, const Sums& sums, const Run& r) {
  const double p = static_cast<double>(stages.size());
  const int size = interleaved_group(static_cast<int>(p), static_cast<int>(r.m));
  const int over = static_cast<int>(r.m) % size;
  const double n = size;
  const double rest = over == 0 ? n : over;
  const double groups = std::floor(r.m / n);
  const double forward = sums.forward / r.v;
  const double backward = sums.backward / r.v;
  const double last_forward = stages.back().forward / r.v;
  const double last_backward = stages.back().backward / r.v;
  const double slot = last_forward + last_backward;
  // To the last stage, its warm-up, one forward and one backward in turn, its cool-down, the way back.
  const double steady = (r.m * r.v - (r.v - 1) * n) * slot + (r.v - 1) * (n - rest) * last_backward;
  const double warm_up = (r.v - 1) * std::max(forward + p * r.send, n * last_forward);
  const double cool_down = (r.v - 1) * std::max(backward + p * r.send, rest * last_backward);
  const double ends = forward - last_forward + backward - last_backward + 2 * (p - 1) * r.send;
  const double chain = ends + warm_up + steady + cool_down;
  // Where transfers are longer than the passes that hide them: once round the chunks for each group, or for two groups once
  // through all chunks and back.
  const double round = (groups - 1) * (r.v - 1) * (std::max(forward, backward) + p * r.send - n * slot);
  const double first_slot = stages.front().period() / r.v;
  const double there_and_back = sums.all + 2 * (p * r.v - 1) * r.send + (2 * (n - p) + 1) * first_slot;
  const double both = std::floor((groups - 1) / 2) * (there_and_back - 2 * r.v * n * slot);
  // All transfers of the first stage one after the other.
  const double sends = (r.m * r.v - 1) * r.wire + (p - 1) * r.send + (p * r.v - 1) * r.send;
  return std::max({chain + std::max({0.0, round, both}), through_each_stage(stages, r), sends + forward + sums.backward,
                   sends + backward + sums.forward});
}

/// With weight gradients put off a stage may work from its first micro-batch until all meet for the gradient norm.
/// `warm_up`: forwards before the first backward, for each stage behind. With `validated_later` (ZB-H2, arXiv 2401.10241
/// section 4) nobody waits for the norm: the fill of one step is the drain of the one before, a stage's time is its own.
double zero_bubble(const Stages& stages, const Sums& sums, const Run& r, double warm_up, bool validated_later) {
  const double p = static_cast<double>(stages.size());
  double longest = 0;
  double forward_before = 0;
  double back_before = 0;  // without weight gradients
  double back_behind = sums.backward;
  for (const StageTimes& t : stages) back_behind -= t.weight_gradient;
  double k = 0;
  for (const StageTimes& t : stages) {
    const double back = t.backward - t.weight_gradient;
    back_behind -= back;
    const double arrived = forward_before + k * r.send;
    const double began = validated_later ? arrived : 0;
    longest = std::max(longest, arrived - began + r.m * t.period());
    // Nothing but the forwards of the warm-up before the first backward.
    const double done = std::min(r.m, warm_up * (p - 1 - k) + 1);
    const double first_back = sums.forward + (p - 1) * r.send + back_behind + (p - 1 - k) * r.send;
    longest = std::max(longest, first_back - began + r.m * t.period() - done * t.forward);
    // All forwards and backwards here, then the last one's way back.
    const double way_back = back_before + k * r.send + stages.front().weight_gradient;
    longest = std::max(longest, arrived + r.m * (t.forward + back) + way_back);
    forward_before += t.forward;
    back_before += back;
    k += 1;
  }
  const double way = sums.forward + back_before + stages.front().weight_gradient + 2 * (p - 1) * r.send;
  return std::max(longest, way + (r.m - 1) * r.wire);
}

/// A V: the stage where it turns waits for half-stages before it; at its end the first stage has each micro-batch again.
double zero_bubble_v(const Stages& stages, const Sums& sums, const Run& r) {
  const double p = static_cast<double>(stages.size());
  double longest = 0;
  double k = 0;
  for (const StageTimes& t : stages) {
    longest = std::max(longest, k * (sums.least_forward / 2 + r.send) + r.m * t.period());
    k += 1;
  }
  const StageTimes& first = stages.front();
  double back = sums.backward;
  for (const StageTimes& t : stages) back -= t.weight_gradient;
  const double turn = (first.forward + first.backward - first.weight_gradient) / 2;
  const double way = sums.forward + back + 4 * (p - 1) * r.send + first.weight_gradient / 2;
  return std::max(longest, way + (r.m - 1) * turn);
}

/// Micro-batches from both ends: a rank waits for the nearer one; each end's last stage has half of them.
double dual_pipe(const Stages& stages, const Sums& sums, const Run& r) {
  const std::size_t p = stages.size();
  double longest = 0;
  double before = 0;
  for (std::size_t k = 0; k < (p + 1) / 2; ++k) {
    const double both = (stages[k].period() + stages[p - 1 - k].period()) / 2;
    longest = std::max(longest, before + static_cast<double>(k) * r.send + r.m * both);
    before += stages[k].forward;
  }
  double back = sums.backward;
  for (const StageTimes& t : stages) back -= t.weight_gradient;
  const StageTimes& last = stages.back();
  const double turns = (std::ceil(r.m / 2) - 1) * (last.period() - last.weight_gradient);
  const double hops = static_cast<double>(p - 1);
  return std::max(longest, sums.forward + back + 2 * hops * r.send + turns + stages.front().weight_gradient);
}

/// Transfers that leave one stage for each micro-batch: an activation forwards and a gradient backwards, once for each
/// chunk; the first and the last stage of a pipeline that does not wrap send one of the two, so with two stages each does.
double sends_of_busiest_stage(std::size_t stages, int chunks, Schedule schedule) {
  if (stages == 2 && schedule == Schedule::kDualPipe) return 1;
  if (stages == 2 && schedule == Schedule::kZeroBubbleV) return 2;
  if (stages == 2) return chunks == 1 ? 1 : 2.0 * chunks - 1;
  return 2.0 * chunks;
}

bool even(const Stages& stages) {
  const StageTimes& t = stages.front();
  return std::all_of(stages.begin(), stages.end(),
                     [&](const StageTimes& o) { return o.forward == t.forward && o.backward == t.backward; });
}

bool last_is_slowest(const Stages& stages) {
  const StageTimes& t = stages.back();
  return std::all_of(stages.begin(), stages.end(),
                     [&](const StageTimes& o) { return o.forward <= t.forward && o.backward <= t.backward; });
}

}  // namespace

bool is_exact(const Stages& stages, int micro_batches, int virtual_stages, Schedule schedule, double send_s, bool blocking,
              double wire_s) {
  if (stages.size() == 1) return true;
  const Sums sums = sums_of(stages);
  const double shortest = std::min(sums.least_forward, sums.least_backward) / virtual_stages;
  if (blocking && send_s > 0) return false;
  switch (schedule) {
    case Schedule::kGpipe: return true;
    case Schedule::kOneForwardOneBackward:
      return wire_s <= shortest && (even(stages) || (send_s == 0 && last_is_slowest(stages)));
    case Schedule::kInterleaved: return wire_s <= shortest && send_s <= shortest && even(stages);
    case Schedule::kZeroBubble1: {
      // Thirds alike, as in the papers' drawings, and enough micro-batches to fill what waits.
      const StageTimes& t = stages.front();
      const bool thirds = t.weight_gradient == t.forward && t.backward == 2 * t.forward;
      return send_s == 0 && even(stages) && thirds && micro_batches >= 2 * static_cast<int>(stages.size());
    }
    case Schedule::kZeroBubble2:  // the run is of one step, to the norm
    case Schedule::kZeroBubbleV:
    case Schedule::kDualPipe: return false;
  }
  return false;
}

PipelineTime pipeline_time(const Stages& stages, int micro_batches, int virtual_stages, Schedule schedule, double send_s,
                           bool blocking, double wire_s) {
  PipelineTime result;
  const std::size_t p = stages.size();
  const bool dual = schedule == Schedule::kDualPipe;
  const auto period_of = [&](std::size_t i) {
    return dual ? (stages[i].period() + stages[p - 1 - i].period()) / 2 : stages[i].period();
  };
  std::size_t slowest = 0;
  for (std::size_t i = 1; i < p; ++i) {
    if (period_of(i) > period_of(slowest)) slowest = i;
  }
  result.slowest = static_cast<int>(slowest);
  const double busy = micro_batches * period_of(slowest);
  if (p == 1) {
    result.total = busy;
    return result;
  }
  const Sums sums = sums_of(stages);
  const double chunks = schedule == Schedule::kInterleaved ? virtual_stages : 1;
  const Run r{static_cast<double>(micro_batches), chunks, send_s, wire_s};
  const double hops = static_cast<double>(p - 1);
  switch (schedule) {
    case Schedule::kGpipe: result.total = gpipe(stages, sums, r); break;
    case Schedule::kInterleaved:
      result.total = interleaved(stages, sums, r);
      // Every transfer holds its sender up (Megatron before asynchronous p2p).
      if (blocking) {
        const double fill = hops / r.v * sums.all / static_cast<double>(p);
        const double sends = r.m * r.v + (hops + 1) * r.v - 1;
        result.total = std::max(result.total, busy + fill + 2 * sends * send_s);
      }
      break;
    case Schedule::kZeroBubble1: result.total = zero_bubble(stages, sums, r, 1, false); break;
    case Schedule::kZeroBubble2: result.total = zero_bubble(stages, sums, r, 2, true); break;
    case Schedule::kZeroBubbleV: result.total = zero_bubble_v(stages, sums, r); break;
    case Schedule::kDualPipe: result.total = dual_pipe(stages, sums, r); break;
    case Schedule::kOneForwardOneBackward:
      result.total = one_forward_one_backward(stages, sums, r);
      break;
  }
  // Both directions leave the busiest stage by one link, between its first forward and the next one's last backward.
  const double ends = (sums.least_forward + sums.least_backward) / virtual_stages;
  result.total = std::max(result.total, ends + r.m * sends_of_busiest_stage(p, virtual_stages, schedule) * wire_s);
  // Charged by what the same schedule would take with free transfers.
  if (send_s > 0) {
    result.transfer = result.total - pipeline_time(stages, micro_batches, virtual_stages, schedule, 0, blocking).total;
  }
  result.bubble = result.total - busy - result.transfer;
  return result;
}

}  // namespace chokepoint::simulate
