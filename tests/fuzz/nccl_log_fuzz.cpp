// SPDX-License-Identifier: Apache-2.0
// Any text to the reader of NCCL's log: no crash, no hang.
#include <chokepoint/wiring/nccl_log.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace wiring = chokepoint::wiring;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)wiring::read_nccl_log(text, "fuzz");
  return 0;
}
