// SPDX-License-Identifier: Apache-2.0
// Kernel tables with an accelerator left out. What its generation owes to measurement (rate inside a tile, overhead of a
// tile, sustained share) first takes the value that the other generations suggest, as for a part nobody measured: the
// mean of their tiles, and their energy per FLOP. Then it is fitted on the generation's other accelerators.
// Constants that all generations share (waves, operand traffic, memory's share of power) stay: dropping one accelerator
// of seventeen moves them by less than their spread.
#include "summary.hpp"

#include <algorithm>
#include <chokepoint/calibrate/fit.hpp>
#include <map>

namespace chokepoint::validate {
namespace {

using compute::Constants;
using compute::Family;
using hardware::Architecture;

constexpr double kTableNoise = 0.1;   ///< standard deviation of the logarithm of one row
constexpr double kFullTable = 20;     ///< rows of a table beyond this add no weight
constexpr int kRounds = 3;            ///< of following the model's kinks

std::size_t at(Family family) { return static_cast<std::size_t>(family); }

bool is_product(const MatmulRow& row) { return row.time_s && row.kernel.find("attention") == std::string::npos; }

/// Constants for the accelerator `part`, which they did not see.
Constants fitted_without(const MatmulReport& report, const std::string& part, Architecture architecture) {
  simulate::Parameters base;
  base.compute = compute::as_if_unmeasured(base.compute, architecture);
  const Family family = compute::family_of(architecture);
  std::vector<calibrate::Observation> seen;
  std::map<std::string, double> rows_of;
  for (const MatmulRow& row : report.rows)
    if (is_product(row) && row.part != part && compute::family_of(row.architecture) == family) rows_of[row.table] += 1;
  std::vector<double> weight;
  for (const MatmulRow& row : report.rows) {
    if (!is_product(row) || row.part == part || compute::family_of(row.architecture) != family) continue;
    calibrate::Observation observation;
    observation.source = row.table;
    observation.measured_s = *row.measured_time_s;
    observation.time_s = [time = row.time_s](const simulate::Parameters& p) { return time(p.compute); };
    seen.push_back(std::move(observation));
    weight.push_back(std::min(1.0, kFullTable / rows_of[row.table]) / (kTableNoise * kTableNoise));
  }
  if (seen.empty()) return base.compute;
  const std::string of_family = "compute." + std::string(compute::name(family)) + ".";
  const calibrate::Linear linear = calibrate::linearise(
      seen, base,
      {of_family + "tile_fraction", of_family + "tile_overhead",
       "compute." + std::string(hardware::name(architecture)) + ".sustained_fraction"});
  // Wide: generations differ more than boards of one do.
  std::vector<double> sigma;
  for (const Parameter& p : linear.free) sigma.push_back(p.unit == "s" ? 0.7 : 0.2);
  Constants fitted = calibrate::moved(linear, calibrate::refine(seen, linear, weight, sigma, kRounds)).compute;
  double& tile = fitted.families[at(family)].tile_fraction;
  tile = std::min(tile, 1.0);
  return fitted;
}

}  // namespace

void leave_out_accelerators(MatmulReport& report) {
  std::map<std::string, Architecture> parts;
  for (const MatmulRow& row : report.rows)
    if (is_product(row)) parts[row.part] = row.architecture;
  for (const auto& [part, architecture] : parts) {
    const Constants constants = fitted_without(report, part, architecture);
    for (MatmulRow& row : report.rows)
      if (is_product(row) && row.part == part) row.left_out_error = row.time_s(constants) / *row.measured_time_s - 1;
  }
  std::map<std::string, std::vector<std::optional<double>>> by_table;
  for (const MatmulRow& row : report.rows)
    if (is_product(row)) by_table[row.table + ", " + row.kernel].push_back(row.left_out_error);
  report.left_out_by_table.clear();
  for (const auto& [name, errors] : by_table) report.left_out_by_table.push_back(summarise(name, errors));
}

}  // namespace chokepoint::validate
