// SPDX-License-Identifier: Apache-2.0
#include "run_classes.hpp"

#include <chokepoint/wiring/describe.hpp>
#include <gtest/gtest.h>

namespace chokepoint::validate {
namespace {

topology::Cluster cluster(const char* accelerator, int gpus, int hosts, const char* intra, const char* inter) {
  auto made = wiring::cluster_from_words(accelerator, gpus, hosts, intra, inter);
  EXPECT_TRUE(made) << (made ? "" : format(made.error()));
  return made.value_or(topology::Cluster{});
}

TEST(LinkClass, SaysWhatJoinsTheGpusOfAHost) {
  EXPECT_EQ(link_class(cluster("H100-SXM5-80GB", 8, 1, "NVLink4+NVSwitch", "").hosts[0].host), "NVSwitch");
  EXPECT_EQ(link_class(cluster("A100-PCIe-80GB", 8, 1, "NVLink-bridge-pairs", "").hosts[0].host), "NVLink in pairs");
  EXPECT_EQ(link_class(cluster("A100-PCIe-80GB", 8, 1, "PCIe4x16", "").hosts[0].host), "PCIe");
  EXPECT_EQ(link_class(cluster("RTX4090-24GB", 4, 1, "PCIe4x16", "").hosts[0].host), "PCIe through host memory");
}

TEST(NetworkClass, DividesTheRateOfTheNicsByTheGpus) {
  // 8 x 200 Gb/s for 8 GPUs: 25 GB/s each.
  EXPECT_NEAR(network_bytes_per_s_per_gpu(cluster("A100-SXM4-80GB", 8, 4, "NVLink3+NVSwitch", "8xHDR200-IB per node")), 25e9, 1e6);
  EXPECT_NEAR(network_bytes_per_s_per_gpu(cluster("A100-SXM4-80GB", 8, 4, "NVLink3+NVSwitch", "100GbE RoCE")), 100e9 / 8 / 8, 1e6);
}

}  // namespace
}  // namespace chokepoint::validate
