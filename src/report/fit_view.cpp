// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/report/fit_view.hpp>

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "table.hpp"

namespace chokepoint::report {
namespace {

using Json = nlohmann::ordered_json;
using validate::Errors;
using validate::FittedParameter;
using validate::LeaveOutReport;

constexpr double kMovedShown = 0.01;  ///< parameters that a fit moves by less are not worth a line

std::string percent(double value) { return fmt::format("{:.1f}%", 100 * value); }
std::string signed_percent(double value) { return fmt::format("{:+.1f}%", 100 * value); }

const validate::TrustSummary* of_trust(const Errors& errors, std::string_view trust) {
  for (const validate::TrustSummary& summary : errors.by_trust) {
    if (summary.trust == trust) return &summary;
  }
  return nullptr;
}

void add_lines(std::vector<std::vector<std::string>>& rows, const char* name, const Errors& errors) {
  for (const char* trust : {"A", "B", "C"}) {
    const validate::TrustSummary* s = of_trust(errors, trust);
    if (s == nullptr) continue;
    std::string holds, width;
    if (trust[0] == 'A') {
      holds = percent(errors.band_holds_a);
      width = percent(errors.band_width_a);
    }
    if (trust[0] == 'B') holds = percent(errors.band_holds_b);
    rows.push_back({name, trust, std::to_string(s->sources), percent(s->median_of_source_medians), percent(s->all.p90_absolute),
                    signed_percent(s->median_of_source_biases), fmt::format("{} of {}", s->sources_within_15_percent, s->sources), holds,
                    width});
  }
}

Json errors_json(const Errors& errors) {
  Json json;
  for (const validate::TrustSummary& t : errors.by_trust) {
    json["trust"].push_back({{"trust", t.trust}, {"sources", t.sources}, {"median_of_source_medians", t.median_of_source_medians},
                             {"p90_absolute_error", t.all.p90_absolute}, {"median_of_source_biases", t.median_of_source_biases},
                             {"sources_within_15_percent", t.sources_within_15_percent}});
  }
  json["band_holds_a"] = errors.band_holds_a;
  json["band_holds_b"] = errors.band_holds_b;
  json["band_width_a"] = errors.band_width_a;
  return json;
}

Json parameters_json(const std::vector<FittedParameter>& parameters) {
  Json list = Json::array();
  for (const FittedParameter& p : parameters) {
    list.push_back({{"name", p.info.name}, {"unit", p.info.unit}, {"shipped", p.info.value}, {"fitted", p.fitted},
                    {"log_standard_error", p.log_error}, {"log_prior_sigma", p.prior_sigma}, {"lowest_left_out", p.lowest},
                    {"highest_left_out", p.highest}});
  }
  return list;
}

std::string error_or_empty(const std::optional<double>& error) { return error ? fmt::format("{:.6g}", *error) : ""; }

}  // namespace

std::string leave_out_text(const LeaveOutReport& report, const Style& style) {
  std::string out = style.bold(fmt::format("\nEach {} left out in turn: {} groups, {} parameters fitted on {} rows", validate::name(report.by),
                                           report.groups.size(), report.parameters.size(), report.rows_used)) + "\n";
  std::vector<std::vector<std::string>> rows;
  add_lines(rows, "as shipped", report.shipped);
  add_lines(rows, "fitted on all rows", report.fitted);
  add_lines(rows, "left out", report.left_out);
  out += table({{"constants", false}, {"trust", false}, {"sources", true}, {"median", true}, {"p90 of rows", true}, {"bias", true},
                {"within 15 %", true}, {"band holds", true}, {"band width", true}}, rows, style);
  out += "\n";
  std::vector<std::vector<std::string>> sources;
  for (std::size_t i = 0; i < report.left_out.by_source_a.size(); ++i) {
    const validate::Summary& left = report.left_out.by_source_a[i];
    const validate::Summary& in = report.fitted.by_source_a[i];
    const validate::Summary& shipped = report.shipped.by_source_a[i];
    sources.push_back({left.name, std::to_string(left.predicted), percent(shipped.median_absolute), percent(in.median_absolute),
                       percent(left.median_absolute), signed_percent(left.bias), percent(left.p90_absolute)});
  }
  std::stable_sort(sources.begin(), sources.end(), [](const auto& a, const auto& b) { return std::stod(a[4]) < std::stod(b[4]); });
  return out + table({{"source, rows of trust A", false}, {"rows", true}, {"shipped", true}, {"fitted", true}, {"left out", true},
                      {"bias", true}, {"p90", true}}, sources, style);
}

std::string fitted_text(const LeaveOutReport& report, const Style& style) {
  std::vector<std::vector<std::string>> rows;
  int still = 0;
  for (const FittedParameter& p : report.parameters) {
    if (std::abs(std::log(p.fitted / p.info.value)) < kMovedShown) {
      ++still;
      continue;
    }
    rows.push_back({p.info.name, fmt::format("{:.4g}", p.info.value), fmt::format("{:.4g}", p.fitted), signed_percent(p.fitted / p.info.value - 1),
                    percent(p.log_error), percent(p.prior_sigma), fmt::format("{:.4g} to {:.4g}", p.lowest, p.highest), p.info.unit});
  }
  std::string out = style.bold("\nFitted on all rows, beside the shipped constants") + "\n";
  out += table({{"parameter", false}, {"shipped", true}, {"fitted", true}, {"change", true}, {"error", true}, {"prior", true},
                {"left out", false}, {"unit", false}}, rows, style);
  return out + fmt::format("{} more moved by less than {:.0f} %\n", still, 100 * kMovedShown);
}

std::string leave_out_json(const LeaveOutReport& report) {
  Json json;
  json["schema"] = "chokepoint.leave_out/1";
  json["left_out_by"] = validate::name(report.by);
  json["groups"] = report.groups;
  json["rows_used"] = report.rows_used;
  json["shipped"] = errors_json(report.shipped);
  json["fitted"] = errors_json(report.fitted);
  json["left_out"] = errors_json(report.left_out);
  for (std::size_t i = 0; i < report.left_out.by_source_a.size(); ++i) {
    const validate::Summary& left = report.left_out.by_source_a[i];
    json["by_source_a"].push_back({{"name", left.name}, {"rows", left.predicted},
                                   {"shipped_median", report.shipped.by_source_a[i].median_absolute},
                                   {"fitted_median", report.fitted.by_source_a[i].median_absolute},
                                   {"left_out_median", left.median_absolute}, {"left_out_bias", left.bias},
                                   {"left_out_p90", left.p90_absolute}});
  }
  json["parameters"] = parameters_json(report.parameters);
  return json.dump(2) + "\n";
}

std::string leave_out_csv(const validate::RunsReport& runs, const LeaveOutReport& report) {
  std::string out = "row,source_id,trust,measured_step_time_s,shipped_error,fitted_error,left_out_error\n";
  for (std::size_t i = 0; i < runs.rows.size(); ++i) {
    const validate::RunRow& row = runs.rows[i];
    out += fmt::format("{},{},{},{},{},{},{}\n", row.row, row.source_id, row.trust, error_or_empty(row.measured_step_time_s),
                       error_or_empty(report.shipped.step_time[i]), error_or_empty(report.fitted.step_time[i]),
                       error_or_empty(report.left_out.step_time[i]));
  }
  return out;
}

std::string calibrated_text(const std::vector<validate::CalibratedReport>& reports, const Style& style) {
  std::string out;
  for (const validate::CalibratedReport& report : reports) {
    out += style.bold(fmt::format("\nCalibrated on {}: median of {} sources {} (uncalibrated {}), {} worse than uncalibrated",
                                  report.on_rows == 1 ? std::string("one row") : fmt::format("{} rows", report.on_rows), report.sources.size(),
                                  percent(report.median_calibrated), percent(report.median_uncalibrated), report.worse)) + "\n";
    std::vector<std::vector<std::string>> rows;
    for (const validate::CalibratedSource& s : report.sources) {
      rows.push_back({s.source, std::to_string(s.rows), std::to_string(s.choices), percent(s.uncalibrated), percent(s.calibrated),
                      percent(s.worst_choice)});
    }
    out += table({{"source, rows of trust A", false}, {"rows", true}, {"choices", true}, {"uncalibrated", true}, {"rows held back", true},
                  {"worst choice", true}}, rows, style);
  }
  return out;
}

std::string calibrated_json(const std::vector<validate::CalibratedReport>& reports) {
  Json json;
  json["schema"] = "chokepoint.calibrated/1";
  json["calibrated"] = Json::array();
  for (const validate::CalibratedReport& report : reports) {
    Json sources = Json::array();
    for (const validate::CalibratedSource& s : report.sources) {
      sources.push_back({{"name", s.source}, {"rows", s.rows}, {"choices", s.choices}, {"uncalibrated_median", s.uncalibrated},
                         {"held_back_median", s.calibrated}, {"worst_choice_median", s.worst_choice}});
    }
    json["calibrated"].push_back({{"on_rows", report.on_rows}, {"median_uncalibrated", report.median_uncalibrated},
                                  {"median_held_back", report.median_calibrated}, {"worse", report.worse}, {"sources", sources}});
  }
  return json.dump(2) + "\n";
}

}  // namespace chokepoint::report
