// SPDX-License-Identifier: Apache-2.0
#pragma once
// Published measurements against predictions: every row is predicted or says why not; every source counts once.
#include <chokepoint/compute/constants.hpp>
#include <chokepoint/base/result.hpp>
#include <chokepoint/collective/constants.hpp>
#include <chokepoint/parallel/job.hpp>
#include <chokepoint/simulate/predict.hpp>
#include <chokepoint/validate/residuals.hpp>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::validate {

/// Which table a CSV header announces.
enum class Table { kRuns, kOom, kCollectives, kMatmul, kMeasuredCompute };
Result<Table> recognise_table(std::string_view csv, const std::string& file);

/// A row of runs.csv as a job; the assumptions of the job say what was taken for fields the row leaves empty.
struct RunRow {
  int row = 0;                                   ///< 1 = first data row
  std::string source_id;
  std::string trust;
  std::string framework;                         ///< as the row names it
  std::string accelerator;
  bool refused = false;                          ///< the text of the row cannot be read
  bool batch_assumed = false;                    ///< the row states no batch: only its rate per token counts
  RunClasses classes;
  bool has_figure = false;                       ///< the row prints a time or a rate, so it counts for coverage
  std::optional<parallel::Job> job;              ///< absent: `reason` says why it cannot be modelled
  parallel::Strategy strategy;
  std::optional<double> measured_step_time_s;    ///< from whichever measured figure the row has
  std::string measured_figure;                   ///< "seconds", "tokens/s", "FLOP/s", "mfu", "hfu"
  std::optional<double> measured_memory_bytes;
  bool memory_is_allocated = false;              ///< peak of live tensors; else reserved or as nvidia-smi shows it
  std::string reason;
  std::optional<simulate::Prediction> prediction;
  std::optional<double> step_time_error;         ///< predicted / measured - 1
  std::optional<double> memory_error;
};

/// Error over a set of rows.
struct Summary {
  std::string name;
  int rows = 0;                 ///< rows with a measured figure
  int predicted = 0;
  double mean_absolute = 0;
  double median_absolute = 0;
  double p90_absolute = 0;
  double bias = 0;              ///< median signed error
  double coverage() const { return rows == 0 ? 0 : static_cast<double>(predicted) / rows; }
};

/// Rows of one trust class; each source counts once in the medians.
struct TrustSummary {
  std::string trust;
  Summary all;
  int sources = 0;                       ///< with at least one predicted row
  double median_of_source_medians = 0;
  double median_of_source_biases = 0;
  int sources_within_15_percent = 0;     ///< by their median
};

struct RunsReport {
  std::vector<Note> notes;          ///< unknown and missing columns
  std::vector<RunRow> rows;
  Summary overall;                  ///< every row once
  Summary memory;                   ///< of peak memory
  std::vector<Summary> by_source;   ///< in the order of the file
  std::vector<Summary> by_source_a; ///< rows of trust A only; sources without any are left out
  std::vector<TrustSummary> by_trust;
  // By class: rows of trust A and B; all rows where a table has none of these.
  std::vector<Summary> by_accelerator, by_framework, by_strategy, by_size, by_gpus;
  std::vector<Summary> by_year, by_links, by_network, by_sequence;
  std::vector<StrategyOrder> order; ///< one for each trust class that has a group
  std::vector<Repeats> repeats;     ///< one for each source that measured something twice
  int refused = 0;                  ///< rows whose text cannot be read
  double median_of_source_medians_a = 0;
  double median_of_source_medians_b = 0;
};

Result<RunsReport> validate_runs(std::string_view csv, const std::string& file, const simulate::Parameters& parameters = {});

/// The rows of trust A and B that are farthest off, farthest first.
std::vector<std::size_t> farthest_rows(const RunsReport& report, std::size_t count);
/// Fills the choke points of these rows: what the model thinks limits them.
void find_choke_points(RunsReport& report, const std::vector<std::size_t>& rows, const simulate::Parameters& parameters = {});

/// Kind of parallelism in a few words: "data", "fsdp", "zero3", "tensor", "pipeline", "tensor+pipeline", ...
std::string strategy_kind(const parallel::Strategy& strategy);

/// One configuration that is known to fit or to run out of memory.
struct FitRow {
  int row = 0;
  std::string source_id;
  bool measured_fits = false;
  std::string reason;                        ///< why it cannot be judged
  bool refused = false;                      ///< the text of the row cannot be read
  std::optional<double> predicted_bytes;
  std::optional<double> capacity_bytes;
  bool judged() const { return predicted_bytes && capacity_bytes; }
  bool right() const { return judged() && (*predicted_bytes <= *capacity_bytes) == measured_fits; }
  /// Within a quarter of the capacity, where the verdict is hard.
  bool near() const;
};
struct FitReport {
  std::vector<FitRow> rows;
  int out_of_memory = 0, out_of_memory_right = 0;  ///< rows that ran out of memory
  int ran = 0, ran_right = 0;                      ///< rows that ran
  int near = 0, near_right = 0;
  int not_judged = 0;
};
/// A table of configurations that ran out of memory (`outcome` "oom").
Result<FitReport> validate_fits(std::string_view csv, const std::string& file);
/// Rows of `runs` whose source also stands in `report` did run: adds them.
void add_runs_of_same_sources(FitReport& report, const RunsReport& runs);

struct CollectiveRow {
  int row = 0;
  std::string system;
  std::string op;
  double bytes = 0;
  std::optional<double> measured_time_s;
  std::optional<double> predicted_time_s;
  std::optional<double> error;
  std::optional<double> floor_s;              ///< max over directed links of bytes / data-sheet rate: no algorithm is faster
  std::string algorithm, protocol;            ///< what the prediction takes
  std::string reason;
  bool refused = false;           ///< the text of the row cannot be read
  /// How far the measurement stays above what the links allow; 1 is the best there is.
  std::optional<double> measured_over_floor() const {
    return measured_time_s && floor_s && *floor_s > 0 ? std::optional<double>(*measured_time_s / *floor_s) : std::nullopt;
  }
};
struct CollectivesReport {
  std::vector<CollectiveRow> rows;
  std::vector<Summary> by_system;
  std::vector<Summary> by_op;
  std::vector<Summary> by_size;   ///< bins of a factor of sixteen
  Summary overall;
  double median_of_system_medians = 0;
  double median_over_floor = 0;   ///< measured / floor of messages from 64 MiB on
};
Result<CollectivesReport> validate_collectives(std::string_view csv, const std::string& file, const collective::Constants& constants = {});

/// One kernel of a table of achieved rates: a matrix product (m, n, k), grouped products or an attention kernel.
struct MatmulRow {
  int row = 0;                                ///< 1 = first data row
  std::string accelerator;
  std::string table;                          ///< accelerator, dtype and publisher: the unit of the summaries
  double flops = 0;                           ///< as the table counts them
  double peak_flops_per_s = 0;                ///< of the accelerator for the type
  std::string kernel;                         ///< product, product-accumulate, grouped, attention-forward, ...
  std::optional<double> measured_time_s;
  std::optional<double> predicted_time_s;
  std::optional<double> error;                ///< predicted / measured - 1
  std::optional<double> left_out_error;       ///< with constants that did not see this accelerator
  std::string reason;                         ///< why there is no prediction
  bool refused = false;                       ///< the text of the row cannot be read
  std::string part;                           ///< catalogue name of the accelerator
  hardware::Architecture architecture = hardware::Architecture::kAmpere;
  std::function<double(const compute::Constants&)> time_s;  ///< the model of this row; empty without a prediction
};
struct MatmulReport {
  std::vector<MatmulRow> rows;
  std::vector<Summary> by_table;
  std::vector<Summary> left_out_by_table;     ///< filled by leave_out_accelerators()
  Summary overall;
};
/// Columns of measurements/matmul_efficiency.csv. The notes of a row say how it was measured (burst or sustained,
/// operator and its sizes).
Result<MatmulReport> validate_matmul(std::string_view csv, const std::string& file, const compute::Constants& constants = {});
/// Predicts the products of each accelerator with constants that did not see it: those of its generation start from the
/// other generations and are fitted on the other accelerators of its own, if there are any.
void leave_out_accelerators(MatmulReport& report);
/// A table of `measure --compute`: every kernel beside the model's time on the part that the table names. A part the
/// catalogue does not have (a CPU) leaves every row without a prediction.
Result<MatmulReport> validate_measured_compute(std::string_view json, const std::string& file);

}  // namespace chokepoint::validate
