// SPDX-License-Identifier: Apache-2.0
// Any text to the readers of hwloc XML, NCCL graphs and training logs: no crash, no hang.
#include <chokepoint/wiring/host_files.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace wiring = chokepoint::wiring;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto found = wiring::read_hwloc_xml(text, "fuzz")) (void)wiring::host_of(*found, "fuzz");
  (void)wiring::read_nccl_graph_xml(text, "fuzz");
  (void)wiring::read_training_log(text, "fuzz");
  return 0;
}
