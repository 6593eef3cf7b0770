// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the model is worth where it was not fitted: for each source (generation of accelerators, framework) the free
// parameters are fitted again without its rows, and its rows are predicted with what came out.
//
//   TRY_INTO(const RunsReport runs, validate_runs(csv, file));
//   const LeaveOutReport report = leave_out(runs, LeftOut::kSource);
#include <chokepoint/base/parameter.hpp>
#include <chokepoint/validate/validate.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::validate {

enum class LeftOut { kSource, kAccelerator, kFramework };
std::string_view name(LeftOut what);
Result<LeftOut> parse_left_out(std::string_view text);

/// Errors of every row under one set of constants, summarised as an ordinary run is.
struct Errors {
  std::vector<std::optional<double>> step_time;  ///< of each row of the report: predicted / measured - 1
  std::vector<TrustSummary> by_trust;
  std::vector<Summary> by_source_a;
  double band_holds_a = 0;     ///< share of rows inside the 80 % band, each source counted once
  double band_holds_b = 0;
  double band_width_a = 0;     ///< median over sources of the median (high - low) / time
};

struct FittedParameter {
  Parameter info;              ///< `value`: as the program ships it
  double fitted = 0;           ///< on the rows of all sources
  double log_error = 0;        ///< standard error of its logarithm
  double prior_sigma = 0;      ///< how far the fit let the logarithm move
  double lowest = 0, highest = 0;  ///< over the left-out groups
};

struct LeaveOutReport {
  LeftOut by = LeftOut::kSource;
  std::vector<std::string> groups;
  int rows_used = 0;           ///< rows the fits used, at most some per source
  Errors shipped;              ///< the constants of the program
  Errors fitted;               ///< fitted on all rows: in sample
  Errors left_out;
  std::vector<FittedParameter> parameters;
};

LeaveOutReport leave_out(const RunsReport& runs, LeftOut by);

}  // namespace chokepoint::validate
