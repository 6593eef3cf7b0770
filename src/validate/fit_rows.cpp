// SPDX-License-Identifier: Apache-2.0
#include "fit_rows.hpp"

#include <map>
#include <string>

namespace chokepoint::validate {

bool can_teach(const RunRow& row) {
  return row.job && row.prediction && row.measured_step_time_s && *row.measured_step_time_s > 0 && row.prediction->step_time_s > 0 &&
         (row.trust == "A" || row.trust == "B");
}

std::vector<std::size_t> evenly(const std::vector<std::size_t>& rows, std::size_t most) {
  if (rows.size() <= most || most < 2) return rows;
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < most; ++i) chosen.push_back(rows[i * (rows.size() - 1) / (most - 1)]);
  return chosen;
}

std::vector<std::vector<std::size_t>> rows_by_source(const RunsReport& runs, bool only_a) {
  std::vector<std::vector<std::size_t>> sources;
  std::map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < runs.rows.size(); ++i) {
    const RunRow& row = runs.rows[i];
    if (!can_teach(row) || (only_a && row.trust != "A")) continue;
    const auto found = index.emplace(row.source_id, sources.size());
    if (found.second) sources.emplace_back();
    sources[found.first->second].push_back(i);
  }
  return sources;
}

calibrate::Observation observation_of(const RunRow& row) {
  return calibrate::step_observation(*row.job, row.strategy, *row.measured_step_time_s, row.source_id);
}

simulate::Prediction predict_with(const RunRow& row, const simulate::Parameters& parameters) {
  return simulate::Predictor(*row.job, {}, parameters).evaluate(row.strategy);
}

}  // namespace chokepoint::validate
