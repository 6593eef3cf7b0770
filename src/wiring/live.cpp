// SPDX-License-Identifier: Apache-2.0
// Kernel documentation: Documentation/ABI/testing/sysfs-bus-pci (current_link_speed, max_link_width, numa_node, class),
// sysfs-class-net (speed, operstate), stable/sysfs-class-infiniband (state, rate, link_layer).
#include <chokepoint/wiring/live.hpp>

#include "scan.hpp"

#include <chokepoint/base/text.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <map>

namespace chokepoint::wiring {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostDevices = 1u << 16;

/// First line of a small file, trimmed; empty when it cannot be read (the kernel answers some with an error).
std::string value_of(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return std::string(trim(line.substr(0, 4096)));
}

/// Entries of a folder by name; none when there is no such folder.
std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> list;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end && list.size() < kMostDevices; at.increment(error)) list.push_back(at->path());
  std::sort(list.begin(), list.end());
  return list;
}

/// Where a link leads; the path itself when it leads nowhere.
fs::path real(const fs::path& path) {
  std::error_code error;
  fs::path found = fs::canonical(path, error);
  return error ? path : found;
}

unsigned long long hex_of(const fs::path& path) { return to_hex(value_of(path)).value_or(0); }

/// "16.0 GT/s PCIe", "8 GT/s"; 0 for "Unknown".
double transfers_of(const std::string& text) { return leading_number(text).value_or(0) * 1e9; }

std::optional<PciLinkState> link_of(const fs::path& device, const std::string& which) {
  PciLinkState state;
  state.transfers_per_s = transfers_of(value_of(device / (which + "_link_speed")));
  state.width = leading_int(value_of(device / (which + "_link_width"))).value_or(0);
  // A port without a link says width 0 (or 255, all lanes of an absent one).
  if (state.transfers_per_s <= 0 || state.width <= 0 || state.width > 32) return std::nullopt;
  return state;
}

constexpr std::array<std::pair<unsigned, std::string_view>, 8> kVendors{{{0x10de, "NVIDIA"}, {0x1002, "AMD"}, {0x15b3, "Mellanox"}, {0x8086, "Intel"},
                                                                        {0x14e4, "Broadcom"}, {0x1d0f, "Amazon"}, {0x1da3, "Habana"}, {0x1af4, "virtio"}}};

PciRole role_of(unsigned long long code, unsigned vendor) {
  const unsigned kind = static_cast<unsigned>(code >> 8U & 0xffffU);
  if (kind == 0x0604) return PciRole::kBridge;
  if (kind == 0x0680 && vendor == 0x10de) return PciRole::kNvSwitch;
  const bool display = kind == 0x0300 || kind == 0x0302 || kind == 0x0380;
  if (kind == 0x1200 || (display && (vendor == 0x10de || (vendor == 0x1002 && kind != 0x0300)))) return PciRole::kGpu;
  if (kind == 0x0200 || kind == 0x0207 || kind == 0x0208) return PciRole::kNic;
  return PciRole::kOther;
}

PciFunction function_of(const fs::path& device) {
  PciFunction function;
  function.bus_id = pci_address(device.filename().string());
  const auto vendor = static_cast<unsigned>(hex_of(device / "vendor"));
  const auto model = static_cast<unsigned>(hex_of(device / "device"));
  function.role = role_of(hex_of(device / "class"), vendor);
  function.ids = fmt::format("{:04x}:{:04x}", vendor, model);
  const auto* const known = std::find_if(kVendors.begin(), kVendors.end(), [vendor](const auto& entry) { return entry.first == vendor; });
  function.text = fmt::format("{}[{}]", known == kVendors.end() ? "" : std::string(known->second) + " ", function.ids);
  function.capability = link_of(device, "max");
  function.state = link_of(device, "current");
  if (function.capability && function.state) {
    function.state->speed_downgraded = function.state->transfers_per_s < function.capability->transfers_per_s;
    function.state->width_downgraded = function.state->width < function.capability->width;
  }
  const std::optional<int> numa = to_int(value_of(device / "numa_node"));
  if (numa && *numa >= 0) function.numa = numa;
  return function;
}

class Reader {
 public:
  Reader(fs::path root, std::string host) : root_(std::move(root)), host_(std::move(host)) {}

  Result<LiveReading> read() {
    if (entries(root_).empty()) return fail(fmt::format("{} is empty or missing, expected Linux's sysfs", root_.string()));
    read_pci();
    read_interfaces();
    read_infiniband();
    read_nodes();
    say_what_is_missing();
    PciListing listing;
    listing.functions = std::move(functions_);
    listing.tree = listing.verbose = true;
    listing.notes = std::move(notes_);
    std::vector<Note> notes = listing.notes;
    reading_.documents.push_back({Format::kLspci, "this machine", host_, std::move(listing), std::move(notes)});
    if (!ports_.ports.empty()) reading_.documents.push_back({Format::kIbPorts, "this machine's InfiniBand ports", host_, std::move(ports_), {}});
    return std::move(reading_);
  }

 private:
  void read_pci() {
    std::map<std::string, fs::path> folders;
    for (const fs::path& link : entries(root_ / "bus/pci/devices")) {
      PciFunction function = function_of(link);
      if (function.bus_id.empty()) continue;
      by_address_[function.bus_id] = static_cast<int>(functions_.size());
      folders[function.bus_id] = real(link);
      functions_.push_back(std::move(function));
    }
    // The folder a device's folder lies in is the bridge above it.
    for (const auto& [address, folder] : folders) {
      const auto above = by_address_.find(pci_address(folder.parent_path().filename().string()));
      if (above != by_address_.end() && above->first != address) functions_[static_cast<std::size_t>(by_address_[address])].parent = above->second;
    }
    name_ports();
  }

  /// Bridges: a root port has none above; below it upstream and downstream ports of switches take turns.
  void name_ports() {
    for (PciFunction& function : functions_) {
      if (function.role != PciRole::kBridge) continue;
      int depth = 0;
      for (int at = function.parent; at >= 0 && depth < 64; at = functions_[static_cast<std::size_t>(at)].parent) ++depth;
      function.port_type = depth == 0 ? "Root Port" : depth % 2 == 1 ? "Upstream Port" : "Downstream Port";
    }
  }

  /// The PCI function that a class device (eth0, mlx5_0) belongs to; null for virtual ones. Virtio devices lie one deeper.
  PciFunction* owner(const fs::path& class_device) {
    fs::path folder = real(class_device / "device");
    for (int up = 0; up < 3; ++up, folder = folder.parent_path()) {
      const auto found = by_address_.find(pci_address(folder.filename().string()));
      if (found != by_address_.end()) return &functions_[static_cast<std::size_t>(found->second)];
    }
    return nullptr;
  }

  void read_interfaces() {
    for (const fs::path& interface : entries(root_ / "class/net")) {
      const double megabits = leading_number(value_of(interface / "speed")).value_or(0);
      std::error_code error;
      if (!fs::exists(interface / "device", error)) continue;  // lo, bridges, tunnels
      PciFunction* function = owner(interface);
      const std::string name = interface.filename().string();
      if (function == nullptr) {
        notes_.push_back({fmt::format("{}: an interface without a PCI device", name), {}});
        continue;
      }
      if (function->alias.empty()) function->alias = name;
      if (megabits > 0 && megabits < 1e8) function->line_bytes_per_s += megabits * 1e6 / 8;
      else reading_.unseen.push_back(fmt::format("{}: its speed (down, or a virtual card; `ethtool {}`)", name, name));
    }
  }

  void read_infiniband() {
    for (const fs::path& device : entries(root_ / "class/infiniband")) {
      const std::string name = device.filename().string();
      PciFunction* function = owner(device);
      double sum = 0;
      for (const fs::path& folder : entries(device / "ports")) {
        IbPort port;
        port.adapter = name;
        port.type = value_of(device / "hca_type");
        port.guid = value_of(device / "node_guid");
        port.port = to_int(folder.filename().string()).value_or(0);
        const auto word = [](const std::string& text) { return text.substr(std::min(text.size(), text.find(':') == std::string::npos ? 0 : text.find(':') + 2)); };
        const std::string state = lower(word(value_of(folder / "state")));  // "4: ACTIVE"
        port.state = state.empty() ? "Unknown" : static_cast<char>(std::toupper(static_cast<unsigned char>(state[0]))) + state.substr(1);
        port.physical = word(value_of(folder / "phys_state"));               // "5: LinkUp"
        port.bytes_per_s = leading_number(value_of(folder / "rate")).value_or(0) * 1e9 / 8;  // "400 Gb/sec (4X NDR)"
        port.link_layer = value_of(folder / "link_layer");
        if (port.state == "Active") sum += port.bytes_per_s;
        reading_.infiniband = reading_.infiniband || (port.state == "Active" && port.link_layer == "InfiniBand");
        ports_.ports.push_back(std::move(port));
      }
      if (function == nullptr) continue;
      function->alias = name;
      if (sum > 0) function->line_bytes_per_s = sum;
    }
  }

  void read_nodes() {
    std::string distances;
    for (const fs::path& node : entries(root_ / "devices/system/node")) {
      const std::string name = node.filename().string();
      if (name.substr(0, 4) != "node" || !is_digits(name.substr(4))) continue;
      const std::string row = value_of(node / "distance");
      if (!row.empty()) distances += (distances.empty() ? "" : " / ") + row;
    }
    if (distances.find('/') != std::string::npos) notes_.push_back({"NUMA distances (10 = own node): " + distances, {}});
    if (distances.empty()) reading_.unseen.push_back("NUMA nodes and their distances (devices/system/node)");
  }

  void say_what_is_missing() {
    if (functions_.empty()) reading_.unseen.push_back("PCI devices: none under bus/pci/devices (a virtual machine or container may hide them)");
    int silent = 0;
    bool switches = false;
    for (const PciFunction& function : functions_) {
      const bool counts = function.role == PciRole::kGpu || function.role == PciRole::kNic;
      silent += counts && !function.state ? 1 : 0;
      switches = switches || function.port_type == "Upstream Port";
    }
    if (silent > 0) reading_.unseen.push_back(fmt::format("link speed and width of {} GPUs or NICs (virtual devices have none)", silent));
    if (switches) reading_.unseen.push_back("access control (ACS) of PCIe switches: `lspci -vvv` as root");
  }

  fs::path root_;
  std::string host_;
  std::vector<PciFunction> functions_;
  std::map<std::string, int> by_address_;
  std::vector<Note> notes_;
  IbPorts ports_;
  LiveReading reading_;
};

}  // namespace

Result<LiveReading> read_live(const std::string& root, const std::string& host_name) { return Reader(root, host_name).read(); }

}  // namespace chokepoint::wiring
