// SPDX-License-Identifier: Apache-2.0
// Any text: no crash, no hang; what is read must be drawable and every route must end.
#include <chokepoint/wiring/wiring.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace {

void walk(const chokepoint::topology::Host& host) {
  const std::vector<int> gpus = host.gpus();
  for (std::size_t i = 0; i < gpus.size() && i < 8; ++i) {
    for (std::size_t j = 0; j < gpus.size() && j < 8; ++j) {
      chokepoint::topology::route(host, gpus[i], gpus[j]);
      chokepoint::topology::path_between(host, gpus[i], gpus[j]);
    }
  }
  if (host.devices.size() < 64) chokepoint::topology::compute_nics(host);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto host = chokepoint::wiring::read_nccl_xml(text, "fuzz");
  if (host) walk(*host);
  return 0;
}
