// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/files.hpp>
#include <chokepoint/wiring/wiring.hpp>

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace chokepoint::wiring {
namespace {

using namespace topology;
using testing::HasSubstr;

std::string data(const std::string& name) {
  const auto text = read_text_file(std::string(CHOKEPOINT_TEST_DATA) + "/wiring/" + name);
  if (!text) ADD_FAILURE() << format(text.error());
  return text.value_or("");
}

Host imported(const std::string& name) {
  const Result<Host> host = read_host(data(name), name);
  if (!host) ADD_FAILURE() << format(host.error());
  return host.value_or(Host{});
}

std::string failure(const std::string& name) {
  const Result<Host> host = read_host(data(name), name);
  return host ? "no failure" : format(host.error());
}

int device(const Host& host, const std::string& name) {
  for (std::size_t i = 0; i < host.devices.size(); ++i) {
    if (host.devices[i].name == name) return static_cast<int>(i);
  }
  ADD_FAILURE() << "no device " << name;
  return -1;
}

std::string path(const Host& host, const std::string& a, const std::string& b) {
  const DeclaredPath found = path_between(host, device(host, a), device(host, b));
  return path_class_name(found.path, found.nvlinks);
}

std::string notes(const Host& host) {
  std::string text;
  for (const Note& note : host.notes) text += note.text + "\n";
  return text;
}

TEST(TopoMatrix, TabsLegendAndNicNamesAreRead) {
  const Host host = imported("h100-8nic-tabs.topo");
  EXPECT_EQ(host.gpus().size(), 8u);
  EXPECT_EQ(host.nics().size(), 8u);
  EXPECT_EQ(path(host, "GPU0", "GPU7"), "NV18");
  EXPECT_EQ(path(host, "GPU3", "NIC3"), "PIX");
  EXPECT_EQ(path(host, "GPU3", "NIC0"), "NODE");
  EXPECT_EQ(path(host, "GPU3", "NIC4"), "SYS");
  EXPECT_EQ(host.devices[static_cast<std::size_t>(device(host, "NIC2"))].alias, "mlx5_2");
  EXPECT_EQ(host.devices[static_cast<std::size_t>(device(host, "GPU5"))].numa, 1);
  EXPECT_EQ(compute_nics(host).size(), 8u);
}

TEST(TopoMatrix, TheTreeBehindTheClassesComesBack) {
  // Without the declared classes the graph itself must give them: GPU3 and NIC3 share a switch, GPU0 and NIC3 a socket.
  Host host = imported("h100-8nic-tabs.topo");
  host.declared.clear();
  EXPECT_EQ(path(host, "GPU3", "NIC3"), "PIX");
  EXPECT_EQ(path(host, "GPU3", "NIC0"), "NODE");
  EXPECT_EQ(path(host, "GPU3", "NIC4"), "SYS");
  EXPECT_EQ(path(host, "GPU0", "GPU7"), "NV18");
}

TEST(TopoMatrix, QuotedMarkdownTableIsAMatrix) {
  const Host host = imported("bridges-markdown.md");
  EXPECT_EQ(path(host, "GPU0", "GPU1"), "NV4");
  EXPECT_EQ(path(host, "GPU2", "GPU3"), "NV4");
  EXPECT_EQ(path(host, "GPU1", "GPU2"), "SYS");
  EXPECT_EQ(path(host, "GPU0", "mlx5_0"), "PXB");
  EXPECT_EQ(host.devices[2].numa, 1);
}

TEST(TopoMatrix, RunTogetherCellsComeApart) {
  const Host host = imported("run-together.txt");
  EXPECT_EQ(path(host, "GPU0", "NIC0"), "PIX");
  EXPECT_EQ(path(host, "GPU0", "NIC1"), "NODE");
  EXPECT_EQ(path(host, "GPU1", "NIC1"), "PIX");
  EXPECT_EQ(path(host, "GPU2", "NIC1"), "SYS");
  EXPECT_EQ(host.devices[2].numa, 1);
  EXPECT_EQ(path(host, "GPU2", "GPU3"), "NV12");
}

TEST(TopoMatrix, RowsWrappedByTheTerminalAreJoined) {
  const Host host = imported("wrapped.txt");
  EXPECT_EQ(host.nics().size(), 1u);
  EXPECT_EQ(path(host, "GPU0", "mlx5_0"), "PXB");
  EXPECT_EQ(path(host, "GPU3", "mlx5_0"), "SYS");
}

TEST(TopoMatrix, CutRowsGiveWhatIsLeftAndSaySo) {
  const Host host = imported("cut-rows.txt");
  EXPECT_EQ(host.gpus().size(), 4u);
  EXPECT_EQ(path(host, "GPU1", "GPU2"), "SYS");
  EXPECT_EQ(host.declared.size(), 5u);  // 0-1, 0-2, 0-3, 0-NIC0, 1-2
  EXPECT_THAT(notes(host), HasSubstr("cut short: no row for GPU3"));
  EXPECT_THAT(notes(host), HasSubstr("row GPU1 is cut after 3 of 5 cells"));
}

TEST(TopoMatrix, EmptyCellsAreFilledFromTheOtherHalf) {
  const Host host = imported("empty-cells.txt");
  EXPECT_EQ(path(host, "GPU0", "NIC0"), "PIX");
  EXPECT_EQ(path(host, "GPU2", "NIC0"), "SYS");
  EXPECT_EQ(path(host, "GPU1", "GPU2"), "SYS");
  for (const DeclaredPath& declared : host.declared) EXPECT_FALSE(declared.a == 0 && declared.b == 1);
}

TEST(TopoMatrix, NotAvailableCellsStayUnknown) {
  const Host host = imported("mig-not-available.txt");
  EXPECT_EQ(host.declared.size(), 2u);
  EXPECT_EQ(path(host, "GPU1", "mlx5_0"), "PXB");
}

TEST(TopoMatrix, OldDriversSaySocForSys) {
  const Host host = imported("old-driver-soc.txt");
  EXPECT_EQ(path(host, "GPU0", "GPU3"), "SYS");
  EXPECT_EQ(host.devices[3].numa, 1);
  EXPECT_THAT(notes(host), HasSubstr("numbered by CPU affinity"));
}

TEST(TopoMatrix, InterleavedHostsAreTakenApartByTheirPrefix) {
  const auto groups = read_topo_matrices(data("two-hosts-interleaved.txt"), "x");
  ASSERT_TRUE(groups) << format(groups.error());
  ASSERT_EQ(groups->size(), 2u);
  EXPECT_EQ(path((*groups)[0].host, "GPU0", "GPU1"), "NV4");
  EXPECT_EQ(path((*groups)[1].host, "GPU0", "GPU1"), "NODE");
  EXPECT_THAT(notes(imported("two-hosts-interleaved.txt")), HasSubstr("2 different matrices"));
}

TEST(TopoMatrix, TheSameMatrixTwiceIsTwoHostsOfAKind) {
  const auto groups = read_topo_matrices(data("same-twice.txt"), "x");
  ASSERT_TRUE(groups);
  ASSERT_EQ(groups->size(), 1u);
  EXPECT_EQ(groups->front().count, 2);
}

TEST(TopoMatrix, OneContradictionIsANoteManyAreAnError) {
  EXPECT_THAT(notes(imported("contradiction.txt")), HasSubstr("GPU0 and GPU1 contradict each other: NV4"));
  EXPECT_THAT(failure("not-symmetric.txt"), HasSubstr("not symmetric"));
}

TEST(TopoMatrix, MovedCellsAreAnErrorAtTheirPlace) {
  EXPECT_THAT(failure("moved-cell.txt"), HasSubstr("moved-cell.txt:3:10: error: row GPU1 has X under GPU0"));
}

TEST(TopoMatrix, WhatIsNoMatrixIsNamed) {
  EXPECT_THAT(failure("groups-by-hand.txt"), HasSubstr("stands for a group of GPUs"));
  const Result<Host> peers = read_topo_matrix(data("p2p.txt"), "x");
  ASSERT_FALSE(peers);
  EXPECT_THAT(format(peers.error()), HasSubstr("topo -p2p"));
  const Result<Host> prose = read_topo_matrix("GPU0 and GPU1 are slow\n", "x");
  ASSERT_FALSE(prose);
  EXPECT_THAT(format(prose.error()), HasSubstr("no matrix found"));
  EXPECT_FALSE(read_topo_matrix("", "x"));
}

TEST(TopoMatrix, NicsMayStandInFrontAndRowsUnderOtherNames) {
  const auto front = read_topo_matrix("       NIC0  GPU0  GPU1\nNIC0:   X   PIX  SYS\nGPU0:  PIX   X   SYS\nGPU1:  SYS  SYS   X\n", "x");
  ASSERT_TRUE(front) << format(front.error());
  EXPECT_EQ(front->devices[0].name, "GPU0");
  EXPECT_EQ(path(*front, "GPU0", "NIC0"), "PIX");
  const auto renamed = read_topo_matrix("      GPU0 GPU1 NIC0\nGPU0   X   NV4 PXB\nGPU1  NV4  X  SYS\nmlx5_2 PXB SYS X\n", "x");
  ASSERT_TRUE(renamed) << format(renamed.error());
  EXPECT_EQ(renamed->nics().size(), 1u);
  EXPECT_EQ(renamed->devices[2].alias, "mlx5_2");
}

TEST(TopoMatrix, NicRowsWithoutNicColumnsCount) {
  const auto host = read_topo_matrix("      GPU0 GPU1\nmlx5_0 PIX SYS\nmlx5_1 SYS PIX\n", "x");
  ASSERT_TRUE(host) << format(host.error());
  EXPECT_EQ(host->gpus().size(), 2u);
  EXPECT_EQ(path(*host, "GPU1", "mlx5_1"), "PIX");
  EXPECT_THAT(notes(*host), HasSubstr("row mlx5_1 has no column of that name"));
}

TEST(TopoMatrix, TextsAndHostsBeyondReasonAreRefused) {
  EXPECT_FALSE(read_topo_matrix(std::string(17u << 20, 'x'), "x"));
  std::string header;
  for (int i = 0; i < 300; ++i) header += " GPU" + std::to_string(i);
  const auto host = read_topo_matrix(header + "\nGPU0 X NV4\n", "x");
  ASSERT_FALSE(host);
  EXPECT_THAT(host.error().message, HasSubstr("more than 256 devices"));
}

TEST(TopoMatrix, SquareRowsDoWithoutTheHeader) {
  const Host host = imported("no-header.txt");
  EXPECT_EQ(path(host, "GPU0", "GPU1"), "NV2");
  EXPECT_THAT(notes(host), HasSubstr("header line is missing"));
}

TEST(WithAccelerator, SettlesRatesThatTheMatrixLeavesOpen) {
  const auto accelerator = hardware::find_accelerator("b200-sxm-180gb");
  ASSERT_TRUE(accelerator);
  const Result<Host> host = with_accelerator(imported("h100-8nic-tabs.topo"), *accelerator);
  ASSERT_TRUE(host) << format(host.error());
  EXPECT_DOUBLE_EQ(route(*host, 0, 7).bytes_per_s, 18 * 50e9);
  EXPECT_EQ(host->accelerator, "b200-sxm-180gb");
  EXPECT_EQ(path(*host, "GPU0", "GPU7"), "NV18");
}

TEST(WithAccelerator, RefusesAnAcceleratorWithFewerLinks) {
  const auto accelerator = hardware::find_accelerator("l40s");
  ASSERT_TRUE(accelerator);
  const Result<Host> host = with_accelerator(imported("h100-8nic-tabs.topo"), *accelerator);
  ASSERT_FALSE(host);
  EXPECT_THAT(host.error().message, HasSubstr("NV18"));
}

TEST(WithAccelerator, GeForceCopiesThroughHostMemory) {
  const auto accelerator = hardware::find_accelerator("rtx-4090");
  ASSERT_TRUE(accelerator);
  const Result<Host> host = with_accelerator(imported("old-driver-soc.txt"), *accelerator);
  ASSERT_TRUE(host);
  EXPECT_FALSE(host->peer_to_peer);
  EXPECT_GT(route(*host, 0, 1).links.size(), 2u);
}

TEST(NcclXml, OverlayDevicesAreKnownByTheirClass) {
  const Host host = imported("overlay.xml");
  EXPECT_EQ(host.gpus().size(), 2u);
  EXPECT_EQ(host.nics().size(), 2u);
  EXPECT_EQ(path_between(host, host.gpus()[0], host.nics()[0]).path, PathClass::kPix);
  EXPECT_EQ(path_between(host, host.gpus()[0], host.gpus()[1]).path, PathClass::kSys);
  // The second switch hangs on eight lanes: half of x16.
  const double full = hardware::pcie_bytes_per_s(4, 16).value();
  EXPECT_DOUBLE_EQ(route(host, host.gpus()[1], host.of_kind(DeviceKind::kCpu)[1]).bytes_per_s, full / 2);
  EXPECT_THAT(notes(host), HasSubstr("overlay"));
}

TEST(NcclXml, DumpsNameAcceleratorPortsAndOrder) {
  const Host host = imported("dump.xml");
  EXPECT_EQ(host.accelerator, "h100-sxm5-80gb");
  EXPECT_EQ(host.devices[0].name, "GPU0");
  EXPECT_EQ(host.devices[0].bus_id, "0000:12:00.0");
  EXPECT_DOUBLE_EQ(route(host, 0, 1).bytes_per_s, 450e9);
  EXPECT_EQ(host.nics().size(), 3u);
  EXPECT_EQ(compute_nics(host).size(), 2u);
  EXPECT_DOUBLE_EQ(host.devices[static_cast<std::size_t>(device(host, "mlx5_0"))].line_bytes_per_s, 25e9);
  EXPECT_THAT(notes(host), HasSubstr("check under load"));
}

TEST(NcclXml, OneSidedLinksCountBothWaysAndStrangersAreNamed) {
  const Host host = imported("xgmi-one-sided.xml");
  EXPECT_DOUBLE_EQ(route(host, 1, 0).bytes_per_s, 2 * 50e9);
  EXPECT_FALSE(host.gpudirect_rdma);
  EXPECT_THAT(notes(host), HasSubstr("listed at one end only"));
  EXPECT_THAT(notes(host), HasSubstr("not in the file"));
  EXPECT_THAT(notes(host), HasSubstr("link speed of 1 PCI devices not stated"));
}

TEST(NcclXml, NicRatesOffByAThousandAreNotBelieved) {
  std::string text = data("dump.xml");
  const std::size_t at = text.find("speed=\"", text.find("<net "));
  ASSERT_NE(at, std::string::npos);
  const std::size_t end = text.find('"', at + 7);
  text.replace(at + 7, end - at - 7, "400");
  const Result<Host> host = read_nccl_xml(text, "dump.xml");
  ASSERT_TRUE(host);
  std::string notes;
  for (const Note& note : host->notes) notes += note.text + "\n";
  EXPECT_THAT(notes, HasSubstr("speed=\"400\" is no NIC's rate in Mb/s, expected 1000 to 1600000"));
}

TEST(NcclXml, BrokenFilesSayWhere) {
  EXPECT_THAT(failure("cut.xml"), HasSubstr("cut.xml:3:"));
  EXPECT_THAT(failure("cut.xml"), HasSubstr("cut short"));
  const Result<Host> graph = read_nccl_xml(data("graph.xml"), "graph.xml");
  ASSERT_FALSE(graph);
  EXPECT_THAT(format(graph.error()), HasSubstr("NCCL_GRAPH_DUMP_FILE"));
  EXPECT_FALSE(read_nccl_xml("", "x"));
  EXPECT_FALSE(read_nccl_xml("<system/>", "x"));
}

TEST(Recognise, ByContent) {
  EXPECT_EQ(recognise("<system version=\"1\">"), Format::kNcclTopologyXml);
  EXPECT_EQ(recognise("hosts:\n  - template: dgx-h100\n"), Format::kClusterYaml);
  EXPECT_EQ(recognise("\tGPU0\n"), Format::kTopoMatrix);
  EXPECT_EQ(recognise("hello"), Format::kUnknown);
  EXPECT_FALSE(read_host("hello", "x"));
}

}  // namespace
}  // namespace chokepoint::wiring
