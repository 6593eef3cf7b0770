// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/wiring/wiring.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace chokepoint::wiring {
namespace {

using namespace topology;
using testing::HasSubstr;

const std::string kFile = std::string(CHOKEPOINT_TEST_DATA) + "/wiring/cluster.yaml";

Result<Cluster> read(const std::string& text) { return read_cluster_yaml(text, kFile); }
std::string failure(const std::string& text) {
  const Result<Cluster> cluster = read(text);
  return cluster ? "no failure" : format(cluster.error());
}

TEST(ClusterYaml, CombinesHostFilesFabricAndPrices) {
  const Result<Cluster> cluster = read(R"(
name: eight boxes
hosts:
  - file: h100-8nic-tabs.topo
    count: 8
    accelerator: h100-sxm5-80gb
    nic: connectx-7-400g
fabric: {kind: fat-tree, transport: infiniband, hosts_per_leaf: 4, oversubscription: 2}
measured: {all_reduce: 300 GB/s}
prices: {accelerator_hour_usd: 2.5, date: 2024-05}
)");
  ASSERT_TRUE(cluster) << format(cluster.error());
  EXPECT_EQ(cluster->gpu_count(), 64);
  EXPECT_EQ(cluster->fabric.kind, FabricKind::kFatTree);
  EXPECT_EQ(cluster->fabric.hosts_per_leaf, 4);
  EXPECT_EQ(cluster->measured.all_reduce, 300e9);
  EXPECT_EQ(cluster->prices.accelerator_hour_usd, 2.5);
  const Host& host = cluster->hosts.front().host;
  EXPECT_DOUBLE_EQ(host.devices[static_cast<std::size_t>(host.nics().front())].line_bytes_per_s, 50e9);
  EXPECT_DOUBLE_EQ(route(host, 0, 1).bytes_per_s, 450e9);
}

TEST(ClusterYaml, TemplatesStandForHosts) {
  const Result<Cluster> cluster = read("hosts: [{template: dgx-h100, count: 2}]\nfabric: {template: infiniband-fat-tree}\n");
  ASSERT_TRUE(cluster) << format(cluster.error());
  EXPECT_EQ(cluster->gpu_count(), 16);
  EXPECT_EQ(cluster->fabric.hosts_per_leaf, 16);
}

TEST(ClusterYaml, ANicThatTheFilesDoNotShowIsAddedAndSaid) {
  const Result<Cluster> cluster =
      read("hosts: [{file: old-driver-soc.txt, accelerator: v100-pcie-32gb, nic: ethernet-25g, count: 2}]\nfabric: {transport: tcp, kind: single-switch}\n");
  ASSERT_TRUE(cluster) << format(cluster.error());
  const Host& host = cluster->hosts.front().host;
  EXPECT_EQ(host.nics().size(), 1u);
  EXPECT_THAT(host.notes.back().text, HasSubstr("assumed on socket 0"));
  EXPECT_GT(route(host, 3, host.nics().front()).bytes_per_s, 0);
}

TEST(ClusterYaml, TwoFilesOfOneHostMustAgree) {
  EXPECT_THAT(failure("hosts: [{file: [dump.xml, old-driver-soc.txt]}]\n"), HasSubstr("dump.xml shows 2 GPUs, old-driver-soc.txt shows 4"));
  EXPECT_THAT(failure("hosts: [{file: [old-driver-soc.txt, bridges-markdown.md], accelerator: rtx-a6000}]\n"),
              HasSubstr("old-driver-soc.txt joins GPU0 and GPU1 by PIX, bridges-markdown.md by NV4"));
  EXPECT_TRUE(read("hosts: [{file: [bridges-markdown.md, bridges-markdown.md], accelerator: rtx-a6000}]\n"));
}

TEST(ClusterYaml, AcceleratorThatContradictsTheFileIsRefusedAtItsLine) {
  const std::string message = failure("hosts:\n  - file: dump.xml\n    accelerator: a100-sxm4-80gb\n");
  EXPECT_THAT(message, HasSubstr("cluster.yaml:3:"));
  EXPECT_THAT(message, HasSubstr("the wiring says its GPUs are h100-sxm5-80gb, but a100-sxm4-80gb"));
}

TEST(ClusterYaml, MissingPartsAreAskedFor) {
  EXPECT_THAT(failure("hosts: [{file: old-driver-soc.txt}]\n"), HasSubstr("accelerator: a100-pcie-80gb"));
  EXPECT_THAT(failure("hosts: [{template: dgx-h100, count: 2}]\n"), HasSubstr("no 'fabric'"));
  EXPECT_THAT(failure("hosts: [{template: dgx-h100, count: 2}]\nfabric: {kind: fat-tree}\n"), HasSubstr("needs a 'transport'"));
  EXPECT_THAT(failure("hosts: [{file: h100-8nic-tabs.topo, accelerator: h100, count: 2}]\nfabric: {transport: roce}\n"), HasSubstr("add 'nic: NAME'"));
  EXPECT_THAT(failure("name: empty\n"), HasSubstr("'hosts' is missing"));
  EXPECT_THAT(failure("hosts: [{count: 2}]\n"), HasSubstr("needs either 'file'"));
  EXPECT_THAT(failure("hosts: [{file: nowhere.topo}]\n"), HasSubstr("nowhere.topo"));
}

TEST(ClusterYaml, UnknownKeysUnitsAndNamesAreErrors) {
  EXPECT_THAT(failure("hosts: [{template: dgx-h100, counts: 2}]\n"), HasSubstr("did you mean 'count'"));
  EXPECT_THAT(failure("hosts: [{template: dgx-h100}]\nmeasured: {all_reduce: 300}\n"), HasSubstr("all_reduce"));
  EXPECT_THAT(failure("hosts: [{template: dgx-h100}]\nfabric: {transport: roce, kind: fattree}\n"), HasSubstr("fat-tree"));
  EXPECT_THAT(failure("hosts: [{template: dgx-h100, count: 0}]\n"), HasSubstr("count"));
}

TEST(ClusterYaml, HostsOfDifferentKindsAreNoted) {
  const Result<Cluster> cluster =
      read("hosts: [{template: dgx-h100}, {template: dgx-a100}]\nfabric: {transport: infiniband, kind: single-switch}\n");
  ASSERT_TRUE(cluster) << format(cluster.error());
  ASSERT_EQ(cluster->notes.size(), 1u);
  EXPECT_THAT(cluster->notes.front().text, HasSubstr("hosts differ"));
}

}  // namespace
}  // namespace chokepoint::wiring
