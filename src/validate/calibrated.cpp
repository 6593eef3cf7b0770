// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/validate/calibrated.hpp>

#include <chokepoint/base/parallel.hpp>
#include <chokepoint/calibrate/fit.hpp>
#include <chokepoint/calibrate/machine.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

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

/// Rows of a source by the accelerator they were measured on: a row calibrates the machine it comes from. Machines with no
/// more rows than a calibration takes have none to hold back and are left out.
std::vector<std::vector<std::size_t>> machines_of(const RunsReport& runs, const std::vector<std::size_t>& rows, std::size_t on_rows) {
  std::map<std::string, std::vector<std::size_t>> by_name;
  for (const std::size_t row : rows) by_name[runs.rows[row].job->accelerator.name].push_back(row);
  std::vector<std::vector<std::size_t>> machines;
  for (auto& [name, of_machine] : by_name) {
    if (of_machine.size() > on_rows) machines.push_back(std::move(of_machine));
  }
  return machines;
}

/// Errors of the rows of a machine that `choice` holds back, with the machine calibrated on the others.
void add_held_back(const RunsReport& runs, const std::vector<std::size_t>& rows, std::size_t choice, std::size_t on_rows, std::vector<double>& errors) {
  const std::size_t choices = std::min(kChoices, rows.size());
  std::vector<calibrate::Observation> observations;
  std::vector<std::size_t> used;
  for (const std::size_t place : chosen(choice % choices, choices, rows.size(), on_rows)) {
    used.push_back(rows[place]);
    observations.push_back(observation_of(runs.rows[rows[place]]));
  }
  const simulate::Parameters machine = calibrate::fit_machine(observations).parameters;
  for (const std::size_t row : evenly(rows, kRowsTested)) {
    if (std::find(used.begin(), used.end(), row) != used.end()) continue;
    errors.push_back(std::abs(predict_with(runs.rows[row], machine).step_time_s / *runs.rows[row].measured_step_time_s - 1));
  }
}

CalibratedSource calibrate_source(const RunsReport& runs, const std::vector<std::vector<std::size_t>>& machines, std::size_t on_rows) {
  CalibratedSource out;
  out.source = runs.rows[machines.front().front()].source_id;
  std::vector<double> shipped;
  std::size_t largest = 0;
  for (const std::vector<std::size_t>& machine : machines) {
    largest = std::max(largest, machine.size());
    for (const std::size_t row : machine) shipped.push_back(std::abs(runs.rows[row].prediction->step_time_s / *runs.rows[row].measured_step_time_s - 1));
  }
  out.rows = static_cast<int>(shipped.size());
  out.uncalibrated = quantile(std::move(shipped), 0.5);
  const std::size_t choices = std::min(kChoices, largest);
  std::vector<double> medians;
  for (std::size_t choice = 0; choice < choices; ++choice) {
    std::vector<double> errors;
    for (const std::vector<std::size_t>& machine : machines) add_held_back(runs, machine, choice, on_rows, errors);
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
  const auto taken = static_cast<std::size_t>(report.on_rows);
  std::vector<std::vector<std::vector<std::size_t>>> sources;
  for (const std::vector<std::size_t>& source : rows_by_source(runs, true)) {
    if (static_cast<int>(source.size()) < std::max(least_rows, report.on_rows + 1)) continue;
    if (auto machines = machines_of(runs, source, taken); !machines.empty()) sources.push_back(std::move(machines));
  }
  report.sources.resize(sources.size());
  parallel_for(sources.size(), [&](std::size_t i) { report.sources[i] = calibrate_source(runs, sources[i], taken); });
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
