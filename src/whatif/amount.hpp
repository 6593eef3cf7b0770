// SPDX-License-Identifier: Apache-2.0
#pragma once
// The right-hand side of a change: "x2" and "+10 %" against what there is, or a value of its own with its unit.
#include <chokepoint/base/result.hpp>
#include <functional>
#include <string_view>

namespace chokepoint::whatif {

struct Amount {
  bool relative = false;
  double value = 0;  ///< factor when relative, else in SI units
  double against(double now) const { return relative ? now * value : value; }
};

/// `absolute` reads a value with its unit; without it only relative amounts are accepted.
Result<Amount> parse_amount(std::string_view key, std::string_view text,
                            const std::function<Result<double>(std::string_view)>& absolute = {});
Result<int> parse_count(std::string_view key, std::string_view text, int low, int high);
Result<bool> parse_switch(std::string_view key, std::string_view text);

}  // namespace chokepoint::whatif
