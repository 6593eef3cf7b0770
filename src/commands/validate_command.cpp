// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include <algorithm>
#include <chokepoint/base/files.hpp>
#include <chokepoint/collective/collective.hpp>
#include <chokepoint/compute/kernels.hpp>
#include <chokepoint/parallel/memory.hpp>
#include <chokepoint/report/fit_view.hpp>
#include <chokepoint/report/validate_view.hpp>
#include <chokepoint/simulate/predict.hpp>
#include <chokepoint/validate/calibrated.hpp>
#include <chokepoint/validate/leave_out.hpp>
#include <chokepoint/validate/validate.hpp>
#include <iostream>
#include <memory>
#include <optional>
#include <vector>

#include "profile_option.hpp"

namespace chokepoint::commands {
namespace {

struct ValidateOptions {
  std::vector<std::string> files;
  std::string csv;
  std::string html;
  bool details = false;
  bool parameters = false;
  std::string leave_out;
  bool fit = false;
  std::string profile;
  bool calibrate = false;
};

constexpr int kPartial = 4;

std::vector<Parameter> all_parameters() {
  std::vector<Parameter> all;
  for (const auto& part : {compute::parameters(), collective::parameters(), parallel::parameters(), simulate::parameters()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

using report::Findings;

Result<bool> read_table(const std::string& file, const simulate::Parameters& parameters, Findings& findings) {
  TRY_INTO(const std::string text, read_text_file(file));
  TRY_INTO(const validate::Table table, validate::recognise_table(text, file));
  switch (table) {
    case validate::Table::kRuns: {
      TRY_INTO(findings.runs, validate::validate_runs(text, file, parameters));
      return true;
    }
    case validate::Table::kOom: {
      TRY_INTO(findings.fits, validate::validate_fits(text, file));
      return true;
    }
    case validate::Table::kCollectives: {
      TRY_INTO(findings.collectives, validate::validate_collectives(text, file));
      return true;
    }
    case validate::Table::kMeasuredCompute: {
      TRY_INTO(findings.matmul, validate::validate_measured_compute(text, file));
      return true;
    }
    case validate::Table::kMatmul: {
      TRY_INTO(findings.matmul, validate::validate_matmul(text, file, parameters.compute));
      return true;
    }
  }
  return fail("table of no known kind", {file, 1, 1});
}

Result<std::string> residuals_csv(const Findings& findings) {
  if (findings.runs) return report::runs_csv(*findings.runs);
  const int tables = findings.fits.has_value() + findings.collectives.has_value() + findings.matmul.has_value();
  if (tables > 1) return fail("--csv writes the rows of one table, found several", {}, {"give them one after the other"});
  if (findings.fits) return report::fits_csv(*findings.fits);
  if (findings.collectives) return report::collectives_csv(*findings.collectives);
  return report::matmul_csv(*findings.matmul);
}

/// Outputs must not replace what was read or each other.
Result<bool> check_outputs(const ValidateOptions& options, const CommonOptions& common) {
  std::vector<std::string> taken = options.files;
  for (const std::string& output : {common.out, options.csv, options.html}) {
    if (auto safe = check_output(output, taken); !safe) return safe;
    const bool repeated = output != "-" && !output.empty() && std::count(taken.begin(), taken.end(), output) > 0;
    if (repeated) return fail("stands for two outputs", {output, 0, 0}, {"give each its own file"});
    taken.push_back(output);
  }
  return true;
}

Result<bool> write_extras(const ValidateOptions& options, const simulate::Parameters& parameters, Findings& findings) {
  if (!options.csv.empty()) {
    TRY_INTO(const std::string csv, residuals_csv(findings));
    if (auto done = write_text_file(options.csv, csv); !done) return done;
  }
  if (options.html.empty()) return true;
  if (findings.runs) {
    validate::find_choke_points(*findings.runs, validate::farthest_rows(*findings.runs, report::kFarthestShown), parameters);
  }
  std::string files;
  for (const std::string& file : options.files) files += (files.empty() ? "" : ", ") + file;
  return write_text_file(options.html, report::validation_html(findings, files));
}

/// Rows whose text cannot be read make the result a partial one; rows that the model refuses are a finding.
bool is_partial(const Findings& findings) {
  const auto refused = [](const auto& report) {
    return report && std::any_of(report->rows.begin(), report->rows.end(), [](const auto& row) { return row.refused; });
  };
  const bool nothing = findings.runs && findings.runs->overall.rows > 0 && findings.runs->overall.predicted == 0;
  return nothing || refused(findings.runs) || refused(findings.fits) || refused(findings.collectives) || refused(findings.matmul);
}

std::string present(const Findings& findings, const CommonOptions& common, bool details) {
  report::Style style;
  if (common.out == "-") style = report::terminal_style();
  std::vector<std::string> parts;
  const auto add = [&](const auto& report, auto json, auto text) {
    if (report) parts.push_back(common.json ? json(*report) : text(*report, style));
  };
  const auto runs_text = [details](const validate::RunsReport& runs, const report::Style& look) {
    return report::runs_text(runs, look, details);
  };
  add(findings.runs, report::runs_json, runs_text);
  add(findings.fits, report::fits_json, report::fits_text);
  add(findings.collectives, report::collectives_json, report::collectives_text);
  add(findings.matmul, report::matmul_json, report::matmul_text);
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) out += (i == 0 ? "" : common.json ? "," : "\n") + parts[i];
  return common.json && parts.size() > 1 ? "{\"schema\":\"chokepoint.validate/1\",\"tables\":[" + out + "]}\n" : out;
}

/// Few rows, and how many a source must have at least: one row of any source, three of the large ones.
constexpr int kOneRow = 1, kLeastRows = 3, kFewRows = 3, kLargeSource = 20;

int run_calibrated(const Findings& findings, const CommonOptions& common) {
  if (!findings.runs) return report_error(Error{"--calibrate needs a table of runs", {}, {}});
  const std::vector<validate::CalibratedReport> reports{validate::calibrate_on_rows(*findings.runs, kOneRow, kLeastRows),
                                                        validate::calibrate_on_rows(*findings.runs, kFewRows, kLargeSource)};
  if (common.json) return deliver(common, report::calibrated_json(reports));
  report::Style style;
  if (common.out == "-") style = report::terminal_style();
  return deliver(common, report::calibrated_text(reports, style));
}

/// The errors of constants that did not see the rows they predict; or the constants themselves.
int run_left_out(const ValidateOptions& options, const Findings& findings, const CommonOptions& common) {
  if (findings.matmul && !findings.runs) {
    if (options.leave_out != "accelerator" || options.fit)
      return report_error(Error{"a table of kernels is left out by accelerator", {}, {"expected --leave-out accelerator"}});
    Findings left = findings;
    validate::leave_out_accelerators(*left.matmul);
    return deliver(common, present(left, common, options.details));
  }
  if (!findings.runs) return report_error(Error{"--leave-out and --fit need a table of runs or of kernels", {}, {}});
  const auto by = validate::parse_left_out(options.leave_out.empty() ? "source" : options.leave_out);
  if (!by) return report_error(by.error());
  const validate::LeaveOutReport report = validate::leave_out(*findings.runs, *by);
  if (!options.csv.empty()) {
    const auto written = write_text_file(options.csv, report::leave_out_csv(*findings.runs, report));
    if (!written) return report_error(written.error());
  }
  if (common.json) return deliver(common, report::leave_out_json(report));
  report::Style style;
  if (common.out == "-") style = report::terminal_style();
  std::string text = report::leave_out_text(report, style);
  if (options.fit) text += report::fitted_text(report, style);
  return deliver(common, text);
}

int run(const ValidateOptions& options, const CommonOptions& common) {
  if (options.parameters) {
    const std::vector<Parameter> parameters = all_parameters();
    report::Style style;
    if (common.out == "-") style = report::terminal_style();
    return deliver(common, common.json ? report::parameters_json(parameters) : report::parameters_text(parameters, style));
  }
  if (options.files.empty()) return report_error(Error{"no table given: chokepoint validate RUNS.csv", {}, {}});
  if (auto safe = check_outputs(options, common); !safe) return report_error(safe.error());
  const auto profile = load_profile(options.profile);
  if (!profile) return report_error(profile.error());
  Findings findings;
  for (const std::string& file : options.files) {
    if (auto read = read_table(file, profile->parameters, findings); !read) return report_error(read.error());
  }
  if (options.calibrate) return run_calibrated(findings, common);
  if (!options.leave_out.empty() || options.fit) return run_left_out(options, findings, common);
  if (findings.fits && findings.runs) validate::add_runs_of_same_sources(*findings.fits, *findings.runs);
  if (auto written = write_extras(options, profile->parameters, findings); !written) return report_error(written.error());
  return deliver(common, present(findings, common, options.details), is_partial(findings) ? kPartial : 0);
}

}  // namespace

void add_validate(CLI::App& app, CommonOptions& common, Action& action) {
  auto options = std::make_shared<ValidateOptions>();
  CLI::App* command = app.add_subcommand("validate", "compare predictions with published measurements");
  command->add_option("FILE", options->files,
                      "tables as CSV: training runs, out-of-memory configurations, collectives, matrix products (told apart by the header), or the JSON of measure --compute");
  command->add_option("--csv", options->csv, "write one line per row to this file: error, and for runs job and bill");
  command->add_option("--html", options->html, "write one page with pictures, sortable tables and the farthest rows to this file");
  command->add_flag("--details", options->details, "every table instead of one screen");
  command->add_option("--leave-out", options->leave_out,
                      "predict each source (or accelerator, framework) with constants fitted without it: source, accelerator, framework");
  add_profile_option(*command, options->profile);
  command->add_flag("--fit", options->fit, "also print the constants as fitted on all rows, with standard errors");
  command->add_flag("--calibrate", options->calibrate, "calibrate each source on one row (large ones on three) and predict its others");
  command->add_flag("--parameters", options->parameters, "print every constant of the model with its source");
  add_common(*command, common);
  command->callback([options, &common, &action] { action = [options, &common] { return run(*options, common); }; });
}

}  // namespace chokepoint::commands
