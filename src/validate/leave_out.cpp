// SPDX-License-Identifier: Apache-2.0
// The model is made linear twice: at the shipped constants, and again at the fit on all rows. Every left-out group then
// solves the second linear problem without its rows, which lies close to its own best fit, and predicts its rows with the
// model itself.
#include <chokepoint/validate/leave_out.hpp>

#include <chokepoint/base/parallel.hpp>
#include <chokepoint/calibrate/fit.hpp>

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <set>

#include "fit_rows.hpp"
#include "runs_summary.hpp"
#include "summary.hpp"

namespace chokepoint::validate {
namespace {

using calibrate::Linear;
using calibrate::Solution;
using hardware::Architecture;

constexpr std::size_t kRowsPerSource = 24;
/// What one source says of the model's level: sources differ by about so much for reasons no row states.
constexpr double kSourceSigma = 0.08;
/// A source whose rows passed through a second hand (trust B) counts half.
constexpr double kTrustB = 0.5;
/// Constants that were set on whole steps are known to their order of magnitude only, once the steps are taken away.
constexpr double kStepPriorSigma = 0.35;
/// Close to absolute errors, as the figures are medians: a row that is further off than this pulls no harder.
constexpr calibrate::Robust kRobust{.huber = 0.04, .rounds = 60};

std::string group_of(const RunRow& row, LeftOut by) {
  switch (by) {
    case LeftOut::kSource: return row.source_id;
    case LeftOut::kAccelerator: return row.job ? std::string(hardware::name(row.job->accelerator.architecture)) : row.accelerator;
    case LeftOut::kFramework: return row.job ? std::string(parallel::name(row.job->framework)) : row.framework;
  }
  return row.source_id;
}

bool fitted_on_steps(const Parameter& parameter) {
  return parameter.kind == ParameterKind::kFitted && parameter.name.starts_with("step.");
}

std::vector<double> fit_sigmas(const Linear& linear) {
  std::vector<double> sigmas = calibrate::prior_sigmas(linear);
  for (std::size_t j = 0; j < sigmas.size(); ++j) {
    if (fitted_on_steps(linear.free[j])) sigmas[j] = std::max(sigmas[j], kStepPriorSigma);
  }
  return sigmas;
}

/// Rows the fits use, with the weight of each: a source weighs one, its rows share it.
struct Teaching {
  std::vector<std::size_t> rows;
  std::vector<double> weight;
};

Teaching teaching_rows(const RunsReport& runs) {
  Teaching teaching;
  for (const auto& source : rows_by_source(runs, false)) {
    const std::vector<std::size_t> chosen = evenly(source, kRowsPerSource);
    double share = 0;
    for (const std::size_t row : chosen) share += runs.rows[row].trust == "A" ? 1 : kTrustB;
    // A source of B rows alone counts half as a whole.
    const bool any_a = std::any_of(chosen.begin(), chosen.end(), [&](std::size_t row) { return runs.rows[row].trust == "A"; });
    const double total = (any_a ? 1 : kTrustB) / (kSourceSigma * kSourceSigma);
    for (const std::size_t row : chosen) {
      teaching.rows.push_back(row);
      teaching.weight.push_back(total * (runs.rows[row].trust == "A" ? 1 : kTrustB) / share);
    }
  }
  return teaching;
}

/// Per row of the table: what came out under the constants of its group.
struct Outcome {
  std::vector<std::optional<double>> error;
  std::vector<double> width;
  std::vector<char> inside;
};

template <class ParametersOf>
Outcome predict_rows(const RunsReport& runs, const ParametersOf& parameters_of) {
  Outcome out{std::vector<std::optional<double>>(runs.rows.size()), std::vector<double>(runs.rows.size(), 0.0),
              std::vector<char>(runs.rows.size(), 0)};
  parallel_for(runs.rows.size(), [&](std::size_t i) {
    const RunRow& row = runs.rows[i];
    if (!row.job || !row.prediction || !row.measured_step_time_s) return;
    const simulate::Prediction p = predict_with(row, parameters_of(row));
    const double measured = *row.measured_step_time_s;
    out.error[i] = p.step_time_s / measured - 1;
    out.width[i] = (p.step_time_high_s - p.step_time_low_s) / p.step_time_s;
    out.inside[i] = measured >= p.step_time_low_s && measured <= p.step_time_high_s ? 1 : 0;
  });
  return out;
}

/// Share of rows inside their band and its width, sources counted once.
void band_of(const RunsReport& runs, const Outcome& outcome, const std::string& trust, double& holds, double& width) {
  std::vector<double> shares, widths;
  for (const auto& source : rows_by_source(runs, false)) {
    double inside = 0, rows = 0;
    std::vector<double> of_source;
    for (const std::size_t i : source) {
      if (runs.rows[i].trust != trust || !outcome.error[i]) continue;
      inside += outcome.inside[i];
      rows += 1;
      of_source.push_back(outcome.width[i]);
    }
    if (rows == 0) continue;
    shares.push_back(inside / rows);
    widths.push_back(quantile(std::move(of_source), 0.5));
  }
  double sum = 0;
  for (const double share : shares) sum += share;
  holds = shares.empty() ? 0 : sum / static_cast<double>(shares.size());
  width = quantile(std::move(widths), 0.5);
}

Errors errors_of(const RunsReport& runs, const Outcome& outcome) {
  RunsReport light;  // what the summaries look at, with these errors
  for (std::size_t i = 0; i < runs.rows.size(); ++i) {
    RunRow row;
    row.source_id = runs.rows[i].source_id;
    row.trust = runs.rows[i].trust;
    row.has_figure = runs.rows[i].has_figure;
    row.step_time_error = outcome.error[i];
    light.rows.push_back(std::move(row));
  }
  fill_summaries(light);
  Errors errors;
  errors.step_time = outcome.error;
  errors.by_trust = std::move(light.by_trust);
  errors.by_source_a = std::move(light.by_source_a);
  double unused = 0;
  band_of(runs, outcome, "A", errors.band_holds_a, errors.band_width_a);
  band_of(runs, outcome, "B", errors.band_holds_b, unused);
  return errors;
}

/// Free parameters of a fit on published runs: what was fitted or estimated; data sheets and papers stay.
std::vector<std::string> free_parameters() {
  simulate::Parameters defaults;
  std::vector<std::string> names;
  for (const ParameterRef& ref : simulate::refs(defaults)) {
    const bool open = ref.info.kind == ParameterKind::kFitted || ref.info.kind == ParameterKind::kEstimate;
    if (open && ref.info.log_sigma > 0) names.push_back(ref.info.name);
  }
  return names;
}

struct GroupFit {
  std::string name;
  simulate::Parameters parameters;
};

GroupFit fit_without(const std::string& group, LeftOut by, const RunsReport& runs, const Teaching& teaching, const Linear& linear,
                     const std::vector<double>& sigmas, const std::vector<double>& prior_change) {
  std::vector<double> weight = teaching.weight;
  std::set<Architecture> left_out;
  for (std::size_t i = 0; i < weight.size(); ++i) {
    const RunRow& row = runs.rows[teaching.rows[i]];
    if (group_of(row, by) == group) weight[i] = 0;
  }
  for (const RunRow& row : runs.rows) {
    if (by == LeftOut::kAccelerator && row.job && group_of(row, by) == group) left_out.insert(row.job->accelerator.architecture);
  }
  GroupFit fit{group, calibrate::moved(linear, calibrate::solve(linear, weight, sigmas, kRobust, prior_change))};
  for (const Architecture architecture : left_out)
    fit.parameters.compute = compute::as_if_unmeasured(fit.parameters.compute, architecture);
  return fit;
}

std::vector<std::string> groups_in(const RunsReport& runs, LeftOut by) {
  std::vector<std::string> groups;
  for (const RunRow& row : runs.rows) {
    if (!row.job || !row.measured_step_time_s) continue;
    const std::string name = group_of(row, by);
    if (std::find(groups.begin(), groups.end(), name) == groups.end()) groups.push_back(name);
  }
  return groups;
}

std::vector<FittedParameter> fitted_parameters(const Linear& shipped, const std::vector<double>& sigmas, const Linear& at_fit,
                                               const Solution& final_step, const std::vector<GroupFit>& groups) {
  std::vector<FittedParameter> out;
  for (std::size_t j = 0; j < shipped.free.size(); ++j) {
    FittedParameter p;
    p.info = shipped.free[j];
    p.prior_sigma = sigmas[j];
    p.fitted = at_fit.free[j].value * std::exp(final_step.change[j]);
    p.log_error = final_step.sigma[j];
    p.lowest = p.highest = p.fitted;
    for (GroupFit group : groups) {
      const double value = *simulate::refs(group.parameters)[shipped.index[j]].value;
      p.lowest = std::min(p.lowest, value);
      p.highest = std::max(p.highest, value);
    }
    out.push_back(std::move(p));
  }
  return out;
}

}  // namespace

std::string_view name(LeftOut what) {
  switch (what) {
    case LeftOut::kSource: return "source";
    case LeftOut::kAccelerator: return "accelerator";
    case LeftOut::kFramework: return "framework";
  }
  return "?";
}

Result<LeftOut> parse_left_out(std::string_view text) {
  for (const LeftOut what : {LeftOut::kSource, LeftOut::kAccelerator, LeftOut::kFramework}) {
    if (text == name(what)) return what;
  }
  return fail(fmt::format("cannot leave out '{}': expected source, accelerator or framework", text));
}

LeaveOutReport leave_out(const RunsReport& runs, LeftOut by) {
  LeaveOutReport report;
  report.by = by;
  const Teaching teaching = teaching_rows(runs);
  report.rows_used = static_cast<int>(teaching.rows.size());
  std::vector<calibrate::Observation> observations;
  for (const std::size_t row : teaching.rows) observations.push_back(observation_of(runs.rows[row]));
  const std::vector<std::string> free = free_parameters();
  const Linear shipped = calibrate::linearise(observations, {}, free);
  const std::vector<double> sigmas = fit_sigmas(shipped);
  const Solution first = calibrate::refine(observations, shipped, teaching.weight, sigmas, 1, kRobust);
  const Linear at_fit = calibrate::linearise(observations, calibrate::moved(shipped, first), free);
  std::vector<double> prior_change;  // the prior stays centred where it was
  for (const double change : first.change) prior_change.push_back(-change);
  const Solution second = calibrate::solve(at_fit, teaching.weight, sigmas, kRobust, prior_change);
  const simulate::Parameters all = calibrate::moved(at_fit, second);

  report.groups = groups_in(runs, by);
  std::vector<GroupFit> fits(report.groups.size());
  parallel_for(fits.size(), [&](std::size_t i) {
    fits[i] = fit_without(report.groups[i], by, runs, teaching, at_fit, sigmas, prior_change);
  });
  const simulate::Parameters defaults;
  report.shipped = errors_of(runs, predict_rows(runs, [&](const RunRow&) -> const simulate::Parameters& { return defaults; }));
  report.fitted = errors_of(runs, predict_rows(runs, [&](const RunRow&) -> const simulate::Parameters& { return all; }));
  report.left_out = errors_of(runs, predict_rows(runs, [&](const RunRow& row) -> const simulate::Parameters& {
    const std::string group = group_of(row, by);
    const auto found = std::find_if(fits.begin(), fits.end(), [&](const GroupFit& fit) { return fit.name == group; });
    return found == fits.end() ? all : found->parameters;
  }));
  report.parameters = fitted_parameters(shipped, sigmas, at_fit, second, fits);
  return report;
}

}  // namespace chokepoint::validate
