// SPDX-License-Identifier: Apache-2.0
#pragma once
// A host's PCIe side as a forest, for drawing: NUMA nodes at the top, GPUs and NICs as leaves.
#include <chokepoint/topology/topology.hpp>
#include <string>
#include <vector>

namespace chokepoint::report {

struct TreeNode {
  int device = 0;
  int uplink = -1;  ///< link towards the root, index into Host::links; -1 at the top
  std::vector<TreeNode> children;
};

/// One tree per NUMA node. Host bridges with a single child are left out: they add nothing to a drawing.
std::vector<TreeNode> host_forest(const topology::Host& host);
int leaf_count(const TreeNode& node);

/// "PCIe 5.0 x16", "PCIe x8 (assumed)", "18 x NVLink".
std::string link_words(const topology::Link& link);

/// Direct GPU-to-GPU links of one width, and the pairs that have it.
struct LinkGroup {
  topology::LinkKind kind = topology::LinkKind::kNvLink;
  int width = 0;
  double bytes_per_s = 0;
  std::vector<std::pair<int, int>> pairs;
};
std::vector<LinkGroup> direct_gpu_links(const topology::Host& host);

}  // namespace chokepoint::report
