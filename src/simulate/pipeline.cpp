// SPDX-License-Identifier: Apache-2.0
// 1F1B, interleaved, GPipe and zero-bubble schedules in closed form (MODEL section 3(c); arXiv 2104.04473 section 2.2;
// arXiv 2401.10241 sections 2 and 6; arXiv 2412.19437 table 2). Exact for even stages; for uneven ones the slowest stage, or the chain from a stage to the
// end of the pipeline and back, sets the period.
#include "pipeline.hpp"

#include <algorithm>

namespace chokepoint::simulate {

namespace {

double steady_period(const std::vector<StageTimes>& stages, int micro_batches, double send_s, double slowest) {
  double period = slowest;
  if (micro_batches <= static_cast<int>(stages.size())) return period;
  double behind = 0;  // stages i..p-1
  for (std::size_t i = stages.size(); i-- > 0;) {
    behind += stages[i].period();
    const double hops = static_cast<double>(stages.size() - 1 - i);
    period = std::max(period, (behind + 2 * hops * send_s) / (hops + 1));
  }
  return period;
}

/// With weight gradients put off: down to the last stage, all micro-batches there, the last one's way back.
double way_and_back(const std::vector<StageTimes>& stages, double micro_batches, double send_s) {
  double sum = 0;
  for (const StageTimes& s : stages) sum += s.period() - s.weight_gradient;
  const StageTimes& last = stages.back();
  const double hops = static_cast<double>(stages.size() - 1);
  return sum + (micro_batches - 1) * (last.period() - last.weight_gradient) + stages.front().weight_gradient + 2 * hops * send_s;
}

/// Transfers that leave one stage for each micro-batch: an activation forwards and a gradient backwards, once for each
/// chunk; the first and the last stage of a pipeline that does not wrap send one of the two, so with two stages each does.
double sends_of_busiest_stage(std::size_t stages, int chunks) {
  if (stages == 2) return chunks == 1 ? 1 : 2.0 * chunks - 1;
  return 2.0 * chunks;
}

}  // namespace

PipelineTime pipeline_time(const std::vector<StageTimes>& stages, int micro_batches, int virtual_stages,
                           parallel::Schedule schedule, double send_s, bool blocking, double wire_s) {
  PipelineTime result;
  const double p = static_cast<double>(stages.size());
  const double m = micro_batches;
  double sum = 0;
  double forward = 0;
  double backward = 0;
  double longest_forward = 0;
  double longest_backward = 0;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    sum += stages[i].period();
    forward += stages[i].forward;
    backward += stages[i].backward;
    longest_forward = std::max(longest_forward, stages[i].forward);
    longest_backward = std::max(longest_backward, stages[i].backward);
    if (stages[i].period() > stages[static_cast<std::size_t>(result.slowest)].period()) result.slowest = static_cast<int>(i);
  }
  const StageTimes& slow = stages[static_cast<std::size_t>(result.slowest)];
  const double mean = sum / p;
  const double busy = m * slow.period();
  if (stages.size() == 1) {
    result.total = busy;
    return result;
  }
  switch (schedule) {
    case parallel::Schedule::kGpipe:
      result.total = sum + (m - 1) * (longest_forward + longest_backward) + 2 * (p - 1) * send_s;
      break;
    case parallel::Schedule::kInterleaved: {
      const double v = virtual_stages;
      const double per_micro_batch = blocking ? 2 * v * send_s : 0;
      result.total = m * (slow.period() + per_micro_batch) + (p - 1) / v * mean + 2 * (p * v - 1) * send_s;
      // Fewer micro-batches than stages: the first one's way through all chunks and back, the others a chunk behind.
      result.total = std::max(result.total, sum + (m - 1) / v * slow.period() + 2 * (p * v - 1) * send_s);
      break;
    }
    case parallel::Schedule::kZeroBubble1:
      result.total = busy + (p - 1) * std::max(0.0, mean - 2 * slow.weight_gradient) + 2 * (p - 1) * send_s;
      result.total = std::max(result.total, way_and_back(stages, m, send_s));
      break;
    case parallel::Schedule::kZeroBubble2:
      result.total = std::max(busy + 2 * (p - 1) * send_s, way_and_back(stages, m, send_s));
      break;
    case parallel::Schedule::kZeroBubbleV:
      // The stage where the V turns idles until the first micro-batch has come down through half-stages; the gradient
      // norm lets nobody begin the next step before (arXiv 2401.10241, section 6).
      result.total = busy + (p - 1) * (forward / p / 2 + send_s);
      break;
    case parallel::Schedule::kDualPipe:
      // (PP/2 - 1)(F&B + B - 3W), F&B a forward and a backward together (arXiv 2412.19437, table 2).
      result.total = busy + (p / 2 - 1) * (std::max(0.0, mean + backward / p - 3 * slow.weight_gradient) + 2 * send_s);
      break;
    case parallel::Schedule::kOneForwardOneBackward: {
      const double period = blocking ? slow.period() + 2 * send_s : steady_period(stages, micro_batches, send_s, slow.period());
      result.total = sum + 2 * (p - 1) * send_s + (m - 1) * period;
      break;
    }
  }
  result.total = std::max(result.total, mean + m * sends_of_busiest_stage(stages.size(), virtual_stages) * wire_s);
  // Charged by what the same schedule would take with free transfers.
  if (send_s > 0) {
    result.transfer = result.total - pipeline_time(stages, micro_batches, virtual_stages, schedule, 0, blocking).total;
  }
  result.bubble = result.total - busy - result.transfer;
  return result;
}

}  // namespace chokepoint::simulate
