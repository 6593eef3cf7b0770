// SPDX-License-Identifier: Apache-2.0
// Any text: no crash, no hang; what is read can be written, compared, judged and predicted on.
#include <chokepoint/measure/network_probe.hpp>
#include <chokepoint/simulate/timed.hpp>
#include <chokepoint/wiring/measured_network.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace chokepoint;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto plan = simulate::read_timed_plan(text, "fuzz");
  auto network = wiring::read_measured_network(text, "fuzz");
  if (!network) return 0;
  wiring::fabric_of(*network);
  measure::judge(*network);
  measure::compare(*network, *network);
  if (!wiring::read_measured_network(wiring::to_json(*network), "again")) __builtin_trap();
  if (network->hosts.size() > 8) return 0;
  for (const simulate::TimedStrategy strategy : {simulate::TimedStrategy::kDdp, simulate::TimedStrategy::kSharded}) {
    const simulate::TimedPlan steps{2, 1e6, 1e5, 1e-3, 1e-3, {{"", strategy, 2, false, 1e6, 1}}};
    (void)simulate::timed_step(steps, steps.cases.front(), *network);
  }
  return 0;
}
