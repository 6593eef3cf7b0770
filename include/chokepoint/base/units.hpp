// SPDX-License-Identifier: Apache-2.0
#pragma once
// Quantities with their units as text. Inside the engine every quantity is a double (or int64 count) in SI units whose
// name ends in the unit: `_s`, `_bytes`, `_bytes_per_s`, `_flops`, `_flops_per_s`. Text always carries the unit:
// b and B (bit, byte) and k/M/G (10^3n) and Ki/Mi/Gi (2^10n) are distinct; a non-zero number without unit is an error.
#include <chokepoint/base/result.hpp>
#include <cstdint>
#include <string>
#include <string_view>

namespace chokepoint {

/// "400 Gb/s", "25 GB/s", "200Gbps", "64 GiB/s" -> bytes per second.
Result<double> parse_rate(std::string_view text);
/// "80 GiB", "25 MB" -> bytes.
Result<double> parse_bytes(std::string_view text);
/// "8.68s", "1.5 ms", "3 us", "2 min" -> seconds.
Result<double> parse_duration(std::string_view text);
/// "989.4 TFLOP/s", "312 TFLOPS" -> FLOP per second.
Result<double> parse_flop_rate(std::string_view text);

/// Three significant digits with a fitting prefix: "25.0 GB/s", "63.8 GiB", "11.2 s", "312 TFLOP/s".
std::string format_rate(double bytes_per_s);
std::string format_bytes(double bytes);
std::string format_duration(double seconds);
std::string format_flop_rate(double flops_per_s);
/// 4096 -> "4,096".
std::string format_count(double value);
/// 8.03e9 -> "8.03 B", 1.56e12 -> "1.56 T" (parameters, tokens).
std::string format_billions(double value);

inline constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
inline constexpr double kMiB = 1024.0 * 1024.0;
/// Gb/s -> bytes/s
inline constexpr double gbit(double value) { return value * 1e9 / 8.0; }
/// GB/s -> bytes/s
inline constexpr double gbyte(double value) { return value * 1e9; }

}  // namespace chokepoint
