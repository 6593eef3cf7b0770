// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/report/wiring_view.hpp>
#include <chokepoint/wiring/wiring.hpp>

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <pugixml.hpp>

namespace chokepoint::report {
namespace {

using testing::HasSubstr;

topology::Cluster cluster_of(const char* name, int hosts = 1) {
  const auto cluster = wiring::build_cluster(name, hosts);
  if (!cluster) ADD_FAILURE() << format(cluster.error());
  return cluster.value_or(topology::Cluster{});
}

TEST(WiringView, TextShowsTreeLinksAndPaths) {
  const std::string text = wiring_text(cluster_of("dgx-h100", 4), Style{}, false);
  EXPECT_THAT(text, HasSubstr("dgx-h100 x 4  8 x h100-sxm5-80gb"));
  EXPECT_THAT(text, HasSubstr("NVSwitch  GPU0-7: 18 x NVLink, 450 GB/s each"));
  EXPECT_THAT(text, HasSubstr("GPU0   X    NV18"));
  EXPECT_THAT(text, HasSubstr("Fabric  4 hosts, rail-optimised, infiniband"));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(WiringView, ColourOnlyWhereAllowed) {
  Style style;
  style.colour = true;
  EXPECT_THAT(wiring_text(cluster_of("dgx-1v"), style, true), HasSubstr("\x1b[31mSYS"));
}

TEST(WiringView, JsonHoldsEveryPairAndLink) {
  const auto json = nlohmann::json::parse(wiring_json(cluster_of("dgx-1v"), {}));
  EXPECT_EQ(json["schema"], "chokepoint.wiring/1");
  const auto& host = json["hosts"][0];
  EXPECT_EQ(host["gpus"].size(), 8u);
  EXPECT_EQ(host["gpu_pairs"].size(), 28u);
  EXPECT_EQ(host["gpu_nic"].size(), 8u * host["nics"].size());
  EXPECT_TRUE(json["findings"].is_array());
  const auto first = std::find_if(host["gpu_pairs"].begin(), host["gpu_pairs"].end(), [](const auto& pair) { return pair["a"] == "GPU0" && pair["b"] == "GPU3"; });
  ASSERT_NE(first, host["gpu_pairs"].end());
  EXPECT_EQ((*first)["path"], "NV2");
  EXPECT_EQ((*first)["bytes_per_s"], 50e9);
}

TEST(WiringView, ExpectedTableFollowsNcclTestsColumns) {
  const topology::Cluster cluster = cluster_of("dgx-a100", 2);
  const auto accelerator = hardware::find_accelerator("a100-sxm4-80gb");
  ASSERT_TRUE(accelerator);
  const collective::Network network(cluster, *accelerator);
  ExpectedTable table;
  table.group.ranks = 16;
  table.group.ranks_per_host = 8;
  const double bytes = 1 << 30;
  table.rows.push_back({bytes, network.cost(table.op, bytes, table.group), {}, {}});
  const std::string text = expected_text(table, Style{});
  EXPECT_THAT(text, HasSubstr("1073741824    268435456  float"));
  // busbw = algbw x 2(n-1)/n
  const auto row = nlohmann::json::parse(wiring_json(cluster, {table}))["expected"][0]["rows"][0];
  EXPECT_NEAR(row["bus_bytes_per_s"].get<double>(), row["algorithm_bytes_per_s"].get<double>() * 2 * 15 / 16, 1.0);
}

TEST(WiringView, EverySvgIsWellFormedAndNamesItsGpus) {
  for (const hardware::HostTemplate& description : hardware::host_templates()) {
    SCOPED_TRACE(description.name);
    pugi::xml_document document;
    const std::string svg = wiring_svg(cluster_of(description.name.c_str()));
    ASSERT_TRUE(document.load_string(svg.c_str()));
    int gpus = 0;
    for (const auto& found : document.select_nodes("//text[starts-with(., 'GPU')]")) gpus += found.node() ? 1 : 0;
    EXPECT_EQ(gpus, description.gpus);
  }
}

TEST(WiringView, NamesFromFilesCannotBreakThePicture) {
  topology::Cluster cluster = cluster_of("dgx-1v");
  cluster.hosts.front().host.name = "<script>&\"\x01";
  pugi::xml_document document;
  EXPECT_TRUE(document.load_string(wiring_svg(cluster).c_str()));
}

}  // namespace
}  // namespace chokepoint::report
