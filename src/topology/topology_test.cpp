// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/topology/topology.hpp>

#include <gtest/gtest.h>

namespace chokepoint::topology {
namespace {

Bandwidth rate(double bytes_per_s) {
  Bandwidth bandwidth;
  bandwidth.specified_bytes_per_s = bytes_per_s;
  return bandwidth;
}

/// Two sockets; GPU0 and GPU1 share a switch with NIC0, GPU2 hangs on the same socket's second bridge, GPU3 on the
/// other socket. GPU0 and GPU3 are joined by NVLink.
struct TwoSockets {
  Host host;
  int gpu[4];
  int nic = 0;
  int cpu[2];
  TwoSockets() {
    for (int i = 0; i < 4; ++i) gpu[i] = host.add_device({DeviceKind::kGpu, "GPU" + std::to_string(i), {}, {}, {}});
    nic = host.add_device({DeviceKind::kNic, "NIC0", {}, {}, {}});
    const int pcie_switch = host.add_device({DeviceKind::kPcieSwitch, "PCIe switch 0", {}, {}, {}});
    int bridge[3];
    for (int i = 0; i < 3; ++i) bridge[i] = host.add_device({DeviceKind::kHostBridge, "bridge", {}, {}, {}});
    for (int i = 0; i < 2; ++i) cpu[i] = host.add_device({DeviceKind::kCpu, "CPU", {}, {}, i});
    for (const int device : {gpu[0], gpu[1], nic}) host.add_duplex(device, pcie_switch, LinkKind::kPcie, 16, rate(32e9));
    host.add_duplex(pcie_switch, bridge[0], LinkKind::kPcie, 16, rate(16e9));
    host.add_duplex(gpu[2], bridge[1], LinkKind::kPcie, 16, rate(32e9));
    host.add_duplex(gpu[3], bridge[2], LinkKind::kPcie, 16, rate(32e9));
    host.add_duplex(bridge[0], cpu[0], LinkKind::kMemory, 1, rate(100e9));
    host.add_duplex(bridge[1], cpu[0], LinkKind::kMemory, 1, rate(100e9));
    host.add_duplex(bridge[2], cpu[1], LinkKind::kMemory, 1, rate(100e9));
    host.add_duplex(cpu[0], cpu[1], LinkKind::kSocket, 1, rate(10e9));
    host.add_duplex(gpu[0], gpu[3], LinkKind::kNvLink, 2, rate(50e9));
  }
};

TEST(Topology, EffectiveBandwidthPrefersMeasuredOverNegotiatedOverSpecified) {
  Bandwidth bandwidth;
  EXPECT_EQ(bandwidth.effective(), 0.0);
  bandwidth.specified_bytes_per_s = 3;
  EXPECT_EQ(bandwidth.effective(), 3.0);
  bandwidth.negotiated_bytes_per_s = 2;
  EXPECT_EQ(bandwidth.effective(), 2.0);
  bandwidth.measured_bytes_per_s = 1;
  EXPECT_EQ(bandwidth.effective(), 1.0);
}

TEST(Topology, NvLinkComesBeforeTheSockets) {
  const TwoSockets box;
  const Route way = route(box.host, box.gpu[0], box.gpu[3]);
  ASSERT_EQ(way.links.size(), 1u);
  EXPECT_EQ(way.bytes_per_s, 50e9);
  EXPECT_EQ(path_between(box.host, box.gpu[3], box.gpu[0]).nvlinks, 2);
}

TEST(Topology, AWayNeverPassesThroughAThirdGpu) {
  // GPU1 could reach GPU3 in three hops through GPU0; the way has to cross switch, bridge, both sockets and bridge.
  const TwoSockets box;
  const Route way = route(box.host, box.gpu[1], box.gpu[3]);
  EXPECT_EQ(way.links.size(), 6u);
  EXPECT_EQ(way.bytes_per_s, 10e9);
  EXPECT_EQ(path_between(box.host, box.gpu[1], box.gpu[3]).path, PathClass::kSys);
}

TEST(Topology, PathClassesFollowFromSwitchesBridgesAndSockets) {
  const TwoSockets box;
  EXPECT_EQ(path_between(box.host, box.gpu[0], box.gpu[0]).path, PathClass::kSelf);
  EXPECT_EQ(path_between(box.host, box.gpu[0], box.gpu[1]).path, PathClass::kPix);
  EXPECT_EQ(path_between(box.host, box.gpu[0], box.nic).path, PathClass::kPix);
  EXPECT_EQ(path_between(box.host, box.gpu[0], box.gpu[2]).path, PathClass::kNode);
  EXPECT_EQ(path_between(box.host, box.gpu[2], box.gpu[3]).path, PathClass::kSys);
}

TEST(Topology, RoutesAreSymmetricInLengthAndBandwidth) {
  const TwoSockets box;
  for (int a = 0; a < 5; ++a) {
    for (int b = 0; b < 5; ++b) {
      const Route there = route(box.host, a, b);
      const Route back = route(box.host, b, a);
      EXPECT_EQ(there.links.size(), back.links.size()) << a << " " << b;
      EXPECT_EQ(there.bytes_per_s, back.bytes_per_s) << a << " " << b;
    }
  }
}

TEST(Topology, DeclaredClassWinsOverTheGraph) {
  TwoSockets box;
  box.host.declared.push_back({box.gpu[0], box.gpu[1], PathClass::kSys, 0});
  EXPECT_EQ(path_between(box.host, box.gpu[1], box.gpu[0]).path, PathClass::kSys);
}

TEST(Topology, WithoutPeerToPeerCopiesCrossTheUplinkDownToMemoryAndUpAgain) {
  // switch uplink, bridge to memory, back, and the switch downlink: 2 x (device, uplink, memory) links.
  TwoSockets box;
  EXPECT_EQ(route(box.host, box.gpu[0], box.gpu[1]).links.size(), 2u);
  box.host.peer_to_peer = false;
  const Route way = route(box.host, box.gpu[0], box.gpu[1]);
  EXPECT_EQ(way.links.size(), 6u);
  EXPECT_EQ(way.bytes_per_s, 16e9);
  EXPECT_EQ(path_between(box.host, box.gpu[0], box.gpu[1]).path, PathClass::kPix);
}

TEST(Topology, WithoutGpuDirectTheNicIsReachedThroughMemory) {
  TwoSockets box;
  box.host.gpudirect_rdma = false;
  EXPECT_EQ(route(box.host, box.gpu[1], box.nic).links.size(), 6u);
  EXPECT_EQ(route(box.host, box.gpu[0], box.gpu[1]).links.size(), 2u);
}

TEST(Topology, UnconnectedOrUnknownDevicesHaveNoRoute) {
  TwoSockets box;
  const int alone = box.host.add_device({DeviceKind::kGpu, "GPU4", {}, {}, {}});
  EXPECT_TRUE(route(box.host, box.gpu[0], alone).links.empty());
  EXPECT_TRUE(route(box.host, 0, 99).links.empty());
  EXPECT_EQ(path_between(box.host, box.gpu[0], alone).path, PathClass::kUnknown);
  EXPECT_EQ(path_between(box.host, -1, 0).path, PathClass::kUnknown);
}

TEST(Topology, GpusUnderAnNvSwitchReachEachOtherInTwoHops) {
  Host host;
  for (int i = 0; i < 3; ++i) host.add_device({DeviceKind::kGpu, "GPU", {}, {}, {}});
  const int nvswitch = host.add_device({DeviceKind::kNvSwitch, "NVSwitch0", {}, {}, {}});
  for (int i = 0; i < 3; ++i) host.add_duplex(i, nvswitch, LinkKind::kNvLink, 12, rate(300e9));
  EXPECT_EQ(route(host, 0, 2).links.size(), 2u);
  EXPECT_EQ(route(host, 0, 2).bytes_per_s, 300e9);
  EXPECT_EQ(path_class_name(path_between(host, 0, 2).path, path_between(host, 0, 2).nvlinks), "NV12");
}

TEST(Topology, ComputeNicsAreTheNearOnesAndNeverVirtual) {
  TwoSockets box;
  const int far = box.host.add_device({DeviceKind::kNic, "NIC1", {}, {}, {}});
  box.host.add_duplex(far, box.cpu[1], LinkKind::kPcie, 8, rate(8e9));
  const int software = box.host.add_device({DeviceKind::kNic, "veth0", {}, {}, {}});
  box.host.add_duplex(software, box.cpu[0], LinkKind::kMemory, 1, rate(100e9));
  // GPU0..2 have NIC0 on their socket; GPU3's nearest is NIC1 on its own socket.
  EXPECT_EQ(compute_nics(box.host), (std::vector<int>{box.nic, far}));
}

TEST(Topology, ClusterCountsSumOverGroups) {
  Cluster cluster;
  cluster.hosts.push_back({TwoSockets().host, 3});
  Host single;
  single.add_device({DeviceKind::kGpu, "GPU0", {}, {}, {}});
  cluster.hosts.push_back({single, 2});
  EXPECT_EQ(cluster.host_count(), 5);
  EXPECT_EQ(cluster.gpu_count(), 14);
  EXPECT_EQ(cluster.gpus_per_host(), 4);
  EXPECT_EQ(Cluster().gpu_count(), 0);
}

}  // namespace
}  // namespace chokepoint::topology
