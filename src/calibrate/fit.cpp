// SPDX-License-Identifier: Apache-2.0
// Minimises  sum_i w_i h(r_i + J_i x) + sum_j ((x_j - c_j) / s_j)^2 / 2  over x, the changes of log parameters: r the log
// residuals at the base, h Huber's function, c and s the prior. Reweighted least squares: each round solves the normal
// equations with the weights of the last; the objective is convex in x, so rounds only approach its one minimum.
#include <chokepoint/calibrate/fit.hpp>

#include <chokepoint/base/parallel.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "normal_equations.hpp"

namespace chokepoint::calibrate {

namespace {

/// Relative step of the numerical derivatives: beyond rounding, below the curvature of any part of the model.
constexpr double kLogStep = 0.03;
/// No parameter moves further than this many prior widths: beyond, the model is wrong and not the parameter.
constexpr double kFarthestSigmas = 4;
constexpr double kTolerance = 1e-7;

double log_residual(const Observation& observation, const simulate::Parameters& parameters) {
  const double model = observation.time_s(parameters);
  if (!(model > 0) || !std::isfinite(model) || !(observation.measured_s > 0)) return 0;
  return std::log(model / observation.measured_s);
}

struct Free {
  std::vector<Parameter> info;
  std::vector<std::size_t> index;
};

Free find_free(const simulate::Parameters& base, const std::vector<std::string>& names) {
  simulate::Parameters copy = base;
  const std::vector<ParameterRef> refs = simulate::refs(copy);
  Free free;
  for (std::size_t i = 0; i < refs.size(); ++i) {
    const bool wanted = std::find(names.begin(), names.end(), refs[i].info.name) != names.end();
    if (!wanted || !(*refs[i].value > 0)) continue;  // a logarithm needs a positive value
    free.info.push_back(refs[i].info);
    free.index.push_back(i);
  }
  return free;
}

/// One reweighted solution of the normal equations around `change`.
NormalEquations equations(const Linear& linear, std::span<const double> weight, std::span<const double> prior_sigma,
                          std::span<const double> prior_change, double huber, const std::vector<double>& change) {
  const std::size_t n = linear.free.size();
  NormalEquations normal(n);
  for (std::size_t j = 0; j < n; ++j) {
    const double precision = 1 / (prior_sigma[j] * prior_sigma[j]);
    normal.at(j, j) = precision;
    normal.right(j) = prior_change.empty() ? 0 : precision * prior_change[j];
  }
  for (std::size_t i = 0; i < linear.residual.size(); ++i) {
    if (!(weight[i] > 0)) continue;
    const std::span<const double> row = linear.row(i);
    double residual = linear.residual[i];
    for (std::size_t j = 0; j < n; ++j) residual += row[j] * change[j];
    const double w = weight[i] * std::min(1.0, huber / std::max(1e-12, std::abs(residual)));
    for (std::size_t j = 0; j < n; ++j) {
      if (row[j] == 0) continue;
      normal.right(j) -= w * row[j] * linear.residual[i];
      for (std::size_t k = 0; k <= j; ++k) normal.at(j, k) += w * row[j] * row[k];
    }
  }
  return normal;
}

}  // namespace

std::vector<std::string> movable_parameters() {
  simulate::Parameters defaults;
  std::vector<std::string> names;
  for (const ParameterRef& ref : simulate::refs(defaults)) {
    if (ref.info.log_sigma > 0) names.push_back(ref.info.name);
  }
  return names;
}

Linear linearise(std::span<const Observation> observations, const simulate::Parameters& base, const std::vector<std::string>& free_names) {
  Linear linear;
  linear.base = base;
  Free free = find_free(base, free_names);
  linear.free = std::move(free.info);
  linear.index = std::move(free.index);
  const std::size_t n = linear.free.size();
  linear.residual.resize(observations.size());
  linear.jacobian.resize(observations.size() * n);
  parallel_for(observations.size(), [&](std::size_t i) {
    simulate::Parameters parameters = base;
    const std::vector<ParameterRef> refs = simulate::refs(parameters);
    linear.residual[i] = log_residual(observations[i], parameters);
    for (std::size_t j = 0; j < n; ++j) {
      double& value = *refs[linear.index[j]].value;
      const double before = value;
      value = before * std::exp(kLogStep);
      const double up = log_residual(observations[i], parameters);
      value = before;
      linear.jacobian[i * n + j] = (up - linear.residual[i]) / kLogStep;
    }
  });
  return linear;
}

std::vector<double> residuals_at(std::span<const Observation> observations, const simulate::Parameters& parameters) {
  std::vector<double> residual(observations.size());
  parallel_for(observations.size(), [&](std::size_t i) { residual[i] = log_residual(observations[i], parameters); });
  return residual;
}

std::vector<double> prior_sigmas(const Linear& linear) {
  std::vector<double> sigmas;
  for (const Parameter& parameter : linear.free) sigmas.push_back(parameter.log_sigma);
  return sigmas;
}

Solution solve(const Linear& linear, std::span<const double> weight, std::span<const double> prior_sigma, const Robust& robust,
               std::span<const double> prior_change) {
  const std::size_t n = linear.free.size();
  Solution solution{std::vector<double>(n, 0.0), std::vector<double>(prior_sigma.begin(), prior_sigma.end())};
  for (int round = 0; round < robust.rounds; ++round) {
    NormalEquations normal = equations(linear, weight, prior_sigma, prior_change, robust.huber, solution.change);
    if (!normal.factorise()) return solution;  // no observation and no prior: nothing known, nothing moved
    std::vector<double> next = normal.solution();
    double largest = 0;
    for (std::size_t j = 0; j < n; ++j) {
      next[j] = std::clamp(next[j], -kFarthestSigmas * prior_sigma[j], kFarthestSigmas * prior_sigma[j]);
      largest = std::max(largest, std::abs(next[j] - solution.change[j]));
    }
    solution.change = std::move(next);
    if (largest < kTolerance || round + 1 == robust.rounds) {
      solution.sigma = normal.inverse_diagonal();
      for (double& variance : solution.sigma) variance = std::sqrt(std::max(0.0, variance));
      break;
    }
  }
  return solution;
}

Solution refine(std::span<const Observation> observations, Linear linear, std::span<const double> weight,
                std::span<const double> prior_sigma, int rounds, const Robust& robust) {
  Solution solution = solve(linear, weight, prior_sigma, robust);
  const std::size_t n = linear.free.size();
  for (int round = 0; round < rounds; ++round) {
    // The model's residuals at the solution, brought back along the old derivatives: the next solution starts there.
    const std::vector<double> residual = residuals_at(observations, moved(linear, solution));
    for (std::size_t i = 0; i < residual.size(); ++i) {
      linear.residual[i] = residual[i];
      for (std::size_t j = 0; j < n; ++j) linear.residual[i] -= linear.row(i)[j] * solution.change[j];
    }
    solution = solve(linear, weight, prior_sigma, robust);
  }
  return solution;
}

simulate::Parameters moved(const Linear& linear, const Solution& solution) {
  simulate::Parameters parameters = linear.base;
  const std::vector<ParameterRef> refs = simulate::refs(parameters);
  for (std::size_t j = 0; j < linear.free.size(); ++j) *refs[linear.index[j]].value *= std::exp(solution.change[j]);
  return parameters;
}

Observation step_observation(const parallel::Job& job, const parallel::Strategy& strategy, double measured_s, std::string source) {
  // The predictor stays between calls: what a changed parameter does not touch need not be built again.
  auto predictor = std::make_shared<simulate::Predictor>(job);
  return {std::move(source), measured_s, 1, [predictor, strategy](const simulate::Parameters& parameters) {
            predictor->set_parameters(parameters);
            return predictor->evaluate(strategy).step_time_s;
          }};
}

}  // namespace chokepoint::calibrate
