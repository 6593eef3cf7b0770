// SPDX-License-Identifier: Apache-2.0
// Any text to the reader of lspci: no crash, no hang.
#include <chokepoint/wiring/lspci.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace wiring = chokepoint::wiring;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto listing = wiring::read_lspci(text, "fuzz")) (void)wiring::host_of(*listing, "fuzz");
  return 0;
}
