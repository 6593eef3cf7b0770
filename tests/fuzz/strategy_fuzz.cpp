// SPDX-License-Identifier: Apache-2.0
// Strategy text: what parses must print and parse back to the same value.
#include <chokepoint/parallel/job.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace chokepoint;
  const auto strategy = parallel::parse_strategy({reinterpret_cast<const char*>(data), size});
  if (!strategy) return 0;
  const auto again = parallel::parse_strategy(parallel::to_text(*strategy));
  if (!again) __builtin_trap();
  return 0;
}
