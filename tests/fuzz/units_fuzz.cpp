// SPDX-License-Identifier: Apache-2.0
// Quantities with units: any text gives a finite quantity or an error, never a crash.
#include <chokepoint/base/units.hpp>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace chokepoint;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto check = [](const Result<double>& value, std::string (*text_of)(double)) {
    if (value ? !std::isfinite(*value) || text_of(*value).empty() : value.error().message.empty()) std::abort();
  };
  check(parse_rate(text), format_rate);
  check(parse_bytes(text), format_bytes);
  check(parse_duration(text), format_duration);
  check(parse_flop_rate(text), format_flop_rate);
  return 0;
}
