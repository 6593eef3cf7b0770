// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/flow/lower.hpp>
#include <gtest/gtest.h>

#include <numeric>

#include "test_clusters.hpp"

namespace chokepoint::flow {
namespace {

using topology::FabricKind;

std::vector<int> first(int count) {
  std::vector<int> gpus(static_cast<std::size_t>(count));
  std::iota(gpus.begin(), gpus.end(), 0);
  return gpus;
}

struct Outcome {
  double time_s = 0;
  std::vector<double> carried;  ///< by link
};

Outcome run(const Platform& platform, const FlowSet& flows) {
  Fluid fluid(platform.capacities());
  for (std::size_t i = 0; i < flows.size(); ++i) fluid.start(flows.uses(i), flows.bytes(i));
  std::vector<FlowId> done;
  fluid.advance(kNever, done);
  EXPECT_EQ(fluid.live(), 0u);
  Outcome result{fluid.now_s(), {}};
  for (std::uint32_t link = 0; link < platform.links(); ++link) result.carried.push_back(fluid.carried_bytes(link));
  return result;
}

double carried(const Platform& platform, const Outcome& result, const std::string& name) {
  for (std::uint32_t link = 0; link < platform.links(); ++link) {
    if (platform.name_of(link) == name) return result.carried[link];
  }
  ADD_FAILURE() << "no link " << name;
  return -1;
}

TEST(Lower, ARingAllReduceMovesTwiceNMinusOneOverNOfThePayloadOverEachLink) {
  // 4 GPUs on a switch of 100 B/s each, 400 bytes: 2 x 3/4 x 400 = 600 bytes on each link, 6 s, as one flow.
  const Platform platform = Platform::make(cluster_of(host_of(4), 1, FabricKind::kNone)).value();
  const FlowSet flows = lower(platform, Pattern::kAllReduce, Algorithm::kRing, 400, first(4)).value();
  ASSERT_EQ(flows.size(), 1u);
  const Outcome result = run(platform, flows);
  EXPECT_DOUBLE_EQ(result.time_s, 6);
  EXPECT_DOUBLE_EQ(carried(platform, result, "host 0: GPU2 -> NVSwitch0"), 600);
  EXPECT_DOUBLE_EQ(run(platform, lower(platform, Pattern::kAllGather, Algorithm::kRing, 400, first(4)).value()).time_s,
                   3);
  EXPECT_DOUBLE_EQ(
      run(platform, lower(platform, Pattern::kReduceScatter, Algorithm::kRing, 400, first(4)).value()).time_s, 3);
}

TEST(Lower, ARingIsAsSlowAsItsSlowestLink) {
  topology::Host host = host_of(4);
  for (topology::Link& link : host.links) {
    if (link.kind == topology::LinkKind::kNvLink && host.devices[static_cast<std::size_t>(link.from)].name == "GPU2")
      link.bandwidth = rate(50);
  }
  const Platform platform = Platform::make(cluster_of(host, 1, FabricKind::kNone)).value();
  EXPECT_DOUBLE_EQ(run(platform, lower(platform, Pattern::kAllReduce, Algorithm::kRing, 400, first(4)).value()).time_s,
                   12);
}

TEST(Lower, RingChannelsEnterAHostByItsNicsInTurn) {
  // 2 hosts of 4 GPUs and NICs of 5 B/s; 8 ranks, 400 bytes: 2 x 7/8 x 400 = 700 bytes. One channel: one NIC, 140 s.
  // Four channels: a quarter each over its own NIC, 35 s. NVLink carries all four channels: at most 700 bytes on any
  // link.
  for (const FabricKind kind : {FabricKind::kSingleSwitch, FabricKind::kRailOptimized}) {
    const Platform platform = Platform::make(cluster_of(host_of(4), 2, kind)).value();
    EXPECT_DOUBLE_EQ(
        run(platform, lower(platform, Pattern::kAllReduce, Algorithm::kRing, 400, first(8)).value()).time_s, 140);
    const Outcome four =
        run(platform, lower(platform, Pattern::kAllReduce, Algorithm::kRing, 400, first(8), {.channels = 4}).value());
    EXPECT_DOUBLE_EQ(four.time_s, 35);
    for (int i = 0; i < 4; ++i) {
      const std::string nic = "mlx5_" + std::to_string(i);
      EXPECT_DOUBLE_EQ(carried(platform, four, "host 1: fabric -> " + nic), 175);
      EXPECT_DOUBLE_EQ(carried(platform, four, "host 0: " + nic + " -> fabric"), 175);
      EXPECT_LE(carried(platform, four, "host 0: GPU" + std::to_string(i) + " -> NVSwitch0"), 700 * (1 + 1e-12));
    }
  }
}

TEST(Lower, OneMemberPerHostUsesItsOwnNicWhateverTheChannel) {
  const Platform platform = Platform::make(cluster_of(host_of(4), 2, FabricKind::kRailOptimized)).value();
  const Outcome result =
      run(platform,
          lower(platform, Pattern::kAllReduce, Algorithm::kRing, 10, std::vector<int>{2, 6}, {.channels = 4}).value());
  EXPECT_DOUBLE_EQ(carried(platform, result, "host 0: mlx5_2 -> fabric"), 10);
  EXPECT_DOUBLE_EQ(result.time_s, 2);
}

TEST(Lower, ABroadcastIsAChainFromItsRootAndAReduceOneToIt) {
  const Platform platform = Platform::make(cluster_of(host_of(4), 1, FabricKind::kNone)).value();
  const Outcome out = run(platform, lower(platform, Pattern::kBroadcast, Algorithm::kRing, 100, first(4)).value());
  EXPECT_DOUBLE_EQ(out.time_s, 1);
  EXPECT_DOUBLE_EQ(carried(platform, out, "host 0: GPU0 -> NVSwitch0"), 100);
  EXPECT_DOUBLE_EQ(carried(platform, out, "host 0: NVSwitch0 -> GPU0"), 0);
  const Outcome in = run(platform, lower(platform, Pattern::kReduce, Algorithm::kRing, 100, first(4)).value());
  EXPECT_DOUBLE_EQ(carried(platform, in, "host 0: GPU0 -> NVSwitch0"), 0);
  EXPECT_DOUBLE_EQ(carried(platform, in, "host 0: NVSwitch0 -> GPU0"), 100);
}

TEST(Lower, DoubleTreesGiveEveryHostTwiceThePayloadAtMost) {
  // Each of two trees carries half of 100 bytes: a host with two children and a parent receives three halves in one
  // tree and as a leaf one half in the other. 7 hosts, one GPU and NIC each.
  for (const int hosts : {2, 3, 4, 6, 7, 8, 13, 32}) {
    const Platform platform = Platform::make(cluster_of(host_of(1), hosts, FabricKind::kSingleSwitch)).value();
    const Outcome result = run(
        platform, lower(platform, Pattern::kAllReduce, Algorithm::kTree, 100, first(hosts), {.channels = 2}).value());
    double in = 0;
    double total = 0;
    for (std::uint32_t link = 0; link < platform.links(); ++link) {
      if (platform.class_of(link) != LinkClass::kNicIn) continue;
      in = std::max(in, result.carried[link]);
      total += result.carried[link];
    }
    EXPECT_LE(in, 200) << hosts;
    EXPECT_DOUBLE_EQ(total, 2.0 * (hosts - 1) * 100)
        << hosts << ": each tree has hosts - 1 edges, both directions, half the payload";
  }
}

TEST(Lower, ATreeOverTwoHostsPassesThePayloadOnceInEachDirection) {
  // 2 hosts of 4 GPUs, 4 channels: 100 bytes cross in each direction, a quarter over each NIC of 5 B/s: 5 s.
  const Platform platform = Platform::make(cluster_of(host_of(4), 2, FabricKind::kRailOptimized)).value();
  EXPECT_DOUBLE_EQ(
      run(platform, lower(platform, Pattern::kAllReduce, Algorithm::kTree, 100, first(8), {.channels = 4}).value())
          .time_s,
      5);
}

TEST(Lower, NvlsSendsAndReceivesThePayloadOnceForEachGpu) {
  const Platform one = Platform::make(cluster_of(host_of(4), 1, FabricKind::kNone)).value();
  const Outcome inside = run(one, lower(one, Pattern::kAllReduce, Algorithm::kNvls, 100, first(4)).value());
  EXPECT_DOUBLE_EQ(inside.time_s, 1);
  for (int i = 0; i < 4; ++i) {
    EXPECT_DOUBLE_EQ(carried(one, inside, "host 0: GPU" + std::to_string(i) + " -> NVSwitch0"), 100);
    EXPECT_DOUBLE_EQ(carried(one, inside, "host 0: NVSwitch0 -> GPU" + std::to_string(i)), 100);
  }
  // Two hosts: a quarter of the payload over each NIC of 5 B/s.
  const Platform two = Platform::make(cluster_of(host_of(4), 2, FabricKind::kRailOptimized)).value();
  EXPECT_DOUBLE_EQ(run(two, lower(two, Pattern::kAllReduce, Algorithm::kNvls, 100, first(8)).value()).time_s, 5);
}

TEST(Lower, AllToAllTakesThePartsThatLeaveAHostThroughItsNics) {
  // 2 hosts of 2 GPUs; 40 bytes a rank, 10 for each peer. Each rank sends 20 bytes over its NIC of 5 B/s: 4 s; pairs,
  // ranks and the group as a whole agree because everything is even.
  const Platform platform = Platform::make(cluster_of(host_of(2), 2, FabricKind::kRailOptimized)).value();
  const std::size_t sizes[] = {12, 4, 1};
  for (const Coupling coupling : {Coupling::kPairs, Coupling::kRanks, Coupling::kGroup}) {
    const FlowSet flows =
        lower(platform, Pattern::kAllToAll, Algorithm::kDirect, 40, first(4), {.coupling = coupling}).value();
    EXPECT_EQ(flows.size(), sizes[static_cast<std::size_t>(coupling)]);
    const Outcome result = run(platform, flows);
    EXPECT_NEAR(result.time_s, 4, 1e-12);
    EXPECT_DOUBLE_EQ(carried(platform, result, "host 1: mlx5_1 -> fabric"), 20);
  }
}

TEST(Lower, LargeGroupsMergeTheirUsesOnTheWay) {
  const Platform platform = Platform::make(cluster_of(host_of(8), 32, FabricKind::kRailOptimized, 16)).value();
  const FlowSet flows =
      lower(platform, Pattern::kAllToAll, Algorithm::kDirect, 256, first(256), {.coupling = Coupling::kGroup}).value();
  ASSERT_EQ(flows.size(), 1u);
  EXPECT_LE(flows.uses(0).size(), platform.links());
  EXPECT_DOUBLE_EQ(carried(platform, run(platform, flows), "host 3: mlx5_5 -> fabric"), 8 * 31)
      << "eight senders' bytes for 31 receivers on the rail";
}

TEST(Lower, SendsGoFromEachMemberToTheNext) {
  const Platform platform = Platform::make(cluster_of(host_of(2), 2, FabricKind::kRailOptimized)).value();
  const FlowSet flows = lower(platform, Pattern::kSendRecv, Algorithm::kDirect, 10, std::vector<int>{0, 2, 3}).value();
  ASSERT_EQ(flows.size(), 2u);
  EXPECT_DOUBLE_EQ(run(platform, flows).time_s, 2);
}

TEST(Lower, TwoRingsThatShareAnUplinkGetHalfOfIt) {
  // Two data-parallel rings over the same two leaves, one cable of 5 B/s up (2 NICs at 2:1): 10 bytes each at 2.5 B/s.
  const Platform platform = Platform::make(cluster_of(host_of(2), 2, FabricKind::kFatTree, 1, 2.0)).value();
  Fluid fluid(platform.capacities());
  for (const std::vector<int>& group : {std::vector<int>{0, 2}, std::vector<int>{1, 3}}) {
    const FlowSet flows = lower(platform, Pattern::kAllReduce, Algorithm::kRing, 10, group).value();
    ASSERT_EQ(flows.size(), 1u);
    fluid.start(flows.uses(0), flows.bytes(0));
  }
  std::vector<FlowId> done;
  fluid.advance(kNever, done);
  EXPECT_DOUBLE_EQ(fluid.now_s(), 4);
}

TEST(Lower, NothingToSendGivesNoFlows) {
  const Platform platform = Platform::make(cluster_of(host_of(2), 1, FabricKind::kNone)).value();
  EXPECT_EQ(lower(platform, Pattern::kAllReduce, Algorithm::kRing, 0, first(2))->size(), 0u);
  EXPECT_EQ(lower(platform, Pattern::kAllReduce, Algorithm::kRing, 5, first(1))->size(), 0u);
  EXPECT_EQ(lower(platform, Pattern::kAllReduce, Algorithm::kRing, 5, {})->size(), 0u);
}

TEST(Lower, WhatCannotBeIsRefused) {
  const Platform platform = Platform::make(cluster_of(host_of(2), 2, FabricKind::kNone)).value();
  const auto error = [&platform](Pattern pattern, Algorithm algorithm, double bytes, std::vector<int> gpus,
                                 int channels) {
    return lower(platform, pattern, algorithm, bytes, gpus, {.channels = channels}).error().message;
  };
  EXPECT_EQ(error(Pattern::kAllReduce, Algorithm::kRing, -1, {0, 1}, 1),
            "the size of a collective must be a number of bytes, 0 or more");
  EXPECT_EQ(error(Pattern::kAllReduce, Algorithm::kRing, 1, {0, 9}, 1), "GPU 9 does not exist; the cluster has 4");
  EXPECT_EQ(error(Pattern::kAllReduce, Algorithm::kRing, 1, {0, 1, 0}, 1), "GPU 0 is in the group twice");
  EXPECT_EQ(error(Pattern::kAllReduce, Algorithm::kRing, 1, {0, 1}, 0), "a collective needs 1 to 1024 channels, not 0");
  EXPECT_EQ(error(Pattern::kAllReduce, Algorithm::kDirect, 1, {0, 1}, 1), "this operation has no such algorithm");
  EXPECT_EQ(error(Pattern::kAllReduce, Algorithm::kRing, 1, {0, 2}, 1),
            "no way from host 0 ('box') to host 1 ('box'): nothing joins the hosts");
  EXPECT_EQ(error(Pattern::kAllReduce, Algorithm::kTree, 1, {0, 2, 1}, 1),
            "members of one host do not stand together in the group, which a tree over hosts needs");
}

}  // namespace
}  // namespace chokepoint::flow
