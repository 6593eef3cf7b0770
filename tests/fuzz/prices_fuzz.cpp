// SPDX-License-Identifier: Apache-2.0
// Price lists: any text is a list or an error with a message.
#include <chokepoint/whatif/prices.hpp>

#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace chokepoint;
  const auto prices = whatif::read_prices({reinterpret_cast<const char*>(data), size}, "fuzz.yaml");
  if (!prices && prices.error().message.empty()) std::abort();
  return 0;
}
