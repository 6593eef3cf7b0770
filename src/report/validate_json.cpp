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
  json["refused"] = row.refused;
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

Json order_json(const validate::StrategyOrder& order) {
  Json groups = Json::array(), sources = Json::array();
  for (const validate::OrderGroup& g : order.groups) {
    Json worst = nullptr;
    if (g.worst.faster_row > 0) {
      worst = {{"faster_row", g.worst.faster_row}, {"slower_row", g.worst.slower_row},
               {"measured_ratio", g.worst.measured_ratio}, {"predicted_ratio", g.worst.predicted_ratio},
               {"faster_strategy", g.faster_strategy}, {"slower_strategy", g.slower_strategy}};
    }
    groups.push_back({{"source_id", g.source_id}, {"what", g.what}, {"strategies", g.strategies}, {"pairs", g.pairs},
                      {"wrong", g.wrong}, {"tau", g.tau}, {"worst_pair", worst}});
  }
  for (const validate::SourceOrder& s : order.sources) {
    sources.push_back({{"source_id", s.source_id}, {"groups", s.groups}, {"mean_tau", s.mean_tau}});
  }
  return {{"trust", order.trust}, {"mean_tau", order.mean_tau}, {"mean_of_sources", order.mean_of_sources},
          {"sources", sources}, {"groups", groups}};
}

Json repeats_json(const std::vector<validate::Repeats>& repeats) {
  Json list = Json::array();
  for (const validate::Repeats& r : repeats) {
    list.push_back({{"source_id", r.source_id}, {"configurations", r.configurations}, {"rows", r.rows},
                    {"median_deviation", r.median_deviation}, {"p90_deviation", r.p90_deviation}});
  }
  return list;
}

Json notes_json(const std::vector<Note>& notes) {
  Json list = Json::array();
  for (const Note& note : notes) list.push_back(note.text);
  return list;
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
  json["by_year"] = summaries_json(report.by_year);
  json["by_links"] = summaries_json(report.by_links);
  json["by_network"] = summaries_json(report.by_network);
  json["by_sequence"] = summaries_json(report.by_sequence);
  json["strategy_order"] = Json::array();
  for (const validate::StrategyOrder& order : report.order) json["strategy_order"].push_back(order_json(order));
  json["repeats"] = repeats_json(report.repeats);
  json["refused_rows"] = report.refused;
  json["notes"] = notes_json(report.notes);
  json["rows"] = Json::array();
  for (const RunRow& row : report.rows) json["rows"].push_back(row_json(row));
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
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
  json["median_measured_over_floor"] = report.median_over_floor;
  json["by_system"] = summaries_json(report.by_system);
  json["by_op"] = summaries_json(report.by_op);
  json["by_size"] = summaries_json(report.by_size);
  json["rows"] = Json::array();
  for (const validate::CollectiveRow& row : report.rows) {
    json["rows"].push_back({{"row", row.row}, {"system", row.system}, {"op", row.op}, {"bytes", row.bytes},
                            {"measured_time_s", value_or_null(row.measured_time_s)},
                            {"predicted_time_s", value_or_null(row.predicted_time_s)},
                            {"error", value_or_null(row.error)}, {"floor_s", value_or_null(row.floor_s)},
                            {"measured_over_floor", value_or_null(row.measured_over_floor())},
                            {"algorithm", text_or_null(row.algorithm)}, {"protocol", text_or_null(row.protocol)},
                            {"reason", text_or_null(row.reason)}});
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string matmul_json(const validate::MatmulReport& report) {
  Json json;
  json["schema"] = "chokepoint.validate_matmul/1";
  json["overall"] = summary_json(report.overall);
  json["by_table"] = summaries_json(report.by_table);
  if (!report.left_out_by_table.empty()) json["left_out_by_table"] = summaries_json(report.left_out_by_table);
  json["rows"] = Json::array();
  for (const validate::MatmulRow& row : report.rows) {
    json["rows"].push_back({{"row", row.row}, {"accelerator", row.accelerator}, {"table", row.table}, {"kernel", row.kernel},
                            {"measured_time_s", value_or_null(row.measured_time_s)},
                            {"predicted_time_s", value_or_null(row.predicted_time_s)},
                            {"error", value_or_null(row.error)}, {"left_out_error", value_or_null(row.left_out_error)}, {"reason", text_or_null(row.reason)}});
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string parameters_json(const std::vector<Parameter>& parameters) {
  Json json;
  json["schema"] = "chokepoint.parameters/1";
  json["parameters"] = Json::array();
  for (const Parameter& p : parameters) {
    json["parameters"].push_back({{"name", p.name}, {"value", p.value}, {"unit", p.unit}, {"kind", name(p.kind)}, {"log_sigma", p.log_sigma}, {"source", p.source}});
  }
  return json.dump(1) + "\n";
}

}  // namespace chokepoint::report
