// SPDX-License-Identifier: Apache-2.0
// The search's answer for people: the candidates in full, why the others lost, and what would help when nothing fits.
#include <chokepoint/base/units.hpp>
#include <chokepoint/plan/plan.hpp>

#include <algorithm>
#include <fmt/format.h>

#include "families.hpp"
#include "search.hpp"

namespace chokepoint::plan {

namespace {

using parallel::Sharder;
using parallel::Strategy;

/// The smallest cluster of the same hosts that holds the job, up to 64 times as many.
void larger_clusters(const parallel::Job& job, const Strategy& smallest, Plan& plan) {
  parallel::Job larger = job;
  const int unit = std::max(1, job.cluster.gpus_per_host());
  for (int factor = 2; factor <= 64; factor *= 2) {
    larger.gpus = job.gpus * factor;
    larger.cluster.hosts.front().count = (larger.gpus + unit - 1) / unit;
    Strategy s = smallest;
    s.data *= factor;
    if (larger.global_batch < s.data) break;
    s.micro_batch = 1;
    s.accumulate = std::max(1, static_cast<int>(larger.global_batch / s.data));
    s.zero = s.pipeline > 1 ? 1 : 3;
    s.sharder = s.pipeline > 1 ? Sharder::kMegatronOptimizer : Sharder::kFsdp;
    s.shard_ranks = 0;
    if (!parallel::memory_per_rank(larger, s).fits()) continue;
    plan.would_fit.push_back(fmt::format("{} accelerators of this kind: {}", larger.gpus, parallel::to_text(s)));
    break;
  }
}

void explain_misfit(const parallel::Job& job, const simulate::Predictor& predictor, const Strategy& smallest, Plan& plan) {
  if (auto closest = predictor.predict(smallest)) plan.closest = std::move(*closest);
  const parallel::Memory memory = parallel::memory_per_rank(job, smallest);
  plan.would_fit.push_back(fmt::format("accelerators with {} more memory each", format_bytes(memory.needed_bytes - memory.capacity_bytes)));
  larger_clusters(job, smallest, plan);
  Strategy offloaded = smallest;
  offloaded.offload = parallel::Offload::kOptimizer;
  if (parallel::memory_per_rank(job, offloaded).fits()) {
    plan.would_fit.push_back("optimizer states in host memory (offload=optimizer), several times slower");
  }
}

void explain(const parallel::Job& job, const Options& options, const simulate::Predictor& predictor, const Search& search, Plan& plan) {
  simulate::find_choke_points(job, plan.candidates.front(), options.parameters);
  plan.why_not = explain_families(job, predictor, plan.candidates.front(), search.families());
  if (plan.candidates.size() < 2) return;
  if (auto second = explain_runner_up(job, plan.candidates[0], plan.candidates[1])) {
    plan.why_not.insert(plan.why_not.begin(), std::move(*second));
  }
}

Error nothing_legal(const parallel::Job& job, const Constraints& limits) {
  if (!limits.frozen.empty() || limits.largest_micro_batch > 0 || limits.most_accumulation > 0) {
    return {fmt::format("no legal strategy is left of {} on {} GPUs with a batch of {} under these constraints", job.model.name, job.gpus,
                        job.global_batch),
            {}, {"loosen --freeze, --max-microbatch or --max-accumulate; chokepoint predict says what is wrong with one strategy"}};
  }
  return {fmt::format("no legal strategy: the batch of {} sequences cannot be divided over {} GPUs in any layout of {}", job.global_batch,
                      job.gpus, job.model.name),
          {}, {fmt::format("a batch that is a multiple of {} divides", job.gpus)}};
}

}  // namespace

Result<Plan> make_plan(const parallel::Job& job, const Options& options) {
  if (job.gpus < 1) return fail("the job has no GPUs");
  if (job.accelerator.peak(job.dtype) <= 0) {
    return fail(fmt::format("{} has no {} arithmetic", job.accelerator.name, hardware::name(job.dtype)));
  }
  TRY_INTO(const Space space, Space::of(job, options));
  Plan plan;
  const simulate::Predictor predictor(job, {}, options.parameters);
  Floors floors(predictor);
  Search search(job, options, predictor, space, floors);
  search.run(plan);
  if (plan.enumerated == 0) return tl::make_unexpected(nothing_legal(job, options.constraints));
  for (const Candidate& candidate : search.found()) {
    // A strategy of the space that the step model refuses would be a defect of the space: said, not left out.
    TRY_INTO(simulate::Prediction full, predictor.predict(candidate.strategy));
    plan.candidates.push_back(std::move(full));
  }
  if (!plan.candidates.empty()) {
    if (options.explain) explain(job, options, predictor, search, plan);
  } else if (search.smallest() && !plan.too_slow) {
    explain_misfit(job, predictor, *search.smallest(), plan);
  }
  return plan;
}

}  // namespace chokepoint::plan
