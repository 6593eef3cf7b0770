// SPDX-License-Identifier: Apache-2.0
// docs/formats/json.md describes these objects; names are stable, absent values are null.
#include <chokepoint/report/validate_view.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace chokepoint::report {
namespace {

using Json = nlohmann::ordered_json;
using validate::RunRow;
using validate::Summary;


Json value_or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }
Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json summary_json(const Summary& s) {
  return {{"name", s.name}, {"rows", s.rows}, {"predicted", s.predicted}, {"coverage", s.coverage()},
          {"mean_absolute_error", s.mean_absolute}, {"median_absolute_error", s.median_absolute},
          {"p90_absolute_error", s.p90_absolute}, {"bias", s.bias}};
}

Json summaries_json(const std::vector<Summary>& summaries) {
  Json list = Json::array();
  for (const Summary& summary : summaries) list.push_back(summary_json(summary));
  return list;
}

Json row_json(const RunRow& row) {
  Json json;
  json["row"] = row.row;
  json["source_id"] = row.source_id;
  json["trust"] = row.trust;
  json["measured_step_time_s"] = value_or_null(row.measured_step_time_s);
  json["predicted_step_time_s"] = row.prediction ? Json(row.prediction->step_time_s) : Json(nullptr);
  json["step_time_error"] = value_or_null(row.step_time_error);
  json["peak_memory_error"] = value_or_null(row.memory_error);
  json["reason"] = text_or_null(row.reason);
  json["measured_figure"] = text_or_null(row.measured_figure);
  json["step_time_low_s"] = row.prediction ? Json(row.prediction->step_time_low_s) : Json(nullptr);
  json["step_time_high_s"] = row.prediction ? Json(row.prediction->step_time_high_s) : Json(nullptr);
  json["strategy"] = row.job ? Json(parallel::to_text(row.strategy)) : Json(nullptr);
  return json;
}

Json trusts_json(const std::vector<validate::TrustSummary>& trusts) {
  Json list = Json::array();
  for (const validate::TrustSummary& t : trusts) {
    list.push_back({{"trust", t.trust}, {"sources", t.sources},
                    {"median_of_source_medians", t.median_of_source_medians},
                    {"median_of_source_biases", t.median_of_source_biases},
                    {"sources_within_15_percent", t.sources_within_15_percent}, {"all", summary_json(t.all)}});
  }
  return list;
}

Json notes_json(const std::vector<Note>& notes) {
  Json list = Json::array();
  for (const Note& note : notes) list.push_back(note.text);
  return list;
}

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

/// Columns after the row's identity: job, strategy, prediction. Empty for a row without a job.
std::string csv_job(const RunRow& row) {
  const parallel::Job& job = *row.job;
  const model::Model& m = job.model;
  const parallel::Strategy& s = row.strategy;
  std::string line = fmt::format(
      "{},{:.6g},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{:.6g},", csv_field(m.name),
      model::count_parameters(m).total, m.layers, m.hidden, m.ffn_hidden, m.heads, m.kv_heads, m.vocab, job.sequence,
      hardware::name(job.dtype), job.accelerator.name, job.gpus, job.cluster.gpus_per_host(),
      parallel::name(job.framework), job.year, job.compiled ? 1 : 0, compute::name(job.attention),
      validate::strategy_kind(s), s.tensor, s.pipeline, s.virtual_stages, s.context, s.data, s.sequence_parallel ? 1 : 0,
      s.zero, s.micro_batch, s.accumulate, job.global_batch);
  line += fmt::format("{},{},", parallel::name(s.recompute), csv_field(parallel::to_text(s)));
  for (int i = 0; i < simulate::kBillCount; ++i) {
    line += fmt::format("{:.6g},", row.prediction->item(static_cast<simulate::Bill>(i)));
  }
  line += fmt::format("{:.6g},{:.6g},", row.prediction->memory.reserved_bytes, row.prediction->memory.allocated_bytes);
  std::string assumed;
  for (const Note& note : job.assumptions) {
    if (!assumed.empty()) assumed += "; ";
    assumed += note.text;
  }
  return line + csv_field(assumed);
}

}  // namespace

std::string runs_json(const validate::RunsReport& report) {
  Json json;
  json["schema"] = "chokepoint.validate_runs/1";
  json["overall"] = summary_json(report.overall);
  json["peak_memory"] = summary_json(report.memory);
  json["by_trust"] = trusts_json(report.by_trust);
  json["median_of_source_medians_a"] = report.median_of_source_medians_a;
  json["median_of_source_medians_b"] = report.median_of_source_medians_b;
  json["by_source"] = summaries_json(report.by_source);
  json["by_source_a"] = summaries_json(report.by_source_a);
  json["by_accelerator"] = summaries_json(report.by_accelerator);
  json["by_framework"] = summaries_json(report.by_framework);
  json["by_strategy"] = summaries_json(report.by_strategy);
  json["by_size"] = summaries_json(report.by_size);
  json["by_gpus"] = summaries_json(report.by_gpus);
  json["notes"] = notes_json(report.notes);
  json["rows"] = Json::array();
  for (const RunRow& row : report.rows) json["rows"].push_back(row_json(row));
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string runs_csv(const validate::RunsReport& report) {
  std::string out =
      "row,source_id,trust,reason,figure,measured_step_time_s,predicted_step_time_s,step_time_error,measured_memory_bytes,"
      "memory_error,model,parameters,layers,hidden,ffn_hidden,heads,kv_heads,vocab,sequence,dtype,accelerator,gpus,"
      "gpus_per_host,framework,year,compiled,attention,strategy_kind,tensor,pipeline,virtual_stages,context,data,"
      "sequence_parallel,zero,micro_batch,accumulate,global_batch,recompute,strategy,";
  for (int i = 0; i < simulate::kBillCount; ++i) {
    out += fmt::format("{}_s,", simulate::name(static_cast<simulate::Bill>(i)));
  }
  out += "reserved_bytes,allocated_bytes,assumptions\n";
  constexpr int kJobColumns = 30 + simulate::kBillCount + 3;
  for (const RunRow& row : report.rows) {
    out += fmt::format("{},{},{},{},{},{},{},{},{},{},", row.row, csv_field(row.source_id), row.trust, csv_field(row.reason),
                       row.measured_figure, number_or_empty(row.measured_step_time_s),
                       row.prediction ? fmt::format("{:.6g}", row.prediction->step_time_s) : "",
                       number_or_empty(row.step_time_error), number_or_empty(row.measured_memory_bytes),
                       number_or_empty(row.memory_error));
    out += row.prediction ? csv_job(row) : std::string(static_cast<std::size_t>(kJobColumns - 1), ',');
    out += "\n";
  }
  return out;
}

std::string fits_json(const validate::FitReport& report) {
  Json json;
  json["schema"] = "chokepoint.validate_fits/1";
  json["out_of_memory"] = report.out_of_memory;
  json["out_of_memory_right"] = report.out_of_memory_right;
  json["ran"] = report.ran;
  json["ran_right"] = report.ran_right;
  json["near_capacity"] = report.near;
  json["near_capacity_right"] = report.near_right;
  json["not_judged"] = report.not_judged;
  json["rows"] = Json::array();
  for (const validate::FitRow& row : report.rows) {
    json["rows"].push_back({{"row", row.row}, {"source_id", row.source_id}, {"measured_fits", row.measured_fits},
                            {"predicted_fits", row.judged() ? Json(*row.predicted_bytes <= *row.capacity_bytes) : Json(nullptr)},
                            {"predicted_bytes", value_or_null(row.predicted_bytes)},
                            {"capacity_bytes", value_or_null(row.capacity_bytes)},
                            {"reason", text_or_null(row.reason)}});
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string collectives_json(const validate::CollectivesReport& report) {
  Json json;
  json["schema"] = "chokepoint.validate_collectives/1";
  json["overall"] = summary_json(report.overall);
  json["median_of_system_medians"] = report.median_of_system_medians;
  json["by_system"] = summaries_json(report.by_system);
  json["by_op"] = summaries_json(report.by_op);
  json["by_size"] = summaries_json(report.by_size);
  json["rows"] = Json::array();
  for (const validate::CollectiveRow& row : report.rows) {
    json["rows"].push_back({{"row", row.row}, {"system", row.system}, {"op", row.op}, {"bytes", row.bytes},
                            {"measured_time_s", value_or_null(row.measured_time_s)},
                            {"predicted_time_s", value_or_null(row.predicted_time_s)},
                            {"error", value_or_null(row.error)}, {"reason", text_or_null(row.reason)}});
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string matmul_json(const validate::MatmulReport& report) {
  Json json;
  json["schema"] = "chokepoint.validate_matmul/1";
  json["overall"] = summary_json(report.overall);
  json["by_table"] = summaries_json(report.by_table);
  json["rows"] = Json::array();
  for (const validate::MatmulRow& row : report.rows) {
    json["rows"].push_back({{"row", row.row}, {"accelerator", row.accelerator}, {"table", row.table}, {"kernel", row.kernel},
                            {"measured_time_s", value_or_null(row.measured_time_s)},
                            {"predicted_time_s", value_or_null(row.predicted_time_s)},
                            {"error", value_or_null(row.error)}, {"reason", text_or_null(row.reason)}});
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string parameters_json(const std::vector<Parameter>& parameters) {
  Json json;
  json["schema"] = "chokepoint.parameters/1";
  json["parameters"] = Json::array();
  for (const Parameter& p : parameters) {
    json["parameters"].push_back({{"name", p.name}, {"value", p.value}, {"unit", p.unit}, {"source", p.source}});
  }
  return json.dump(1) + "\n";
}

}  // namespace chokepoint::report
