// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/units.hpp>
#include <chokepoint/wiring/describe.hpp>
#include <gtest/gtest.h>

namespace chokepoint::wiring {
namespace {

using topology::Transport;

std::string accelerator_name(std::string_view text, std::string_view hint = "") {
  std::vector<Note> notes;
  const auto found = accelerator_from_words(text, hint, notes);
  return found ? found->name : "error: " + found.error().message;
}

TEST(Describe, AcceleratorsOfTablesAreFoundInTheCatalogue) {
  EXPECT_EQ(accelerator_name("A100-SXM4-80GB"), "a100-sxm4-80gb");
  EXPECT_EQ(accelerator_name("A100-SXM4-40GB"), "a100-sxm4-40gb");
  EXPECT_EQ(accelerator_name("A100-PCIE-40GB"), "a100-pcie-40gb");
  EXPECT_EQ(accelerator_name("A100-80GB", "NVLink+NVSwitch"), "a100-sxm4-80gb");
  EXPECT_EQ(accelerator_name("A100-80GB", "PCIe4x16"), "a100-pcie-80gb");
  EXPECT_EQ(accelerator_name("RTX4090-24GB"), "rtx-4090");
  EXPECT_EQ(accelerator_name("RTX 4090"), "rtx-4090");
  EXPECT_EQ(accelerator_name("H100 80GB HBM3", "NVSwitch"), "h100-sxm5-80gb");
  EXPECT_EQ(accelerator_name("A800-SXM-80GB"), "a800-sxm4-80gb");
}

TEST(Describe, UnknownAcceleratorIsAnErrorNotAGuess) {
  EXPECT_EQ(accelerator_name("not stated"), "error: accelerator 'not stated' is not in the catalogue");
}

struct InterCase {
  const char* text;
  int nics;
  double gigabits;
  Transport transport;
};

TEST(Describe, NetworksAreReadFromTheirUsualWords) {
  const std::vector<InterCase> cases{
      {"8xHDR200-IB per node", 8, 200, Transport::kInfiniBand},
      {"4x100G Omni-Path per node (50 GB/s)", 4, 100, Transport::kOmniPath},
      {"32x100G-EFA per node (3200 Gb/s)", 32, 100, Transport::kEfa},
      {"1x100Gb EDR-IB per node", 1, 100, Transport::kInfiniBand},
      {"1xHDR200-IB per node (25 Gbps per GPU)", 1, 200, Transport::kInfiniBand},
      {"8x400G NDR InfiniBand per node", 8, 400, Transport::kInfiniBand},
      {"4xSlingshot-11 200G per node", 4, 200, Transport::kSlingshot},
      {"4x ConnectX-6 HCA per node (HDR200 IB)", 4, 200, Transport::kInfiniBand},
      {"100GbE RoCE", 1, 100, Transport::kRoce},
      {"10GbE TCP sockets, docker overlay", 1, 10, Transport::kTcp},
      {"40 Gbps Ethernet, no InfiniBand", 1, 40, Transport::kTcp},
  };
  for (const InterCase& expected : cases) {
    std::vector<Note> notes;
    const InterWords inter = inter_from_words(expected.text, notes);
    EXPECT_EQ(inter.nics, expected.nics) << expected.text;
    EXPECT_DOUBLE_EQ(inter.nic_bytes_per_s, gbit(expected.gigabits)) << expected.text;
    EXPECT_EQ(inter.transport, expected.transport) << expected.text;
    EXPECT_FALSE(inter.per_gpu) << expected.text;
  }
}

TEST(Describe, RateOfAHostIsSharedByNicsOfItsSpeedClass) {
  // 1600 Gb/s on hosts with PCIe 4.0: eight NICs of 200 Gb/s.
  const auto cluster = cluster_from_words("A100-SXM4-80GB", 8, 4, "NVLink3+NVSwitch", "1600Gbps RoCE per node");
  ASSERT_TRUE(cluster) << cluster.error().message;
  const topology::Host& host = cluster->hosts.front().host;
  ASSERT_EQ(host.nics().size(), 8U);
  EXPECT_DOUBLE_EQ(host.devices[static_cast<std::size_t>(host.nics().front())].line_bytes_per_s, gbit(200));
  EXPECT_EQ(cluster->fabric.transport, Transport::kRoce);
  EXPECT_EQ(cluster->host_count(), 4);
}

TEST(Describe, SwitchedHostHasOneNvSwitchAndOneHostHasNoNics) {
  const auto cluster = cluster_from_words("H100-SXM5-80GB", 8, 1, "NVLink4+NVSwitch", "none (one node)");
  ASSERT_TRUE(cluster) << cluster.error().message;
  const topology::Host& host = cluster->hosts.front().host;
  EXPECT_EQ(host.of_kind(topology::DeviceKind::kNvSwitch).size(), 1U);
  EXPECT_TRUE(host.nics().empty());
}

TEST(Describe, NvLinkThatIsNotInUseLeavesPcie) {
  const auto cluster = cluster_from_words("H100-SXM5-80GB", 8, 1, "NVLink not in use in this job", "");
  ASSERT_TRUE(cluster) << cluster.error().message;
  for (const topology::Link& link : cluster->hosts.front().host.links) EXPECT_NE(link.kind, topology::LinkKind::kNvLink);
}

TEST(Describe, CubeMeshBridgesAndFourGpuBoardsAreToldApart) {
  const auto links = [](std::string_view accelerator, int gpus, std::string_view words) {
    const auto cluster = cluster_from_words(accelerator, gpus, 1, words, "");
    int count = 0;
    for (const topology::Link& link : cluster->hosts.front().host.links) count += link.kind == topology::LinkKind::kNvLink ? link.width : 0;
    return count;
  };
  EXPECT_EQ(links("V100-SXM2-32GB", 8, "NVLink2 hybrid cube mesh"), 8 * 6);
  EXPECT_EQ(links("V100-SXM2-32GB", 8, "NVLink2 hybrid cube mesh (some pairs over PCIe)"), 8 * 6);
  // A quad of the mesh: 0-1, 0-2 and 1-3 one link, 0-3, 1-2 and 2-3 two.
  EXPECT_EQ(links("V100-SXM2-32GB", 4, "hybrid cube mesh"), 2 * 9);
  EXPECT_EQ(links("V100-SXM2-32GB", 4, "NVLink2"), 4 * 6);
  EXPECT_EQ(links("A100-SXM4-80GB", 4, "NVLink3 (4 GPUs fully connected)"), 4 * 12);
  EXPECT_EQ(links("A100-PCIe-80GB", 4, "NVLink-bridge-pairs + PCIe"), 4 * 12);
}

TEST(Describe, GeForceCopiesThroughMemoryUnlessTheDriverIsPatched) {
  EXPECT_FALSE(cluster_from_words("RTX 4090", 8, 1, "PCIe4x16 (GeForce: no P2P)", "")->hosts.front().host.peer_to_peer);
  EXPECT_TRUE(cluster_from_words("RTX 4090", 4, 1, "PCIe P2P (patched driver)", "")->hosts.front().host.peer_to_peer);
}

TEST(Describe, EveryAssumptionIsNoted) {
  const auto cluster = cluster_from_words("H100-SXM5-80GB", 8, 2, "", "");
  ASSERT_TRUE(cluster);
  ASSERT_EQ(cluster->notes.size(), 2U);
  EXPECT_EQ(cluster->notes[0].text, "assumed: the NVLink wiring usual for h100-sxm5-80gb");
  EXPECT_EQ(cluster->notes[1].text, "assumed: one NIC of 50.0 GB/s per GPU (network not stated)");
}

TEST(Describe, RackScaleDomainSpansItsHosts) {
  const auto cluster = cluster_from_words("GB200", 4, 36, "NVLink5 NVL72", "4x400G NDR-IB per node between racks");
  ASSERT_TRUE(cluster) << cluster.error().message;
  EXPECT_EQ(cluster->hosts.front().host.nvlink_domain_hosts, 18);
}

TEST(Describe, TpuSliceIsOneDomainOfHostsOfFourAndSlicesMeetOverTheirNics) {
  const auto cluster = cluster_from_words("TPUv5p", 512, 2, "TPU ICI 3D torus (one slice)", "data-center network between slices");
  ASSERT_TRUE(cluster) << cluster.error().message;
  const topology::Host& host = cluster->hosts.front().host;
  EXPECT_EQ(cluster->gpus_per_host(), 4);
  EXPECT_EQ(cluster->host_count(), 2 * 128);
  EXPECT_EQ(host.nvlink_domain_hosts, 128);
  EXPECT_EQ(host.torus_dimensions, 3);
  EXPECT_EQ(host.nics().size(), 1U);
}

TEST(Describe, TpuHostsWithoutAWordOfSlicesAreOneSlice) {
  const auto cluster = cluster_from_words("TPU7x (Ironwood)", 4, 16, "TPU ICI 3D torus", "");
  ASSERT_TRUE(cluster) << cluster.error().message;
  EXPECT_EQ(cluster->gpu_count(), 64);
  EXPECT_EQ(cluster->hosts.front().host.nvlink_domain_hosts, 16);
}

TEST(Describe, ImpossibleCountsAreRefused) {
  EXPECT_FALSE(cluster_from_words("RTX 4090", 65, 1, "", ""));
  EXPECT_FALSE(cluster_from_words("RTX 4090", 0, 1, "", ""));
  EXPECT_FALSE(cluster_from_words("RTX 4090", 8, -3, "", ""));
  EXPECT_FALSE(cluster_from_words("RTX 4090", 1 << 20, 1, "", ""));
}

}  // namespace
}  // namespace chokepoint::wiring
