// SPDX-License-Identifier: Apache-2.0
#include "summary.hpp"

#include <algorithm>
#include <cmath>

namespace chokepoint::validate {

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

Summary summarise(std::string name, int rows, const std::vector<double>& errors) {
  Summary summary;
  summary.name = std::move(name);
  summary.rows = rows;
  summary.predicted = static_cast<int>(errors.size());
  if (errors.empty()) return summary;
  std::vector<double> absolute;
  for (const double error : errors) absolute.push_back(std::abs(error));
  for (const double error : absolute) summary.mean_absolute += error / static_cast<double>(absolute.size());
  summary.median_absolute = quantile(absolute, 0.5);
  summary.p90_absolute = quantile(absolute, 0.9);
  summary.bias = quantile(errors, 0.5);
  return summary;
}

Summary summarise(std::string name, const std::vector<std::optional<double>>& errors) {
  std::vector<double> known;
  for (const std::optional<double>& error : errors) {
    if (error) known.push_back(*error);
  }
  return summarise(std::move(name), static_cast<int>(errors.size()), known);
}

}  // namespace chokepoint::validate
