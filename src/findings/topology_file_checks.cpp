// SPDX-License-Identifier: Apache-2.0
// NCCL topology files: links declared almost without bandwidth, rates no port has, parts that are missing.
#include "collector.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <set>

namespace chokepoint::findings {

using namespace topology;

namespace {

/// Line rates of Ethernet, InfiniBand (4x) and Omni-Path ports, in Gb/s. Source: IEEE 802.3 and IBTA rate tables.
constexpr std::array<double, 16> kPortRates{1, 2.5, 5, 10, 16, 20, 25, 32, 40, 50, 56, 100, 200, 400, 800, 1600};
/// NCCL writes 10000 for interfaces whose rate it cannot read, which is in the list.

double specified_of(const Link& link) { return link.bandwidth.specified_bytes_per_s.value_or(link.bandwidth.negotiated_bytes_per_s.value_or(0)); }

bool ends_at_device(const Host& host, int node) {
  const DeviceKind kind = host.devices[static_cast<std::size_t>(node)].kind;
  return kind == DeviceKind::kGpu || kind == DeviceKind::kNic;
}

/// Uplinks of switches: slower than what hangs below. `broken` is what no working bridge above a GPU has.
void check_uplinks(Collector& out, const Host& host, const std::string& file) {
  constexpr double kBroken = 0.6e9;  // PCIe 1.0 x2 and less; NCCL prints the emulated bridge as PCI[0.2]
  int slow = 0;
  std::string first;
  double rate = 0;
  double below_rate = 0;
  for (const Link& up : host.links) {
    const Device& from = host.devices[static_cast<std::size_t>(up.from)];
    if (up.kind != LinkKind::kPcie || from.kind != DeviceKind::kPcieSwitch || ends_at_device(host, up.to)) continue;
    double below = 0;
    bool parent = false;
    for (const Link& link : host.links) {
      if (link.to != up.from || link.kind != LinkKind::kPcie) continue;
      if (link.from == up.to) parent = true;
      else below = std::max(below, specified_of(link));
    }
    const double own = specified_of(up);
    if (!parent || own <= 0 || below <= 0 || up.bandwidth.origin.substr(0, 8) == "assumed:") continue;
    if (own < kBroken) {
      out.add("virtual-bridge-slow", from.name, fmt::format("{} carries {:.2g} GB/s upwards, the devices below it {:.3g} GB/s each", from.name, own / 1e9, below / 1e9), {{file, 0, 0}}).effect = {EffectKind::kGpuSlot, own / below, {}};
    } else if (own * 1.5 < below) {
      ++slow;
      if (first.empty()) first = from.name;
      rate = own;
      below_rate = below;
    }
  }
  if (slow > 0) out.add("topology-uplink-slow", file, fmt::format("{} switch uplinks (first: {}) carry {:.3g} GB/s, devices below them {:.3g} GB/s", slow, first, rate / 1e9, below_rate / 1e9), {{file, 0, 0}});
}

/// GPUs or NICs whose own link is declared at next to nothing; resting GPUs show 2.5 GT/s at full width, which is no fault.
void check_endpoints(Collector& out, const Host& host, const std::string& file) {
  constexpr double kNothing = 0.6e9;
  std::vector<std::string> slow;
  for (const Link& link : host.links) {
    const Device& from = host.devices[static_cast<std::size_t>(link.from)];
    if (link.kind != LinkKind::kPcie || from.kind != DeviceKind::kGpu || ends_at_device(host, link.to)) continue;
    if (specified_of(link) > 0 && specified_of(link) < kNothing && link.bandwidth.origin.substr(0, 8) != "assumed:") slow.push_back(from.name);
  }
  if (!slow.empty()) out.add("virtual-bridge-slow", slow.front(), fmt::format("{} GPUs hang on links declared below {:.1g} GB/s", slow.size(), kNothing / 1e9), {{file, 0, 0}}).effect = {EffectKind::kGpuSlot, 0.02, {}};
}

void check_rates(Collector& out, const Host& host, const std::string& file) {
  std::map<double, int> odd;
  for (const int nic : host.nics()) {
    const double gigabit = host.devices[static_cast<std::size_t>(nic)].line_bytes_per_s * 8 / 1e9;
    const bool usual = gigabit <= 0 || std::any_of(kPortRates.begin(), kPortRates.end(), [gigabit](double rate) { return std::abs(gigabit - rate) < 0.02 * rate; });
    if (!usual) ++odd[gigabit];
  }
  for (const auto& [rate, count] : odd) out.add("topology-rate-unusual", file, fmt::format("{} ports are declared with {:g} Gb/s", count, rate), {{file, 0, 0}});
}

void check_missing(Collector& out, const Host& host, const std::string& file) {
  // GPU numbers that leave gaps, and links to GPUs that are not in the file.
  std::set<int> numbers;
  for (const int gpu : host.gpus()) {
    const std::string& name = host.devices[static_cast<std::size_t>(gpu)].name;
    if (name.substr(0, 3) == "GPU" && name.size() > 3 && name.find_first_not_of("0123456789", 3) == std::string::npos) numbers.insert(std::stoi(name.substr(3, 6)));
  }
  if (!numbers.empty() && *numbers.rbegin() + 1 != static_cast<int>(numbers.size())) {
    out.add("topology-file-contradicts", file, fmt::format("the highest GPU number is {}, {} GPUs are in the file", *numbers.rbegin(), numbers.size()), {{file, 0, 0}});
  }
  for (const Note& note : host.notes) {
    if (note.text.find("GPU links lead to devices that are not in the file") != std::string::npos) out.add("topology-file-contradicts", file, note.text, {note.pos});
  }
}

void check_overlay(Collector& out, const Host& host, const std::string& file) {
  for (const Note& note : host.notes) {
    if (note.text.find("an overlay") == std::string::npos) continue;
    out.add("topology-overlay", file, fmt::format("{} GPUs and {} NICs by PCI class only", host.gpus().size(), host.nics().size()), {{file, 1, 0}});
    return;
  }
}

void check_direct(Collector& out, const Host& host, const std::string& file) {
  if (!host.gpudirect_rdma && !host.nics().empty() && !host.gpus().empty()) {
    for (const Note& note : host.notes) {
      if (note.text.find("GPUDirect RDMA is off") == std::string::npos) continue;
      out.add("gdr-off", file, note.text, {{file, note.pos.line, 0}}).effect = {EffectKind::kNoGpuDirect, 1, {}};
    }
  }
}

void check_graphs(Collector& out, const wiring::NcclGraphs& graphs, const std::string& file) {
  constexpr double kSlow = 1e9;
  for (const wiring::NcclGraph& graph : graphs.graphs) {
    if (graph.channels.empty()) continue;
    const SourcePos at{file, graph.line, 0};
    const double rate = std::min(graph.intra_bytes_per_s, graph.inter_bytes_per_s);
    int crossing = 0;
    for (const auto& channel : graph.channels) crossing += channel.nets.size() == 2 && channel.nets[0] != channel.nets[1] ? 1 : 0;
    if (crossing > 0) {
      const auto& nets = graph.channels.front().nets;
      // Without a switch between single-GPU hosts the cables must follow; behind switches any port reaches any other.
      const Severity severity = graph.cross_nic != 0 && graph.channels.front().gpus.size() == 1 ? Severity::kWarning : Severity::kInfo;
      out.add(severity, "ring-cross-port", file, fmt::format("graph {}: {} of {} channels receive on one port and send on another (first: net {} and net {})", graph.id, crossing, graph.channels.size(), nets.empty() ? 0 : nets.front(), nets.empty() ? 0 : nets.back()), {at});
    }
    if (rate > 0 && rate < kSlow) out.add("graph-slow", file, fmt::format("graph {}: {:.2g} GB/s per channel", graph.id, rate / 1e9), {at});
    if (graph.intra_type == "SYS" && graph.channels.front().gpus.size() > 1) {
      out.add("ring-crosses-sockets", file, fmt::format("graph {}: rings of {} GPUs cross the sockets (typeintra SYS) at {:.3g} GB/s", graph.id, graph.channels.front().gpus.size(), graph.intra_bytes_per_s / 1e9), {at});
      return;
    }
  }
}

}  // namespace

void check_topology_file(Collector& out) {
  for (const wiring::Document& document : out.assembly().documents) {
    if (const auto* graphs = std::get_if<wiring::NcclGraphs>(&document.content)) check_graphs(out, *graphs, document.file);
    const auto* host = std::get_if<Host>(&document.content);
    if (host == nullptr) continue;
    check_uplinks(out, *host, document.file);
    check_endpoints(out, *host, document.file);
    check_rates(out, *host, document.file);
    check_missing(out, *host, document.file);
    check_overlay(out, *host, document.file);
    check_direct(out, *host, document.file);
  }
}

}  // namespace chokepoint::findings
