// SPDX-License-Identifier: Apache-2.0
// Two strategies of one machine share its constants. What separates them is how differently each depends on them: with
// every constant moved by one standard error, the difference of their steps moves by `shift`; independent errors add up in
// squares to the error of the difference. The constant with the largest shift is the one to measure.
#include <chokepoint/base/units.hpp>
#include <chokepoint/plan/plan.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <functional>

namespace chokepoint::plan {

namespace {

using collective::Scale;
using simulate::Parameters;
using simulate::Prediction;

constexpr double kEightyPercent = 1.2816;
/// A measurement to better than one per cent, or one that may be off by half, is no measurement worth asking for.
constexpr double kFinest = 0.01;
constexpr double kCoarsest = 0.5;
/// Candidates compared with the best.
constexpr std::size_t kMostCompared = 20;

/// A constant of the model with its relative standard error (estimates: spread of published figures about the model's) and
/// how to measure it.
struct Uncertain {
  std::string_view name;
  double sigma;
  void (*move)(double factor, Scale& scale, Parameters& parameters);
  std::string_view measure;
  std::string_view command;  ///< {hosts} {gpus} are filled in
};

constexpr double kUnmeasuredWires = 0.15;
constexpr double kMeasuredWires = 0.05;

const std::array<Uncertain, 7> kUncertain = {{
    {"bandwidth between hosts", kUnmeasuredWires, [](double f, Scale& s, Parameters&) { s.nic *= f; s.fabric *= f; },
     "all-reduce between hosts", "mpirun -N {gpus} -np {ranks} all_reduce_perf -b 64M -e 1G -f 2 -g 1"},
    {"bandwidth between the GPUs of a host", kUnmeasuredWires, [](double f, Scale& s, Parameters&) { s.nvlink *= f; s.pcie *= f; },
     "all-reduce inside a host", "all_reduce_perf -b 8M -e 1G -f 2 -g {gpus}"},
    {"start-up time of collectives", 0.2, [](double f, Scale& s, Parameters&) { s.latency *= f; },
     "small all-reduces between hosts", "mpirun -N {gpus} -np {ranks} all_reduce_perf -b 8 -e 64K -f 2 -g 1"},
    {"pace of the kernels", 0.08, [](double f, Scale&, Parameters& p) { p.step.machine_pace *= f; },
     "the products of this model on one accelerator", "chokepoint measure --compute"},
    {"host time of a layer", 0.3, [](double f, Scale&, Parameters& p) { p.step.python_forward_s *= f; p.step.python_backward_s *= f; },
     "one step of either strategy with the profiler", "chokepoint diagnose TRACE"},
    {"slow-down of computation beside communication", 0.3, [](double f, Scale&, Parameters& p) { p.step.communication_units *= f; },
     "one step of either strategy with the profiler", "chokepoint diagnose TRACE"},
    {"share of tensor-parallel communication that stays exposed", 0.2,
     [](double f, Scale&, Parameters& p) { p.step.async_tensor_exposed *= f; },
     "one step of either strategy with the profiler", "chokepoint diagnose TRACE"},
}};

std::string filled(std::string_view command, const parallel::Job& job) {
  std::string out(command);
  const int per_host = std::min(job.gpus, std::max(1, job.cluster.gpus_per_host()));
  const int hosts = std::max(1, std::min(16, job.gpus / per_host));
  const auto put = [&out](std::string_view mark, int value) {
    for (std::size_t at = out.find(mark); at != std::string::npos; at = out.find(mark)) out.replace(at, mark.size(), std::to_string(value));
  };
  put("{gpus}", per_host);
  put("{ranks}", hosts * per_host);
  return out;
}

/// Steps of the candidates with one constant moved by one standard error.
struct Moved {
  const Uncertain* what;
  double sigma;
  std::vector<double> steps_s;
};

std::vector<Moved> moved_steps(const parallel::Job& job, const Parameters& parameters, const std::vector<Prediction>& candidates) {
  const bool measured = job.cluster.measured.all_reduce || job.cluster.fabric.node_measured_bytes_per_s;
  std::vector<Moved> out;
  for (const Uncertain& u : kUncertain) {
    Moved moved{&u, u.sigma == kUnmeasuredWires && measured ? kMeasuredWires : u.sigma, {}};
    Scale scale;
    Parameters with = parameters;
    u.move(1 + moved.sigma, scale, with);
    const simulate::Predictor predictor(job, scale, with);
    for (const Prediction& p : candidates) moved.steps_s.push_back(predictor.evaluate(p.strategy).step_time_s);
    out.push_back(std::move(moved));
  }
  return out;
}

Undecided compared(const parallel::Job& job, const std::vector<Prediction>& candidates, const std::vector<Moved>& moved, std::size_t i) {
  Undecided out;
  out.candidate = i;
  out.slower_s = candidates[i].step_time_s - candidates[0].step_time_s;
  double variance = 0;
  double most = 0;
  const Moved* largest = nullptr;
  double shift_of_largest = 0;
  for (const Moved& m : moved) {
    const double shift = m.steps_s[i] - m.steps_s[0] - out.slower_s;
    variance += shift * shift;
    if (std::abs(shift) <= most) continue;
    most = std::abs(shift);
    largest = &m;
    shift_of_largest = shift;
  }
  out.sigma_s = std::sqrt(variance);
  if (largest == nullptr) return out;
  out.constant = std::string(largest->what->name);
  const double per_unit = shift_of_largest / largest->sigma;  // seconds of difference for a relative error of one
  out.turns_at = -out.slower_s / per_unit;
  if (std::abs(out.turns_at) > 1) out.turns_at = 0;
  const double needed = std::abs(out.slower_s / per_unit) / kEightyPercent;
  out.needed = std::clamp(needed, kFinest, kCoarsest);
  if (needed < kFinest) {
    out.measure = "no measurement of a constant: run twenty steps of both";
    return out;
  }
  out.measure = fmt::format("measure {} to \u00b1{:.0f} %", largest->what->measure, std::max(1.0, std::floor(100 * out.needed)));
  out.command = filled(largest->what->command, job);
  return out;
}

}  // namespace

void find_undecided(const parallel::Job& job, const Parameters& parameters, Plan& plan) {
  plan.undecided.clear();
  if (plan.candidates.size() < 2) return;
  std::vector<Prediction> compared_ones(plan.candidates.begin(),
                                        plan.candidates.begin() + static_cast<std::ptrdiff_t>(std::min(kMostCompared, plan.candidates.size())));
  const std::vector<Moved> moved = moved_steps(job, parameters, compared_ones);
  for (std::size_t i = 1; i < compared_ones.size(); ++i) {
    Undecided u = compared(job, compared_ones, moved, i);
    if (u.slower_s < kEightyPercent * u.sigma_s) plan.undecided.push_back(std::move(u));
  }
}

}  // namespace chokepoint::plan
