// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/units.hpp>
#include <chokepoint/hardware/catalogue.hpp>
#include <gtest/gtest.h>
#include <set>

namespace chokepoint::hardware {
namespace {

const std::set<std::string> kTransports = {"infiniband", "roce", "tcp", "omni-path", "slingshot", "efa"};

TEST(Nics, EveryEntryParsesAndIsFoundByItsNames) {
  std::set<std::string> names;
  for (const Nic& nic : nics()) {
    SCOPED_TRACE(nic.name);
    EXPECT_TRUE(names.insert(nic.name).second);
    EXPECT_TRUE(kTransports.count(nic.transport));
    EXPECT_GT(nic.bytes_per_s, 0);
    EXPECT_FALSE(nic.source.empty());
    EXPECT_EQ(find_nic(nic.name)->name, nic.name);
    for (const std::string& alias : nic.aliases) EXPECT_EQ(find_nic(alias)->name, nic.name) << alias;
  }
}

TEST(Nics, RatesAreBitsPerSecondOverEight) {
  EXPECT_DOUBLE_EQ(find_nic("connectx-7-400g")->bytes_per_s, 50e9);
  EXPECT_DOUBLE_EQ(find_nic("HDR200")->bytes_per_s, 25e9);
  EXPECT_DOUBLE_EQ(find_nic("10GbE")->bytes_per_s, 1.25e9);
}

TEST(Hosts, EveryEntryNamesPartsThatExistAndAWiringThatCanBe) {
  std::set<std::string> names;
  for (const HostTemplate& host : host_templates()) {
    SCOPED_TRACE(host.name);
    EXPECT_TRUE(names.insert(host.name).second);
    EXPECT_FALSE(host.source.empty());
    EXPECT_EQ(find_host(host.name)->name, host.name);
    for (const std::string& alias : host.aliases) EXPECT_EQ(find_host(alias)->name, host.name) << alias;
    const auto part = find_accelerator(host.accelerator);
    ASSERT_TRUE(part);
    ASSERT_TRUE(find_nic(host.nic));
    const auto fabric = find_fabric(host.default_fabric);
    ASSERT_TRUE(fabric);
    EXPECT_EQ(fabric->transport, find_nic(host.nic)->transport);
    EXPECT_GT(host.nic_count(), 0);
    switch (host.interconnect) {
      case GpuInterconnect::kNone: break;
      case GpuInterconnect::kNvSwitch: EXPECT_GT(part->nvlinks, 0); break;
      case GpuInterconnect::kBridgePairs: EXPECT_LE(host.links_per_pair, part->nvlinks); break;
      case GpuInterconnect::kFullMesh: EXPECT_EQ(host.links_per_pair * (host.gpus - 1), part->nvlinks); break;
      case GpuInterconnect::kHybridCubeMesh: EXPECT_EQ(part->nvlinks, 6); break;
      case GpuInterconnect::kMi250xMesh: EXPECT_EQ(host.gpus, 8); break;
    }
  }
}

TEST(Hosts, NicCountsMatchTheVendors) {
  EXPECT_EQ(find_host("dgx-1v")->nic_count(), 4);
  EXPECT_EQ(find_host("dgx-2")->nic_count(), 8);
  EXPECT_EQ(find_host("dgx-a100")->nic_count(), 8);
  EXPECT_EQ(find_host("hgx-h100")->nic_count(), 8);
  EXPECT_EQ(find_host("p4d.24xlarge")->nic_count(), 4);
  EXPECT_EQ(find_host("p5")->nic_count(), 32);
  EXPECT_EQ(find_host("gb200-nvl72")->nic_count(), 4);
  EXPECT_EQ(find_host("azure-ndv2")->nic_count(), 1);
  EXPECT_EQ(find_host("mi250x-node")->nic_count(), 4);
  EXPECT_EQ(find_host("rtx4090-8")->nic_count(), 1);
}

TEST(Hosts, MisspeltNamesGetASuggestion) {
  const auto host = find_host("dgx-h10");
  ASSERT_FALSE(host);
  EXPECT_EQ(format(host.error()),
            "error: unknown host 'dgx-h10'\n  did you mean 'dgx-h100'?\n  'chokepoint clusters' lists all\n");
}

TEST(Fabrics, EveryTransportHasASwitchATreeAndRails) {
  for (const std::string& transport : kTransports) {
    std::set<std::string> kinds;
    std::set<double> ratios;
    for (const FabricTemplate& fabric : fabrics()) {
      if (fabric.transport != transport) continue;
      kinds.insert(fabric.kind);
      ratios.insert(fabric.oversubscription);
      EXPECT_EQ(find_fabric(fabric.name)->name, fabric.name);
    }
    EXPECT_EQ(kinds, (std::set<std::string>{"single-switch", "fat-tree", "rail-optimised"})) << transport;
    EXPECT_EQ(ratios, (std::set<double>{1, 2, 3, 4})) << transport;
  }
}

}  // namespace
}  // namespace chokepoint::hardware
