// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/assemble/export.hpp>

#include <chokepoint/wiring/wiring.hpp>
#include <gtest/gtest.h>

namespace chokepoint::assemble {
namespace {

using namespace topology;

Assembly of_catalogue(const char* name, int hosts) {
  Assembly assembly;
  auto cluster = wiring::build_cluster(name, hosts);
  EXPECT_TRUE(cluster);
  if (cluster) assembly.cluster = std::move(*cluster);
  return assembly;
}

TEST(Export, NcclXmlReadsBackWithTheSamePaths) {
  for (const char* name : {"dgx-h100", "dgx-1v", "pcie-a100-8"}) {
    SCOPED_TRACE(name);
    const Host host = of_catalogue(name, 1).cluster.hosts[0].host;
    auto back = wiring::read_nccl_xml(to_nccl_xml(host), "out.xml");
    ASSERT_TRUE(back) << format(back.error());
    const std::vector<int> a = host.gpus();
    const std::vector<int> b = back->gpus();
    ASSERT_EQ(a.size(), b.size());
    ASSERT_EQ(host.nics().size(), back->nics().size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      for (std::size_t j = i + 1; j < a.size(); ++j) {
        const DeclaredPath one = path_between(host, a[i], a[j]);
        const DeclaredPath two = path_between(*back, b[i], b[j]);
        EXPECT_EQ(one.path == PathClass::kNvLink, two.path == PathClass::kNvLink) << i << " " << j;
        EXPECT_EQ(one.path < PathClass::kPhb, two.path < PathClass::kPhb) << i << " " << j;
      }
    }
    double line = 0;
    double line_back = 0;
    for (const int nic : host.nics()) line += host.devices[static_cast<std::size_t>(nic)].line_bytes_per_s;
    for (const int nic : back->nics()) line_back += back->devices[static_cast<std::size_t>(nic)].line_bytes_per_s;
    EXPECT_NEAR(line_back, line, 1);
  }
}

TEST(Export, YamlNamesItsHostFiles) {
  const YamlExport yaml = to_yaml(of_catalogue("dgx-h100", 4).cluster, "out/mine");
  ASSERT_EQ(yaml.host_files.size(), 1U);
  EXPECT_EQ(yaml.host_files[0].first, "mine-host0.xml");
  EXPECT_NE(yaml.cluster.find("file: mine-host0.xml"), std::string::npos);
  EXPECT_NE(yaml.cluster.find("count: 4"), std::string::npos);
  EXPECT_NE(yaml.cluster.find("accelerator: h100-sxm5-80gb"), std::string::npos);
}

TEST(Export, SlurmOfAFabricReadsBack) {
  const auto documents = wiring::read_documents("SwitchName=s0 Nodes=a[1-3]\nSwitchName=s1 Nodes=b[1-2]\nSwitchName=top Switches=s[0-1]\n", "topology.conf");
  ASSERT_TRUE(documents);
  auto assembly = assemble(*documents);
  ASSERT_TRUE(assembly);
  const auto text = to_slurm(*assembly);
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, "SwitchName=s0 Nodes=a1,a2,a3\nSwitchName=s1 Nodes=b1,b2\nSwitchName=top Switches=s0,s1\n");
}

TEST(Export, SlurmNeedsToKnowWhatJoinsTheHosts) {
  Assembly assembly = of_catalogue("dgx-h100", 4);
  assembly.cluster.fabric = {};
  EXPECT_FALSE(to_slurm(assembly));
}

TEST(Export, DotHasEveryDeviceOnce) {
  const Assembly assembly = of_catalogue("dgx-1v", 1);
  const std::string dot = to_dot(assembly);
  for (std::size_t i = 0; i < assembly.cluster.hosts[0].host.devices.size(); ++i) EXPECT_NE(dot.find("h0d" + std::to_string(i) + " ["), std::string::npos);
  EXPECT_EQ(dot.substr(0, 14), "graph wiring {");
}

TEST(Anonymiser, TheSameNameGetsTheSameAliasAndLongerNamesStay) {
  const auto documents = wiring::read_documents(
      "acme1:1:2 [0] NCCL INFO Using network IB\nacme10:1:2 [0] NCCL INFO Using network IB\nacme1:1:2 [0] NCCL INFO Channel 00 : 1[b000] -> 2[7000] [send] via NET/IB/0\n", "acme.log");
  ASSERT_TRUE(documents);
  const auto assembly = assemble(*documents);
  ASSERT_TRUE(assembly);
  const Anonymiser names(*assembly);
  EXPECT_EQ(names.apply("acme1 and acme10 (acme.log:3), acme1: 10.1.2.3, acme100"), "host0 and host1 (input0:3), host0: ip, acme100");
  EXPECT_EQ(names.apply("GPU0 mlx5_0 0000:07:00.0"), "GPU0 mlx5_0 0000:07:00.0");
}

}  // namespace
}  // namespace chokepoint::assemble
