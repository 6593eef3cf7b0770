// SPDX-License-Identifier: Apache-2.0
#pragma once
// From the step of the model, in which every rank is alike, to the step of a real job: imperfections by simulation, and
// measured costs in place of modelled ones. docs/models/whatif.md, "Real jobs".
#include <array>
#include <chokepoint/base/result.hpp>
#include <chokepoint/engine/imperfections.hpp>
#include <chokepoint/simulate/predict.hpp>
#include <optional>
#include <string>

namespace chokepoint::diagnose {
struct Diagnosis;
}

namespace chokepoint::whatif {

/// One step as its traces show it, mean over the ranks. All times per step.
struct MeasuredStep {
  using Bill = std::array<double, simulate::kBillCount>;
  Bill bill_s{};                 ///< sums to the step
  Bill wait_s{};                 ///< part of `bill_s` spent waiting for late peers
  /// What a replay without it alone is shorter by, and the share of it where others go too (Shapley).
  struct Cost {
    double alone_s = 0;
    double share_s = 0;
  };
  Cost slow_rank;                ///< slow ranks
  Cost uneven_load;              ///< uneven work: sequences, experts, a heavy stage
  int ranks = 0;                 ///< of the job that was traced
  std::array<int, simulate::kBillCount> groups{};  ///< by class: ranks of the largest group that communicates; 0: none was seen
  double slow_rank_left = 1;     ///< share of it that a change leaves
  double uneven_load_left = 1;
  std::optional<Bill> model_s;   ///< the model's bill of the same job; filled in by `baseline`
  double step_s() const;
};
/// Error: traces in which no device work was found.
Result<MeasuredStep> measured_step(const diagnose::Diagnosis& diagnosis);

/// What a real job adds to a scenario.
struct RealJob {
  engine::Imperfections imperfections;
  std::optional<MeasuredStep> measured;
  bool any() const { return measured || imperfections.any(); }
};

/// Turns the prediction of `predictor` into that of the real job: bill, step time, rates, ladder.
Result<bool> make_real(const RealJob& real, const simulate::Predictor& predictor, simulate::Prediction& prediction);

/// The measured bill after a change under which the model's bill became `after`: a class moves as the model says it
/// does, waits stay. Without a modelled class to compare with, the difference counts.
MeasuredStep::Bill moved_bill(const MeasuredStep& measured, const MeasuredStep::Bill& after);

/// Mean step with imperfections over the step without, by simulation; 1 without any.
Result<double> imperfect_over_even(const engine::Imperfections& imperfections, const simulate::Predictor& predictor,
                                   const parallel::Strategy& strategy);

}  // namespace chokepoint::whatif
