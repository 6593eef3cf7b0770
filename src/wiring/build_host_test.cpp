// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/wiring/wiring.hpp>

#include <gtest/gtest.h>

namespace chokepoint::wiring {
namespace {

using namespace topology;

Host built(const char* name) {
  const Result<hardware::HostTemplate> description = hardware::find_host(name);
  if (!description) {
    ADD_FAILURE() << format(description.error());
    return {};
  }
  const Result<Host> host = build_host(*description);
  if (!host) {
    ADD_FAILURE() << format(host.error());
    return {};
  }
  return *host;
}

TEST(BuildHost, EveryCatalogueHostIsConnectedAndComplete) {
  for (const hardware::HostTemplate& description : hardware::host_templates()) {
    SCOPED_TRACE(description.name);
    const Result<Host> host = build_host(description);
    ASSERT_TRUE(host) << format(host.error());
    EXPECT_EQ(static_cast<int>(host->gpus().size()), description.gpus);
    EXPECT_EQ(static_cast<int>(host->nics().size()), description.nic_count());
    for (const int a : host->gpus()) {
      for (const int b : host->gpus()) EXPECT_TRUE(a == b || route(*host, a, b).bytes_per_s > 0);
      for (const int nic : host->nics()) EXPECT_GT(route(*host, a, nic).bytes_per_s, 0);
    }
  }
}

TEST(BuildHost, DgxH100HasEighteenLinksAndANicUnderTheSwitchOfEachGpu) {
  // 18 NVLink 4 of 25 GB/s each way = 450 GB/s into the NVSwitch.
  const Host host = built("dgx-h100");
  EXPECT_DOUBLE_EQ(route(host, 0, 7).bytes_per_s, 450e9);
  EXPECT_EQ(path_between(host, 0, 7).nvlinks, 18);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(path_between(host, host.gpus()[i], host.nics()[i]).path, PathClass::kPix);
}

TEST(BuildHost, CubeMeshGivesEveryGpuSixLinks) {
  const Host host = built("dgx-1v");
  for (const int gpu : host.gpus()) {
    int links = 0;
    for (const Link& link : host.links) links += link.from == gpu && link.kind == LinkKind::kNvLink ? link.width : 0;
    EXPECT_EQ(links, 6) << gpu;
  }
  EXPECT_EQ(path_between(host, 0, 5).path, PathClass::kSys);
}

TEST(BuildHost, Mi250xMeshHoldsFiftyTwoLinkEnds) {
  // 4 x 4 inside packages, 2 x 2 and 6 x 1 between them: 26 links, two ends each.
  const Host host = built("frontier");
  int ends = 0;
  for (const Link& link : host.links) ends += link.kind == LinkKind::kXgmi ? link.width : 0;
  EXPECT_EQ(ends, 52);
  EXPECT_EQ(route(host, 0, 1).bytes_per_s, 4 * route(host, 0, 2).bytes_per_s);
}

TEST(BuildHost, PcieOnlyHostsCrossTheSocketForTheOtherHalf) {
  const Host host = built("pcie-a100-8");
  EXPECT_EQ(path_between(host, 0, 1).path, PathClass::kPix);
  EXPECT_EQ(path_between(host, 0, 7).path, PathClass::kSys);
  EXPECT_LT(route(host, 0, 7).bytes_per_s, route(host, 0, 1).bytes_per_s);
}

TEST(BuildCluster, UsesTheDefaultFabricAndRefusesNonsense) {
  const Result<Cluster> cluster = build_cluster("dgx-h100", 4);
  ASSERT_TRUE(cluster) << format(cluster.error());
  EXPECT_EQ(cluster->gpu_count(), 32);
  EXPECT_EQ(cluster->fabric.kind, FabricKind::kRailOptimized);
  EXPECT_EQ(cluster->fabric.transport, Transport::kInfiniBand);
  EXPECT_FALSE(build_cluster("dgx-h100", 0));
  EXPECT_FALSE(build_cluster("no such host", 1));
}

}  // namespace
}  // namespace chokepoint::wiring
