// SPDX-License-Identifier: Apache-2.0
// Any text to the readers of nvidia-smi and rocm-smi: no crash, no hang.
#include <chokepoint/wiring/gpu_tools.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace wiring = chokepoint::wiring;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto query = wiring::read_smi_query(text, "fuzz")) (void)wiring::host_of(*query, "fuzz");
  if (const auto status = wiring::read_nvlink_status(text, "fuzz")) (void)wiring::host_of(*status, "fuzz");
  if (const auto matrix = wiring::read_peer_matrix(text, "fuzz")) (void)wiring::host_of(*matrix, "fuzz");
  if (const auto found = wiring::read_rocm_topology(text, "fuzz")) (void)wiring::host_of(*found, "fuzz");
  return 0;
}
