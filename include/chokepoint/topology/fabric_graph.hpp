// SPDX-License-Identifier: Apache-2.0
#pragma once
// What discovery finds between the hosts: switches, adapters and every cable, and what follows from them: levels, leaves,
// oversubscription, planes, the shortest ways.
//
//   FabricShape shape = shape_of(graph);
//   shape.leaves[0].oversubscription();   // down-link sum over up-link sum
#include <chokepoint/topology/topology.hpp>
#include <optional>
#include <string>
#include <vector>

namespace chokepoint::topology {

struct FabricNode {
  std::string name;      ///< node description
  std::string id;        ///< GUID, or the name where there is none
  bool is_switch = false;
  bool in_network = false;  ///< an adapter inside a switch (aggregation), no host
  std::string host;      ///< of an adapter: the host it sits in; empty when the name does not say
  int ports = 0;         ///< 0 when not said
  bool operator==(const FabricNode&) const = default;
};

/// One cable. Bandwidth is payload in one direction.
struct FabricLink {
  int a = 0;
  int b = 0;
  int a_port = 0;
  int b_port = 0;
  int width = 0;                ///< lanes; 0 when not said
  std::string rate;             ///< "HDR"; empty when not said
  double bytes_per_s = 0;       ///< 0 when not said
  double possible_bytes_per_s = 0;  ///< what both ends support, where the tool says so; else 0
  int line = 0;
  bool operator==(const FabricLink&) const = default;
};

struct FabricGraph {
  std::vector<FabricNode> nodes;
  std::vector<FabricLink> links;
  bool rates_known = false;
};

/// A switch with adapters below it.
struct LeafShape {
  int node = 0;
  int adapters = 0;
  int hosts = 0;
  int uplinks = 0;
  double down_bytes_per_s = 0;
  double up_bytes_per_s = 0;
  std::vector<int> peers;       ///< switches above, sorted, each once per cable

  /// Down-link sum over up-link sum; 0 without uplinks. Equal cables are assumed where rates are unknown.
  double oversubscription() const;
};

/// Invariant: `level` and `component` have one entry per node.
struct FabricShape {
  int switches = 0;
  int adapters = 0;             ///< without those inside switches
  int hosts = 0;
  int levels = 0;               ///< of switches; 1: one leaf layer only
  int components = 0;           ///< planes or islands that no cable joins
  std::vector<int> level;       ///< 0 adapters, 1 leaves, 2 spines, ...; -1 for a switch without any adapter in reach
  std::vector<int> component;
  std::vector<LeafShape> leaves;
  double oversubscription = 1;  ///< of the worst leaf, 1 without uplinks
  int hosts_per_leaf = 0;       ///< most hosts below one leaf
  bool rails = false;           ///< adapters of one host go to different leaves, in the same order for all hosts
};

/// O(nodes + links).
FabricShape shape_of(const FabricGraph& graph);

/// How far adapters are from each other: switches on the way, and in how many equally short ways.
struct FabricRoutes {
  std::vector<double> pairs_by_switches;  ///< index: switches passed; value: adapter pairs
  double unreachable_pairs = 0;
  int fewest_paths = 0;         ///< least number of equally short ways between two different leaves; 0 with one leaf
  int most_paths = 0;
};
/// Breadth first from every leaf: O(leaves x links between switches).
FabricRoutes routes_of(const FabricGraph& graph, const FabricShape& shape);

/// Nodes of one shortest way, both ends included; empty when there is none.
std::vector<int> shortest_way(const FabricGraph& graph, int from, int to);

/// What the time models need of a discovered fabric.
Fabric fabric_of(const FabricGraph& graph, const FabricShape& shape);

}  // namespace chokepoint::topology
