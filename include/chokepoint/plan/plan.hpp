// SPDX-License-Identifier: Apache-2.0
#pragma once
// The best strategy for a job on its wiring: the whole legal space, every part of it enumerated or excluded by a bound
// that provably lies below what it excludes. docs/models/plan.md has the argument.
//
//   TRY_INTO(const Plan plan, make_plan(job, {.top = 5}));
//   plan.candidates.front();  // the fastest that fits
//   plan.optimal;             // proved; else plan.gap says how far the optimum may lie below
#include <chokepoint/parallel/job.hpp>
#include <chokepoint/simulate/predict.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace chokepoint::plan {

/// What the user does not leave to the planner.
struct Constraints {
  double memory_margin = 0;      ///< share of the device's usable memory that stays free
  int largest_micro_batch = 0;   ///< sequences; 0: no limit
  int most_accumulation = 0;     ///< micro-steps in a step; 0: no limit
  double longest_step_s = 0;     ///< from a budget; 0: no limit
  std::string frozen;            ///< words of a strategy that every candidate has: "tensor=8 schedule=1f1b"
  bool any_framework = false;    ///< choices that the job's framework does not have, too
};

struct Progress {
  double elapsed_s = 0;
  double done = 0;               ///< share of the layouts
  double best_s = 0;             ///< step time of the best so far; 0: none fits yet
  double bound_s = 0;            ///< nothing that is left is faster
};

struct Options {
  int top = 10;                  ///< candidates returned
  bool variants = false;         ///< also those that differ in micro-batch, chunks or recomputation only
  bool recompute_choices = true; ///< let the planner pick recomputation
  simulate::Parameters parameters;  ///< of this machine
  Constraints constraints;
  bool explain = true;           ///< choke points, and why familiar kinds of strategy lost
  bool exhaustive = false;       ///< no bounds: evaluate everything (the proof's own check)
  double time_limit_s = 0;       ///< 0: none
  std::function<bool(const Progress&)> report;  ///< called now and then; false ends the search
};

struct Rejected {
  std::string reason;
  long count = 0;
};

/// A familiar kind of strategy ("FSDP", "tensor + pipeline") at its best, and why it lost.
struct Loser {
  std::string family;
  std::optional<parallel::Strategy> strategy;    ///< none when no member fits
  double step_time_s = 0;
  std::string reason;                            ///< "10.3 s of recomputation"
};

/// A leading candidate in the event engine.
struct Rematch {
  std::size_t candidate = 0;  ///< index into Plan::candidates
  double closed_form_s = 0;
  double engine_s = 0;        ///< with transfers that share links, rank by rank
};

/// A candidate that errors of the model's constants do not separate from the best, and what would.
struct Undecided {
  std::size_t candidate = 0;
  double slower_s = 0;        ///< than the best, as predicted
  double sigma_s = 0;         ///< of that difference, from what the two do not share
  std::string constant;       ///< the one that separates them most: "bandwidth between hosts"
  double turns_at = 0;        ///< this constant's error, relative, at which both take as long; 0: none does
  double needed = 0;          ///< error of the measurement that decides, relative, at 80 %
  std::string measure;        ///< "measure all-reduce between hosts to ±8 %"
  std::string command;        ///< what to run; empty: no single command
};

/// A point that no other beats in time, memory and money at once.
struct ParetoPoint {
  int gpus = 0;
  parallel::Strategy strategy;
  double step_time_s = 0;
  double needed_bytes = 0;
  double usd_per_billion_tokens = 0;  ///< 0: no price
};

struct Plan {
  std::vector<simulate::Prediction> candidates;  ///< best first; each fits in memory; the best of each layout
  std::vector<Loser> why_not;                    ///< smallest loss first, what does not fit last
  std::optional<simulate::Prediction> closest;   ///< when nothing fits: the smallest need
  std::vector<std::string> would_fit;            ///< when nothing fits: what would make it fit
  long enumerated = 0;                           ///< legal strategies
  long pruned = 0;                               ///< of those excluded by a bound or by memory
  long evaluated = 0;                            ///< of those evaluated: their steps were timed
  long bounds = 0;                               ///< bounds worked out
  std::vector<Rejected> rejected;
  bool optimal = false;                          ///< proved best under the closed-form model
  double bound_s = 0;                            ///< no legal strategy that fits is faster
  double gap = 0;                                ///< of the best above the bound, relative; 0 when optimal
  double proof_s = 0;                            ///< time until the best was known to be the best
  double search_s = 0;                           ///< time of the whole search
  bool stopped = false;                          ///< by the time limit or the caller, before the end
  bool too_slow = false;                         ///< strategies fit, but none within `longest_step_s`
  std::vector<Rematch> engine;                   ///< by simulated time, where asked for (plan/rematch.hpp)
  std::vector<Undecided> undecided;              ///< where asked for (find_undecided)
  std::vector<ParetoPoint> pareto;               ///< fastest first, where asked for (find_pareto)
};

Result<Plan> make_plan(const parallel::Job& job, const Options& options = {});

/// Which candidates the constants' own errors leave open, and the measurement that separates each from the best.
void find_undecided(const parallel::Job& job, const simulate::Parameters& parameters, Plan& plan);
/// The set of strategies, on this and on halved numbers of accelerators, that none beats in step time, memory and money.
/// Memory in steps of a tenth of the device. `usd_per_accelerator_hour` 0: time and memory alone.
void find_pareto(const parallel::Job& job, const Options& options, double usd_per_accelerator_hour, Plan& plan);

/// The familiar kind of a strategy: "FSDP (ZeRO-3)", "tensor + pipeline", "HSDP".
std::string family_of(const parallel::Job& job, const parallel::Strategy& strategy);

/// Whether the model can tell two strategies of one job apart; the errors they share do not count.
bool tied(const simulate::Prediction& a, const simulate::Prediction& b);

}  // namespace chokepoint::plan
