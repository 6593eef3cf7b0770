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
  chokepoint::wiring::recognise(text);
  const auto groups = chokepoint::wiring::read_topo_matrices(text, "fuzz");
  if (!groups) return 0;
  static const auto accelerator = chokepoint::hardware::find_accelerator("a100-sxm4-80gb");
  for (const chokepoint::topology::HostGroup& group : *groups) {
    walk(group.host);
    const auto named = chokepoint::wiring::with_accelerator(group.host, *accelerator);
    if (named) walk(*named);
  }
  return 0;
}
