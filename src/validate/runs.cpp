// SPDX-License-Identifier: Apache-2.0
#include "measured.hpp"
#include "run_job.hpp"
#include "runs_summary.hpp"

#include <chokepoint/validate/validate.hpp>

namespace chokepoint::validate {
namespace {

using parallel::Recompute;

bool has_figure(const RunFields& row) {
  return row.step_time_s || row.tok_s_gpu || row.model_tflops_gpu || row.mfu || row.hfu;
}

/// A run that is known to have run must have fitted: an assumed recomputation is raised until it does.
Result<simulate::Prediction> predict(const simulate::Predictor& predictor, MappedRun& run) {
  TRY_INTO(simulate::Prediction first, predictor.predict(run.strategy));
  if (!run.recompute_assumed) return first;
  parallel::Strategy tried = run.strategy;
  simulate::Prediction next = first;
  while (!next.memory.fits() && tried.recompute != Recompute::kFull) {
    tried.recompute = tried.recompute == Recompute::kNone ? Recompute::kSelective : Recompute::kFull;
    TRY_INTO(next, predictor.predict(tried));
  }
  if (!next.memory.fits()) return first;
  if (tried.recompute != run.strategy.recompute) {
    run.strategy.recompute = tried.recompute;
    run.job.assumptions.push_back({"recomputation not stated: raised to " + std::string(parallel::name(tried.recompute)) +
                                       ", or the run would not have fitted",
                                   {}});
  }
  return next;
}

void compare(const RunFields& fields, RunRow& row) {
  const auto measured = measured_step(fields, *row.job, row.prediction->strategy);
  if (measured) {
    row.measured_step_time_s = measured->step_time_s;
    row.measured_figure = std::string(name(measured->figure));
    row.step_time_error = row.prediction->step_time_s / measured->step_time_s - 1;
  } else {
    row.reason = measured.error().message;
  }
  const auto memory = measured_memory(fields, *row.job);
  if (!memory) return;
  row.measured_memory_bytes = memory->bytes;
  row.memory_is_allocated = memory->kind == MemoryKind::kAllocated;
  const parallel::Memory& predicted = row.prediction->memory;
  row.memory_error = (row.memory_is_allocated ? predicted.allocated_bytes : predicted.reserved_bytes) / memory->bytes - 1;
}

void predict_row(const RunFields& fields, RunRow& row) {
  auto run = map_run(fields);
  if (!run) {
    row.reason = run.error().message;
    return;
  }
  if (fields.step_time_s && run->batch_assumed) {
    row.reason = "a time without its batch: neither micro-batch nor global batch is stated";
    return;
  }
  const simulate::Predictor predictor(run->job);
  auto prediction = predict(predictor, *run);
  if (!prediction) {
    row.reason = prediction.error().message;
    return;
  }
  row.job = std::move(run->job);
  row.prediction = std::move(*prediction);
  row.strategy = row.prediction->strategy;
  compare(fields, row);
}

}  // namespace

Result<RunsReport> validate_runs(std::string_view csv, const std::string& file) {
  TRY_INTO(const CsvTable table, CsvTable::parse(csv, file));
  RunsReport report;
  report.notes = table.compare_header(run_columns());
  for (const CsvRow& line : table.rows()) {
    RunRow row;
    row.row = line.number;
    row.source_id = std::string(table.text(line, "source_id"));
    row.trust = std::string(table.text(line, "trust"));
    row.framework = std::string(table.text(line, "framework"));
    row.accelerator = std::string(table.text(line, "accelerator"));
    const auto fields = read_run_fields(table, line);
    row.has_figure = !fields || has_figure(*fields);
    if (fields) {
      predict_row(*fields, row);
    } else {
      row.reason = format(fields.error());
      while (!row.reason.empty() && row.reason.back() == '\n') row.reason.pop_back();
    }
    report.rows.push_back(std::move(row));
  }
  fill_summaries(report);
  return report;
}

}  // namespace chokepoint::validate
