// SPDX-License-Identifier: Apache-2.0
// Any text to the readers of benchmarks: no crash, no hang.
#include <chokepoint/wiring/tables.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace wiring = chokepoint::wiring;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto table = wiring::read_nccl_tests(text, "fuzz")) (void)wiring::hosts_of(*table, "fuzz");
  (void)wiring::read_osu(text, "fuzz");
  (void)wiring::read_perftest(text, "fuzz");
  (void)wiring::read_deepspeed_comms(text, "fuzz");
  if (const auto pairs = wiring::read_pair_tables(text, "fuzz")) (void)wiring::host_of(*pairs, "fuzz");
  return 0;
}
