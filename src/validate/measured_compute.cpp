// SPDX-License-Identifier: Apache-2.0
#include "summary.hpp"

#include <chokepoint/measure/compute_probe.hpp>
#include <map>

namespace chokepoint::validate {

Result<MatmulReport> validate_measured_compute(std::string_view json, const std::string& file) {
  TRY_INTO(const measure::ComputeTable table, measure::read_compute_table(json, file));
  const auto part = hardware::find_accelerator(table.device);
  MatmulReport report;
  std::map<std::string, std::vector<std::optional<double>>> by_table;
  std::vector<std::optional<double>> all;
  for (const measure::ComputeRow& row : measure::compare(table, part.value_or(hardware::Accelerator{}))) {
    MatmulRow out;
    out.row = static_cast<int>(report.rows.size()) + 1;
    out.accelerator = table.device;
    out.kernel = row.kernel;
    out.table = table.device + " " + std::string(hardware::name(row.dtype)) + ", " + row.kernel;
    out.measured_time_s = row.measured_s;
    if (part) {
      out.predicted_time_s = row.predicted_s;
      out.error = row.predicted_s / row.measured_s - 1;
    } else {
      out.reason = part.error().message;
    }
    by_table[out.table].push_back(out.error);
    all.push_back(out.error);
    report.rows.push_back(std::move(out));
  }
  for (const Note& note : table.refused) {
    MatmulRow out;
    out.row = static_cast<int>(report.rows.size()) + 1;
    out.accelerator = table.device;
    out.reason = note.text;
    all.push_back(std::nullopt);
    report.rows.push_back(std::move(out));
  }
  for (const auto& [name, errors] : by_table) report.by_table.push_back(summarise(name, errors));
  report.overall = summarise("all kernels", all);
  return report;
}

}  // namespace chokepoint::validate
