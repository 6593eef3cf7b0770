// SPDX-License-Identifier: Apache-2.0
#pragma once
// Error statistics over rows of any table.
#include <chokepoint/validate/validate.hpp>
#include <optional>
#include <string>
#include <vector>

namespace chokepoint::validate {

/// Value at share `q` (0..1) of the sorted values, linear between neighbours; 0 for none.
double quantile(std::vector<double> values, double q);

/// `errors` of the predicted ones among `rows` rows with a measured value.
Summary summarise(std::string name, int rows, const std::vector<double>& errors);
/// One entry per row with a measured value; entries without a value are rows without a prediction.
Summary summarise(std::string name, const std::vector<std::optional<double>>& errors);

}  // namespace chokepoint::validate
