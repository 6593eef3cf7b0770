// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/validate/calibrated.hpp>

#include <chokepoint/base/parallel.hpp>
#include <chokepoint/calibrate/fit.hpp>
#include <chokepoint/calibrate/machine.hpp>

#include <algorithm>
#include <cmath>

#include "fit_rows.hpp"
#include "summary.hpp"

namespace chokepoint::validate {
namespace {

constexpr std::size_t kChoices = 20;
constexpr std::size_t kRowsTested = 400;

/// Places among `rows` rows: the first choice starts at the first row, further rows of a choice are spread evenly.
std::vector<std::size_t> chosen(std::size_t choice, std::size_t choices, std::size_t rows, std::size_t on_rows) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < on_rows; ++i) places.push_back((choice * rows / choices + i * rows / on_rows) % rows);
  return places;
}

CalibratedSource calibrate_source(const RunsReport& runs, const std::vector<std::size_t>& rows, std::size_t on_rows) {
  CalibratedSource out;
  out.source = runs.rows[rows.front()].source_id;
  out.rows = static_cast<int>(rows.size());
  std::vector<double> shipped;
  for (const std::size_t row : rows) shipped.push_back(std::abs(runs.rows[row].prediction->step_time_s / *runs.rows[row].measured_step_time_s - 1));
  out.uncalibrated = quantile(shipped, 0.5);
  const std::size_t choices = std::min(kChoices, rows.size());
  const std::vector<std::size_t> tested = evenly(rows, kRowsTested);
  std::vector<double> medians;
  for (std::size_t choice = 0; choice < choices; ++choice) {
    std::vector<calibrate::Observation> observations;
    std::vector<std::size_t> used;
    for (const std::size_t place : chosen(choice, choices, rows.size(), on_rows)) {
      used.push_back(rows[place]);
      observations.push_back(observation_of(runs.rows[rows[place]]));
    }
    const simulate::Parameters machine = calibrate::fit_machine(observations).parameters;
    std::vector<double> errors;
    for (const std::size_t row : tested) {
      if (std::find(used.begin(), used.end(), row) != used.end()) continue;
      errors.push_back(std::abs(predict_with(runs.rows[row], machine).step_time_s / *runs.rows[row].measured_step_time_s - 1));
    }
    medians.push_back(quantile(std::move(errors), 0.5));
  }
  out.choices = static_cast<int>(choices);
  out.worst_choice = *std::max_element(medians.begin(), medians.end());
  out.calibrated = quantile(std::move(medians), 0.5);
  return out;
}

}  // namespace

CalibratedReport calibrate_on_rows(const RunsReport& runs, int on_rows, int least_rows) {
  CalibratedReport report;
  report.on_rows = std::max(1, on_rows);
  std::vector<std::vector<std::size_t>> sources;
  for (auto& source : rows_by_source(runs, true)) {
    if (static_cast<int>(source.size()) >= std::max(least_rows, report.on_rows + 1)) sources.push_back(std::move(source));
  }
  report.sources.resize(sources.size());
  parallel_for(sources.size(), [&](std::size_t i) {
    report.sources[i] = calibrate_source(runs, sources[i], static_cast<std::size_t>(report.on_rows));
  });
  std::vector<double> before, after;
  for (const CalibratedSource& source : report.sources) {
    before.push_back(source.uncalibrated);
    after.push_back(source.calibrated);
    report.worse += source.calibrated > source.uncalibrated;
  }
  report.median_uncalibrated = quantile(std::move(before), 0.5);
  report.median_calibrated = quantile(std::move(after), 0.5);
  std::stable_sort(report.sources.begin(), report.sources.end(),
                   [](const CalibratedSource& a, const CalibratedSource& b) { return a.calibrated < b.calibrated; });
  return report;
}

}  // namespace chokepoint::validate
