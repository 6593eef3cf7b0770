// SPDX-License-Identifier: Apache-2.0
#pragma once
// Familiar kinds of strategy ("FSDP", "tensor parallelism across hosts", ...): the best of each kind is kept, so that the
// plan can say why it lost.
#include <chokepoint/plan/plan.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace chokepoint::plan {

struct Candidate {
  parallel::Strategy strategy;
  double step_time_s = 0;
};

struct Family {
  std::size_t number = 0;  ///< in the order in which the walk met them
  std::optional<Candidate> best;
  std::optional<parallel::Strategy> smallest;  ///< least memory among those that do not fit
  double smallest_bytes = 0;

  void note(const Candidate& candidate);
  void note_misfit(const parallel::Strategy& strategy, double bytes);
};

/// Why the second of the ranking lost, when it is of the winner's own family (others are explained as families).
std::optional<Loser> explain_runner_up(const parallel::Job& job, const simulate::Prediction& winner, const simulate::Prediction& second);

/// Each family that lost, worst loss last, with the class of the bill that makes it so.
std::vector<Loser> explain_families(const parallel::Job& job, const simulate::Predictor& predictor,
                                          const simulate::Prediction& winner, const std::map<std::string, Family>& families);

}  // namespace chokepoint::plan
