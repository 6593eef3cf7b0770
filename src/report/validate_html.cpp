// SPDX-License-Identifier: Apache-2.0
// The data of page_validate.js.
#include <chokepoint/report/validate_view.hpp>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "page.hpp"

namespace chokepoint::embedded {
extern const std::string_view page_validate;
}

namespace chokepoint::report {
namespace {

using Json = nlohmann::ordered_json;
using validate::RunRow;

/// Six digits are enough for a picture and halve the page.
Json rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return Json::parse(text, nullptr, false);
}
Json rounded(const std::optional<double>& value) { return value ? rounded(*value) : Json(nullptr); }

Json run_row(const RunRow& row) {
  const auto& job = row.job;
  const auto of_job = [&](auto value) { return job ? Json(value(*job)) : Json(nullptr); };
  return Json::array({row.row, row.source_id, row.trust, row.has_figure,
                      job ? Json(job->model.name) : Json(""),
                      of_job([](const parallel::Job& j) { return rounded(model::count_parameters(j.model).total); }),
                      of_job([](const parallel::Job& j) { return j.gpus; }),
                      of_job([](const parallel::Job& j) { return j.sequence; }),
                      of_job([](const parallel::Job& j) { return rounded(j.global_batch); }),
                      job ? row.classes.accelerator : row.accelerator, row.classes.framework, row.classes.strategy,
                      row.classes.size, row.classes.gpus, row.classes.year, row.classes.links, row.classes.network,
                      row.classes.sequence, job ? parallel::to_text(row.strategy) : std::string(),
                      rounded(row.measured_step_time_s), row.prediction ? rounded(row.prediction->step_time_s) : Json(nullptr),
                      rounded(row.measured_memory_bytes), rounded(row.memory_error), row.reason});
}

/// Classes of the bill with a share, largest first.
Json bill_json(const simulate::Prediction& prediction) {
  std::vector<std::pair<double, std::string_view>> items;
  for (int i = 0; i < simulate::kBillCount; ++i) {
    const auto item = static_cast<simulate::Bill>(i);
    if (prediction.item(item) > 0) items.emplace_back(prediction.item(item), simulate::name(item));
  }
  std::stable_sort(items.begin(), items.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  Json list = Json::array();
  for (const auto& [seconds, name] : items) list.push_back({std::string(name), rounded(seconds)});
  return list;
}

Json farthest_json(const validate::RunsReport& report) {
  Json list = Json::array();
  for (const std::size_t index : validate::farthest_rows(report, kFarthestShown)) {
    const RunRow& row = report.rows[index];
    Json chokes = Json::array();
    for (const simulate::ChokePoint& c : row.prediction->choke_points) {
      chokes.push_back({{"where", c.where}, {"change", c.change}, {"step_time_s", rounded(c.step_time_if_changed_s)}});
    }
    list.push_back({{"row", row.row}, {"bill", bill_json(*row.prediction)}, {"choke_points", chokes}});
  }
  return list;
}

Json order_json(const validate::StrategyOrder& order) {
  Json groups = Json::array();
  for (const validate::OrderGroup& g : order.groups) {
    Json worst = nullptr;
    if (g.worst.faster_row > 0) {
      worst = {{"faster_row", g.worst.faster_row}, {"slower_row", g.worst.slower_row},
               {"faster_strategy", g.faster_strategy}, {"slower_strategy", g.slower_strategy},
               {"measured_ratio", rounded(g.worst.measured_ratio)}, {"predicted_ratio", rounded(g.worst.predicted_ratio)}};
    }
    groups.push_back({{"source_id", g.source_id}, {"what", g.what}, {"strategies", g.strategies}, {"pairs", g.pairs},
                      {"wrong", g.wrong}, {"tau", rounded(g.tau)}, {"worst", worst}});
  }
  Json sources = Json::array();
  for (const validate::SourceOrder& s : order.sources) sources.push_back(s.source_id);
  return {{"trust", order.trust}, {"mean_tau", order.mean_tau}, {"mean_of_sources", order.mean_of_sources},
          {"sources", sources}, {"groups", groups}};
}

Json runs_data(const validate::RunsReport& report) {
  Json data;
  data["columns"] = {"row", "source", "trust", "has_figure", "model", "params", "gpus", "sequence", "batch", "accelerator",
                     "framework", "strategy_kind", "size", "gpus_class", "year", "links", "network", "sequence_class",
                     "strategy", "measured", "predicted", "memory", "memory_error", "reason"};
  data["rows"] = Json::array();
  for (const RunRow& row : report.rows) data["rows"].push_back(run_row(row));
  Json trusts = Json::array();
  for (const validate::TrustSummary& t : report.by_trust) {
    trusts.push_back({{"trust", t.trust}, {"sources", t.sources}, {"median", t.median_of_source_medians},
                      {"bias", t.median_of_source_biases}, {"p90", t.all.p90_absolute}});
  }
  data["summary"] = {{"rows", report.overall.rows}, {"coverage", report.overall.coverage()}, {"by_trust", trusts},
                     {"memory_rows", report.memory.predicted}, {"memory_median", report.memory.median_absolute}};
  data["order"] = Json::array();
  for (const validate::StrategyOrder& order : report.order) data["order"].push_back(order_json(order));
  data["repeats"] = Json::array();
  for (const validate::Repeats& r : report.repeats) {
    data["repeats"].push_back({{"source_id", r.source_id}, {"configurations", r.configurations}, {"rows", r.rows},
                               {"median", rounded(r.median_deviation)}, {"p90", rounded(r.p90_deviation)}});
  }
  data["bill_names"] = Json::array();
  for (int i = 0; i < simulate::kBillCount; ++i) data["bill_names"].push_back(std::string(simulate::name(static_cast<simulate::Bill>(i))));
  data["farthest"] = farthest_json(report);
  return data;
}

Json fits_data(const validate::FitReport& report) {
  Json rows = Json::array();
  for (const validate::FitRow& row : report.rows) {
    rows.push_back({row.row, row.source_id, row.measured_fits, rounded(row.predicted_bytes), rounded(row.capacity_bytes)});
  }
  return {{"columns", {"row", "source", "measured_fits", "predicted", "capacity"}},
          {"rows", rows},
          {"summary", {{"oom", report.out_of_memory}, {"oom_right", report.out_of_memory_right}, {"ran", report.ran},
                       {"ran_right", report.ran_right}, {"near", report.near}, {"near_right", report.near_right}}}};
}

Json collectives_data(const validate::CollectivesReport& report) {
  Json rows = Json::array();
  for (const validate::CollectiveRow& row : report.rows) {
    rows.push_back({row.row, row.system, row.op, rounded(row.bytes), rounded(row.measured_time_s), rounded(row.predicted_time_s)});
  }
  return {{"columns", {"row", "system", "op", "bytes", "measured", "predicted"}}, {"rows", rows}};
}

Json matmul_data(const validate::MatmulReport& report) {
  Json rows = Json::array();
  for (const validate::MatmulRow& row : report.rows) {
    rows.push_back({row.row, row.table, row.accelerator, row.kernel, rounded(row.flops), rounded(row.peak_flops_per_s),
                    rounded(row.measured_time_s), rounded(row.predicted_time_s)});
  }
  return {{"columns", {"row", "table", "accelerator", "kernel", "flops", "peak", "measured", "predicted"}}, {"rows", rows}};
}

}  // namespace

std::string validation_html(const Findings& findings, const std::string& files) {
  Json data;
  if (findings.runs) data["runs"] = runs_data(*findings.runs);
  if (findings.fits) data["fits"] = fits_data(*findings.fits);
  if (findings.collectives) data["collectives"] = collectives_data(*findings.collectives);
  if (findings.matmul) data["matmul"] = matmul_data(*findings.matmul);
  Page page;
  page.kind = "chokepoint validate";
  page.verdict = "Predicted against measured";
  page.facts = files;
  page.script = embedded::page_validate;
  page.markdown = validation_markdown(findings);
  page.data = std::move(data);
  return html_page(page);
}

}  // namespace chokepoint::report
