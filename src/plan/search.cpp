// SPDX-License-Identifier: Apache-2.0
// Problem: the fastest strategy that fits, of up to some ten million, with a proof. Idea: every strategy of a layout is at
// least as slow as the time its kernels need on the slowest stage plus its schedule's bubble (floor.hpp), and needs at
// least the memory of its states. Both bounds cost nanoseconds, so the space is walked bound by bound and only what could
// still be better is laid out in memory and evaluated. The walk ends with a proof, or, stopped early, with the distance
// between the best found and the smallest bound left.
#include "search.hpp"

#include <chokepoint/parallel/memory.hpp>
#include <chokepoint/parallel/memory_floor.hpp>
#include <chokepoint/parallel/software.hpp>

#include <algorithm>
#include <array>
#include <limits>

namespace chokepoint::plan {

namespace {

using parallel::Recompute;
using parallel::Strategy;

constexpr double kNever = std::numeric_limits<double>::infinity();
/// Evaluations and memory counts between two looks at the clock.
constexpr long kWorkBetweenLooks = 2000;
constexpr double kReportEvery_s = 0.2;
constexpr double kGrace_s = 0.5;
constexpr double kRounding = 1 - 1e-9;
/// Members of a kind that the event engine may be asked for.
constexpr std::size_t kMostOfAKind = 3;

/// Nothing of the kernel is faster, whatever its schedule: without recomputation, the smaller bound of DualPipe and of the V,
/// which are those of the mean of the stages. 1F1B and GPipe take a micro-batch's whole way and more; interleaving needs as
/// many micro-batches as stages, which the slowest stage alone spends as much on.
double least_bound_s(const Floor& floor, const StageCounts& stages, Strategy kernel) {
  kernel.recompute = Recompute::kNone;
  if (stages.stages == 1) return bound_s(floor, stages, kernel);
  kernel.schedule = parallel::Schedule::kDualPipe;
  const double both_ends = bound_s(floor, stages, kernel);
  kernel.schedule = parallel::Schedule::kZeroBubbleV;
  return std::min(both_ends, bound_s(floor, stages, kernel));
}

/// No step of the job is shorter, whatever its layout: its products, without attention, at the accelerators' peak.
double least_step_s(const parallel::Job& job) {
  const model::ForwardFlops flops = model::forward_flops(job.model, job.sequence, false);
  const double products = flops.total - job.model.layers * flops.attention_scores;
  const double passes = job.frozen_weights ? 2 : 3;
  return std::max(0.0, kRounding * passes * products * job.global_batch / (job.accelerator.peak(job.dtype) * job.gpus));
}

bool fits(const parallel::Memory& memory, const Constraints& limits) {
  return memory.needed_bytes <= (1 - limits.memory_margin) * memory.capacity_bytes;
}

}  // namespace

Search::Search(const parallel::Job& job, const Options& options, const simulate::Predictor& predictor, const Space& space, Floors& floors)
    : job_(job), options_(options), predictor_(predictor), space_(space), floors_(floors), recomputes_(space.recomputes()) {}

double Search::elapsed_s() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

/// Strategies of one kernel: every schedule with every recomputation, waiting or not.
long Search::count_leaves(const Strategy& kernel) const {
  const long waits = space_.may_wait(kernel) ? 2 : 1;
  return space_.schedule_count(kernel) * static_cast<long>(recomputes_.size()) * waits;
}

/// Whether 1F1B fits with some recomputation: no schedule holds fewer micro-batches, and waiting gradients only add.
bool Search::fits_somehow(const Strategy& kernel) const {
  Strategy s = kernel;
  for (auto r = recomputes_.rbegin(); r != recomputes_.rend(); ++r) {
    s.recompute = *r;
    if (fits(parallel::memory_per_rank(job_, s), options_.constraints)) return true;
  }
  return false;
}

/// Kernels worth a bound. Memory grows with the micro-batch (as many sequences in flight, longer logits), so behind the
/// first that does not fit none does; where the host queues gathers ahead, accumulation counts too and each is tried.
std::vector<Strategy> Search::fitting_kernels(const Strategy& sharded) {
  std::vector<Strategy> out;
  const double usable = (1 - options_.constraints.memory_margin) * parallel::memory_capacity(job_, sharded);
  const bool states_fit = options_.exhaustive || parallel::state_bytes(job_, sharded) <= usable;
  const bool grows = !parallel::software_of(job_, sharded).queues_ahead;
  std::array<bool, 2> full{};
  for (Strategy& kernel : space_.kernels(sharded)) {
    const long leaves = count_leaves(kernel);
    enumerated_ += leaves;
    bool& is_full = full[kernel.sequence_parallel ? 1 : 0];
    const bool fitting = options_.exhaustive || (states_fit && !(is_full && grows) && fits_somehow(kernel));
    is_full = is_full || !fitting;
    if (fitting) out.push_back(std::move(kernel));
    if (!fitting) misfit_leaves_ += leaves;
  }
  return out;
}

void Search::add_layout(const Strategy& sharded) {
  Layout layout;
  layout.strategy = sharded;
  layout.bound_s = kNever;
  const long before = enumerated_;
  layout.kernels = fitting_kernels(sharded);
  if (enumerated_ == before) return;
  const auto [family, fresh] = families_.try_emplace(family_of(job_, sharded));
  if (fresh) family->second.number = families_.size();
  layout.family = &family->second;
  if (layout.kernels.empty()) {
    misfits_.push_back(std::move(layout));
    return;
  }
  for (const Strategy& kernel : layout.kernels) {
    const Floor& floor = floors_.of(kernel);
    if (layout.bound_s == kNever) layout.stages = stage_counts(job_, kernel, floor.uniform);
    ++bounds_;
    layout.bound_s = std::min(layout.bound_s, least_bound_s(floor, layout.stages, kernel));
  }
  layouts_.push_back(std::move(layout));
}

void Search::list_layouts() {
  for (const Strategy& degrees : space_.degrees()) {
    if (!space_.batch_divides(degrees)) {
      ++rejected_["the batch does not divide over the data-parallel ranks"];
      continue;
    }
    for (const Strategy& sharded : space_.shardings(degrees)) add_layout(sharded);
    until_report_ = 0;
    if (!go_on(0, 0)) break;
  }
  listed_ = !stopped_;
  stopped_ = false;  // of what is listed something is tried all the same
  std::stable_sort(layouts_.begin(), layouts_.end(), [](const Layout& a, const Layout& b) { return a.bound_s < b.bound_s; });
}

double Search::threshold_s() const {
  return found_.size() < static_cast<std::size_t>(std::max(1, options_.top)) ? kNever : found_.back().step_time_s;
}

/// Below this a strategy of the layout is still of interest: for the list, or as the best of its family.
double Search::limit_s(const Layout& layout) const {
  if (options_.exhaustive) return kNever;
  if (window_s_ > 0) return window_s_;
  const double family = !options_.explain ? 0 : layout.family->best ? layout.family->best->step_time_s : kNever;
  const double limit = std::max(threshold_s(), family);
  return !options_.variants && layout_best_ ? std::min(limit, layout_best_->step_time_s) : limit;
}

namespace {
void insert_sorted(const Candidate& candidate, std::size_t most, std::vector<Candidate>& list) {
  const auto at = std::upper_bound(list.begin(), list.end(), candidate,
                                   [](const Candidate& a, const Candidate& b) { return a.step_time_s < b.step_time_s; });
  list.insert(at, candidate);
  if (list.size() > most) list.pop_back();
}
}  // namespace

void Search::keep(const Candidate& candidate) { insert_sorted(candidate, static_cast<std::size_t>(std::max(1, options_.top)), found_); }

/// Where the window is walked: the list the leaf belongs to.
std::vector<Candidate>* Search::kind_of(const Layout& layout, const Strategy& leaf) {
  return window_s_ > 0 ? &kinds_[{layout.family->number, leaf.schedule, leaf.virtual_stages}] : nullptr;
}

void Search::try_leaf(const Layout& layout, Strategy leaf, const Floor& floor) {
  ++bounds_;
  const double bound = bound_s(floor, layout.stages, leaf);
  if (bound >= limit_s(layout)) return;
  std::vector<Candidate>* kind = kind_of(layout, leaf);
  if (kind != nullptr && kind->size() == kMostOfAKind && bound >= kind->back().step_time_s) return;
  if (!go_on(current_bound_s_, 0)) return;
  if (!fits(parallel::memory_per_rank(job_, leaf), options_.constraints)) {
    ++misfit_leaves_;
    return;
  }
  const double step_time_s = predictor_.evaluate(leaf).step_time_s;
  ++evaluated_;
  const double longest = options_.constraints.longest_step_s;
  if (longest > 0 && step_time_s > longest) {
    if (fastest_too_slow_s_ == 0 || step_time_s < fastest_too_slow_s_) fastest_too_slow_s_ = step_time_s;
    return;
  }
  const Candidate candidate{std::move(leaf), step_time_s};
  if (kind != nullptr) {
    if (step_time_s < window_s_) insert_sorted(candidate, kMostOfAKind, *kind);
    return;
  }
  layout.family->note(candidate);
  if (best_s_ == 0 || step_time_s < best_s_) best_s_ = step_time_s;
  if (options_.variants) {
    keep(candidate);
  } else if (!layout_best_ || step_time_s < layout_best_->step_time_s) {
    layout_best_ = candidate;
  }
}

void Search::visit_kernel(const Layout& layout, const Strategy& kernel) {
  ++bounds_;
  if (least_bound_s(floors_.of(kernel), layout.stages, kernel) >= limit_s(layout)) return;
  const Floor& floor = floors_.with_recompute(kernel);
  for (Strategy& scheduled : space_.schedules(kernel)) {
    for (const Recompute recompute : recomputes_) {
      scheduled.recompute = recompute;
      try_leaf(layout, scheduled, floor);
      if (!space_.may_wait(kernel)) continue;
      Strategy waiting = scheduled;
      waiting.sync_last_only = true;
      try_leaf(layout, std::move(waiting), floor);
    }
    if (stopped_) return;
  }
}

void Search::visit(const Layout& layout) {
  for (const Strategy& kernel : layout.kernels) {
    if (stopped_) break;
    visit_kernel(layout, kernel);
  }
  if (!options_.variants && layout_best_) keep(*layout_best_);
}

bool Search::go_on(double bound_s, std::size_t at) {
  if (stopped_ || --until_report_ > 0) return !stopped_;
  until_report_ = kWorkBetweenLooks;
  const double now = elapsed_s();
  // The limit ends the listing; after it, the walk as soon as something fits, or when it has taken that long again.
  const bool late = options_.time_limit_s > 0 && now > options_.time_limit_s;
  if (late && (!listed_ || best_s_ > 0 || now > 2 * options_.time_limit_s + kGrace_s)) stopped_ = true;
  if (options_.report && now - reported_s_ > kReportEvery_s) {
    reported_s_ = now;
    const double done = layouts_.empty() ? 0 : static_cast<double>(at) / static_cast<double>(layouts_.size());
    if (!options_.report({now, done, best_s_, bound_s})) stopped_ = true;
  }
  return !stopped_;
}

void Search::run(Plan& plan) {
  list_layouts();
  const bool all_listed = listed_;
  listed_ = true;
  double proof = 0;
  double bound = kNever;  // of what is left when the walk ends early
  for (std::size_t i = 0; i < layouts_.size() && !recomputes_.empty(); ++i) {
    Layout& layout = layouts_[i];
    current_bound_s_ = layout.bound_s;
    layout_best_.reset();
    if (!options_.exhaustive && proof == 0 && best_s_ > 0 && layout.bound_s >= best_s_) proof = elapsed_s();
    if (!options_.exhaustive && layout.bound_s >= limit_s(layout)) continue;
    if (!go_on(layout.bound_s, i)) {
      bound = layout.bound_s;
      break;
    }
    visit(layout);
    if (stopped_) bound = layout.bound_s;
    if (stopped_) break;
  }
  if (!all_listed) bound = std::min(bound, least_step_s(job_));
  stopped_ = stopped_ || !all_listed;
  plan.enumerated = enumerated_;
  plan.evaluated = evaluated_;
  plan.pruned = enumerated_ - evaluated_;
  plan.bounds = bounds_;
  plan.stopped = stopped_;
  plan.search_s = elapsed_s();
  // A search that stopped after its proof is a proof all the same.
  plan.optimal = !found_.empty() && (!stopped_ || bound >= best_s_);
  plan.proof_s = proof > 0 ? proof : plan.search_s;
  plan.bound_s = found_.empty() ? 0 : std::min(bound, best_s_);
  plan.gap = plan.bound_s > 0 && !plan.optimal ? best_s_ / plan.bound_s - 1 : 0;
  plan.too_slow = found_.empty() && fastest_too_slow_s_ > 0;
  rejected_["does not fit in memory"] = misfit_leaves_;
  for (const auto& [reason, count] : rejected_) {
    if (count > 0) plan.rejected.push_back({reason, count});
  }
  if (options_.explain || found_.empty()) explain_misfits();
}

std::vector<Candidate> Search::kinds_within(double window_s) {
  window_s_ = window_s;
  list_layouts();
  const bool all_listed = listed_;
  listed_ = true;
  for (const Layout& layout : layouts_) {
    if (layout.bound_s >= window_s || recomputes_.empty()) break;
    if (!go_on(layout.bound_s, 0)) break;
    visit(layout);
  }
  stopped_ = stopped_ || !all_listed;
  std::vector<Candidate> out;
  for (const auto& [kind, members] : kinds_) out.insert(out.end(), members.begin(), members.end());
  std::stable_sort(out.begin(), out.end(), [](const Candidate& a, const Candidate& b) { return a.step_time_s < b.step_time_s; });
  return out;
}

/// What each family without a member that fits needs at least, by its leanest members.
void Search::explain_misfits() {
  double smallest = kNever;
  for (const Layout& layout : misfits_) {
    if (layout.family->best || recomputes_.empty()) continue;
    const std::vector<Strategy> kernels = space_.kernels(layout.strategy);
    Strategy lean = kernels.front();
    const std::vector<Strategy> schedules = space_.schedules(lean);
    if (schedules.empty()) continue;
    lean = schedules.front();
    lean.recompute = recomputes_.back();
    const double needed = parallel::memory_per_rank(job_, lean).needed_bytes;
    layout.family->note_misfit(lean, needed);
    if (needed < smallest) {
      smallest = needed;
      smallest_ = lean;
    }
  }
}

}  // namespace chokepoint::plan
