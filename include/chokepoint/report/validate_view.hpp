// SPDX-License-Identifier: Apache-2.0
#pragma once
// Validation reports as text for people, JSON, CSV for residual analysis, and one self-contained HTML page.
#include <chokepoint/base/parameter.hpp>
#include <chokepoint/report/style.hpp>
#include <chokepoint/validate/validate.hpp>
#include <optional>
#include <string>
#include <vector>

namespace chokepoint::report {

/// One screen; with `details` every table.
std::string runs_text(const validate::RunsReport& report, const Style& style, bool details = false);
std::string runs_json(const validate::RunsReport& report);
/// One line per row: job, strategy, bill, error, assumptions.
std::string runs_csv(const validate::RunsReport& report);

/// What one or several tables gave; runs and out-of-memory tables are judged together.
struct Findings {
  std::optional<validate::RunsReport> runs;
  std::optional<validate::FitReport> fits;
  std::optional<validate::CollectivesReport> collectives;
  std::optional<validate::MatmulReport> matmul;
};
/// Farthest rows that the page lists with bill and choke point.
inline constexpr std::size_t kFarthestShown = 20;
/// One page without outside references: pictures, tables that sort and filter, the farthest rows with their bill.
std::string validation_html(const Findings& findings, const std::string& files);
/// Its tables without pictures: every group and every row.
std::string validation_markdown(const Findings& findings);

std::string fits_text(const validate::FitReport& report, const Style& style);
std::string fits_json(const validate::FitReport& report);
std::string fits_csv(const validate::FitReport& report);

std::string collectives_text(const validate::CollectivesReport& report, const Style& style);
std::string collectives_json(const validate::CollectivesReport& report);
std::string collectives_csv(const validate::CollectivesReport& report);

std::string matmul_text(const validate::MatmulReport& report, const Style& style);
std::string matmul_json(const validate::MatmulReport& report);
std::string matmul_csv(const validate::MatmulReport& report);

/// Every constant of the model with its value and source, grouped by the word before the first dot.
std::string parameters_text(const std::vector<Parameter>& parameters, const Style& style);
std::string parameters_json(const std::vector<Parameter>& parameters);

}  // namespace chokepoint::report
