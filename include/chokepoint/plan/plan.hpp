// SPDX-License-Identifier: Apache-2.0
#pragma once
// The best strategy for a job on its wiring: every legal mix is enumerated or excluded by a bound.
#include <chokepoint/parallel/job.hpp>
#include <chokepoint/simulate/predict.hpp>
#include <optional>
#include <string>
#include <vector>

namespace chokepoint::plan {

struct Options {
  int top = 10;                  ///< candidates returned
  bool variants = false;         ///< also those that differ in micro-batch, chunks or recomputation only
  bool recompute_choices = true; ///< let the planner pick recomputation
  simulate::Parameters parameters;  ///< of this machine
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

struct Plan {
  std::vector<simulate::Prediction> candidates;  ///< best first; each fits in memory; the best of each layout
  std::vector<Loser> why_not;                    ///< smallest loss first, what does not fit last
  std::optional<simulate::Prediction> closest;   ///< when nothing fits: the smallest need
  std::vector<std::string> would_fit;            ///< when nothing fits: what would make it fit
  long enumerated = 0;
  long pruned = 0;
  long evaluated = 0;
  std::vector<Rejected> rejected;
  bool optimal = false;                          ///< proved best under the closed-form model
};

Result<Plan> make_plan(const parallel::Job& job, const Options& options = {});

/// The familiar kind of a strategy: "FSDP (ZeRO-3)", "tensor + pipeline", "HSDP".
std::string family_of(const parallel::Job& job, const parallel::Strategy& strategy);

/// Whether the model can tell two strategies of one job apart; the errors they share do not count.
bool tied(const simulate::Prediction& a, const simulate::Prediction& b);

}  // namespace chokepoint::plan
