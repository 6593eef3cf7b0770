// SPDX-License-Identifier: Apache-2.0
// Configurations that ran out of memory, and those of the same sweeps that ran: is the verdict "fits" right?
#include "csv_number.hpp"
#include "run_job.hpp"

#include <chokepoint/base/text.hpp>
#include <chokepoint/parallel/memory.hpp>
#include <chokepoint/validate/validate.hpp>
#include <cmath>
#include <set>

namespace chokepoint::validate {
namespace {

constexpr double kNear = 0.25;

void judge(const RunFields& fields, FitRow& row) {
  auto run = map_run(fields);
  if (!run) {
    row.reason = run.error().message;
    return;
  }
  const auto strategy = parallel::completed(run->job, run->strategy);
  if (!strategy) {
    row.reason = strategy.error().message;
    return;
  }
  const parallel::Memory memory = parallel::memory_per_rank(run->job, *strategy);
  row.predicted_bytes = memory.needed_bytes;
  row.capacity_bytes = memory.capacity_bytes;
}

void count(FitReport& report, const FitRow& row) {
  if (!row.judged()) {
    ++report.not_judged;
    return;
  }
  int& of = row.measured_fits ? report.ran : report.out_of_memory;
  int& right = row.measured_fits ? report.ran_right : report.out_of_memory_right;
  ++of;
  right += row.right();
  if (!row.near()) return;
  ++report.near;
  report.near_right += row.right();
}

}  // namespace

bool FitRow::near() const {
  return judged() && std::abs(*predicted_bytes / *capacity_bytes - 1) <= kNear;
}

Result<FitReport> validate_fits(std::string_view csv, const std::string& file) {
  TRY_INTO(const CsvTable table, CsvTable::parse(csv, file));
  if (!table.has("outcome")) return fail("no column 'outcome' (oom or ran)", {file, 1, 1});
  FitReport report;
  for (const CsvRow& line : table.rows()) {
    FitRow row;
    row.row = line.number;
    row.source_id = std::string(table.text(line, "source_id"));
    const std::string outcome = lower(table.text(line, "outcome"));
    row.measured_fits = outcome != "oom";
    const auto fields = read_run_fields(table, line);
    if (line.repeats_header) {
      row.reason = line.refused;
    } else if (!fields) {
      row.reason = one_line(fields.error());
      row.refused = true;
    } else if (outcome != "oom" && outcome != "ran" && outcome != "fits") {
      row.reason = one_line({"outcome is " + in_quotes(outcome) + ", expected 'oom' or 'ran'", table.position(line, "outcome"), {}});
      row.refused = true;
    } else {
      judge(*fields, row);
    }
    count(report, row);
    report.rows.push_back(std::move(row));
  }
  return report;
}

void add_runs_of_same_sources(FitReport& report, const RunsReport& runs) {
  std::set<std::string> sources;
  for (const FitRow& row : report.rows) sources.insert(row.source_id);
  for (const RunRow& run : runs.rows) {
    if (!sources.count(run.source_id) || !run.prediction) continue;
    FitRow row;
    row.row = run.row;
    row.source_id = run.source_id;
    row.measured_fits = true;
    row.predicted_bytes = run.prediction->memory.needed_bytes;
    row.capacity_bytes = run.prediction->memory.capacity_bytes;
    count(report, row);
    report.rows.push_back(std::move(row));
  }
}

}  // namespace chokepoint::validate
