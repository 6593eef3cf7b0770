// SPDX-License-Identifier: Apache-2.0
// Residuals as tables: one line per row of the input, in its order.
#include <chokepoint/report/validate_view.hpp>

#include <fmt/format.h>
#include <functional>

namespace chokepoint::report {
namespace {

using validate::RunRow;

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

std::string number_or_empty(const std::optional<double>& value) { return value ? fmt::format("{:.6g}", *value) : ""; }

/// One column of the residuals: its name and what a row says in it; columns after the identity need a job.
struct RunColumn {
  std::string name;
  std::function<std::string(const RunRow&)> text;
};

std::string number(double value) { return fmt::format("{:.6g}", value); }

std::string assumed(const RunRow& row) {
  std::string text;
  for (const Note& note : row.job->assumptions) text += (text.empty() ? "" : "; ") + note.text;
  return text;
}

std::vector<RunColumn> identity_columns() {
  const auto predicted = [](const RunRow& r) { return r.prediction ? number(r.prediction->step_time_s) : ""; };
  return {{"row", [](const RunRow& r) { return std::to_string(r.row); }},
          {"source_id", [](const RunRow& r) { return r.source_id; }},
          {"trust", [](const RunRow& r) { return r.trust; }},
          {"reason", [](const RunRow& r) { return r.reason; }},
          {"figure", [](const RunRow& r) { return r.measured_figure; }},
          {"measured_step_time_s", [](const RunRow& r) { return number_or_empty(r.measured_step_time_s); }},
          {"predicted_step_time_s", predicted},
          {"step_time_error", [](const RunRow& r) { return number_or_empty(r.step_time_error); }},
          {"measured_memory_bytes", [](const RunRow& r) { return number_or_empty(r.measured_memory_bytes); }},
          {"memory_error", [](const RunRow& r) { return number_or_empty(r.memory_error); }}};
}

std::vector<RunColumn> job_columns() {
  const auto of_model = [](int model::Model::*size) { return [size](const RunRow& r) { return std::to_string(r.job->model.*size); }; };
  const auto degree = [](int parallel::Strategy::*size) { return [size](const RunRow& r) { return std::to_string(r.strategy.*size); }; };
  const auto label = [](std::string validate::RunClasses::*text) { return [text](const RunRow& r) { return r.classes.*text; }; };
  return {{"model", [](const RunRow& r) { return r.job->model.name; }},
          {"parameters", [](const RunRow& r) { return number(model::count_parameters(r.job->model).total); }},
          {"layers", of_model(&model::Model::layers)},
          {"hidden", of_model(&model::Model::hidden)},
          {"ffn_hidden", of_model(&model::Model::ffn_hidden)},
          {"heads", of_model(&model::Model::heads)},
          {"kv_heads", of_model(&model::Model::kv_heads)},
          {"vocab", of_model(&model::Model::vocab)},
          {"sequence", [](const RunRow& r) { return std::to_string(r.job->sequence); }},
          {"dtype", [](const RunRow& r) { return std::string(hardware::name(r.job->dtype)); }},
          {"accelerator", label(&validate::RunClasses::accelerator)},
          {"gpus", [](const RunRow& r) { return std::to_string(r.job->gpus); }},
          {"gpus_per_host", [](const RunRow& r) { return std::to_string(r.job->cluster.gpus_per_host()); }},
          {"framework", label(&validate::RunClasses::framework)},
          {"year", label(&validate::RunClasses::year)},
          {"compiled", [](const RunRow& r) { return std::string(r.job->compiled ? "1" : "0"); }},
          {"attention", [](const RunRow& r) { return std::string(compute::name(r.job->attention)); }},
          {"links", label(&validate::RunClasses::links)},
          {"network", label(&validate::RunClasses::network)},
          {"strategy_kind", label(&validate::RunClasses::strategy)},
          {"tensor", degree(&parallel::Strategy::tensor)},
          {"pipeline", degree(&parallel::Strategy::pipeline)},
          {"virtual_stages", degree(&parallel::Strategy::virtual_stages)},
          {"context", degree(&parallel::Strategy::context)},
          {"data", degree(&parallel::Strategy::data)},
          {"sequence_parallel", [](const RunRow& r) { return std::string(r.strategy.sequence_parallel ? "1" : "0"); }},
          {"zero", degree(&parallel::Strategy::zero)},
          {"micro_batch", degree(&parallel::Strategy::micro_batch)},
          {"accumulate", degree(&parallel::Strategy::accumulate)},
          {"global_batch", [](const RunRow& r) { return number(r.job->global_batch); }},
          {"recompute", [](const RunRow& r) { return std::string(parallel::name(r.strategy.recompute)); }},
          {"strategy", [](const RunRow& r) { return parallel::to_text(r.strategy); }}};
}

std::vector<RunColumn> result_columns() {
  std::vector<RunColumn> columns;
  for (int i = 0; i < simulate::kBillCount; ++i) {
    const auto item = static_cast<simulate::Bill>(i);
    columns.push_back({std::string(simulate::name(item)) + "_s", [item](const RunRow& r) { return number(r.prediction->item(item)); }});
  }
  columns.push_back({"step_time_low_s", [](const RunRow& r) { return number(r.prediction->step_time_low_s); }});
  columns.push_back({"step_time_high_s", [](const RunRow& r) { return number(r.prediction->step_time_high_s); }});
  columns.push_back({"reserved_bytes", [](const RunRow& r) { return number(r.prediction->memory.reserved_bytes); }});
  columns.push_back({"allocated_bytes", [](const RunRow& r) { return number(r.prediction->memory.allocated_bytes); }});
  columns.push_back({"assumptions", assumed});
  return columns;
}

}  // namespace

std::string runs_csv(const validate::RunsReport& report) {
  std::vector<RunColumn> columns = identity_columns();
  const std::size_t identity = columns.size();
  for (auto more : {job_columns(), result_columns()}) columns.insert(columns.end(), more.begin(), more.end());
  std::string out;
  for (std::size_t i = 0; i < columns.size(); ++i) out += (i == 0 ? "" : ",") + columns[i].name;
  out += "\n";
  for (const RunRow& row : report.rows) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (i > 0) out += ',';
      if (i < identity || (row.job && row.prediction)) out += csv_field(columns[i].text(row));
    }
    out += "\n";
  }
  return out;
}

std::string fits_csv(const validate::FitReport& report) {
  std::string out = "row,source_id,measured_fits,predicted_bytes,capacity_bytes,right,reason\n";
  for (const validate::FitRow& row : report.rows) {
    out += fmt::format("{},{},{},{},{},{},{}\n", row.row, csv_field(row.source_id), row.measured_fits ? 1 : 0,
                       number_or_empty(row.predicted_bytes), number_or_empty(row.capacity_bytes),
                       row.judged() ? (row.right() ? "1" : "0") : "", csv_field(row.reason));
  }
  return out;
}

std::string collectives_csv(const validate::CollectivesReport& report) {
  std::string out = "row,system,op,bytes,measured_time_s,predicted_time_s,error,floor_s,measured_over_floor,algorithm,protocol,reason\n";
  for (const validate::CollectiveRow& row : report.rows) {
    out += fmt::format("{},{},{},{:.10g},{},{},{},{},{},{},{},{}\n", row.row, csv_field(row.system), csv_field(row.op), row.bytes,
                       number_or_empty(row.measured_time_s), number_or_empty(row.predicted_time_s),
                       number_or_empty(row.error), number_or_empty(row.floor_s), number_or_empty(row.measured_over_floor()),
                       row.algorithm, row.protocol, csv_field(row.reason));
  }
  return out;
}

std::string matmul_csv(const validate::MatmulReport& report) {
  std::string out = "row,table,accelerator,kernel,measured_time_s,predicted_time_s,error,reason\n";
  for (const validate::MatmulRow& row : report.rows) {
    out += fmt::format("{},{},{},{},{},{},{},{}\n", row.row, csv_field(row.table), csv_field(row.accelerator),
                       csv_field(row.kernel), number_or_empty(row.measured_time_s), number_or_empty(row.predicted_time_s),
                       number_or_empty(row.error), csv_field(row.reason));
  }
  return out;
}

}  // namespace chokepoint::report
