// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/calibrate/machine.hpp>

namespace chokepoint::calibrate {

namespace {
/// What the model cannot follow from one configuration to the next on the same machine: published sources spread by 5 to
/// 10 % around their own median. A single odd step must not bend the machine, so larger residuals count linearly.
constexpr double kRowSigma = 0.08;
constexpr int kRounds = 3;
}  // namespace

Robust machine_robust() { return {.huber = kRowSigma}; }

MachineFit fit_machine(std::span<const Observation> observations) {
  MachineFit fit;
  fit.linear = linearise(observations, {}, movable_parameters());
  for (const Observation& observation : observations) fit.weight.push_back(observation.weight / (kRowSigma * kRowSigma));
  fit.solution = refine(observations, fit.linear, fit.weight, prior_sigmas(fit.linear), kRounds, machine_robust());
  fit.parameters = moved(fit.linear, fit.solution);
  return fit;
}

}  // namespace chokepoint::calibrate
