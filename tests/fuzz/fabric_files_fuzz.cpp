// SPDX-License-Identifier: Apache-2.0
// Any text to the readers of fabric tools: no crash, no hang.
#include <chokepoint/wiring/fabric_files.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace wiring = chokepoint::wiring;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto listing = wiring::read_fabric(text, "fuzz")) (void)chokepoint::topology::shape_of(listing->graph);
  if (const auto ports = wiring::read_ibstat(text, "fuzz")) (void)wiring::host_of(*ports, "fuzz");
  if (const auto ports = wiring::read_ib_devices(text, "fuzz")) (void)wiring::host_of(*ports, "fuzz");
  (void)wiring::read_perfquery(text, "fuzz");
  (void)wiring::read_guid_list(text, "fuzz");
  if (const auto slurm = wiring::read_slurm_topology(text, "fuzz")) (void)wiring::graph_of(*slurm);
  return 0;
}
