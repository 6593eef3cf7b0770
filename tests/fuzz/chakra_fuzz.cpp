// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/trace/trace.hpp>
#include <cstddef>
#include <cstdint>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(chokepoint::trace::looks_like_chakra(text));
  static_cast<void>(chokepoint::trace::read_chakra_text(text, "fuzz.0.et"));
  return 0;
}
