// SPDX-License-Identifier: Apache-2.0
#pragma once
// Published measurements against predictions: every row is predicted or says why not; every source counts once.
#include <chokepoint/base/result.hpp>
#include <chokepoint/parallel/job.hpp>
#include <chokepoint/simulate/predict.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::validate {

/// Which table a CSV header announces.
enum class Table { kRuns, kOom, kCollectives, kMatmul };
Result<Table> recognise_table(std::string_view csv, const std::string& file);

/// A row of runs.csv as a job; the notes of the job say what was assumed for fields the row leaves empty.
struct RunRow {
  int row = 0;                                   ///< 1 = first data row
  std::string source_id;
  std::string trust;
  std::string framework;
  std::string accelerator;
  std::optional<parallel::Job> job;              ///< absent: `reason` says why it cannot be modelled
  parallel::Strategy strategy;
  std::optional<double> measured_step_time_s;    ///< from whichever measured figure the row has
  std::optional<double> measured_memory_bytes;
  std::string reason;
  std::optional<simulate::Prediction> prediction;
  std::optional<double> step_time_error;         ///< predicted / measured - 1
  std::optional<double> memory_error;
};

/// Error over a set of rows.
struct Summary {
  std::string name;
  int rows = 0;                 ///< rows with a measured time
  int predicted = 0;
  double mean_absolute = 0;
  double median_absolute = 0;
  double p90_absolute = 0;
  double bias = 0;              ///< median signed error
  double coverage() const { return rows == 0 ? 0 : static_cast<double>(predicted) / rows; }
};

struct RunsReport {
  std::vector<RunRow> rows;
  std::vector<Summary> by_source;   ///< rows of trust A first
  Summary overall;                  ///< every row once
  double median_of_source_medians_a = 0;
  double median_of_source_medians_b = 0;
};

Result<RunsReport> validate_runs(std::string_view csv, const std::string& file);

struct CollectiveRow {
  int row = 0;
  std::string system;
  std::string op;
  double bytes = 0;
  std::optional<double> measured_time_s;
  std::optional<double> predicted_time_s;
  std::optional<double> error;
  std::string reason;
};
struct CollectivesReport {
  std::vector<CollectiveRow> rows;
  std::vector<Summary> by_system;
  Summary overall;
};
Result<CollectivesReport> validate_collectives(std::string_view csv, const std::string& file);

}  // namespace chokepoint::validate
