// SPDX-License-Identifier: Apache-2.0
#pragma once
// A changed job beside the job as it is: with the same strategy, and with the best strategy after the change.
#include <chokepoint/whatif/change.hpp>
#include <optional>
#include <string>
#include <vector>

namespace chokepoint::whatif {

/// A scenario under one strategy.
struct State {
  std::optional<simulate::Prediction> prediction;  ///< MFU against the data sheet; choke points filled
  std::string why_not;                             ///< no prediction: why
  explicit operator bool() const { return prediction.has_value(); }
};

/// After over before, with the 80 % band of the ratio. Errors that both predictions share cancel in it: a class of the
/// bill counts by how much its share of the step changes.
struct Ratio {
  double value = 1;
  double low = 1;
  double high = 1;
  bool told_apart() const { return low > 1 || high < 1; }
};
Ratio paired(const Scenario& before, const simulate::Prediction& a, const Scenario& after,
             const simulate::Prediction& b);

/// The job as it is. `own` is the strategy that the job names, or the best one where it names none.
struct Baseline {
  Scenario scenario;  ///< its strategy is that of `own`
  State own;
  State best;  ///< by the planner; the same as `own` where the job names no strategy
  bool strategy_given = false;
};
Result<Baseline> baseline(Scenario scenario);

struct Answer {
  std::vector<Change> changes;
  Scenario scenario;
  State kept;                       ///< same strategy
  State best;                       ///< re-planned
  std::optional<Ratio> kept_ratio;  ///< of step times against the baseline's own
  std::optional<Ratio> best_ratio;
  double tokens = 0;  ///< of a step after the change; they may differ from those before
  std::vector<std::string> given_up;  ///< words of the strategy kept that the re-planned one does not have
  std::string why_same;               ///< a change that moves nothing: why; empty where the step moves
};
/// Several changes together are one answer; ask one by one for each alone.
Result<Answer> answer(const Baseline& baseline, const std::vector<Change>& changes);

State predict_state(const Scenario& scenario, const parallel::Strategy& strategy, bool choke_points = true);
State plan_state(const Scenario& scenario);
/// Step time alone, fast; no value when the strategy is illegal for the scenario. Memory is not looked at.
std::optional<double> step_time(const Scenario& scenario, const parallel::Strategy& strategy);

/// Communication that nothing hides, of the step.
double exposed_communication(const simulate::Prediction& prediction);

inline double tokens_per_step(const parallel::Job& job) { return job.global_batch * job.sequence; }

}  // namespace chokepoint::whatif
