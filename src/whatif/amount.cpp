// SPDX-License-Identifier: Apache-2.0
#include "amount.hpp"

#include <chokepoint/base/text.hpp>
#include <fmt/format.h>
#include <optional>

namespace chokepoint::whatif {

namespace {

constexpr double kLeastFactor = 1e-6;
constexpr double kGreatestFactor = 1e6;

std::optional<double> factor_in(std::string_view text) {
  if (text.starts_with('x') || text.starts_with('*')) return to_number(trim(text.substr(1)));
  if (text.ends_with('x')) return to_number(trim(text.substr(0, text.size() - 1)));
  if (!text.ends_with('%') || !(text.starts_with('+') || text.starts_with('-'))) return std::nullopt;
  const auto percent = to_number(trim(text.substr(1, text.size() - 2)));
  if (!percent) return std::nullopt;
  return 1 + (text.front() == '-' ? -1 : 1) * *percent / 100;
}

}  // namespace

Result<Amount> parse_amount(std::string_view key, std::string_view given,
                            const std::function<Result<double>(std::string_view)>& absolute) {
  const std::string_view text = trim(given);
  if (const auto factor = factor_in(text)) {
    if (!(*factor >= kLeastFactor && *factor <= kGreatestFactor)) {
      return fail(fmt::format("{}={}: expected a factor from {:g} to {:g}", key, text, kLeastFactor, kGreatestFactor));
    }
    return Amount{true, *factor};
  }
  if (!absolute) return fail(fmt::format("{}={}: expected a factor such as x2, x0.5 or +10 %", key, text));
  Result<double> value = absolute(text);
  if (!value) {
    value.error().message = fmt::format("{}={}: {}", key, text, value.error().message);
    value.error().notes.push_back("or a factor such as x2, x0.5 or +10 %");
    return tl::make_unexpected(value.error());
  }
  if (!(*value > 0)) return fail(fmt::format("{}={}: expected a value above zero", key, text));
  return Amount{false, *value};
}

Result<int> parse_count(std::string_view key, std::string_view given, int low, int high) {
  std::string digits;
  for (const char c : trim(given)) {
    if (c != ',') digits += c;
  }
  const auto value = to_int(digits);
  if (!value || *value < low || *value > high) {
    return fail(fmt::format("{}={}: expected a whole number from {} to {}", key, trim(given), low, high));
  }
  return *value;
}

Result<bool> parse_switch(std::string_view key, std::string_view given) {
  const std::string text = lower(trim(given));
  if (text == "on" || text == "yes" || text == "true" || text == "1") return true;
  if (text == "off" || text == "no" || text == "false" || text == "0" || text == "none") return false;
  return fail(fmt::format("{}={}: expected on or off", key, text));
}

}  // namespace chokepoint::whatif
