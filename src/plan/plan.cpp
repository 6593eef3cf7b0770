// SPDX-License-Identifier: Apache-2.0
// Problem: the fastest strategy that fits. Idea: the legal space of a job is small enough to walk completely (degrees are
// divisors, micro-batches powers of two): every point is either excluded by a rule, by memory, or evaluated in closed
// form; the best of the evaluated is therefore the optimum of the enumerated space, proved by exhaustion. Cost: one memory
// count per legal point, one step model per point that fits.
#include <chokepoint/base/units.hpp>
#include <chokepoint/plan/plan.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <numeric>
#include <set>

#include "families.hpp"

namespace chokepoint::plan {

namespace {

using parallel::Recompute;
using parallel::Schedule;
using parallel::Sharder;
using parallel::Strategy;

std::vector<int> divisors(int n, int limit) {
  std::vector<int> out;
  for (int i = 1; i <= std::min(n, limit); ++i) {
    if (n % i == 0) out.push_back(i);
  }
  return out;
}

/// Tensor degrees worth a look: within a host every divisor of the heads, beyond it up to two hosts.
std::vector<int> tensor_degrees(const parallel::Job& job) {
  std::vector<int> out;
  const int limit = std::min(job.gpus, 2 * std::max(1, job.cluster.gpus_per_host()));
  for (const int t : divisors(job.model.heads, limit)) {
    if (job.gpus % t == 0 && job.model.ffn_hidden % t == 0) out.push_back(t);
  }
  return out;
}

std::vector<int> context_degrees(const parallel::Job& job, int tensor) {
  std::vector<int> out{1};
  if (job.sequence < 16384) return out;
  for (int c = 2; c <= 16; c *= 2) {
    if (job.gpus % (tensor * c) == 0 && job.sequence % (2 * c) == 0) out.push_back(c);
  }
  return out;
}

std::vector<int> expert_degrees(const parallel::Job& job) {
  if (!job.model.moe) return {1};
  return divisors(job.model.moe->experts, std::min(job.gpus, 64));
}

/// Ways to share state over `data` ranks; `inside` of them sit in one host.
std::vector<Strategy> shardings(const Strategy& base, int data, int inside, bool pipelined) {
  std::vector<Strategy> out;
  const auto add = [&](int zero, Sharder sharder, int shard) {
    Strategy s = base;
    s.zero = zero;
    s.sharder = sharder;
    s.shard_ranks = shard;
    out.push_back(s);
  };
  add(0, Sharder::kDdp, 0);
  if (data == 1) return out;
  add(1, Sharder::kMegatronOptimizer, 0);
  if (pipelined) return out;
  add(2, Sharder::kFsdp, 0);
  out.back().reshard_after_forward = false;
  add(3, Sharder::kFsdp, 0);
  if (inside > 1 && inside < data && data % inside == 0) add(3, Sharder::kFsdp, inside);
  return out;
}

/// What makes two strategies different to a reader: degrees and what is sharded over how many ranks. The rest (micro-batch,
/// chunks a stage, recomputation) is tuning within a layout.
using Layout = std::array<int, 8>;
Layout layout_of(const Strategy& s) {
  return {s.tensor, s.pipeline, s.context, s.expert, s.zero, static_cast<int>(s.sharder), s.shard_ranks, s.reshard_after_forward ? 1 : 0};
}

class Search {
 public:
  Search(const parallel::Job& job, const Options& options, Plan& plan) : predictor_(job, {}, options.parameters), job_(job), options_(options), plan_(plan) {}

  void run() {
    for (const int tensor : tensor_degrees(job_)) {
      for (const int context : context_degrees(job_, tensor)) {
        for (const int pipeline : divisors(job_.gpus / (tensor * context), job_.model.layers)) {
          for (const int expert : expert_degrees(job_)) layouts(tensor, context, pipeline, expert);
        }
      }
    }
    finish();
  }

 private:
  void layouts(int tensor, int context, int pipeline, int expert) {
    Strategy base;
    base.tensor = tensor;
    base.context = context;
    base.pipeline = pipeline;
    base.expert = expert;
    base.sequence_parallel = tensor > 1;
    base.data = job_.gpus / (tensor * context * pipeline);
    if (expert > base.data * context || (base.data * context) % expert != 0) return;
    const double per_rank = job_.global_batch / base.data;
    if (per_rank < 1 || per_rank != std::floor(per_rank)) {
      ++rejected_["the batch does not divide over the data-parallel ranks"];
      return;
    }
    const int inside = std::max(1, std::gcd(job_.cluster.gpus_per_host() / std::max(1, tensor * context), base.data));
    for (const Strategy& sharded : shardings(base, base.data * context, inside, pipeline > 1)) {
      for (int micro = 1; micro <= static_cast<int>(per_rank) && micro <= 256; micro *= 2) {
        if (static_cast<int>(per_rank) % micro != 0) break;
        Strategy s = sharded;
        s.micro_batch = micro;
        s.accumulate = static_cast<int>(per_rank) / micro;
        schedules(s);
        if (s.zero >= 2 && s.accumulate > 1) {
          s.sync_last_only = true;
          schedules(s);
        }
      }
    }
  }

  void schedules(Strategy s) {
    recomputes(s);
    if (s.pipeline == 1 || s.accumulate % s.pipeline != 0 || job_.model.layers % s.pipeline != 0) return;
    const int per_stage = job_.model.layers / s.pipeline;
    s.schedule = Schedule::kInterleaved;
    for (const int v : divisors(per_stage, 8)) {
      if (v == 1) continue;
      s.virtual_stages = v;
      recomputes(s);
    }
  }

  void recomputes(Strategy s) {
    for (const Recompute r : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
      if (r != Recompute::kNone && !options_.recompute_choices) break;
      s.recompute = r;
      if (consider(s)) break;  // what fits with less recomputation is not slower
    }
  }

  /// True when the candidate fits and was evaluated.
  bool consider(const Strategy& s) {
    ++plan_.enumerated;
    const parallel::Memory memory = parallel::memory_per_rank(job_, s);
    Family& family = families_[family_of(job_, s)];
    if (!memory.fits()) {
      ++plan_.pruned;
      ++rejected_["does not fit in memory"];
      family.note_misfit(s, memory.needed_bytes);
      if (smallest_need_ == 0 || memory.needed_bytes < smallest_need_) {
        smallest_need_ = memory.needed_bytes;
        smallest_ = s;
      }
      return false;
    }
    ++plan_.evaluated;
    Candidate candidate{s, predictor_.evaluate(s).step_time_s};
    family.note(candidate);
    candidates_.push_back(candidate);
    return true;
  }

  void finish() {
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const Candidate& a, const Candidate& b) { return a.step_time_s < b.step_time_s; });
    std::set<Layout> listed;
    for (const Candidate& candidate : candidates_) {
      if (plan_.candidates.size() >= static_cast<std::size_t>(std::max(1, options_.top))) break;
      if (!options_.variants && !listed.insert(layout_of(candidate.strategy)).second) continue;
      if (auto full = predictor_.predict(candidate.strategy)) plan_.candidates.push_back(std::move(*full));
    }
    for (const auto& [reason, count] : rejected_) plan_.rejected.push_back({reason, count});
    plan_.optimal = !plan_.candidates.empty();
    if (plan_.candidates.empty()) {
      explain_misfit();
    } else {
      simulate::find_choke_points(job_, plan_.candidates.front(), options_.parameters);
      plan_.why_not = explain_families(job_, predictor_, plan_.candidates.front(), families_);
      if (plan_.candidates.size() > 1) {
        if (auto second = explain_runner_up(job_, plan_.candidates[0], plan_.candidates[1])) {
          plan_.why_not.insert(plan_.why_not.begin(), std::move(*second));
        }
      }
    }
  }

  void explain_misfit() {
    if (smallest_need_ == 0) return;
    if (auto closest = predictor_.predict(smallest_)) plan_.closest = std::move(*closest);
    const double capacity = job_.accelerator.memory_bytes;
    const double missing = smallest_need_ - (plan_.closest ? plan_.closest->memory.capacity_bytes : capacity);
    plan_.would_fit.push_back(fmt::format("accelerators with {} more memory each", format_bytes(missing)));
    parallel::Job larger = job_;
    const int unit = std::max(1, job_.cluster.gpus_per_host());
    for (int factor = 2; factor <= 64; factor *= 2) {
      larger.gpus = job_.gpus * factor;
      larger.cluster.hosts.front().count = (larger.gpus + unit - 1) / unit;
      Strategy s = smallest_;
      s.data *= factor;
      if (larger.global_batch < s.data) break;
      s.micro_batch = 1;
      s.accumulate = std::max(1, static_cast<int>(larger.global_batch / s.data));
      s.zero = s.pipeline > 1 ? 1 : 3;
      s.sharder = s.pipeline > 1 ? Sharder::kMegatronOptimizer : Sharder::kFsdp;
      s.shard_ranks = 0;
      if (!parallel::memory_per_rank(larger, s).fits()) continue;
      plan_.would_fit.push_back(fmt::format("{} accelerators of this kind: {}", larger.gpus, parallel::to_text(s)));
      break;
    }
    Strategy offloaded = smallest_;
    offloaded.offload = parallel::Offload::kOptimizer;
    if (parallel::memory_per_rank(job_, offloaded).fits()) {
      plan_.would_fit.push_back("optimizer states in host memory (offload=optimizer), several times slower");
    }
  }

  simulate::Predictor predictor_;
  const parallel::Job& job_;
  const Options& options_;
  Plan& plan_;
  std::vector<Candidate> candidates_;
  std::map<std::string, long> rejected_;
  std::map<std::string, Family> families_;
  double smallest_need_ = 0;
  Strategy smallest_;
};

}  // namespace

Result<Plan> make_plan(const parallel::Job& job, const Options& options) {
  if (job.gpus < 1) return fail("the job has no GPUs");
  if (job.accelerator.peak(job.dtype) <= 0) {
    return fail(fmt::format("{} has no {} arithmetic", job.accelerator.name, hardware::name(job.dtype)));
  }
  Plan plan;
  Search(job, options, plan).run();
  if (plan.enumerated == 0) {
    return fail(fmt::format("no legal strategy: the batch of {} sequences cannot be divided over {} GPUs in any layout of {}",
                            job.global_batch, job.gpus, job.model.name),
                {}, {fmt::format("a batch that is a multiple of {} divides", job.gpus)});
  }
  return plan;
}

}  // namespace chokepoint::plan
