// SPDX-License-Identifier: Apache-2.0
// hwloc topology -> host. Below a root port, upstream and downstream ports of switches alternate.
#include <chokepoint/wiring/host_files.hpp>

#include "parts.hpp"
#include "scan.hpp"

#include <chokepoint/base/text.hpp>
#include <chokepoint/hardware/catalogue.hpp>
#include <chokepoint/wiring/wiring.hpp>

#include <algorithm>
#include <fmt/format.h>

namespace chokepoint::wiring {

using namespace topology;

namespace {

bool is_gpu(const HwlocPci& device) {
  const std::string vendor = device.ids.substr(0, 4);
  const bool display = device.class_id == 0x0300 || device.class_id == 0x0302 || device.class_id == 0x0380;
  return (display && (vendor == "10de" || (vendor == "1002" && device.class_id != 0x0300))) || device.class_id == 0x1200;
}

class Builder {
 public:
  Builder(const HwlocTopology& found, const std::string& file) : found_(found), file_(file) {}
  Host build();

 private:
  /// OS name of a PCI device: RDMA names before interface names.
  std::string os_name(int pci, bool gpu) const;
  int attach_point(const HwlocPci& device);
  void add(int index, bool gpu, int number);
  int cpu_of_package(int package) const;
  void add_nvlinks();

  const HwlocTopology& found_;
  std::string file_;
  Host host_;
  std::map<int, int> cpus_;
  std::map<std::string, int> points_;
  std::map<std::string, int> by_os_name_;
};

std::string Builder::os_name(int pci, bool gpu) const {
  std::string best;
  for (const HwlocOsDevice& device : found_.devices) {
    if (device.pci != pci) continue;
    const std::string_view name = device.name;
    const bool rdma = name.substr(0, 3) == "mlx" || name.substr(0, 3) == "hfi" || name.substr(0, 3) == "bnx" || name.substr(0, 3) == "irdma" || name.substr(0, 3) == "qib";
    if (gpu ? name.substr(0, 4) == "nvml" || name.substr(0, 4) == "rsmi" : rdma) return device.name;
    if (best.empty() && (gpu ? name.substr(0, 4) == "cuda" : name.substr(0, 3) == "eth" || name.substr(0, 2) == "en" || name.substr(0, 2) == "ib" || name.substr(0, 5) == "usnic")) best = device.name;
  }
  return best;
}

int Builder::attach_point(const HwlocPci& device) {
  const int numa = std::max(0, device.numa);
  if (cpus_.count(numa) == 0) cpus_[numa] = add_cpu(host_, numa);
  // bridges: host bridge, root port, then pairs of (upstream, downstream) ports.
  std::string root = device.bridges.empty() ? fmt::format("numa {}", numa) : device.bridges.front();
  if (points_.count(root) == 0) points_[root] = add_bridge(host_, cpus_[numa], 4);
  int at = points_[root];
  for (std::size_t i = 2; i + 1 < device.bridges.size(); i += 2) {
    const std::string& upstream = device.bridges[i];
    if (points_.count(upstream) == 0) {
      points_[upstream] = add_switch(host_, "switch " + upstream, device.numa >= 0 ? std::optional<int>(device.numa) : std::nullopt);
      host_.devices[static_cast<std::size_t>(points_[upstream])].bus_id = upstream;
      host_.add_duplex(points_[upstream], at, LinkKind::kPcie, 16, pcie(4, 16, std::string(kAssumed) + "hwloc gives rates of devices, not of switch uplinks"));
    }
    at = points_[upstream];
  }
  return at;
}

void Builder::add(int index, bool gpu, int number) {
  const HwlocPci& device = found_.pci_devices[static_cast<std::size_t>(index)];
  const std::string os = os_name(index, gpu);
  Device made{gpu ? DeviceKind::kGpu : DeviceKind::kNic, gpu ? fmt::format("GPU{}", number) : os.empty() ? fmt::format("NIC{}", number) : os, device.name, device.bus_id,
              device.numa >= 0 ? std::optional<int>(device.numa) : std::nullopt};
  if (gpu) made.alias = os;
  const int at = attach_point(device);
  const int node = host_.add_device(std::move(made));
  if (!os.empty()) by_os_name_[os] = node;
  for (const HwlocOsDevice& other : found_.devices) {
    if (other.pci == index) by_os_name_[other.name] = node;
  }
  Bandwidth bandwidth = device.link_bytes_per_s > 0 ? specified(device.link_bytes_per_s, file_) : pcie(4, 16, std::string(kAssumed) + "link speed not in the file");
  if (device.link_bytes_per_s > 0) bandwidth.negotiated_bytes_per_s = device.link_bytes_per_s;
  host_.add_duplex(node, at, LinkKind::kPcie, 16, bandwidth);
}

/// The package's first NUMA node; packages and nodes are in the same order. -1 when it has none.
int Builder::cpu_of_package(int package) const {
  const auto packages = found_.counts.find("Package");
  if (packages == found_.counts.end() || packages->second == 0 || cpus_.empty()) return -1;
  // os_index of packages may have gaps (POWER: 0 and 1, or 0 and 8); beyond the count it is the last one.
  const std::size_t which = std::min(static_cast<std::size_t>(std::min(package, packages->second - 1)) * cpus_.size() / static_cast<std::size_t>(packages->second), cpus_.size() - 1);
  return std::next(cpus_.begin(), static_cast<std::ptrdiff_t>(which))->second;
}

/// Rates between GPUs, and between GPUs and other ends (CPU packages, NVSwitches) of hwloc's matrix, in MB/s.
void Builder::add_nvlinks() {
  for (const HwlocDistances& matrix : found_.distances) {
    if (matrix.name != "NVLinkBandwidth" && matrix.name != "XGMIBandwidth") continue;
    const LinkKind kind = matrix.name == "NVLinkBandwidth" ? LinkKind::kNvLink : LinkKind::kXgmi;
    const std::size_t n = matrix.objects.size();
    std::map<std::size_t, int> device_of;
    int fabric = -1;
    for (std::size_t i = 0; i < n; ++i) {
      const auto known = by_os_name_.find(matrix.objects[i]);
      if (known != by_os_name_.end()) device_of[i] = known->second;
      else if (matrix.objects[i].substr(0, 8) == "Package ") device_of[i] = cpu_of_package(leading_int(matrix.objects[i].substr(8)).value_or(0));
    }
    for (std::size_t i = 0; i < n; ++i) {
      double to_fabric = 0;
      for (std::size_t j = 0; j < n; ++j) {
        const double rate = matrix.values[i * n + j] * 1e6;
        const bool gpu = device_of.count(i) != 0 && host_.devices[static_cast<std::size_t>(std::max(0, device_of[i]))].kind == DeviceKind::kGpu;
        if (i == j || rate <= 0 || !gpu) continue;
        if (device_of.count(j) == 0) to_fabric += rate;
        else if (i < j && device_of[j] >= 0) host_.add_duplex(device_of[i], device_of[j], kind, 1, specified(rate, file_));
      }
      if (to_fabric <= 0) continue;
      if (fabric < 0) fabric = host_.add_device({DeviceKind::kNvSwitch, "NVSwitch", {}, {}, {}});
      host_.add_duplex(device_of[i], fabric, kind, 1, specified(to_fabric, file_));
    }
  }
}

Host Builder::build() {
  host_.notes = found_.notes;
  host_.name = found_.product;
  bool any_os_device = false;
  for (std::size_t i = 0; i < found_.pci_devices.size(); ++i) {
    const int type = found_.pci_devices[i].class_id >> 8;
    any_os_device = any_os_device || (type == 0x02 && !os_name(static_cast<int>(i), false).empty());
  }
  int gpus = 0;
  int nics = 0;
  int hidden = 0;
  for (std::size_t i = 0; i < found_.pci_devices.size(); ++i) {
    const HwlocPci& device = found_.pci_devices[i];
    if (is_gpu(device)) {
      add(static_cast<int>(i), true, gpus++);
    } else if ((device.class_id >> 8) == 0x02) {
      // Virtual functions have no interface of their own here; they are no further cards.
      if (device.virtual_function || (any_os_device && os_name(static_cast<int>(i), false).empty())) ++hidden;
      else add(static_cast<int>(i), false, nics++);
    }
  }
  if (cpus_.empty()) add_bridge(host_, cpus_[0] = add_cpu(host_, 0), 4);
  const auto numa_nodes = found_.counts.find("NUMANode");
  for (int numa = 0; numa_nodes != found_.counts.end() && numa < std::min(numa_nodes->second, 64); ++numa) {
    if (cpus_.count(numa) == 0) cpus_[numa] = add_cpu(host_, numa);
  }
  std::vector<int> sockets;
  for (const auto& [numa, cpu] : cpus_) sockets.push_back(cpu);
  join_sockets(host_, sockets, socket_bytes_per_s(4), std::string(kAssumed) + "sockets");
  add_nvlinks();
  if (hidden > 0) host_.notes.push_back({fmt::format("{} network functions without an interface (virtual functions) are not counted as NICs", hidden), {file_, 0, 0}});
  if (nics > 0) host_.notes.push_back({"hwloc does not say the line rate of NICs", {file_, 0, 0}});
  return std::move(host_);
}

}  // namespace

Host host_of(const HwlocTopology& found, const std::string& file) { return Builder(found, file).build(); }

}  // namespace chokepoint::wiring
