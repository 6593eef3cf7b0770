// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/text.hpp>
#include <chokepoint/base/units.hpp>

#include <cctype>
#include <cmath>
#include <fmt/format.h>

namespace chokepoint {

namespace {

struct Split {
  double value;
  std::string unit;
};

/// Number and the unit text after it; thousands separators ("4,096") are accepted.
Result<Split> split_quantity(std::string_view text, std::string_view example) {
  const std::string_view whole = trim(text);
  std::string digits;
  std::size_t i = 0;
  while (i < whole.size()) {
    const char c = whole[i];
    const bool exponent_sign = (c == '-' || c == '+') && (digits.empty() || lower(digits.substr(digits.size() - 1)) == "e");
    const bool exponent = (c == 'e' || c == 'E') && !digits.empty() && i + 1 < whole.size() &&
                          (std::isdigit(static_cast<unsigned char>(whole[i + 1])) || whole[i + 1] == '-' || whole[i + 1] == '+');
    if (std::isdigit(static_cast<unsigned char>(c)) || c == '.' || exponent || exponent_sign) {
      digits += c;
    } else if (c != ',' && c != '_') {
      break;
    }
    ++i;
  }
  const auto value = to_number(digits);
  if (!value) return fail(fmt::format("'{}' is not a quantity; expected a number with a unit such as \"{}\"", text, example));
  const std::string unit(trim(whole.substr(i)));
  if (unit.empty() && *value != 0.0) {
    return fail(fmt::format("'{}' has no unit; expected one such as \"{}\"", text, example));
  }
  return Split{*value, unit};
}

/// Factor of a prefix letter sequence at the start of `unit`; the prefix is removed.
double take_prefix(std::string_view& unit) {
  static constexpr std::string_view kLetters = "kMGTP";
  if (unit.size() < 2) return 1.0;
  const std::size_t power = unit[0] == 'K' ? 0 : kLetters.find(unit[0]);
  if (power == std::string_view::npos) return 1.0;
  if (unit[1] == 'i') {
    unit.remove_prefix(2);
    return std::pow(1024.0, static_cast<double>(power + 1));
  }
  unit.remove_prefix(1);
  return std::pow(1000.0, static_cast<double>(power + 1));
}

/// Quantities beyond 1e30 are slips of the keyboard, and products of them would overflow.
Result<double> in_range(double value, std::string_view text) {
  if (std::isfinite(value) && value <= 1e30) return value;
  return fail(fmt::format("'{}' is out of range; expected at most 1e30 in SI units", text));
}

std::string with_prefix(double value, double base, std::span<const std::string_view> units) {
  std::size_t i = 0;
  double scaled = value;
  while (i + 1 < units.size() && std::abs(scaled) >= 999.5) {
    scaled /= base;
    ++i;
  }
  const double size = std::abs(scaled);
  const int decimals = size >= 99.95 || scaled == std::floor(scaled) * (i == 0 ? 1 : 0) ? 0 : size >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", scaled, decimals, units[i]);
}

}  // namespace

Result<double> parse_rate(std::string_view text) {
  TRY_INTO(const Split parts, split_quantity(text, "400 Gb/s"));
  if (parts.value == 0.0 && parts.unit.empty()) return 0.0;
  std::string_view unit = parts.unit;
  const double prefix = take_prefix(unit);
  double factor = 0;
  if (unit == "b/s" || unit == "bps" || unit == "bit/s" || unit == "bits/s") factor = 1.0 / 8.0;
  if (unit == "B/s" || unit == "Bps" || unit == "byte/s" || unit == "bytes/s") factor = 1.0;
  if (factor == 0) {
    return fail(fmt::format("'{}' is not a bandwidth; expected a unit such as \"Gb/s\" (bits) or \"GB/s\" (bytes)", text));
  }
  if (parts.value < 0) return fail(fmt::format("bandwidth '{}' is negative", text));
  return in_range(parts.value * prefix * factor, text);
}

Result<double> parse_bytes(std::string_view text) {
  TRY_INTO(const Split parts, split_quantity(text, "80 GiB"));
  if (parts.value == 0.0 && parts.unit.empty()) return 0.0;
  std::string_view unit = parts.unit;
  const double prefix = take_prefix(unit);
  if (unit != "B" && unit != "byte" && unit != "bytes") {
    return fail(fmt::format("'{}' is not a size in bytes; expected a unit such as \"GiB\" (2^30) or \"GB\" (10^9)", text));
  }
  if (parts.value < 0) return fail(fmt::format("size '{}' is negative", text));
  return in_range(parts.value * prefix, text);
}

Result<double> parse_duration(std::string_view text) {
  TRY_INTO(const Split parts, split_quantity(text, "8.68 s"));
  if (parts.value == 0.0 && parts.unit.empty()) return 0.0;
  double factor = 0;
  if (parts.unit == "s" || parts.unit == "sec" || parts.unit == "seconds") factor = 1;
  if (parts.unit == "ms") factor = 1e-3;
  if (parts.unit == "us" || parts.unit == "\u00b5s" || parts.unit == "\u03bcs") factor = 1e-6;
  if (parts.unit == "ns") factor = 1e-9;
  if (parts.unit == "min") factor = 60;
  if (parts.unit == "h") factor = 3600;
  if (factor == 0) return fail(fmt::format("'{}' is not a duration; expected s, ms, us, ns, min or h", text));
  if (parts.value < 0) return fail(fmt::format("duration '{}' is negative", text));
  return in_range(parts.value * factor, text);
}

Result<double> parse_flop_rate(std::string_view text) {
  TRY_INTO(const Split parts, split_quantity(text, "312 TFLOP/s"));
  if (parts.value == 0.0 && parts.unit.empty()) return 0.0;
  std::string_view unit = parts.unit;
  const double prefix = take_prefix(unit);
  const std::string name = lower(unit);
  if (name != "flop/s" && name != "flops" && name != "flops/s") {
    return fail(fmt::format("'{}' is not an arithmetic rate; expected a unit such as \"TFLOP/s\"", text));
  }
  if (parts.value < 0) return fail(fmt::format("arithmetic rate '{}' is negative", text));
  return in_range(parts.value * prefix, text);
}

std::string format_rate(double bytes_per_s) {
  static constexpr std::string_view kUnits[] = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s"};
  return with_prefix(bytes_per_s, 1000, kUnits);
}

std::string format_bytes(double bytes) {
  static constexpr std::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  return with_prefix(bytes, 1024, kUnits);
}

std::string format_duration(double seconds) {
  if (seconds == 0) return "0 s";
  const double size = std::abs(seconds);
  const double scale = size >= 1 ? 1 : size >= 1e-3 ? 1e3 : size >= 1e-6 ? 1e6 : 1e9;
  const std::string_view unit = scale == 1 ? "s" : scale == 1e3 ? "ms" : scale == 1e6 ? "us" : "ns";
  const double scaled = seconds * scale;
  const int decimals = std::abs(scaled) >= 99.95 ? 0 : std::abs(scaled) >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", scaled, decimals, unit);
}

std::string format_flop_rate(double flops_per_s) {
  static constexpr std::string_view kUnits[] = {"FLOP/s", "kFLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s", "EFLOP/s"};
  // Peaks of clusters read better in TFLOP/s up to 99,999 than as a short PFLOP/s figure.
  if (flops_per_s >= 1e12 && flops_per_s < 1e17) {
    const double tera = flops_per_s / 1e12;
    return tera >= 999.5 ? format_count(std::round(tera)) + " TFLOP/s" : with_prefix(flops_per_s, 1000, kUnits);
  }
  return with_prefix(flops_per_s, 1000, kUnits);
}

std::string format_count(double value) {
  std::string digits = fmt::format("{:.0f}", std::abs(value));
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
  return (value < 0 && digits != "0" ? "-" : "") + digits;
}

std::string format_billions(double value) {
  static constexpr std::string_view kUnits[] = {"", "k", "M", "B", "T"};
  std::string text = with_prefix(value, 1000, kUnits);
  if (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

}  // namespace chokepoint
