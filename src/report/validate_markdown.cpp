// SPDX-License-Identifier: Apache-2.0
// Predicted against measured as tables, for readers whose browser runs no scripts.
#include <chokepoint/base/units.hpp>
#include <chokepoint/report/validate_view.hpp>

#include <fmt/format.h>

#include "markup.hpp"

namespace chokepoint::report {

namespace {

using Rows = std::vector<std::vector<std::string>>;
using validate::Summary;

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }
std::string signed_percent(const std::optional<double>& share) { return share ? fmt::format("{:+.1f} %", 100 * *share) : ""; }
std::string duration(const std::optional<double>& seconds) { return seconds ? format_duration(*seconds) : ""; }

std::string summaries(std::string_view title, const std::vector<Summary>& groups) {
  if (groups.empty()) return {};
  Rows rows;
  for (const Summary& s : groups) {
    rows.push_back({s.name, std::to_string(s.rows), std::to_string(s.predicted), percent(s.median_absolute), percent(s.p90_absolute), signed_percent(s.bias)});
  }
  return fmt::format("# {}\n\n", title) + markdown_table({"", "rows", "predicted", "median error", "90th percentile", "bias"}, rows, "lrrrrr") + "\n";
}

std::string runs(const validate::RunsReport& report) {
  std::string out = summaries("Step times by source", report.by_source);
  if (report.memory.predicted > 0) out += summaries("Peak memory", {report.memory});
  Rows rows;
  for (const validate::RunRow& r : report.rows) {
    const std::string model = r.job ? r.job->model.name : std::string();
    const std::string gpus = r.job ? std::to_string(r.job->gpus) : std::string();
    const std::string strategy = r.job ? parallel::to_text(r.strategy) : std::string();
    rows.push_back({std::to_string(r.row), r.source_id, r.trust, model, gpus, r.accelerator, strategy, duration(r.measured_step_time_s),
                    r.prediction ? format_duration(r.prediction->step_time_s) : "", signed_percent(r.step_time_error), r.reason});
  }
  return out + "# Runs\n\n" + markdown_table({"row", "source", "trust", "model", "GPUs", "accelerator", "strategy", "measured", "predicted", "error", "why not"}, rows, "rlllrllrrrl") + "\n";
}

std::string fits(const validate::FitReport& report) {
  const auto row = [](const char* what, int right, int all) -> std::vector<std::string> { return {what, std::to_string(all), std::to_string(right)}; };
  return "# Does it fit\n\n" + markdown_table({"", "runs", "judged right"}, {row("ran out of memory", report.out_of_memory_right, report.out_of_memory),
                                                                            row("ran", report.ran_right, report.ran), row("within a quarter of the capacity", report.near_right, report.near)}, "lrr") + "\n";
}

std::string collectives(const validate::CollectivesReport& report) {
  Rows rows;
  for (const validate::CollectiveRow& r : report.rows) {
    rows.push_back({std::to_string(r.row), r.system, r.op, format_bytes(r.bytes), duration(r.measured_time_s), duration(r.predicted_time_s), signed_percent(r.error), r.reason});
  }
  return summaries("Collectives by system", report.by_system) + summaries("Collectives by size", report.by_size) +
         "# Collectives\n\n" + markdown_table({"row", "system", "operation", "size", "measured", "predicted", "error", "why not"}, rows, "rllrrrrl") + "\n";
}

std::string products(const validate::MatmulReport& report) {
  Rows rows;
  for (const validate::MatmulRow& r : report.rows) {
    rows.push_back({std::to_string(r.row), r.table, r.kernel, duration(r.measured_time_s), duration(r.predicted_time_s), signed_percent(r.error), r.reason});
  }
  return summaries("Kernels by table", report.by_table) + "# Kernels\n\n" + markdown_table({"row", "table", "kernel", "measured", "predicted", "error", "why not"}, rows, "rllrrrl") + "\n";
}

}  // namespace

std::string validation_markdown(const Findings& findings) {
  std::string out;
  if (findings.runs) out += runs(*findings.runs);
  if (findings.fits) out += fits(*findings.fits);
  if (findings.collectives) out += collectives(*findings.collectives);
  if (findings.matmul) out += products(*findings.matmul);
  return out;
}

}  // namespace chokepoint::report
