// SPDX-License-Identifier: Apache-2.0
// Matrix -> Host. The classes are distances in a tree: devices within PIX share a switch, within PXB a tree of
// switches, within PHB a host bridge, within NODE a NUMA node. Grouping at each level gives that tree back. NVLink cells
// hide the PCIe class of a GPU pair, so GPUs are grouped through the NICs and affinities they have in common.
#include "matrix.hpp"
#include "parts.hpp"

#include <chokepoint/base/text.hpp>

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <numeric>
#include <set>

namespace chokepoint::wiring {

using namespace topology;

namespace {

/// Most NVLinks one GPU of any generation has (Hopper, Blackwell).
constexpr int kMostNvLinks = 18;

class Groups {
 public:
  explicit Groups(std::size_t size) : parent_(size) { std::iota(parent_.begin(), parent_.end(), std::size_t{0}); }
  std::size_t find(std::size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(std::size_t a, std::size_t b) {
    const std::size_t ra = find(a);
    const std::size_t rb = find(b);
    parent_[std::max(ra, rb)] = std::min(ra, rb);  // the smallest member names the group
  }

 private:
  std::vector<std::size_t> parent_;
};

Groups group_within(const Matrix& matrix, PathClass farthest) {
  Groups groups(matrix.devices.size());
  for (std::size_t a = 0; a < matrix.devices.size(); ++a) {
    for (std::size_t b = a + 1; b < matrix.devices.size(); ++b) {
      const PathClass path = matrix.at(a, b).path;
      if (path >= PathClass::kPix && path <= farthest) groups.join(a, b);
    }
  }
  return groups;
}

/// PCIe generation of the hosts that such GPUs were sold in: 18 links are Hopper or later, 12 or 4 Ampere, 6 or fewer Volta.
int likely_pcie_generation(const Matrix& matrix) {
  int links = 0;
  for (const MatrixCell& cell : matrix.cells) links = std::max(links, cell.nvlinks);
  if (links > 12) return 5;
  if (links == 0 || links == 12 || links == 4 || links == 8) return 4;
  return 3;
}

std::string names_of(const Matrix& matrix, const std::vector<std::size_t>& devices) {
  std::vector<std::string> names;
  for (const std::size_t device : devices) names.push_back(matrix.devices[device].label);
  return short_list(names);
}

class Builder {
 public:
  Builder(const Matrix& matrix, const std::string& file) : matrix_(matrix), pos_{file, matrix.line, 0}, generation_(likely_pcie_generation(matrix)) {}
  Host build();

 private:
  void note(std::string text) { host_.notes.push_back({std::move(text), pos_}); }
  void add_devices();
  void assign_numa();
  bool only_nvlink_known(std::size_t device) const;
  void add_tree();
  void attach_group(const std::vector<std::size_t>& members, int bridge, std::optional<int> numa);
  void attach(int device, int parent, int slots = 1) {
    host_.add_duplex(device, parent, LinkKind::kPcie, 16 * slots, slots == 1 ? link_ : pcie(generation_, 16 * slots, link_.origin));
  }
  void declare();
  void report_gaps();

  const Matrix& matrix_;
  SourcePos pos_;
  int generation_;
  Bandwidth link_;
  Host host_;
  std::vector<int> numa_;  ///< NUMA node of each device
  int first_made_ = 0;     ///< from this number on nodes are our own, because nothing stated one
};

void Builder::add_devices() {
  for (const MatrixDevice& device : matrix_.devices) {
    Device added{device.gpu ? DeviceKind::kGpu : DeviceKind::kNic, device.label, {}, {}, {}};
    added.alias = device.alias;
    host_.add_device(std::move(added));
  }
}

/// No cell of this device is a PCIe distance.
bool Builder::only_nvlink_known(std::size_t device) const {
  for (std::size_t other = 0; other < matrix_.devices.size(); ++other) {
    const PathClass path = matrix_.at(device, other).path;
    if (other != device && path >= PathClass::kPix && path <= PathClass::kSys) return false;
  }
  return true;
}

/// A NUMA node for every device: what the affinity columns say, else what devices within NODE say, else a node of its own.
void Builder::assign_numa() {
  const std::size_t count = matrix_.devices.size();
  Groups nodes = group_within(matrix_, PathClass::kNode);
  std::vector<std::optional<int>> label(count);
  std::map<std::string, int> affinity_index;
  const bool any_numa = std::any_of(matrix_.devices.begin(), matrix_.devices.end(), [](const MatrixDevice& d) { return d.numa.has_value(); });
  for (std::size_t i = 0; i < count; ++i) {
    const MatrixDevice& device = matrix_.devices[i];
    if (any_numa) label[i] = device.numa;
    else if (!device.cpu_affinity.empty()) {
      label[i] = affinity_index.emplace(device.cpu_affinity, static_cast<int>(affinity_index.size())).first->second;
    }
  }
  int next = 0;
  std::map<std::size_t, int> of_group;
  for (std::size_t i = 0; i < count; ++i) {
    if (!label[i]) continue;
    next = std::max(next, *label[i] + 1);
    of_group.emplace(nodes.find(i), *label[i]);
  }
  first_made_ = next;
  // What no affinity places: groups that nothing separates (a SYS cell would) share a node.
  std::map<int, std::vector<std::size_t>> made;  // nodes without a stated number, with their members
  std::vector<std::size_t> guessed;
  const auto separated = [this](std::size_t i, const std::vector<std::size_t>& members) {
    return std::any_of(members.begin(), members.end(), [this, i](std::size_t j) { return matrix_.at(i, j).path == PathClass::kSys; });
  };
  numa_.assign(count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t group = nodes.find(i);
    if (label[i]) {
      numa_[i] = *label[i];
      continue;
    }
    if (const auto known = of_group.find(group); known != of_group.end()) {
      numa_[i] = known->second;
    } else if (only_nvlink_known(i) && !of_group.empty()) {
      numa_[i] = of_group.begin()->second;  // says nothing about sockets: beside the first GPU
    } else {
      const auto open = std::find_if(made.begin(), made.end(), [&](const auto& node) { return !separated(i, node.second); });
      numa_[i] = open != made.end() ? open->first : next++;
      of_group.emplace(group, numa_[i]);
    }
    const bool is_made = numa_[i] >= first_made_;
    if (is_made) made[numa_[i]].push_back(i);
    // nvidia-smi never states it for NICs; their classes place them.
    if (matrix_.devices[i].gpu || (is_made && first_made_ > 0)) guessed.push_back(i);
  }
  if (!guessed.empty()) note(fmt::format("NUMA node of {} not stated: derived from the path classes", names_of(matrix_, guessed)));
  if (!any_numa && !affinity_index.empty()) note("no NUMA column: NUMA nodes numbered by CPU affinity");
}

/// Devices within PXB of each other: one switch, or leaf switches under an upper one when some share a leaf.
void Builder::attach_group(const std::vector<std::size_t>& members, int bridge, std::optional<int> numa) {
  if (members.size() == 1) return attach(static_cast<int>(members.front()), bridge);
  Groups leaves = group_within(matrix_, PathClass::kPix);
  std::map<std::size_t, std::vector<std::size_t>> by_leaf;
  for (const std::size_t member : members) by_leaf[leaves.find(member)].push_back(member);
  const auto new_switch = [this, numa] {
    return add_switch(host_, fmt::format("PCIe switch {}", host_.of_kind(DeviceKind::kPcieSwitch).size()), numa);
  };
  const int upper = new_switch();
  attach(upper, bridge);
  for (const auto& [leaf, devices] : by_leaf) {
    int parent = upper;
    if (devices.size() > 1 && by_leaf.size() > 1) {
      parent = new_switch();
      // NICs within PIX are cards of their own at one switch chip that holds the upper ports too: each keeps its lanes.
      const bool cards = std::none_of(devices.begin(), devices.end(), [this](std::size_t device) { return matrix_.devices[device].gpu; });
      attach(parent, upper, cards ? static_cast<int>(devices.size()) : 1);
    }
    for (const std::size_t device : devices) attach(static_cast<int>(device), parent);
  }
}

void Builder::add_tree() {
  const std::size_t count = matrix_.devices.size();
  Groups switches = group_within(matrix_, PathClass::kPxb);
  Groups bridges = group_within(matrix_, PathClass::kPhb);
  std::map<int, std::map<std::size_t, std::map<std::size_t, std::vector<std::size_t>>>> tree;  // NUMA, bridge, switch
  for (std::size_t i = 0; i < count; ++i) {
    // Members of one bridge belong to one NUMA node even when their affinities differ.
    const std::size_t bridge = bridges.find(i);
    tree[numa_[bridge]][bridge][switches.find(i)].push_back(i);
  }
  std::vector<int> cpus;
  for (const auto& [numa, numa_bridges] : tree) {
    const int cpu = add_cpu(host_, numa);
    cpus.push_back(cpu);
    const bool unstated = first_made_ > 0 && numa >= first_made_;
    if (unstated) {
      host_.devices[static_cast<std::size_t>(cpu)].name = "NUMA ?";
      host_.devices[static_cast<std::size_t>(cpu)].numa.reset();
    }
    for (const auto& [bridge_name, groups] : numa_bridges) {
      const int bridge = add_bridge(host_, cpu, generation_);
      for (const auto& [group_name, members] : groups) {
        attach_group(members, bridge, unstated ? std::nullopt : std::optional<int>(numa));
        for (const std::size_t member : members) {
          if (!unstated) host_.devices[member].numa = numa;
        }
      }
    }
  }
  join_sockets(host_, cpus, socket_bytes_per_s(generation_), fmt::format("{}sockets of a PCIe {}.0 host", kAssumed, generation_));
}

void Builder::declare() {
  for (std::size_t a = 0; a < matrix_.devices.size(); ++a) {
    for (std::size_t b = a + 1; b < matrix_.devices.size(); ++b) {
      const MatrixCell& cell = matrix_.at(a, b);
      if (cell.path == PathClass::kUnknown) continue;
      host_.declared.push_back({static_cast<int>(a), static_cast<int>(b), cell.path, cell.nvlinks});
    }
  }
}

void Builder::report_gaps() {
  std::vector<std::size_t> missing;
  bool nics = false;
  for (std::size_t i = 0; i < matrix_.devices.size(); ++i) {
    if (matrix_.devices[i].gpu && !matrix_.devices[i].has_row) missing.push_back(i);
    nics = nics || !matrix_.devices[i].gpu;
  }
  if (!missing.empty()) note(fmt::format("cut short: no row for {}", names_of(matrix_, missing)));
  note(fmt::format("PCIe generation not stated: {}.0 x16 assumed everywhere; name the accelerator to settle it", generation_));
  note(nics ? "rate of the NICs not stated" : "no NICs in the matrix");
  std::set<int> switched;
  for (const Link& link : host_.links) {
    if (link.kind == LinkKind::kPcie && host_.devices[static_cast<std::size_t>(link.to)].kind == DeviceKind::kPcieSwitch) switched.insert(link.from);
  }
  std::vector<std::size_t> hidden;
  for (std::size_t i = 0; i < matrix_.devices.size(); ++i) {
    bool only_nvlink = matrix_.devices[i].gpu && switched.count(static_cast<int>(i)) == 0;
    bool any_nvlink = false;
    for (std::size_t j = 0; j < matrix_.devices.size(); ++j) any_nvlink = any_nvlink || matrix_.at(i, j).path == PathClass::kNvLink;
    if (only_nvlink && any_nvlink) hidden.push_back(i);
  }
  if (!hidden.empty()) {
    note(fmt::format("PCIe switches above {} are hidden behind NVLink cells: a root port each assumed", names_of(matrix_, hidden)));
  }
}

Host Builder::build() {
  link_ = pcie(generation_, 16, fmt::format("{}PCIe {}.0 x16", kAssumed, generation_));
  host_.notes = matrix_.notes;
  add_devices();
  assign_numa();
  add_tree();
  declare();
  report_gaps();
  const bool nvlink = std::any_of(matrix_.cells.begin(), matrix_.cells.end(), [](const MatrixCell& cell) { return cell.path == PathClass::kNvLink; });
  if (nvlink) {
    constexpr int kMostCommonGeneration = 3;  // generations 2 to 4 run at the same rate
    const double rate = hardware::nvlink_bytes_per_s(kMostCommonGeneration).value_or(0.0);
    join_declared_nvlinks(host_, kMostNvLinks, rate, LinkKind::kNvLink, std::string(kAssumed) + "NVLink 2 to 4");
    note("NVLink generation not stated: 25 GB/s per link and direction assumed; name the accelerator to settle it");
  }
  return std::move(host_);
}

}  // namespace

void join_declared_nvlinks(Host& host, int links_per_gpu, double link_bytes_per_s, LinkKind kind, const std::string& origin) {
  host.links.erase(std::remove_if(host.links.begin(), host.links.end(),
                                  [](const Link& link) { return link.kind == LinkKind::kNvLink || link.kind == LinkKind::kXgmi; }),
                   host.links.end());
  if (!host.devices.empty() && host.devices.back().kind == DeviceKind::kNvSwitch) host.devices.pop_back();

  std::vector<int> links(host.devices.size(), 0);
  std::vector<int> widest(host.devices.size(), 0);
  for (const DeclaredPath& path : host.declared) {
    if (path.path != PathClass::kNvLink) continue;
    for (const int device : {path.a, path.b}) {
      links[static_cast<std::size_t>(device)] += path.nvlinks;
      widest[static_cast<std::size_t>(device)] = std::max(widest[static_cast<std::size_t>(device)], path.nvlinks);
    }
  }
  const bool switched = std::any_of(links.begin(), links.end(), [links_per_gpu](int sum) { return sum > links_per_gpu; });
  if (switched) {
    const int nvswitch = host.add_device({DeviceKind::kNvSwitch, "NVSwitch", {}, {}, {}});
    for (const int gpu : host.gpus()) {
      const int width = widest[static_cast<std::size_t>(gpu)];
      if (width > 0) host.add_duplex(gpu, nvswitch, kind, width, specified(width * link_bytes_per_s, origin));
    }
    return;
  }
  for (const DeclaredPath& path : host.declared) {
    if (path.path == PathClass::kNvLink) host.add_duplex(path.a, path.b, kind, path.nvlinks, specified(path.nvlinks * link_bytes_per_s, origin));
  }
}

Host host_from_matrix(const Matrix& matrix, const std::string& file) { return Builder(matrix, file).build(); }

}  // namespace chokepoint::wiring
