// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/units.hpp>
#include <chokepoint/collective/collective.hpp>
#include <chokepoint/collective/constants.hpp>
#include <gtest/gtest.h>

namespace chokepoint::collective {
namespace {

const Constants kConstants;

using topology::Bandwidth;
using topology::DeviceKind;
using topology::LinkKind;

Bandwidth rate(double gigabytes_per_s) {
  Bandwidth bandwidth;
  bandwidth.specified_bytes_per_s = gbyte(gigabytes_per_s);
  return bandwidth;
}

topology::Device named(DeviceKind kind, const std::string& name) {
  topology::Device device;
  device.kind = kind;
  device.name = name;
  return device;
}

/// GPUs on root ports of two sockets: PCIe 4.0 x16, 16 GB/s between the sockets, 200 GB/s of memory each.
topology::Host pcie_host(int gpus, int sockets = 2) {
  topology::Host host;
  std::vector<int> cpus;
  for (int s = 0; s < sockets; ++s) {
    cpus.push_back(host.add_device(named(DeviceKind::kCpu, "NUMA" + std::to_string(s))));
    if (s > 0) host.add_duplex(cpus[0], cpus.back(), LinkKind::kSocket, 1, rate(16));
  }
  for (int i = 0; i < gpus; ++i) {
    const int gpu = host.add_device(named(DeviceKind::kGpu, "GPU" + std::to_string(i)));
    const int bridge = host.add_device(named(DeviceKind::kHostBridge, "root" + std::to_string(i)));
    host.add_duplex(gpu, bridge, LinkKind::kPcie, 16, rate(31.5));
    host.add_duplex(bridge, cpus[static_cast<std::size_t>(i * sockets / gpus)], LinkKind::kMemory, 1, rate(200));
  }
  return host;
}

/// Adds NVLinks of `gigabytes_per_s` to a switch.
topology::Host switched_host(int gpus, double gigabytes_per_s) {
  topology::Host host = pcie_host(gpus);
  const int nvswitch = host.add_device(named(DeviceKind::kNvSwitch, "NVSwitch"));
  for (const int gpu : host.gpus()) host.add_duplex(gpu, nvswitch, LinkKind::kNvLink, 12, rate(gigabytes_per_s));
  return host;
}

void add_nics(topology::Host& host, int count, double gigabits_per_s) {
  const std::vector<int> bridges = host.of_kind(DeviceKind::kHostBridge);
  for (int i = 0; i < count; ++i) {
    topology::Device nic = named(DeviceKind::kNic, "NIC" + std::to_string(i));
    nic.line_bytes_per_s = gbit(gigabits_per_s);
    const int index = host.add_device(nic);
    host.add_duplex(index, bridges[static_cast<std::size_t>(i) * bridges.size() / static_cast<std::size_t>(count)], LinkKind::kPcie, 16, rate(31.5));
  }
}

topology::Cluster cluster_of(topology::Host host, int count) {
  topology::Cluster cluster;
  cluster.hosts.push_back({std::move(host), count});
  if (count > 1) cluster.fabric.kind = topology::FabricKind::kSingleSwitch;
  return cluster;
}

hardware::Accelerator ampere() {
  hardware::Accelerator accelerator;
  accelerator.architecture = hardware::Architecture::kAmpere;
  return accelerator;
}

/// Of what its links give, a ring of n ranks that is walked `rounds` times uses this: steps that do not overlap.
double walked(int n, int rounds) { return 1 / (1 + kConstants.ring_start / (rounds * (n - 1))); }

constexpr double kGiBytes = kGiB;

TEST(Collective, BusFactorsAreThoseOfNcclTests) {
  EXPECT_DOUBLE_EQ(bus_factor(Op::kAllReduce, 8), 1.75);
  EXPECT_DOUBLE_EQ(bus_factor(Op::kAllGather, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Op::kSendRecv, 2), 1.0);
}

TEST(Collective, ParsesEveryNameAndTheUsualSpellings) {
  for (const Op op : {Op::kAllReduce, Op::kAllGather, Op::kReduceScatter, Op::kBroadcast, Op::kReduce, Op::kAllToAll, Op::kSendRecv}) {
    ASSERT_TRUE(parse_op(name(op)));
    EXPECT_EQ(*parse_op(name(op)), op);
  }
  EXPECT_EQ(parse_op("sendrecv").value(), Op::kSendRecv);
  EXPECT_EQ(parse_op("AllReduce").value(), Op::kAllReduce);
  const auto bad = parse_op("all_reduced");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().notes.front(), "did you mean 'all_reduce'?");
}

TEST(Collective, OneRankCostsNothing) {
  const Network network(cluster_of(switched_host(8, 300), 1), ampere());
  EXPECT_EQ(network.cost(Op::kAllReduce, 1e9, {.ranks = 1}).time_s, 0);
}

TEST(Collective, RingOnASwitchIsBoundByTheLinksOfOneGpu) {
  const Network network(cluster_of(switched_host(8, 300), 1), ampere());
  const Cost cost = network.cost(Op::kAllReduce, 16 * kGiBytes, {.ranks = 8, .ranks_per_host = 8});
  EXPECT_NEAR(cost.peak_bus_bytes_per_s, 300e9 * kConstants.nvlink_ampere.ring * walked(8, 2), 1e6);
  EXPECT_EQ(cost.algorithm, "ring");
  EXPECT_EQ(cost.limit, LimitKind::kNvLink);
  // Floor: 2 x 7/8 of the buffer over one GPU's 300 GB/s.
  EXPECT_NEAR(cost.floor_s, 1.75 * 16 * kGiBytes / 300e9, 1e-6);
  EXPECT_GT(cost.time_s, cost.floor_s);
}

TEST(Collective, ZeroBytesCostLatencyOnly) {
  const Network network(cluster_of(switched_host(8, 300), 1), ampere());
  const Cost cost = network.cost(Op::kAllGather, 0, {.ranks = 8, .ranks_per_host = 8});
  EXPECT_GT(cost.time_s, 0);
  EXPECT_EQ(cost.time_s, cost.latency_s);
  EXPECT_EQ(cost.limit, LimitKind::kLatency);
}

TEST(Collective, TimeNeverFallsWithSize) {
  const Network network(cluster_of(switched_host(8, 300), 1), ampere());
  for (const Op op : {Op::kAllReduce, Op::kAllGather, Op::kReduceScatter, Op::kBroadcast, Op::kReduce, Op::kAllToAll}) {
    double last = 0;
    for (double bytes = 1; bytes < 1e11; bytes *= 1.7) {
      const double time = network.cost(op, bytes, {.ranks = 8, .ranks_per_host = 8}).time_s;
      EXPECT_GE(time, last) << name(op) << " at " << bytes;
      last = time;
    }
  }
}

TEST(Collective, RingOverSocketsIsBoundByTheLinkBetweenThem) {
  // Any ring over both sockets crosses once each way; in order 0..7 it crosses exactly once: 16 GB/s.
  const Network network(cluster_of(pcie_host(8), 1), ampere());
  const Cost cost = network.cost(Op::kAllReduce, 4 * kGiBytes, {.ranks = 8, .ranks_per_host = 8});
  EXPECT_NEAR(cost.peak_bus_bytes_per_s, 16e9, 1e6);
  EXPECT_EQ(cost.limit, LimitKind::kSocket);
  EXPECT_EQ(cost.where, "link between NUMA0 and NUMA1");
}

TEST(Collective, RingOrderIsSearchedNotTakenFromTheRankOrder) {
  // Members 0,4,1,5 in this order would cross the sockets twice each way; the best ring crosses once.
  topology::Host host = pcie_host(8);
  const Network network(cluster_of(std::move(host), 1), ampere());
  const Cost near = network.cost(Op::kAllReduce, 4 * kGiBytes, {.ranks = 4, .ranks_per_host = 4});
  const Cost strided = network.cost(Op::kAllReduce, 4 * kGiBytes, {.ranks = 4, .ranks_per_host = 4, .local_stride = 2});
  EXPECT_NEAR(near.peak_bus_bytes_per_s, 31.5e9 * kConstants.pcie, 1e6);
  // Two sibling groups cross the sockets at the same time: half of 16 GB/s each.
  EXPECT_NEAR(strided.peak_bus_bytes_per_s, 8e9, 1e6);
  EXPECT_EQ(strided.where, "link between NUMA0 and NUMA1, shared by 2 flows");
}

TEST(Collective, CardsWithoutPeerToPeerCopyThroughHostMemory) {
  topology::Host host = pcie_host(2, 1);
  const Network peer(cluster_of(host, 1), ampere());
  host.peer_to_peer = false;
  const Network bounced(cluster_of(host, 1), ampere());
  const Group pair{.ranks = 2, .ranks_per_host = 2};
  EXPECT_NEAR(peer.cost(Op::kAllGather, kGiBytes, pair).peak_bus_bytes_per_s, 31.5e9 * kConstants.pcie, 1e6);
  EXPECT_NEAR(bounced.cost(Op::kAllGather, kGiBytes, pair).peak_bus_bytes_per_s, 31.5e9 * kConstants.bounce, 1e6);
}

TEST(Collective, SlowHostMemoryBoundsCopiesOfAllCards) {
  // Two flows, each written to and read from 30 GB/s of memory: 30 x share / 2 / 2.
  topology::Host host = pcie_host(2, 1);
  host.peer_to_peer = false;
  for (topology::Link& link : host.links) {
    if (link.kind == LinkKind::kMemory) link.bandwidth = rate(30);
  }
  const Network network(cluster_of(host, 1), ampere());
  const Cost cost = network.cost(Op::kAllGather, kGiBytes, {.ranks = 2, .ranks_per_host = 2});
  EXPECT_NEAR(cost.peak_bus_bytes_per_s, 30e9 * kConstants.dram / 4, 1e6);
  EXPECT_EQ(cost.limit, LimitKind::kHostMemory);
}

TEST(Collective, PairInAFullMeshGetsOneLinkAndTheWholeMeshAll) {
  topology::Host host = pcie_host(8);
  const std::vector<int> gpus = host.gpus();
  for (std::size_t a = 0; a < 8; ++a) {
    for (std::size_t b = a + 1; b < 8; ++b) host.add_duplex(gpus[a], gpus[b], LinkKind::kXgmi, 1, rate(64));
  }
  hardware::Accelerator accelerator;
  accelerator.architecture = hardware::Architecture::kCdna3;
  const Network network(cluster_of(host, 1), accelerator);
  const double pair = network.cost(Op::kAllReduce, kGiBytes, {.ranks = 2, .ranks_per_host = 2}).peak_bus_bytes_per_s;
  const double whole = network.cost(Op::kAllReduce, kGiBytes, {.ranks = 8, .ranks_per_host = 8}).peak_bus_bytes_per_s;
  EXPECT_NEAR(pair, 64e9 * kConstants.xgmi, 1e6);
  EXPECT_NEAR(whole, 7 * pair, 1e6);
}

TEST(Collective, BridgesInPairsHelpAPairButNotARingOfFour) {
  topology::Host host = pcie_host(4);
  const std::vector<int> gpus = host.gpus();
  host.add_duplex(gpus[0], gpus[1], LinkKind::kNvLink, 4, rate(112));
  host.add_duplex(gpus[2], gpus[3], LinkKind::kNvLink, 4, rate(112));
  const Network network(cluster_of(host, 1), ampere());
  EXPECT_NEAR(network.cost(Op::kAllReduce, kGiBytes, {.ranks = 2, .ranks_per_host = 2}).peak_bus_bytes_per_s, 112e9 * kConstants.nvlink_ampere.ring * walked(2, 2), 1e6);
  EXPECT_NEAR(network.cost(Op::kAllReduce, kGiBytes, {.ranks = 4, .ranks_per_host = 4}).peak_bus_bytes_per_s, 16e9, 1e6);
}

TEST(Collective, RingOverHostsIsBoundByTheirNics) {
  topology::Host host = switched_host(8, 300);
  add_nics(host, 8, 100);
  const Network network(cluster_of(host, 4), ampere());
  const Cost cost = network.cost(Op::kAllGather, 16 * kGiBytes, {.ranks = 32, .ranks_per_host = 8});
  EXPECT_NEAR(cost.peak_bus_bytes_per_s, 100e9 * kConstants.infiniband, 1e6);
  EXPECT_NEAR(network.host_egress_bytes_per_s(), 100e9 * kConstants.infiniband, 1e6);
  EXPECT_EQ(cost.where, "8 x 100 Gb/s NICs of each host");
}

TEST(Collective, SiblingGroupsShareTheNicsOfTheirHost) {
  topology::Host host = switched_host(8, 300);
  add_nics(host, 1, 100);
  const Network network(cluster_of(host, 4), ampere());
  const double whole = network.cost(Op::kAllGather, 16 * kGiBytes, {.ranks = 32, .ranks_per_host = 8}).peak_bus_bytes_per_s;
  const Cost strided = network.cost(Op::kAllGather, 16 * kGiBytes, {.ranks = 4, .ranks_per_host = 1});
  EXPECT_NEAR(strided.peak_bus_bytes_per_s, whole / 8, 1e6);
  EXPECT_EQ(strided.where, "1 x 100 Gb/s NIC of each host, shared by 8 groups");
}

TEST(Collective, TwoHostsReduceOverATreeBecauseItSendsTheBufferOnce) {
  // Ring: 2 x 15/16 of the buffer leaves a host; tree: the buffer. Bus bandwidth is 1.875 times the NICs'.
  topology::Host host = switched_host(8, 300);
  add_nics(host, 4, 100);
  const Network network(cluster_of(host, 2), ampere());
  const Cost cost = network.cost(Op::kAllReduce, 64 * kGiBytes, {.ranks = 16, .ranks_per_host = 8});
  EXPECT_EQ(cost.algorithm, "tree");
  EXPECT_NEAR(cost.peak_bus_bytes_per_s, 1.875 * 50e9 * kConstants.infiniband, 1e7);
}

TEST(Collective, OversubscribedLeavesSlowStridedGroupsOnly) {
  topology::Host host = switched_host(8, 300);
  add_nics(host, 8, 100);
  topology::Cluster cluster = cluster_of(host, 32);
  cluster.fabric.kind = topology::FabricKind::kFatTree;
  cluster.fabric.hosts_per_leaf = 8;
  cluster.fabric.oversubscription = 3;
  const Network network(cluster, ampere());
  const double ring = network.cost(Op::kAllGather, 16 * kGiBytes, {.ranks = 256, .ranks_per_host = 8}).peak_bus_bytes_per_s;
  const Cost strided = network.cost(Op::kAllGather, 16 * kGiBytes, {.ranks = 32, .ranks_per_host = 8, .host_stride = 8});
  EXPECT_NEAR(ring, 100e9 * kConstants.infiniband, 1e6);
  EXPECT_NEAR(strided.peak_bus_bytes_per_s, 100e9 * kConstants.infiniband / 3, 1e6);
  EXPECT_EQ(strided.limit, LimitKind::kFabric);
}

TEST(Collective, MeasuredBandwidthReplacesTheWire) {
  topology::Cluster cluster = cluster_of(switched_host(8, 300), 1);
  cluster.measured.host_all_reduce = 45e9;
  const Network network(cluster, ampere());
  const Cost cost = network.cost(Op::kAllReduce, 64 * kGiBytes, {.ranks = 8, .ranks_per_host = 8});
  EXPECT_NEAR(cost.bus_bytes_per_s, 45e9, 0.05e9);
  EXPECT_EQ(cost.limit, LimitKind::kMeasured);
}

TEST(Collective, GatherOverHostsTakesTheFastestMeasuredValueAsTheWire) {
  // One size over many ranks: the gather shows latency, the tree all_reduce comes nearer to the wire.
  topology::Host host = switched_host(8, 300);
  add_nics(host, 8, 400);
  topology::Cluster cluster = cluster_of(host, 4);
  cluster.measured.all_reduce = 180e9;
  cluster.measured.all_gather = 44e9;
  const Network network(cluster, ampere());
  EXPECT_NEAR(network.cost(Op::kAllGather, 1024 * kGiBytes, {.ranks = 32, .ranks_per_host = 8}).bus_bytes_per_s, 180e9, 1e9);
}

TEST(Collective, EachStepOfARingOverEfaTakesItsLeastTime) {
  topology::Host host = switched_host(8, 300);
  add_nics(host, 8, 400);
  topology::Cluster cluster = cluster_of(host, 2);
  cluster.fabric.transport = topology::Transport::kEfa;
  const Network network(cluster, ampere());
  // Sixteen ranks: fifteen steps, and no tree for a gather.
  EXPECT_GE(network.cost(Op::kAllGather, 32e6, {.ranks = 16, .ranks_per_host = 8}).time_s, 15 * kConstants.efa_step_s);
}

TEST(Collective, CallsThatTakeHostTimeForEachRankAreFoundInStartUpTests) {
  // 32 hosts, 256 ranks. Gathered at 13 GB/s and reduced at 26 GB/s of bus bandwidth, 1 GB takes 77 ms either way, where the
  // wire needs 3 ms and 255 ring steps 11 ms: each call takes 77 ms / 255 for each further rank, also inside a host.
  topology::Host host = switched_host(8, 450);
  add_nics(host, 8, 400);
  topology::Cluster cluster = cluster_of(host, 32);
  cluster.fabric.transport = topology::Transport::kEfa;
  cluster.measured.all_gather = 13e9;
  cluster.measured.all_reduce = 26e9;
  const Network slow(cluster, ampere());
  const double per_peer_s = 1e9 / 13e9 / 255;
  const Group inside{.ranks = 8, .ranks_per_host = 8};
  const Group across{.ranks = 64, .ranks_per_host = 8};
  EXPECT_NEAR(slow.cost(Op::kAllGather, 64e6, inside).call_s, 7 * per_peer_s, 1e-9);
  EXPECT_NEAR(slow.cost(Op::kAllReduce, 64e6, across).call_s, 63 * per_peer_s, 1e-9);
  // The wires are those of a cluster without measurements: what was measured were the calls.
  cluster.measured = {};
  const Network plain(cluster, ampere());
  EXPECT_DOUBLE_EQ(slow.cost(Op::kAllReduce, 64e6, across).time_s, plain.cost(Op::kAllReduce, 64e6, across).time_s);
  EXPECT_EQ(plain.cost(Op::kAllReduce, 64e6, across).call_s, 0);
}

TEST(Collective, SlowWiresAreNotMistakenForSlowCalls) {
  // A reduction bound by the wire takes twice as long as a gather of the same size: half of 4 GB/s is the gather's 4 GB/s
  // of bus bandwidth, and one NIC of 40 Gb/s explains it.
  topology::Host host = switched_host(8, 300);
  add_nics(host, 1, 40);
  topology::Cluster cluster = cluster_of(host, 4);
  cluster.measured.all_gather = 4e9;
  cluster.measured.all_reduce = 4e9;
  EXPECT_EQ(Network(cluster, ampere()).cost(Op::kAllGather, 64e6, {.ranks = 32, .ranks_per_host = 8}).call_s, 0);
}

TEST(Collective, PairsThatShareAPortOverTcpNeverPassMoreThanThePort) {
  // Eight ranks send to the next host through one 25 Gb/s port: 64 MiB each are 0.54 GB, at 0.85 of 3.125 GB/s 0.202 s.
  topology::Host host = switched_host(8, 300);
  add_nics(host, 1, 25);
  topology::Cluster cluster = cluster_of(host, 2);
  cluster.fabric.transport = topology::Transport::kTcp;
  const Network network(cluster, ampere());
  const double wire_s = 8 * 64.0 * 1048576 / (3.125e9 * kConstants.tcp);
  EXPECT_GE(network.send(64.0 * 1048576, 8, 16).time_s, wire_s);
  EXPECT_LE(network.send(64.0 * 1048576, 8, 16).time_s, 1.05 * wire_s);
}

TEST(Collective, RdmaOverEthernetIsNeverSlowerThanSocketsOnTheSamePort) {
  for (const double gbit : {10.0, 25.0, 50.0, 100.0, 400.0}) {
    topology::Host host = switched_host(8, 300);
    add_nics(host, 1, gbit);
    topology::Cluster cluster = cluster_of(host, 4);
    const auto bus = [&cluster](topology::Transport transport) {
      cluster.fabric.transport = transport;
      return Network(cluster, ampere()).cost(Op::kAllGather, kGiBytes, {.ranks = 32, .ranks_per_host = 8}).peak_bus_bytes_per_s;
    };
    EXPECT_GE(bus(topology::Transport::kRoce), bus(topology::Transport::kTcp) * (1 - 1e-9)) << gbit << " Gb/s";
  }
}

TEST(Collective, TwiceTheGpusDriveAnOmniPathPortTwiceAsFast) {
  // Its transport runs on the processors: each GPU's process moves 0.145 of a port of 12.5 GB/s. Four ports: 4 GPUs 7.25
  // GB/s, 8 GPUs 14.5; never more than sockets (5 GB/s a port, 20 in all), which 16 GPUs would pass.
  const auto egress = [](int gpus) {
    topology::Host host = switched_host(gpus, 300);
    add_nics(host, 4, 100);
    topology::Cluster cluster = cluster_of(host, 4);
    cluster.fabric.transport = topology::Transport::kOmniPath;
    return Network(cluster, ampere()).host_egress_bytes_per_s();
  };
  EXPECT_NEAR(egress(4), 7.25e9, 1e7);
  EXPECT_NEAR(egress(8), 14.5e9, 1e7);
  EXPECT_NEAR(egress(16), 20e9, 1e7);
}

TEST(Collective, GroupInATorusUsesTheLinksOfTheDimensionsItSpans) {
  // 16 hosts of 4 chips: a torus of 4 x 4 x 4. All 64 chips use all links; four chips are a line and use a third.
  topology::Cluster cluster = cluster_of(switched_host(4, 600), 16);
  cluster.hosts.front().host.nvlink_domain_hosts = 16;
  cluster.hosts.front().host.torus_dimensions = 3;
  const Network network(cluster, ampere());
  const double all = network.cost(Op::kAllGather, kGiBytes, {.ranks = 64, .ranks_per_host = 4}).peak_bus_bytes_per_s;
  const double line = network.cost(Op::kAllGather, kGiBytes, {.ranks = 4, .ranks_per_host = 4}).peak_bus_bytes_per_s;
  EXPECT_NEAR(all, 600e9 * kConstants.nvlink_ampere.ring, 1e6);
  EXPECT_NEAR(all / line, 3, 1e-6);
}

TEST(Collective, ExchangeOncePerHostSendsItsShareThroughTheNics) {
  topology::Host host = switched_host(8, 450);
  add_nics(host, 8, 100);
  const Network network(cluster_of(host, 4), ampere());
  const Group group{.ranks = 32, .ranks_per_host = 8};
  const double all = network.exchange(kGiBytes, 1, group).time_s;
  EXPECT_DOUBLE_EQ(all, network.cost(Op::kAllToAll, kGiBytes, group).time_s);
  // NICs of 8 x 12.5 GB/s bound both: three quarters of 8 GiB leave the host, or half of that.
  EXPECT_NEAR(network.exchange(kGiBytes, 0.5, group).time_s / all, 0.5, 0.01);
  // What arrives once is still copied to all experts over NVLink.
  EXPECT_GE(network.exchange(kGiBytes, 0, group).time_s, kGiBytes * 31 / 32 / 450e9);
}

TEST(Collective, ScaledLinksScaleTheTransfer) {
  const topology::Cluster cluster = cluster_of(switched_host(8, 300), 1);
  const Group group{.ranks = 8, .ranks_per_host = 8};
  const Network plain(cluster, ampere());
  const Network doubled(cluster, ampere(), Scale{.nvlink = 2});
  EXPECT_NEAR(doubled.cost(Op::kAllReduce, 1e9, group).peak_bus_bytes_per_s, 2 * plain.cost(Op::kAllReduce, 1e9, group).peak_bus_bytes_per_s, 1e6);
}

TEST(Collective, CopiesOfANetworkAreIndependent) {
  const Network first(cluster_of(switched_host(8, 300), 1), ampere());
  const Group group{.ranks = 8, .ranks_per_host = 8};
  const double time = first.cost(Op::kAllReduce, 1e8, group).time_s;
  Network second(first);
  EXPECT_EQ(second.cost(Op::kAllReduce, 1e8, group).time_s, time);
}

TEST(Collective, SendAcrossHostsSharesTheNicsOfAllRanks) {
  topology::Host host = switched_host(8, 300);
  add_nics(host, 8, 100);
  const Network network(cluster_of(host, 2), ampere());
  const Cost inside = network.send(1e9, 4);
  const Cost across = network.send(1e9, 8);
  EXPECT_LT(inside.time_s, across.time_s);
  EXPECT_NEAR(across.peak_bus_bytes_per_s, 12.5e9 * kConstants.infiniband * kConstants.network_send, 1e6);
}

TEST(Collective, StagesWithinAHostMeetItsEdgeWhenThePipelineFillsMore) {
  // Stages of four ranks, eight GPUs a host: of two boundaries one lies between hosts. Its four senders share one NIC,
  // half as many as the eight of a stage that fills the host.
  topology::Host host = switched_host(8, 300);
  add_nics(host, 1, 100);
  const Network network(cluster_of(host, 2), ampere());
  EXPECT_LT(network.send(1e9, 4, 8).time_s, network.send(1e9, 4, 16).time_s);
  EXPECT_NEAR(network.send(1e9, 4, 16).time_s, network.send(1e9, 8, 16).time_s / 2, 1e-3 * network.send(1e9, 8, 16).time_s);
}

TEST(Collective, PairsLoseMoreToTheEndsOfARingThanLongRings) {
  // Twelve links either way: two ranks take 1 + start / 2 of the time of the wire, eight ranks 1 + start / 14.
  const Network network(cluster_of(switched_host(8, 300), 1), ampere());
  const double pair = network.cost(Op::kAllReduce, kGiBytes, {.ranks = 2, .ranks_per_host = 2}).peak_bus_bytes_per_s;
  const double whole = network.cost(Op::kAllReduce, kGiBytes, {.ranks = 8, .ranks_per_host = 8}).peak_bus_bytes_per_s;
  EXPECT_NEAR(pair / whole, walked(2, 2) / walked(8, 2), 1e-6);
  EXPECT_LT(pair, whole);
}

TEST(Collective, NvlsDependsOnTheRelease) {
  hardware::Accelerator hopper;
  hopper.architecture = hardware::Architecture::kHopper;
  const Group group{.ranks = 8, .ranks_per_host = 8};
  const topology::Cluster cluster = cluster_of(switched_host(8, 450), 1);
  EXPECT_EQ(Network(cluster, hopper).cost(Op::kAllReduce, kGiBytes, group).algorithm, "nvls");
  EXPECT_EQ(Network(cluster, hopper, {}, {}, 21200).cost(Op::kAllReduce, kGiBytes, group).algorithm, "ring");
}

TEST(Collective, TheTunersChoiceFollowsTheReleaseAndTheSize) {
  const Network network(cluster_of(switched_host(8, 300), 1), ampere());
  const Group group{.ranks = 8, .ranks_per_host = 8};
  EXPECT_EQ(network.tuned(Op::kAllReduce, 1e3, group).second, "ll");
  EXPECT_EQ(network.tuned(Op::kAllReduce, 4e6, group).second, "ll128");
  EXPECT_EQ(network.tuned(Op::kAllReduce, 4e9, group).second, "simple");
  EXPECT_EQ(network.tuned(Op::kAllToAll, 4e9, group).first, "direct");
}

TEST(Collective, ChannelsOpenAsTheSizeGrowsAndEachTakesItsTime) {
  // LL in a ring opens a channel for each 512 threads x 8 bytes x 8 ranks = 32 KiB: two at 64 KiB, four at 128 KiB. Each then
  // carries 32 KiB, so nothing else changes.
  const Network network(cluster_of(switched_host(8, 300), 1), ampere());
  const Group group{.ranks = 8, .ranks_per_host = 8};
  const auto time_s = [&](double kibibytes) { return network.cost(Op::kAllGather, kibibytes * 1024, group).time_s; };
  EXPECT_EQ(network.cost(Op::kAllGather, 128 * 1024, group).protocol, "ll");
  EXPECT_NEAR(time_s(128) - time_s(64), 2 * kConstants.channel_s, 1e-12);
  EXPECT_NEAR(time_s(96) - time_s(64), kConstants.channel_s, 1e-12);
}

TEST(Collective, NcclVersionsAreReadFromAllTheirSpellings) {
  EXPECT_EQ(parse_nccl("NCCL 2.12.12+cuda11.6"), 21212);
  EXPECT_EQ(parse_nccl("nccl 2.18"), 21800);
  EXPECT_EQ(parse_nccl("v2.27.3"), 22703);
  EXPECT_EQ(parse_nccl("torch.distributed, NCCL 2.7.8 class"), 2708);
  EXPECT_EQ(parse_nccl("nccl-tests"), 0);
  EXPECT_EQ(parse_nccl(""), 0);
  EXPECT_EQ(parse_nccl("NCCL 2."), 0);
}

TEST(Collective, OneGpuMoreIsNoCheaperForAnExchange) {
  const Network network(cluster_of(switched_host(8, 300), 1), ampere());
  EXPECT_LE(network.cost(Op::kAllToAll, 1e3, {.ranks = 2, .ranks_per_host = 2}).time_s, network.cost(Op::kAllToAll, 1e3, {.ranks = 8, .ranks_per_host = 8}).time_s);
}

TEST(CollectiveConstants, ReferencesWriteIntoTheSetTheyWereTakenFrom) {
  Constants constants;
  const Network before(cluster_of(switched_host(8, 300), 1), ampere(), {}, constants);
  for (const ParameterRef& ref : refs(constants)) {
    EXPECT_EQ(ref.info.value, *ref.value) << ref.info.name;
    EXPECT_FALSE(ref.info.source.empty()) << ref.info.name;
    if (ref.info.name == "collective.nvlink.ampere.ring") *ref.value /= 2;
  }
  const Network after(cluster_of(switched_host(8, 300), 1), ampere(), {}, constants);
  const Group group{.ranks = 8, .ranks_per_host = 8};
  EXPECT_NEAR(after.cost(Op::kAllGather, kGiBytes, group).peak_bus_bytes_per_s, 300e9 * Constants{}.nvlink_ampere.ring / 2 * walked(8, 1), 1e6);
  EXPECT_NEAR(before.cost(Op::kAllGather, kGiBytes, group).peak_bus_bytes_per_s, 300e9 * Constants{}.nvlink_ampere.ring * walked(8, 1), 1e6);
}

}  // namespace
}  // namespace chokepoint::collective
