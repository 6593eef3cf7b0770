// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parameters from measured times. Every parameter has a prior (its value, and how far its logarithm may move); every
// observation a measured time and the model's time of the same thing. The most probable parameters are found by
// Gauss-Newton steps on logarithms; large residuals count less (Huber), so that single odd rows move nothing.
//
//   std::vector<Observation> seen = {step_observation(job, strategy, 8.68, "mine")};
//   const Linear linear = linearise(seen, {}, movable_parameters());
//   const Solution solution = solve(linear, std::vector<double>(seen.size(), 1.0 / (0.03 * 0.03)), prior_sigmas(linear));
//   simulate::Parameters mine = moved(linear, solution);
//
// docs/models/calibration.md has the formulas.
#include <chokepoint/parallel/job.hpp>
#include <chokepoint/simulate/predict.hpp>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace chokepoint::calibrate {

/// A measured time and the model of it. `time_s` is called from one thread at a time and may remember what it built.
struct Observation {
  std::string source;      ///< who measured: observations of one source share what the model does not know of it
  double measured_s = 0;   ///< above zero
  double weight = 1;       ///< against a row that stands for itself
  std::function<double(const simulate::Parameters&)> time_s;
};

/// A measured training step. `strategy` is completed; `job` must outlive the observation.
Observation step_observation(const parallel::Job& job, const parallel::Strategy& strategy, double measured_s, std::string source);

/// The observations' residuals at `base` and how they follow each free parameter.
struct Linear {
  simulate::Parameters base;
  std::vector<Parameter> free;        ///< `value` is the base's
  std::vector<std::size_t> index;     ///< of each free parameter in refs(base)
  std::vector<double> residual;       ///< log(model / measured) of each observation
  std::vector<double> jacobian;       ///< [observation][free]: d log time / d log parameter
  std::span<const double> row(std::size_t observation) const { return {jacobian.data() + observation * free.size(), free.size()}; }
};

/// Names of the parameters that a machine or a fit may move: those with a prior width.
std::vector<std::string> movable_parameters();
/// Runs over all cores: observations x (free parameters + 1) evaluations of the model.
Linear linearise(std::span<const Observation> observations, const simulate::Parameters& base, const std::vector<std::string>& free);
/// Residuals at other parameters.
std::vector<double> residuals_at(std::span<const Observation> observations, const simulate::Parameters& parameters);

/// The prior width of each free parameter.
std::vector<double> prior_sigmas(const Linear& linear);

/// Change of the logarithm of each free parameter from `base`, and its standard error.
struct Solution {
  std::vector<double> change;
  std::vector<double> sigma;
};
struct Robust {
  double huber = 0.1;     ///< residuals above this count linearly
  int rounds = 25;        ///< of reweighting
};
/// Most probable change under `weight` (inverse variance) of each observation, 0 leaves it out. Uses the derivatives at
/// `base`. `prior_change`: where the prior is centred, empty: at the base.
Solution solve(const Linear& linear, std::span<const double> weight, std::span<const double> prior_sigma,
               const Robust& robust = {}, std::span<const double> prior_change = {});
/// The same, but with `rounds` of residuals from the model itself, so that kinks and curvature are followed.
Solution refine(std::span<const Observation> observations, Linear linear, std::span<const double> weight,
                std::span<const double> prior_sigma, int rounds, const Robust& robust = {});

/// The base with the free parameters moved.
simulate::Parameters moved(const Linear& linear, const Solution& solution);

}  // namespace chokepoint::calibrate
