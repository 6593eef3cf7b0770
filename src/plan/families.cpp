// SPDX-License-Identifier: Apache-2.0
#include "families.hpp"

#include <chokepoint/base/units.hpp>

#include <algorithm>
#include <fmt/format.h>

namespace chokepoint::plan {

void Family::note(const Candidate& candidate) {
  if (!best || candidate.step_time_s < best->step_time_s) best = candidate;
}

void Family::note_misfit(const parallel::Strategy& strategy, double bytes) {
  if (smallest && smallest_bytes <= bytes) return;
  smallest = strategy;
  smallest_bytes = bytes;
}

std::string family_of(const parallel::Job& job, const parallel::Strategy& s) {
  if (s.tensor > job.cluster.gpus_per_host()) return "tensor parallelism across hosts";
  if (s.expert > 1) return "expert parallelism";
  if (s.pipeline > 1) return s.tensor > 1 ? "tensor + pipeline" : "pipeline";
  if (s.tensor > 1) return s.zero == 3 ? "tensor + FSDP" : "tensor + data";
  if (s.zero == 3) return s.shard_ranks > 0 ? "HSDP" : "FSDP (ZeRO-3)";
  if (s.zero == 2) return "ZeRO-2";
  if (s.zero == 1) return "ZeRO-1";
  return "DDP";
}

namespace {

std::string largest_difference(const simulate::Prediction& winner, const simulate::Prediction& loser) {
  int worst = -1;
  double most = 0;
  for (int i = 0; i < simulate::kBillCount; ++i) {
    const double extra = loser.bill[static_cast<std::size_t>(i)] - winner.bill[static_cast<std::size_t>(i)];
    if (extra > most) {
      most = extra;
      worst = i;
    }
  }
  if (worst < 0) return "";
  const auto item = static_cast<simulate::Bill>(worst);
  const double own = loser.item(item);
  const double more = own - winner.item(item);
  using simulate::Bill;
  switch (item) {
    case Bill::kDataGather: return fmt::format("{} of parameter gathers not hidden", format_duration(own));
    case Bill::kDataReduce: return fmt::format("{} of gradient reduction not hidden", format_duration(own));
    case Bill::kTensor: return fmt::format("{} of tensor-parallel collectives", format_duration(own));
    case Bill::kBubble: return fmt::format("{} of pipeline bubble", format_duration(own));
    case Bill::kRecompute: return fmt::format("{} of recomputation", format_duration(own));
    case Bill::kPipeline: return fmt::format("{} of transfers between stages", format_duration(own));
    case Bill::kExpert: return fmt::format("{} of expert all-to-all", format_duration(own));
    case Bill::kContext: return fmt::format("{} of context-parallel transfers", format_duration(own));
    case Bill::kHost: return fmt::format("{} more waiting for the host to launch kernels", format_duration(more));
    case Bill::kOptimizer: return fmt::format("{} more of optimizer (each rank updates all of its parameters)", format_duration(more));
    case Bill::kCompute: return fmt::format("{} more of compute (smaller or less efficient kernels)", format_duration(more));
    case Bill::kOffload: return fmt::format("{} of offload traffic", format_duration(own));
    case Bill::kOther: break;
  }
  return fmt::format("{} of {}", format_duration(own), simulate::name(item));
}

}  // namespace

std::optional<Loser> explain_runner_up(const parallel::Job& job, const simulate::Prediction& winner, const simulate::Prediction& second) {
  if (family_of(job, second.strategy) != family_of(job, winner.strategy)) return std::nullopt;
  const std::string reason = largest_difference(winner, second);
  return Loser{"runner-up", second.strategy, second.step_time_s, reason.empty() ? "the same within rounding" : reason};
}

std::vector<Loser> explain_families(const parallel::Job& job, const simulate::Predictor& predictor,
                                          const simulate::Prediction& winner, const std::map<std::string, Family>& families) {
  std::vector<Loser> losers;
  const std::string own = family_of(job, winner.strategy);
  for (const auto& [name, family] : families) {
    if (name == own) continue;
    if (family.best) {
      const auto p = predictor.predict(family.best->strategy);
      if (!p) continue;
      losers.push_back({name, p->strategy, p->step_time_s, largest_difference(winner, *p)});
    } else if (family.smallest) {
      losers.push_back({name, {}, 0, fmt::format("does not fit, needs at least {} of {}", format_bytes(family.smallest_bytes),
                                                 format_bytes(winner.memory.capacity_bytes))});
    }
  }
  std::stable_sort(losers.begin(), losers.end(), [](const Loser& a, const Loser& b) {
    return a.strategy.has_value() != b.strategy.has_value() ? a.strategy.has_value() : a.step_time_s < b.step_time_s;
  });
  return losers;
}

}  // namespace chokepoint::plan
