// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/flow/platform.hpp>
#include <gtest/gtest.h>

#include <set>

#include "test_clusters.hpp"

namespace chokepoint::flow {
namespace {

using topology::FabricKind;

std::vector<std::string> way(const Platform& platform, int from, int to, const RouteChoice& choice = {}) {
  std::vector<Use> uses;
  const Result<void> routed = platform.route(from, to, choice, uses);
  std::vector<std::string> names;
  if (!routed) return {routed.error().message};
  for (const Use& use : uses)
    names.push_back(platform.name_of(use.link) + (use.weight == 1 ? "" : " x " + std::to_string(use.weight)));
  return names;
}

double bandwidth(const Platform& platform, int from, int to, const RouteChoice& choice = {}) {
  Fluid fluid(platform.capacities());
  std::vector<Use> uses;
  if (!platform.route(from, to, choice, uses)) return 0;
  return fluid.rate(fluid.start(uses, 1));
}

TEST(Platform, GpusOfAHostMeetInItsSwitch) {
  const Platform platform = Platform::make(cluster_of(host_of(4), 2, FabricKind::kSingleSwitch)).value();
  EXPECT_EQ(platform.gpus(), 8);
  EXPECT_EQ(way(platform, 1, 3), (std::vector<std::string>{"host 0: GPU1 -> NVSwitch0", "host 0: NVSwitch0 -> GPU3"}));
  EXPECT_EQ(way(platform, 5, 4), (std::vector<std::string>{"host 1: GPU1 -> NVSwitch0", "host 1: NVSwitch0 -> GPU0"}));
  EXPECT_DOUBLE_EQ(bandwidth(platform, 1, 3), 100);
  EXPECT_TRUE(way(platform, 2, 2).empty());
  EXPECT_TRUE(platform.share_nvlink(0, 3));
  EXPECT_FALSE(platform.share_nvlink(0, 4));
}

TEST(Platform, TrafficTakesAllSwitchesOfAHostByTheirBandwidth) {
  // A second switch with 50 B/s for each GPU beside the first with 100: a pair gets 150, two thirds through the first.
  topology::Host host = host_of(2);
  const std::vector<int> gpus = host.gpus();
  const int second = add(host, topology::DeviceKind::kNvSwitch, "NVSwitch1");
  for (const int gpu : gpus) host.add_duplex(gpu, second, topology::LinkKind::kNvLink, 9, rate(50));
  const Platform platform = Platform::make(cluster_of(host, 1, FabricKind::kNone)).value();
  EXPECT_DOUBLE_EQ(bandwidth(platform, 0, 1), 150);
}

TEST(Platform, HostsMeetThroughTheNicsNearestToTheirGpus) {
  const Platform platform = Platform::make(cluster_of(host_of(2, false), 2, FabricKind::kSingleSwitch)).value();
  EXPECT_EQ(way(platform, 1, 3),
            (std::vector<std::string>{"host 0: GPU1 -> PLX1", "host 0: PLX1 -> mlx5_1", "host 0: mlx5_1 -> fabric",
                                      "host 1: fabric -> mlx5_1", "host 1: mlx5_1 -> PLX1", "host 1: PLX1 -> GPU1"}));
  EXPECT_DOUBLE_EQ(bandwidth(platform, 1, 3), 5);
}

TEST(Platform, AFarNicIsReachedThroughThePeerNextToItOrOverTheBridge) {
  const RouteChoice first{.from_nic = 0};
  const auto sender_side = [&first](const topology::Host& host, bool through_peers) {
    const Platform platform =
        Platform::make(cluster_of(host, 2, FabricKind::kSingleSwitch), {.through_peers = through_peers}).value();
    std::vector<std::string> names = way(platform, 1, 3, first);
    names.resize(names.size() - 4);
    return names;
  };
  const std::vector<std::string> peer{"host 0: GPU1 -> NVSwitch0", "host 0: NVSwitch0 -> GPU0", "host 0: GPU0 -> PLX0",
                                      "host 0: PLX0 -> mlx5_0"};
  const std::vector<std::string> bridge{"host 0: GPU1 -> PLX1", "host 0: PLX1 -> PHB0", "host 0: PHB0 -> PLX0",
                                        "host 0: PLX0 -> mlx5_0"};
  EXPECT_EQ(sender_side(host_of(2), true), peer);
  EXPECT_EQ(sender_side(host_of(2), false), bridge);
  EXPECT_EQ(sender_side(host_of(2, false), true), bridge);
}

TEST(Platform, GpusThatAreEquallyNearToSeveralNicsTakeTurns) {
  // Four GPUs below one switch with two NICs.
  topology::Host host;
  const int pcie = add(host, topology::DeviceKind::kPcieSwitch, "PLX");
  for (int i = 0; i < 6; ++i) {
    const bool nic = i >= 4;
    const int device =
        add(host, nic ? topology::DeviceKind::kNic : topology::DeviceKind::kGpu, std::to_string(i), nic ? 5.0 : 0);
    host.add_duplex(device, pcie, topology::LinkKind::kPcie, 16, rate(10));
  }
  const Platform platform = Platform::make(cluster_of(host, 1, FabricKind::kNone)).value();
  EXPECT_EQ(platform.nics_of(0), 2);
  for (int gpu = 0; gpu < 4; ++gpu) EXPECT_EQ(platform.nearest_nic(gpu), gpu % 2);
}

TEST(Platform, LeavesShareTheirUplinksAsOversubscribed) {
  // 4 hosts of 2 NICs (5 B/s), 2 a leaf: 20 B/s down; 2:1 leaves 10 B/s up on round(4/2) = 2 cables of 5 B/s.
  const Platform platform = Platform::make(cluster_of(host_of(2), 4, FabricKind::kFatTree, 2, 2.0)).value();
  const std::vector<double> capacity = platform.capacities();
  ASSERT_EQ(capacity.size(), platform.links());
  double up = 0;
  int cables = 0;
  for (std::uint32_t link = 0; link < platform.links(); ++link) {
    if (platform.class_of(link) != LinkClass::kLeafUp) continue;
    up += capacity[link];
    ++cables;
  }
  EXPECT_EQ(cables, 4);
  EXPECT_DOUBLE_EQ(up, 20);
  EXPECT_EQ(way(platform, 0, 2).size(), 6u) << "below one leaf no uplink is used";
  const std::vector<std::string> over = way(platform, 0, 4);
  ASSERT_EQ(over.size(), 8u);
  EXPECT_EQ(over[3].substr(0, 15), "leaf 0 -> spine");
  EXPECT_EQ(over[4].substr(over[4].size() - 9), "-> leaf 1");
  EXPECT_EQ(over[3].substr(10), over[4].substr(0, 7)) << "down from the spine it went up to";
}

TEST(Platform, AllNicsOfTwoLeavesTogetherGetTheOversubscribedBandwidth) {
  // All 4 NICs of leaf 0 send to leaf 1. 2:1 gives 10 B/s in all: sprayed 2.5 B/s each; adaptive the same, two on each
  // cable; hashing may collide, never exceeds it.
  for (const Spread spread : {Spread::kSpray, Spread::kAdaptive, Spread::kHash}) {
    const Platform platform =
        Platform::make(cluster_of(host_of(2), 4, FabricKind::kFatTree, 2, 2.0), {.spread = spread}).value();
    Fluid fluid(platform.capacities());
    std::vector<FlowId> flows;
    for (int gpu = 0; gpu < 4; ++gpu) {
      std::vector<Use> uses;
      ASSERT_TRUE(platform.route(gpu, gpu + 4, {.hash = static_cast<std::uint64_t>(gpu), .fluid = &fluid}, uses));
      flows.push_back(fluid.start(uses, 100));
    }
    double sum = 0;
    for (const FlowId flow : flows) {
      if (spread != Spread::kHash) {
        EXPECT_DOUBLE_EQ(fluid.rate(flow), 2.5);
      }
      sum += fluid.rate(flow);
    }
    EXPECT_LE(sum, 10 * (1 + 1e-12));
  }
}

TEST(Platform, HashesSpreadOverAllSpinesAndRepeat) {
  const Platform platform = Platform::make(cluster_of(host_of(8), 4, FabricKind::kFatTree, 2)).value();
  std::set<std::string> spines;
  for (std::uint64_t hash = 0; hash < 200; ++hash) {
    const std::vector<std::string> names = way(platform, 0, 16, {.hash = hash});
    spines.insert(names[3]);
    EXPECT_EQ(names, way(platform, 0, 16, {.hash = hash}));
  }
  EXPECT_EQ(spines.size(), 16u);
}

TEST(Platform, ManyLeavesGetACoreLayer) {
  // 6 hosts, one a leaf, spines of 4 ports: pods of 2 leaves, each leaf with one cable to the pod's one spine (one NIC
  // a host), 2 cables from there to the cores.
  const Platform platform =
      Platform::make(cluster_of(host_of(1), 6, FabricKind::kFatTree, 1), {.switch_ports = 4}).value();
  const std::vector<std::string> near = way(platform, 0, 1);
  const std::vector<std::string> far = way(platform, 0, 5);
  EXPECT_EQ(near.size() + 2, far.size());
  EXPECT_EQ(far[3], "leaf 0 -> pod 0 spine 0");
  EXPECT_EQ(far[4].substr(0, 23), "pod 0 spine 0 -> core 0");
  EXPECT_EQ(far[6], "pod 2 spine 0 -> leaf 5");
  EXPECT_DOUBLE_EQ(bandwidth(platform, 0, 5), 5);
  const Platform sprayed =
      Platform::make(cluster_of(host_of(1), 6, FabricKind::kFatTree, 1), {.spread = Spread::kSpray, .switch_ports = 4})
          .value();
  EXPECT_EQ(way(sprayed, 0, 5)[4], "pod 0 spines -> cores");
}

TEST(Platform, RailsKeepEqualNicsBelowOneLeafAndPeersKeepMessagesOnTheRail) {
  const Platform platform = Platform::make(cluster_of(host_of(2), 4, FabricKind::kRailOptimized, 2)).value();
  EXPECT_EQ(way(platform, 1, 3).size(), 6u) << "same rail, same leaf";
  EXPECT_EQ(way(platform, 0, 3),
            (std::vector<std::string>{"host 0: GPU0 -> NVSwitch0", "host 0: NVSwitch0 -> GPU1", "host 0: GPU1 -> PLX1",
                                      "host 0: PLX1 -> mlx5_1", "host 0: mlx5_1 -> fabric", "host 1: fabric -> mlx5_1",
                                      "host 1: mlx5_1 -> PLX1", "host 1: PLX1 -> GPU1"}));
  const Platform without = Platform::make(cluster_of(host_of(2, false), 4, FabricKind::kRailOptimized, 2)).value();
  const std::vector<std::string> across = way(without, 0, 3);
  ASSERT_EQ(across.size(), 8u);
  EXPECT_EQ(across[3].substr(0, 9), "leaf 0 ->");
  EXPECT_EQ(across[4].substr(across[4].size() - 9), "-> leaf 1");
}

TEST(Platform, KindsOfHostsHaveTheirOwnNumbers) {
  topology::Cluster cluster = cluster_of(host_of(2), 2, FabricKind::kSingleSwitch);
  cluster.hosts.push_back({host_of(3, false), 2});
  const Platform platform = Platform::make(cluster).value();
  EXPECT_EQ(platform.gpus(), 10);
  EXPECT_EQ(platform.hosts(), 4);
  EXPECT_EQ(platform.host_of(3), 1);
  EXPECT_EQ(platform.host_of(4), 2);
  EXPECT_EQ(platform.local_of(9), 2);
  EXPECT_EQ(way(platform, 3, 9).back(), "host 3: PLX2 -> GPU2");
  EXPECT_EQ(platform.capacities().size(), platform.links());
}

TEST(Platform, AMeasuredHostBandwidthHoldsAllItsNics) {
  topology::Cluster cluster = cluster_of(host_of(2), 2, FabricKind::kSingleSwitch);
  cluster.fabric.node_measured_bytes_per_s = 4;
  const Platform platform = Platform::make(cluster).value();
  EXPECT_DOUBLE_EQ(bandwidth(platform, 0, 2), 4);
  EXPECT_EQ(way(platform, 0, 2)[3], "host 0: all NICs -> fabric");
}

TEST(Platform, HostsOfAnNvLinkDomainNeedNoFabric) {
  topology::Host host = host_of(2);
  host.nvlink_domain_hosts = 2;
  const Platform platform = Platform::make(cluster_of(host, 4, FabricKind::kSingleSwitch)).value();
  EXPECT_EQ(way(platform, 0, 3), (std::vector<std::string>{"host 0: GPU0 -> NVSwitch0", "host 1: NVSwitch0 -> GPU1"}));
  EXPECT_EQ(way(platform, 2, 4).size(), 6u) << "the next domain begins with host 2";
}

TEST(Platform, SharesScaleTheirClasses) {
  const topology::Cluster cluster = cluster_of(host_of(2), 4, FabricKind::kFatTree, 2);
  const Platform platform =
      Platform::make(cluster, {.nvlink_share = 0.8, .pcie_share = 0.3, .nic_share = 0.9, .fabric_share = 0.5}).value();
  EXPECT_DOUBLE_EQ(bandwidth(platform, 0, 1), 80);
  EXPECT_DOUBLE_EQ(bandwidth(platform, 0, 2), 3);
  EXPECT_DOUBLE_EQ(bandwidth(platform, 0, 4), 2.5);
}

TEST(Platform, WhatHasNoWayIsOneClearError) {
  const auto error = [](const topology::Cluster& cluster, int from, int to) {
    const Result<Platform> platform = Platform::make(cluster);
    if (!platform) return platform.error().message;
    std::vector<Use> uses;
    const Result<void> routed = platform->route(from, to, {}, uses);
    EXPECT_TRUE(uses.empty());
    return routed ? std::string() : routed.error().message;
  };
  EXPECT_EQ(error(cluster_of(host_of(1), 2, FabricKind::kNone), 0, 1),
            "no way from host 0 ('box') to host 1 ('box'): nothing joins the hosts");
  topology::Host bare;
  bare.name = "bare";
  add(bare, topology::DeviceKind::kGpu, "GPU0");
  add(bare, topology::DeviceKind::kGpu, "GPU1");
  EXPECT_EQ(error(cluster_of(bare, 2, FabricKind::kSingleSwitch), 0, 2),
            "no way from host 0 ('bare') to host 1 ('bare'): host 0 ('bare') has no NIC");
  EXPECT_EQ(error(cluster_of(bare, 1, FabricKind::kNone), 0, 1), "no way from GPU 0 to GPU 1 inside host 0 ('bare')");
  EXPECT_EQ(error(cluster_of(host_of(1), 2, FabricKind::kSingleSwitch), 0, 7),
            "GPU 7 does not exist; the cluster has 2");
  EXPECT_EQ(error(cluster_of(host_of(1), 0, FabricKind::kSingleSwitch), 0, 0), "the cluster has no hosts");
  EXPECT_EQ(error(cluster_of(host_of(1), 2000000000, FabricKind::kSingleSwitch), 0, 0).substr(0, 30),
            "the cluster has 2000000000 hos");
}

TEST(Platform, NumbersThatAreUnknownHoldNothingBackAndAreNoted) {
  topology::Host host = host_of(1);
  for (topology::Link& link : host.links) link.bandwidth = {};
  for (topology::Device& device : host.devices) device.line_bytes_per_s = 0;
  const Platform platform = Platform::make(cluster_of(host, 2, FabricKind::kFatTree, 1)).value();
  EXPECT_EQ(platform.notes().size(), 2u);
  EXPECT_EQ(bandwidth(platform, 0, 1), kNever);
}

TEST(Platform, LinksGrowWithHostsNotWithPairs) {
  // 16,384 hosts of 8 GPUs: 66 links of each host, 16 NIC directions; the fabric's cables are as many as NICs per
  // layer.
  const Platform platform = Platform::make(cluster_of(host_of(8), 16384, FabricKind::kRailOptimized, 32)).value();
  EXPECT_EQ(platform.gpus(), 131072);
  EXPECT_LT(platform.links(), 131072u * 15);
  EXPECT_EQ(platform.capacities().size(), platform.links());
  EXPECT_EQ(way(platform, 0, 131064).size(), 10u);
}

topology::FabricGraph two_planes() {
  // Two hosts with two adapters each; adapters 0 to switch 0, adapters 1 to switch 1; switch 0 is two switches with two
  // parallel cables of 4 B/s between them.
  topology::FabricGraph graph;
  const auto node = [&graph](const std::string& name, const std::string& host) {
    topology::FabricNode made;
    made.name = made.id = name;
    made.host = host;
    made.is_switch = host.empty();
    graph.nodes.push_back(made);
  };
  for (const char* name : {"leaf0", "leaf0b", "leaf1"}) node(name, "");
  for (const std::string& host : {std::string("a"), std::string("b")}) {
    for (const char* nic : {" mlx5_0", " mlx5_1"}) node(host + nic, host);
  }
  const auto cable = [&graph](int a, int b, double bytes_per_s) {
    topology::FabricLink link;
    link.a = a;
    link.b = b;
    link.bytes_per_s = bytes_per_s;
    graph.links.push_back(link);
  };
  cable(0, 3, 5);
  cable(2, 4, 5);
  cable(1, 5, 5);
  cable(2, 6, 0);
  cable(0, 1, 2);
  cable(0, 1, 2);
  return graph;
}

TEST(Platform, AListingGivesCablesAsTheyAre) {
  topology::Cluster cluster = cluster_of(host_of(2), 2, FabricKind::kNone);
  const Platform platform = Platform::make(cluster, two_planes()).value();
  EXPECT_EQ(platform.notes().size(), 1u) << "the cable without a rate";
  const std::vector<std::string> names = way(platform, 0, 2);
  EXPECT_EQ(std::vector<std::string>(names.begin() + 3, names.begin() + 6),
            (std::vector<std::string>{"a mlx5_0 -> leaf0", "leaf0 -> leaf0b", "leaf0b -> b mlx5_0"}));
  EXPECT_DOUBLE_EQ(bandwidth(platform, 0, 2), 2);
  EXPECT_DOUBLE_EQ(bandwidth(platform, 1, 3), 5);
  const Platform sprayed = Platform::make(cluster, two_planes(), {.spread = Spread::kSpray}).value();
  EXPECT_DOUBLE_EQ(bandwidth(sprayed, 0, 2), 4) << "both parallel cables";
}

TEST(Platform, PlanesOfAListingAreNotCrossed) {
  topology::Cluster cluster = cluster_of(host_of(2), 2, FabricKind::kNone);
  const Platform platform = Platform::make(cluster, two_planes()).value();
  // GPU 0 to GPU 3, whose NIC is on the other plane: through GPU 1 and its NIC.
  EXPECT_EQ(way(platform, 0, 3)[4], "host 0: mlx5_1 -> fabric");
  EXPECT_EQ(way(platform, 0, 3, {.from_nic = 0}).front(),
            "no way from host 0 ('box') to host 1 ('box'): no cables join NIC 'mlx5_0' to NIC 'mlx5_1'");
  topology::FabricGraph cut = two_planes();
  cut.links.resize(3);
  const Platform apart = Platform::make(cluster, cut).value();
  EXPECT_EQ(way(apart, 0, 2).front(),
            "no way from host 0 ('box') to host 1 ('box'): no cables join NIC 'mlx5_0' to NIC 'mlx5_0'");
}

TEST(Platform, AListingOfOtherMachinesIsRefused) {
  const auto error = [](const topology::Cluster& cluster) {
    return Platform::make(cluster, two_planes()).error().message;
  };
  EXPECT_EQ(error(cluster_of(host_of(2), 3, FabricKind::kNone)), "the fabric listing shows 2 hosts, the cluster has 3");
  EXPECT_EQ(error(cluster_of(host_of(4), 2, FabricKind::kNone)),
            "host 'a' of the fabric listing has 2 adapters, host 0 ('box') of the cluster has 4 NICs");
}

}  // namespace
}  // namespace chokepoint::flow
