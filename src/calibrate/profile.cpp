// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/calibrate/profile.hpp>

#include <chokepoint/calibrate/machine.hpp>

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>

namespace chokepoint::calibrate {

namespace {

/// Parameters that moved by less than this are not worth a line, nor is a share of an input below it.
constexpr double kWorthSaying = 0.01;
/// Rows held back may come out this much worse by chance.
constexpr double kWorseBeyond = 0.002;
constexpr std::size_t kHoldBackEvery = 3;

double median_absolute(std::vector<double> log_errors) {
  if (log_errors.empty()) return 0;
  for (double& error : log_errors) error = std::abs(std::expm1(error));
  std::sort(log_errors.begin(), log_errors.end());
  const std::size_t half = log_errors.size() / 2;
  return log_errors.size() % 2 == 1 ? log_errors[half] : (log_errors[half - 1] + log_errors[half]) / 2;
}

Check check(std::span<const Observation> rows, const simulate::Parameters& after) {
  return {static_cast<int>(rows.size()), median_absolute(residuals_at(rows, {})), median_absolute(residuals_at(rows, after))};
}

/// Fits without every third row of each input and looks at those. Inputs with fewer rows all teach.
Check hold_back(const std::vector<Input>& inputs) {
  std::vector<Observation> taught, kept;
  for (const Input& input : inputs) {
    const bool enough = input.observations.size() >= kHoldBackEvery;
    for (std::size_t i = 0; i < input.observations.size(); ++i) {
      (enough && i % kHoldBackEvery == 1 ? kept : taught).push_back(input.observations[i]);
    }
  }
  if (kept.empty()) return {};
  return check(kept, fit_machine(taught).parameters);
}

/// What each input alone would have done to each parameter.
std::vector<Solution> alone(const std::vector<Input>& inputs, const MachineFit& fit) {
  std::vector<Solution> solutions;
  std::size_t first = 0;
  for (const Input& input : inputs) {
    std::vector<double> weight(fit.weight.size(), 0.0);
    for (std::size_t i = first; i < first + input.observations.size(); ++i) weight[i] = fit.weight[i];
    first += input.observations.size();
    solutions.push_back(solve(fit.linear, weight, prior_sigmas(fit.linear), machine_robust()));
  }
  return solutions;
}

}  // namespace

bool Profile::makes_worse() const { return held_back.rows > 0 && held_back.after > held_back.before + kWorseBeyond; }

Result<Profile> make_profile(const std::vector<Input>& inputs) {
  std::vector<Observation> all;
  for (const Input& input : inputs) all.insert(all.end(), input.observations.begin(), input.observations.end());
  if (all.empty()) return fail("nothing to calibrate on: no measured time could be used");
  Profile profile;
  profile.held_back = hold_back(inputs);
  const MachineFit fit = fit_machine(all);
  for (const Input& input : inputs) profile.inputs.push_back({input.name, input.kind, check(input.observations, fit.parameters)});
  const std::vector<Solution> by_input = alone(inputs, fit);
  for (std::size_t j = 0; j < fit.linear.free.size(); ++j) {
    if (std::abs(fit.solution.change[j]) < kWorthSaying) continue;
    ProfileParameter parameter;
    parameter.info = fit.linear.free[j];
    parameter.value = parameter.info.value * std::exp(fit.solution.change[j]);
    parameter.log_error = fit.solution.sigma[j];
    for (std::size_t i = 0; i < by_input.size(); ++i) {
      const double change = by_input[i].change[j];
      if (std::abs(change) >= kWorthSaying) parameter.changed_by.emplace_back(i, std::exp(change));
    }
    profile.parameters.push_back(std::move(parameter));
  }
  return profile;
}

simulate::Parameters parameters_of(const Profile& profile) {
  simulate::Parameters parameters;
  for (const ParameterRef& ref : simulate::refs(parameters)) {
    for (const ProfileParameter& changed : profile.parameters) {
      if (changed.info.name == ref.info.name) *ref.value = changed.value;
    }
  }
  return parameters;
}

std::vector<Note> assumptions_of(const Profile& profile) {
  std::vector<Note> notes;
  for (const ProfileParameter& p : profile.parameters) {
    notes.push_back({fmt::format("profile: {} {:.4g}{}{} instead of {:.4g} ({:+.1f} %, standard error {:.1f} %)", p.info.name, p.value,
                                 p.info.unit.empty() ? "" : " ", p.info.unit, p.info.value, 100 * (p.value / p.info.value - 1), 100 * p.log_error),
                     {profile.file, 0, 0}});
  }
  return notes;
}

}  // namespace chokepoint::calibrate
