// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/topology/fabric_graph.hpp>

#include <gtest/gtest.h>

namespace chokepoint::topology {
namespace {

/// `leaves` x `hosts_per_leaf` hosts with one adapter each; every leaf has one cable to each spine.
FabricGraph two_levels(int leaves, int hosts_per_leaf, int spines) {
  FabricGraph graph;
  graph.rates_known = true;
  const auto add = [&graph](std::string name, bool is_switch) {
    graph.nodes.push_back({name, name, is_switch, false, is_switch ? "" : name, 0});
    return static_cast<int>(graph.nodes.size()) - 1;
  };
  std::vector<int> tops;
  for (int i = 0; i < spines; ++i) tops.push_back(add("spine" + std::to_string(i), true));
  for (int i = 0; i < leaves; ++i) {
    const int leaf = add("leaf" + std::to_string(i), true);
    for (const int top : tops) graph.links.push_back({leaf, top, 0, 0, 4, "HDR", 25e9, 0, 0});
    for (int j = 0; j < hosts_per_leaf; ++j) {
      graph.links.push_back({add("host" + std::to_string(i * hosts_per_leaf + j), false), leaf, 1, j, 4, "HDR", 25e9, 0, 0});
    }
  }
  return graph;
}

TEST(FabricGraph, OversubscriptionIsDownOverUp) {
  // 6 hosts below each leaf, 2 cables up, all equal: 6 / 2 = 3.
  const FabricShape shape = shape_of(two_levels(4, 6, 2));
  EXPECT_EQ(shape.hosts, 24);
  EXPECT_EQ(shape.switches, 6);
  EXPECT_EQ(shape.levels, 2);
  EXPECT_DOUBLE_EQ(shape.oversubscription, 3.0);
  EXPECT_EQ(shape.hosts_per_leaf, 6);
  EXPECT_EQ(shape.components, 1);
}

TEST(FabricGraph, RoutesCountPairsAndEqualWays) {
  const FabricGraph graph = two_levels(3, 2, 4);
  const FabricShape shape = shape_of(graph);
  const FabricRoutes routes = routes_of(graph, shape);
  // Inside a leaf one switch: 3 leaves x 1 pair; between leaves three switches: 3 leaf pairs x 2 x 2, over 4 spines.
  ASSERT_EQ(routes.pairs_by_switches.size(), 4U);
  EXPECT_DOUBLE_EQ(routes.pairs_by_switches[1], 3);
  EXPECT_DOUBLE_EQ(routes.pairs_by_switches[3], 12);
  EXPECT_EQ(routes.fewest_paths, 4);
  EXPECT_DOUBLE_EQ(routes.unreachable_pairs, 0);
}

TEST(FabricGraph, TwoIslandsCannotReachEachOther) {
  const FabricGraph graph = two_levels(2, 2, 0);
  const FabricShape shape = shape_of(graph);
  EXPECT_EQ(shape.components, 2);
  EXPECT_DOUBLE_EQ(routes_of(graph, shape).unreachable_pairs, 4);
  EXPECT_TRUE(shortest_way(graph, 1, 4).empty());
}

TEST(FabricGraph, ShortestWayPassesLeafSpineLeaf) {
  const FabricGraph graph = two_levels(2, 1, 2);
  // Nodes: spines 0 1, leaf 2 with host 3, leaf 4 with host 5.
  EXPECT_EQ(shortest_way(graph, 3, 5), (std::vector<int>{3, 2, 0, 4, 5}));
}

TEST(FabricGraph, RailsAreSeenWhenEachLeafServesOnePosition) {
  FabricGraph graph;
  graph.nodes = {{"rail0", "r0", true, false, "", 0}, {"rail1", "r1", true, false, "", 0}};
  for (int host = 0; host < 3; ++host) {
    for (int rail = 0; rail < 2; ++rail) {
      const std::string name = "n" + std::to_string(host);
      graph.nodes.push_back({name + " mlx5_" + std::to_string(rail), name + std::to_string(rail), false, false, name, 1});
      graph.links.push_back({static_cast<int>(graph.nodes.size()) - 1, rail, 1, host, 4, "NDR", 50e9, 0, 0});
    }
  }
  EXPECT_TRUE(shape_of(graph).rails);
  graph.links.back().b = 0;  // one cable in the wrong leaf
  EXPECT_FALSE(shape_of(graph).rails);
}

}  // namespace
}  // namespace chokepoint::topology
