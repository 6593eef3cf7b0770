// SPDX-License-Identifier: Apache-2.0
// Any text as a cluster file: no crash, no hang. Host files are looked for in a folder that does not exist, so that a
// fuzzed path reads nothing.
#include <chokepoint/wiring/wiring.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.find("file") != std::string_view::npos && text.find('/') != std::string_view::npos) return 0;  // absolute paths
  chokepoint::wiring::read_cluster_yaml(text, "no-such-folder/cluster.yaml");
  return 0;
}
