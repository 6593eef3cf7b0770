// SPDX-License-Identifier: Apache-2.0
#include "measured.hpp"
#include "repeats.hpp"
#include "run_classes.hpp"
#include "run_job.hpp"
#include "runs_summary.hpp"
#include "strategy_order.hpp"

#include <algorithm>
#include <chokepoint/base/parallel.hpp>
#include <chokepoint/parallel/memory.hpp>
#include <chokepoint/validate/validate.hpp>
#include <cmath>

namespace chokepoint::validate {
namespace {

using parallel::Recompute;

bool has_figure(const RunFields& row) {
  return row.step_time_s || row.tok_s_gpu || row.model_tflops_gpu || row.mfu || row.hfu;
}

/// Largest micro-batch that is tried where the row states neither micro-batch nor batch.
constexpr int kLargestMicroBatch = 64;

void note(MappedRun& run, std::string text) { run.job.assumptions.push_back({std::move(text), {}}); }

/// A run that is known to have run must have fitted: an assumed recomputation is raised until it does.
Result<simulate::Prediction> with_recompute(MappedRun& run, const simulate::Parameters& parameters) {
  const simulate::Predictor predictor(run.job, {}, parameters);
  TRY_INTO(simulate::Prediction first, predictor.predict(run.strategy));
  if (!run.recompute_assumed) return first;
  parallel::Strategy tried = run.strategy;
  simulate::Prediction next = first;
  const auto impossible = [](const simulate::Prediction& p) { return p.memory.verdict() == parallel::Verdict::kDoesNotFit; };
  while (impossible(next) && tried.recompute != Recompute::kFull) {
    tried.recompute = tried.recompute == Recompute::kNone ? Recompute::kSelective : Recompute::kFull;
    TRY_INTO(next, predictor.predict(tried));
  }
  if (impossible(next)) return first;
  if (tried.recompute != run.strategy.recompute) {
    run.strategy.recompute = tried.recompute;
    note(run, "recomputation not stated: raised to " + std::string(parallel::name(tried.recompute)) +
                  ", or the run would not have fitted");
  }
  return next;
}

/// Runs that gather their parameters are given as large a micro-batch as fits, or the gathers would not be worth it: the
/// micro-batch is doubled while it fits where the row states neither it nor the batch.
Result<simulate::Prediction> predict(MappedRun& run, const simulate::Parameters& parameters) {
  TRY_INTO(simulate::Prediction best, with_recompute(run, parameters));
  if (!run.micro_batch_assumed) return best;
  while (run.strategy.micro_batch < kLargestMicroBatch) {
    MappedRun larger = run;
    larger.strategy.micro_batch *= 2;
    larger.job.global_batch *= 2;
    TRY_INTO(simulate::Prediction next, with_recompute(larger, parameters));
    if (!next.memory.fits()) break;
    run = std::move(larger);
    best = std::move(next);
  }
  note(run, "micro-batch as large as fits: " + std::to_string(run.strategy.micro_batch));
  return best;
}

/// Memory of the fullest stage, or of the end whose parameter count the row prints beside its figure.
parallel::Memory memory_of_reporter(const RunRow& row, const MeasuredMemory& measured) {
  const parallel::Strategy& strategy = row.prediction->strategy;
  if (!measured.rank_parameters || strategy.pipeline == 1) return row.prediction->memory;
  parallel::Memory first = parallel::memory_of_stage(*row.job, strategy, 0);
  parallel::Memory last = parallel::memory_of_stage(*row.job, strategy, strategy.pipeline - 1);
  const auto distance = [&](const parallel::Memory& memory) { return std::abs(memory.parameters - *measured.rank_parameters); };
  return distance(last) < distance(first) ? last : first;
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
  const parallel::Memory predicted = memory_of_reporter(row, *memory);
  double bytes = predicted.reserved_bytes;
  if (memory->kind == MemoryKind::kAllocated) bytes = predicted.allocated_bytes;
  if (memory->kind == MemoryKind::kDevice) bytes += predicted.overhead_bytes;
  row.memory_error = bytes / memory->bytes - 1;
}

void predict_row(const RunFields& fields, const simulate::Parameters& parameters, RunRow& row) {
  auto run = map_run(fields);
  if (!run) {
    row.reason = run.error().message;
    return;
  }
  if (fields.step_time_s && run->batch_assumed) {
    row.reason = "a time without its batch: neither micro-batch nor global batch is stated";
    return;
  }
  auto prediction = predict(*run, parameters);
  if (!prediction) {
    row.reason = prediction.error().message;
    return;
  }
  row.batch_assumed = run->batch_assumed || run->micro_batch_assumed;
  row.job = std::move(run->job);
  row.prediction = std::move(*prediction);
  row.strategy = row.prediction->strategy;
  compare(fields, row);
}

}  // namespace

namespace {

/// A row keeps its job and prediction, some 30 KB: a table of a hundred thousand would fill the memory of a laptop.
constexpr int kMostRows = 50'000;

RunRow read_row(const CsvTable& table, const CsvRow& line, const simulate::Parameters& parameters) {
  RunRow row;
  row.row = line.number;
  row.source_id = std::string(table.text(line, "source_id"));
  row.trust = std::string(table.text(line, "trust"));
  row.framework = std::string(table.text(line, "framework"));
  row.accelerator = std::string(table.text(line, "accelerator"));
  if (line.number > kMostRows) {
    row.refused = row.has_figure = true;
    row.reason = one_line({"the table has more than " + std::to_string(kMostRows) + " rows", {table.file(), line.line, 1}, {"split it"}});
    return row;
  }
  const auto fields = read_run_fields(table, line);
  row.refused = !fields;
  row.has_figure = fields ? has_figure(*fields) : !line.repeats_header;
  if (fields) {
    predict_row(*fields, parameters, row);
    if (row.job) row.classes = classes_of(row);
  } else {
    row.reason = one_line(fields.error());
  }
  return row;
}

}  // namespace

Result<RunsReport> validate_runs(std::string_view csv, const std::string& file, const simulate::Parameters& parameters) {
  TRY_INTO(const CsvTable table, CsvTable::parse(csv, file));
  RunsReport report;
  report.notes = table.compare_header(run_columns());
  report.rows.resize(table.rows().size());
  parallel_for(table.rows().size(), [&](std::size_t i) { report.rows[i] = read_row(table, table.rows()[i], parameters); });
  for (const RunRow& row : report.rows) report.refused += row.refused;
  fill_summaries(report);
  report.repeats = repeats_of(report.rows);
  report.order = strategy_order(report.rows, report.repeats);
  return report;
}

std::vector<std::size_t> farthest_rows(const RunsReport& report, std::size_t count) {
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    const RunRow& row = report.rows[i];
    if (row.step_time_error && (row.trust == "A" || row.trust == "B")) rows.push_back(i);
  }
  const auto distance = [&](std::size_t i) { return std::abs(std::log1p(*report.rows[i].step_time_error)); };
  std::stable_sort(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) { return distance(a) > distance(b); });
  if (rows.size() > count) rows.resize(count);
  return rows;
}

void find_choke_points(RunsReport& report, const std::vector<std::size_t>& rows, const simulate::Parameters& parameters) {
  parallel_for(rows.size(), [&](std::size_t i) {
    RunRow& row = report.rows[rows[i]];
    if (row.job && row.prediction) simulate::find_choke_points(*row.job, *row.prediction, parameters);
  });
}

}  // namespace chokepoint::validate
