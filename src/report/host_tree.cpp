// SPDX-License-Identifier: Apache-2.0
#include "host_tree.hpp"

#include <chokepoint/base/units.hpp>
#include <chokepoint/hardware/catalogue.hpp>

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>

namespace chokepoint::report {

using namespace topology;

namespace {

const Device& device_at(const Host& host, int index) { return host.devices[static_cast<std::size_t>(index)]; }

void grow(const Host& host, TreeNode& node, std::vector<bool>& seen) {
  for (std::size_t i = 0; i < host.links.size(); ++i) {
    const Link& link = host.links[i];
    const bool tree_link = link.kind == LinkKind::kPcie || link.kind == LinkKind::kMemory;
    if (link.to != node.device || !tree_link || seen[static_cast<std::size_t>(link.from)]) continue;
    seen[static_cast<std::size_t>(link.from)] = true;
    TreeNode child;
    child.device = link.from;
    child.uplink = static_cast<int>(i);
    grow(host, child, seen);
    node.children.push_back(std::move(child));
  }
}

/// Leaves in device order (GPU numbers), subtrees by their first leaf.
int first_leaf(const TreeNode& node) {
  int first = node.children.empty() ? node.device : first_leaf(node.children.front());
  for (const TreeNode& child : node.children) first = std::min(first, first_leaf(child));
  return first;
}

void tidy(const Host& host, TreeNode& node) {
  for (TreeNode& child : node.children) {
    tidy(host, child);
    if (device_at(host, child.device).kind == DeviceKind::kHostBridge && child.children.size() == 1) {
      TreeNode only = std::move(child.children.front());
      child = std::move(only);
    }
  }
  node.children.erase(std::remove_if(node.children.begin(), node.children.end(),
                                     [&host](const TreeNode& child) {
                                       return device_at(host, child.device).kind == DeviceKind::kHostBridge && child.children.empty();
                                     }),
                      node.children.end());
  std::stable_sort(node.children.begin(), node.children.end(), [](const TreeNode& a, const TreeNode& b) { return first_leaf(a) < first_leaf(b); });
}

}  // namespace

std::vector<TreeNode> host_forest(const Host& host) {
  std::vector<TreeNode> forest;
  std::vector<bool> seen(host.devices.size(), false);
  for (const int cpu : host.of_kind(DeviceKind::kCpu)) seen[static_cast<std::size_t>(cpu)] = true;
  for (const int cpu : host.of_kind(DeviceKind::kCpu)) {
    TreeNode root;
    root.device = cpu;
    grow(host, root, seen);
    tidy(host, root);
    forest.push_back(std::move(root));
  }
  std::stable_sort(forest.begin(), forest.end(), [&host](const TreeNode& a, const TreeNode& b) {
    return device_at(host, a.device).numa.value_or(1 << 20) < device_at(host, b.device).numa.value_or(1 << 20);
  });
  return forest;
}

int leaf_count(const TreeNode& node) {
  if (node.children.empty()) return 1;
  int count = 0;
  for (const TreeNode& child : node.children) count += leaf_count(child);
  return count;
}

std::string link_words(const Link& link) {
  const bool assumed = link.bandwidth.origin.compare(0, 8, "assumed:") == 0;
  std::string words;
  if (link.kind == LinkKind::kPcie) {
    words = fmt::format("PCIe x{}", link.width);
    for (int generation = 1; generation <= 6; ++generation) {
      const double rate = hardware::pcie_bytes_per_s(generation, link.width).value_or(0.0);
      if (std::abs(rate - link.bandwidth.effective()) < 1e-6 * rate) words = fmt::format("PCIe {}.0 x{}", generation, link.width);
    }
  } else if (link.kind == LinkKind::kNvLink || link.kind == LinkKind::kXgmi) {
    words = fmt::format("{} x {}", link.width, link.kind == LinkKind::kXgmi ? "Infinity Fabric" : "NVLink");
  } else {
    words = std::string(name(link.kind));
  }
  return assumed ? words + "?" : words;
}

std::vector<LinkGroup> direct_gpu_links(const Host& host) {
  std::map<std::pair<int, int>, LinkGroup> groups;
  for (const Link& link : host.links) {
    const bool gpu_link = link.kind == LinkKind::kNvLink || link.kind == LinkKind::kXgmi;
    const bool gpus = device_at(host, link.from).kind == DeviceKind::kGpu && device_at(host, link.to).kind == DeviceKind::kGpu;
    if (!gpu_link || !gpus || link.from > link.to) continue;
    LinkGroup& group = groups[{-link.width, static_cast<int>(link.kind)}];
    group.kind = link.kind;
    group.width = link.width;
    group.bytes_per_s = link.bandwidth.effective();
    group.pairs.emplace_back(link.from, link.to);
  }
  std::vector<LinkGroup> sorted;
  for (auto& entry : groups) sorted.push_back(std::move(entry.second));
  return sorted;
}

}  // namespace chokepoint::report
