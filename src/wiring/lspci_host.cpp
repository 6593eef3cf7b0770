// SPDX-License-Identifier: Apache-2.0
// PCI listing -> host. A switch is an upstream port with its downstream ports; root ports and downstream ports are ends
// of links, not devices of their own.
#include <chokepoint/wiring/lspci.hpp>

#include "parts.hpp"
#include "scan.hpp"

#include <chokepoint/hardware/catalogue.hpp>
#include <chokepoint/wiring/wiring.hpp>

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>

namespace chokepoint::wiring {

using namespace topology;

namespace {

constexpr int kMaxDepth = 32;

int generation_of(double transfers_per_s) {
  const double giga = transfers_per_s / 1e9;
  return giga >= 64 ? 6 : giga >= 32 ? 5 : giga >= 16 ? 4 : giga >= 8 ? 3 : giga >= 5 ? 2 : 1;
}

/// Speed drops when a device rests; the width does not. So what a resting link trained at is taken from its width alone.
Bandwidth link_bandwidth(const PciFunction& function, const std::string& file) {
  if (!function.capability && !function.state) return pcie(4, 16, std::string(kAssumed) + "link state not in the file");
  const PciLinkState& best = function.capability ? *function.capability : *function.state;
  Bandwidth bandwidth = pcie(generation_of(best.transfers_per_s), std::max(1, best.width), file);
  if (function.state && function.state->width > 0) {
    const bool resting = function.state->transfers_per_s <= 2.5e9 && function.state->width == best.width;
    const double speed = resting ? best.transfers_per_s : function.state->transfers_per_s;
    bandwidth.negotiated_bytes_per_s = pcie(generation_of(speed), function.state->width, file).specified_bytes_per_s;
  }
  return bandwidth;
}

class Builder {
 public:
  Builder(const PciListing& listing, const std::string& file) : listing_(listing), file_(file) {}
  Host build();

 private:
  int node_above(int function, int depth);
  int root_of(const PciFunction& function);
  bool is_switch(int function) const;

  const PciListing& listing_;
  std::string file_;
  Host host_;
  std::map<int, int> cpus_;
  std::map<std::pair<int, int>, int> roots_;
  std::map<int, int> switches_;
};

bool Builder::is_switch(int function) const {
  const PciFunction& bridge = listing_.functions[static_cast<std::size_t>(function)];
  if (!bridge.port_type.empty()) return bridge.port_type == "Upstream Port";
  if (bridge.parent < 0) return false;
  // Without port types: root port, upstream port, downstream port, upstream port ... alternate down the tree.
  int depth = 0;
  for (int at = bridge.parent; at >= 0 && depth < kMaxDepth; at = listing_.functions[static_cast<std::size_t>(at)].parent) ++depth;
  return depth % 2 == 1;
}

int Builder::root_of(const PciFunction& function) {
  int top_bus = function.bus();
  const PciFunction* at = &function;
  for (int depth = 0; at->parent >= 0 && depth < kMaxDepth; ++depth) {
    at = &listing_.functions[static_cast<std::size_t>(at->parent)];
    top_bus = at->bus();
  }
  const int numa = std::max(0, function.numa.value_or(at->numa.value_or(0)));
  if (cpus_.count(numa) == 0) cpus_[numa] = add_cpu(host_, numa);
  const std::pair<int, int> key = at == &function ? std::make_pair(-1, numa) : std::make_pair(at->domain(), top_bus);
  if (roots_.count(key) == 0) roots_[key] = add_bridge(host_, cpus_[numa], 5);
  return roots_[key];
}

/// The device that the link above `function` leads to.
int Builder::node_above(int function, int depth) {
  const PciFunction& child = listing_.functions[static_cast<std::size_t>(function)];
  int parent = child.parent;
  for (int i = 0; parent >= 0 && i < kMaxDepth; ++i) {
    if (is_switch(parent)) break;
    parent = listing_.functions[static_cast<std::size_t>(parent)].parent;
  }
  if (parent < 0 || depth >= kMaxDepth) return root_of(child);
  if (const auto known = switches_.find(parent); known != switches_.end()) return known->second;
  const PciFunction& upstream = listing_.functions[static_cast<std::size_t>(parent)];
  const int above = node_above(parent, depth + 1);
  const int device = add_switch(host_, fmt::format("switch {}", upstream.bus_id), child.numa);
  host_.devices[static_cast<std::size_t>(device)].bus_id = upstream.bus_id;
  host_.devices[static_cast<std::size_t>(device)].model = upstream.text;
  const Bandwidth bandwidth = link_bandwidth(upstream, file_);
  host_.add_duplex(device, above, LinkKind::kPcie, upstream.capability ? std::max(1, upstream.capability->width) : 16, bandwidth);
  switches_[parent] = device;
  return device;
}

Host Builder::build() {
  host_.notes = listing_.notes;
  int gpus = 0;
  int nics = 0;
  int nvswitches = 0;
  for (std::size_t i = 0; i < listing_.functions.size(); ++i) {
    const PciFunction& function = listing_.functions[i];
    if (function.role != PciRole::kGpu && function.role != PciRole::kNic && function.role != PciRole::kNvSwitch) continue;
    if (function.role == PciRole::kNvSwitch) {
      host_.add_device({DeviceKind::kNvSwitch, fmt::format("NVSwitch{}", nvswitches++), function.text, function.bus_id, function.numa});
      continue;
    }
    const bool gpu = function.role == PciRole::kGpu;
    const int above = node_above(static_cast<int>(i), 0);
    const int device = host_.add_device({gpu ? DeviceKind::kGpu : DeviceKind::kNic, gpu ? fmt::format("GPU{}", gpus++) : fmt::format("NIC{}", nics++),
                                         function.text, function.bus_id, function.numa});
    host_.devices[static_cast<std::size_t>(device)].alias = function.alias;
    host_.devices[static_cast<std::size_t>(device)].line_bytes_per_s = function.line_bytes_per_s;
    host_.add_duplex(device, above, LinkKind::kPcie, function.capability ? std::max(1, function.capability->width) : 16, link_bandwidth(function, file_));
  }
  std::vector<int> sockets;
  for (const auto& [numa, cpu] : cpus_) sockets.push_back(cpu);
  join_sockets(host_, sockets, socket_bytes_per_s(5), std::string(kAssumed) + "sockets");
  bool nested = false;
  for (const PciFunction& function : listing_.functions) nested = nested || function.parent >= 0;
  if (!nested) host_.notes.push_back({"no bridge says which bus is below it, so the PCIe tree stays unknown", {file_, 0, 0}});
  if (nvswitches > 0) host_.notes.push_back({fmt::format("{} NVSwitch bridges: GPUs joined by NVSwitch; `nvidia-smi topo -m` shows the links", nvswitches), {file_, 0, 0}});
  if (gpus > 0) host_.notes.push_back({"GPUs are numbered by PCI address; NVLink is not in lspci", {file_, 0, 0}});
  return std::move(host_);
}

}  // namespace

Host host_of(const PciListing& listing, const std::string& file) { return Builder(listing, file).build(); }

}  // namespace chokepoint::wiring
