// SPDX-License-Identifier: Apache-2.0
#include "parts.hpp"

#include <chokepoint/base/text.hpp>
#include <chokepoint/base/units.hpp>
#include <chokepoint/wiring/wiring.hpp>

#include <array>
#include <fmt/format.h>
#include <utility>

namespace chokepoint::wiring {

using namespace topology;

bool is_assumed(const Bandwidth& bandwidth) { return std::string_view(bandwidth.origin).substr(0, kAssumed.size()) == kAssumed; }

Bandwidth specified(double bytes_per_s, std::string origin) {
  Bandwidth bandwidth;
  bandwidth.specified_bytes_per_s = bytes_per_s;
  bandwidth.origin = std::move(origin);
  return bandwidth;
}

Bandwidth pcie(int generation, int lanes, std::string origin) {
  constexpr int kSlotLanes = 16;
  const int slots = lanes > kSlotLanes && lanes % kSlotLanes == 0 ? lanes / kSlotLanes : 1;  // several, taken together
  const Result<double> rate = hardware::pcie_bytes_per_s(generation, lanes / slots);
  return specified(slots * rate.value_or(0.0), std::move(origin));
}

double socket_bytes_per_s(int pcie_generation) {
  if (pcie_generation <= 3) return gbyte(10);
  return pcie_generation == 4 ? gbyte(16) : gbyte(22);
}

int add_cpu(Host& host, int numa) { return host.add_device({DeviceKind::kCpu, fmt::format("NUMA {}", numa), {}, {}, numa}); }

int add_bridge(Host& host, int cpu, int pcie_generation) {
  const std::optional<int> numa = host.devices[static_cast<std::size_t>(cpu)].numa;
  const int bridge = host.add_device(
      {DeviceKind::kHostBridge, fmt::format("root {}", host.of_kind(DeviceKind::kHostBridge).size()), {}, {}, numa});
  host.add_duplex(bridge, cpu, LinkKind::kMemory, 1,
                  specified(hardware::socket_memory_bytes_per_s(pcie_generation), fmt::format("{}memory of a PCIe {}.0 host", kAssumed, pcie_generation)));
  return bridge;
}

int add_switch(Host& host, std::string name, std::optional<int> numa) {
  return host.add_device({DeviceKind::kPcieSwitch, std::move(name), {}, {}, numa});
}

void join_sockets(Host& host, const std::vector<int>& cpus, double bytes_per_s, const std::string& origin) {
  for (std::size_t a = 0; a < cpus.size(); ++a) {
    for (std::size_t b = a + 1; b < cpus.size(); ++b) {
      host.add_duplex(cpus[a], cpus[b], LinkKind::kSocket, 1, specified(bytes_per_s, origin));
    }
  }
}

LinkKind gpu_link_kind(const hardware::Accelerator& accelerator) {
  return lower(accelerator.vendor) == "amd" ? LinkKind::kXgmi : LinkKind::kNvLink;
}

namespace {
template <class Value, std::size_t N>
Result<Value> from_name(std::string_view what, std::string_view text, const std::array<std::pair<std::string_view, Value>, N>& table) {
  const std::string word = lower(trim(text));
  std::vector<std::string> known;
  for (const auto& entry : table) {
    if (word == entry.first) return entry.second;
    known.emplace_back(entry.first);
  }
  std::vector<std::string> notes;
  if (const auto close = nearest(word, known)) notes.push_back(fmt::format("did you mean '{}'?", *close));
  return fail(fmt::format("{} is '{}', expected one of: {}", what, text, fmt::join(known, ", ")), {}, std::move(notes));
}
}  // namespace

Result<FabricKind> parse_fabric_kind(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, FabricKind>, 5> kKinds{{{"none", FabricKind::kNone},
                                                                                  {"single-switch", FabricKind::kSingleSwitch},
                                                                                  {"fat-tree", FabricKind::kFatTree},
                                                                                  {"rail-optimised", FabricKind::kRailOptimized},
                                                                                  {"rail-optimized", FabricKind::kRailOptimized}}};
  return from_name("fabric kind", text, kKinds);
}

Result<Transport> parse_transport(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, Transport>, 7> kTransports{{{"infiniband", Transport::kInfiniBand},
                                                                                      {"roce", Transport::kRoce},
                                                                                      {"tcp", Transport::kTcp},
                                                                                      {"ethernet", Transport::kTcp},
                                                                                      {"omni-path", Transport::kOmniPath},
                                                                                      {"slingshot", Transport::kSlingshot},
                                                                                      {"efa", Transport::kEfa}}};
  return from_name("transport", text, kTransports);
}

Result<Fabric> build_fabric(const hardware::FabricTemplate& description) {
  Fabric fabric;
  TRY_INTO(fabric.kind, parse_fabric_kind(description.kind));
  TRY_INTO(fabric.transport, parse_transport(description.transport));
  fabric.hosts_per_leaf = description.hosts_per_leaf;
  fabric.oversubscription = description.oversubscription;
  fabric.origin = "catalogue: " + description.name;
  return fabric;
}

}  // namespace chokepoint::wiring
