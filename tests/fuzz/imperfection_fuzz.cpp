// SPDX-License-Identifier: Apache-2.0
// Imperfections as text, one a line, checked against a small job: no input may crash, and what is accepted is in range.
#include <chokepoint/engine/imperfections.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace chokepoint;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  engine::Imperfections all;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    (void)engine::parse_imperfection(text.substr(0, end), all);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  if (!engine::check(all, 16, 2)) return 0;
  const double factor = engine::work_factor(all, 3, 1, 0, 7, true, true);
  if (!std::isfinite(factor) || factor < 0) __builtin_trap();
  if (!(engine::stall_s(all, 3) >= 0)) __builtin_trap();
  return 0;
}
