// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/wiring/document.hpp>

#include <gtest/gtest.h>

namespace chokepoint::wiring {
namespace {

double fact(const Document& document, std::string_view wanted) {
  for (const Fact& found : facts_of(document)) {
    if (found.name == wanted && found.number) return *found.number;
  }
  return -1;
}

Document only(std::string_view text) {
  auto documents = read_documents(text, "in.txt");
  EXPECT_TRUE(documents) << (documents ? "" : format(documents.error()));
  return documents ? std::move(documents->front()) : Document{};
}

TEST(Document, BinaryDataIsRefused) {
  std::string junk(4096, '\0');
  for (std::size_t i = 0; i < junk.size(); ++i) junk[i] = static_cast<char>(i * 37 % 251);
  const auto documents = read_documents(junk, "core.bin");
  ASSERT_FALSE(documents);
  EXPECT_EQ(documents.error().message, "binary data, expected text");
}

TEST(Document, ProseIsNoKnownFormat) {
  const auto documents = read_documents("Dear all,\nthe cluster is slow again.\n", "mail.txt");
  ASSERT_FALSE(documents);
  EXPECT_EQ(documents.error().message, "no known format");
}

TEST(Document, Utf16IsReadAndTheRepairShown) {
  const std::string plain = "GPU 0: Tesla V100 (UUID: GPU-1)\n\t Link 0: 25.781 GB/s\n\t Link 1: <inactive>\n";
  std::string wide = "\xff\xfe";
  for (const char c : plain) wide += std::string{c, '\0'};
  const Document document = only(wide);
  EXPECT_EQ(document.format, Format::kNvLinkStatus);
  EXPECT_EQ(fact(document, "links_up"), 1);
  EXPECT_EQ(fact(document, "links_inactive"), 1);
  ASSERT_FALSE(document.notes.empty());
  EXPECT_EQ(document.notes[0].text, "repaired: UTF-16 read as text");
}

TEST(Document, ALogWithATableGivesBoth) {
  const auto documents = read_documents(
      "n0:1:2 [0] NCCL INFO Using network Socket\n"
      "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
      "     1048576        262144     float     sum      -1    100.0   10.49   18.35      0    100.0   10.49   18.35      0\n"
      "     2097152        524288     float     sum      -1    200.0   10.49   18.35      0    200.0   10.49   18.35      0\n",
      "job.out");
  ASSERT_TRUE(documents);
  ASSERT_EQ(documents->size(), 2U);
  EXPECT_EQ((*documents)[0].format, Format::kNcclTests);
  EXPECT_EQ((*documents)[1].format, Format::kNcclLog);
  // 18.35 / 10.49 = 1.749 = 2 (n - 1) / n  ->  n = 8.
  EXPECT_EQ(fact((*documents)[0], "ranks_by_ratio"), 8);
}

TEST(NcclLog, ConnectionsCountByKindAndTheCardNumberDoesNotMatter) {
  const Document document = only(
      "[1,0]<stdout>:n0:10:11 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>\n"
      "[1,0]<stdout>:n0:10:11 [0] NCCL INFO Using network IB\n"
      "[1,0]<stdout>:n0:10:11 [0] NCCL INFO Channel 00/0 : 7[7] -> 8[0] [send] via NET/IB/3/GDRDMA\n"
      "[1,0]<stdout>:n0:10:11 [0] NCCL INFO Channel 01/0 : 7[7] -> 8[0] [send] via NET/IB/0(4)/GDRDMA\n"
      "[1,0]<stdout>:n0:10:11 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM/read\n"
      "[1,0]<stdout>:n0:10:11 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 0.\n"
      "[1,0]<stdout>:n0:10:11 [0] NCCL INFO comm 0x1 rank 0 nranks 16 cudaDev 0 busId 7000 - Init COMPLETE\n");
  ASSERT_TRUE(std::holds_alternative<NcclLog>(document.content));
  const NcclLog& log = std::get<NcclLog>(document.content);
  EXPECT_EQ(log.via, (std::map<std::string, int>{{"NET/IB/n/GDRDMA", 2}, {"P2P/CUMEM/read", 1}}));
  EXPECT_EQ(log.hosts, std::vector<std::string>{"n0"});
  ASSERT_EQ(log.devices.size(), 2U);
  EXPECT_EQ(log.devices[1].name, "mlx5_1");
  EXPECT_EQ(log.devices[1].layer, "RoCE");
  EXPECT_EQ(log.world, 16);
  ASSERT_EQ(log.ranks.size(), 1U);
  EXPECT_EQ(log.ranks[0].bus_id, "0000:07:00.0");
  ASSERT_EQ(log.settings.size(), 1U);
  EXPECT_EQ(log.settings[0].value, "0");
}

TEST(SmiQuery, CurrentOfWidthAndOfGenerationAreToldApart) {
  const Document document = only(
      "==============NVSMI LOG==============\nAttached GPUs : 2\nGPU 00000000:3B:00.0\n    Product Name                          : NVIDIA A100-PCIE-40GB\n"
      "    PCI\n        GPU Link Info\n            PCIe Generation\n                Max                       : 4\n                Current                   : 4\n"
      "            Link Width\n                Max                       : 16x\n                Current                   : 8x\n    Performance State                     : P0\n");
  const SmiQuery& query = std::get<SmiQuery>(document.content);
  ASSERT_EQ(query.gpus.size(), 1U);
  EXPECT_EQ(query.gpus[0].bus_id, "0000:3b:00.0");
  EXPECT_EQ(query.gpus[0].generation_current, 4);
  EXPECT_EQ(query.gpus[0].width_max, 16);
  EXPECT_EQ(query.gpus[0].width_current, 8);
  ASSERT_EQ(query.notes.size(), 1U);
  EXPECT_EQ(query.notes[0].text, "cut short: 2 GPUs are attached, 1 have a section");
}

TEST(Lspci, ASwitchIsItsUpstreamPort) {
  const Document document = only(
      "00:01.0 PCI bridge: Vendor Root (prog-if 00 [Normal decode])\n\tBus: primary=00, secondary=01, subordinate=04, sec-latency=0\n"
      "\tCapabilities: [40] Express (v2) Root Port (Slot+), MSI 00\n\t\tLnkSta:\tSpeed 16GT/s, Width x16\n\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+\n"
      "01:00.0 PCI bridge: Vendor Switch\n\tBus: primary=01, secondary=02, subordinate=04, sec-latency=0\n\tCapabilities: [40] Express (v2) Upstream Port, MSI 00\n"
      "\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16\n\t\tLnkSta:\tSpeed 16GT/s, Width x8 (downgraded)\n"
      "02:00.0 PCI bridge: Vendor Switch\n\tBus: primary=02, secondary=03, subordinate=03, sec-latency=0\n\tCapabilities: [40] Express (v2) Downstream Port, MSI 00\n"
      "02:01.0 PCI bridge: Vendor Switch\n\tBus: primary=02, secondary=04, subordinate=04, sec-latency=0\n\tCapabilities: [40] Express (v2) Downstream Port, MSI 00\n"
      "03:00.0 3D controller: NVIDIA Corporation A100\n\t\tLnkSta:\tSpeed 16GT/s, Width x16\n"
      "04:00.0 Infiniband controller: Mellanox Technologies MT28908\n\t\tLnkSta:\tSpeed 16GT/s, Width x16\n");
  const PciListing& listing = std::get<PciListing>(document.content);
  const topology::Host host = host_of(listing, "in.txt");
  ASSERT_EQ(host.of_kind(topology::DeviceKind::kPcieSwitch).size(), 1U);
  EXPECT_EQ(topology::path_between(host, host.gpus()[0], host.nics()[0]).path, topology::PathClass::kPix);
  // The uplink is Gen4 and trained at 8 of 16 lanes: half of what the slot has.
  const int bridge = host.of_kind(topology::DeviceKind::kPcieSwitch)[0];
  for (const topology::Link& link : host.links) {
    if (link.from != bridge || host.devices[static_cast<std::size_t>(link.to)].kind != topology::DeviceKind::kHostBridge) continue;
    EXPECT_NEAR(*link.bandwidth.negotiated_bytes_per_s * 2, *link.bandwidth.specified_bytes_per_s, 1);
  }
}

TEST(Lspci, TreeFormGivesTheSameParents) {
  const Document document = only(
      "-[0000:00]-+-00.0  Intel Corporation Sky Lake-E DMI3 Registers\n"
      "           +-02.0-[3a-3d]----00.0-[3b-3d]--+-08.0-[3c]----00.0  NVIDIA Corporation GV100GL [Tesla V100 PCIe 32GB]\n"
      "           |                               \\-10.0-[3d]----00.0  NVIDIA Corporation GV100GL [Tesla V100 PCIe 32GB]\n"
      "           \\-1f.0  Intel Corporation C621 Series\n");
  const PciListing& listing = std::get<PciListing>(document.content);
  EXPECT_TRUE(listing.tree);
  EXPECT_EQ(listing.count(PciRole::kGpu), 2);
  const topology::Host host = host_of(listing, "in.txt");
  ASSERT_EQ(host.gpus().size(), 2U);
  EXPECT_EQ(topology::path_between(host, host.gpus()[0], host.gpus()[1]).path, topology::PathClass::kPix);
}

const char* const kNetDiscover =
    "vendid=0x0\nswitchguid=0x200001(200001)\nSwitch\t8 \"S-0000000000200001\"\t\t# \"Sw2\" base port 0 lid 0 lmc 0\n"
    "[1]\t\"H-0000000000100003\"[1](100004) \t\t# \"n2 HCA-1\" lid 0 4xHDR\n[3]\t\"S-0000000000200000\"[3]\t\t# \"Sw1\" lid 0 4xHDR\n\n"
    "vendid=0x0\nswitchguid=0x200000(200000)\nSwitch\t8 \"S-0000000000200000\"\t\t# \"Sw1\" base port 0 lid 0 lmc 0\n"
    "[1]\t\"H-0000000000100000\"[1](100001) \t\t# \"n1 HCA-1\" lid 0 4xHDR\n[3]\t\"S-0000000000200001\"[3]\t\t# \"Sw2\" lid 0 4xHDR\n\n"
    "Ca\t2 \"H-0000000000100003\"\t\t# \"n2 HCA-1\"\n[1](100004) \t\"S-0000000000200001\"[1]\t\t# lid 0 lmc 0 \"Sw2\" lid 0 4xHDR\n\n"
    "Ca\t2 \"H-0000000000100000\"\t\t# \"n1 HCA-1\"\n[1](100001) \t\"S-0000000000200000\"[1]\t\t# lid 0 lmc 0 \"Sw1\" lid 0 4xHDR\n";
const char* const kNetDiscoverPorts =
    "CA     2  1 0x0000000000100004 4x HDR - SW     7  1 0x0000000000200001 ( 'n2 HCA-1' - 'Sw2' )\n"
    "SW     7  8 0x0000000000200001 4x SDR                                    'Sw2'\n"
    "SW     7  3 0x0000000000200001 4x HDR - SW     6  3 0x0000000000200000 ( 'Sw2' - 'Sw1' )\n"
    "SW     7  1 0x0000000000200001 4x HDR - CA     2  1 0x0000000000100004 ( 'Sw2' - 'n2 HCA-1' )\n"
    "SW     6  3 0x0000000000200000 4x HDR - SW     7  3 0x0000000000200001 ( 'Sw1' - 'Sw2' )\n"
    "SW     6  1 0x0000000000200000 4x HDR - CA     1  1 0x0000000000100001 ( 'Sw1' - 'n1 HCA-1' )\n"
    "CA     1  1 0x0000000000100001 4x HDR - SW     6  1 0x0000000000200000 ( 'n1 HCA-1' - 'Sw1' )\n";
const char* const kLinkInfo =
    "CA: n2 HCA-1:\n      0x0000000000100004      2    1[  ] ==( 4X          53.125 Gbps Active/  LinkUp)==>       7    1[  ] \"Sw2\" ( )\n"
    "Switch: 0x0000000000200001 Sw2:\n           7    1[  ] ==( 4X          53.125 Gbps Active/  LinkUp)==>       2    1[  ] \"n2 HCA-1\" ( )\n"
    "           7    3[  ] ==( 4X          53.125 Gbps Active/  LinkUp)==>       6    3[  ] \"Sw1\" ( )\n"
    "           7    4[  ] ==(                Down/ Polling)==>             [  ] \"\" ( )\n"
    "Switch: 0x0000000000200000 Sw1:\n           6    1[  ] ==( 4X          53.125 Gbps Active/  LinkUp)==>       1    1[  ] \"n1 HCA-1\" ( )\n"
    "           6    3[  ] ==( 4X          53.125 Gbps Active/  LinkUp)==>       7    3[  ] \"Sw2\" ( )\n"
    "CA: n1 HCA-1:\n      0x0000000000100001      1    1[  ] ==( 4X          53.125 Gbps Active/  LinkUp)==>       6    1[  ] \"Sw1\" ( )\n";

TEST(IbFabric, AllFormsGiveTheSameFabric) {
  for (const char* text : {kNetDiscover, kNetDiscoverPorts, kLinkInfo}) {
    SCOPED_TRACE(text);
    const Document document = only(text);
    ASSERT_EQ(document.format, Format::kFabric);
    EXPECT_EQ(fact(document, "switches"), 2);
    EXPECT_EQ(fact(document, "adapters"), 2);
    EXPECT_EQ(fact(document, "hosts"), 2);
    EXPECT_EQ(fact(document, "cables"), 3);
    EXPECT_EQ(fact(document, "cables.4xHDR"), 3);
    EXPECT_EQ(fact(document, "leaves"), 2);
  }
}

TEST(IbFabric, HdrOverFourLanesIsTwoHundredGigabit) { EXPECT_DOUBLE_EQ(4 * infiniband_lane_bytes_per_s("HDR"), 25e9); }

TEST(IbPorts, RateOfADownPortDoesNotCount) {
  const Document document = only(
      "CA 'mlx5_0'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: 400\n\t\tLink layer: InfiniBand\n"
      "CA 'mlx5_1'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: Down\n\t\tPhysical state: Polling\n\t\tRate: 10\n\t\tLink layer: InfiniBand\n");
  EXPECT_EQ(fact(document, "ports"), 2);
  EXPECT_EQ(fact(document, "ports_active"), 1);
  const topology::Host host = host_of(std::get<IbPorts>(document.content), "in.txt");
  EXPECT_DOUBLE_EQ(host.devices[static_cast<std::size_t>(host.nics()[0])].line_bytes_per_s, 50e9);
  EXPECT_DOUBLE_EQ(host.devices[static_cast<std::size_t>(host.nics()[1])].line_bytes_per_s, 0);
}

TEST(SlurmTopology, RangesExpand) {
  const Document document = only("SwitchName=s0 Nodes=tux[00-03,7]\nSwitchName=s1 Nodes=a,b # two\nSwitchName=top Switches=s[0-1]\n");
  EXPECT_EQ(fact(document, "switches"), 3);
  EXPECT_EQ(fact(document, "nodes"), 7);
  EXPECT_EQ(fact(document, "levels"), 2);
}

TEST(SlurmTopology, AnUnknownSettingIsAnErrorWithItsLine) {
  const auto documents = read_documents("SwitchName=s0 Nodes=a\nSwitchName=s1 Noodles=b\n", "topology.conf");
  ASSERT_FALSE(documents);
  EXPECT_EQ(documents.error().pos.line, 2);
  EXPECT_EQ(documents.error().message, "unknown setting 'Noodles'");
}

TEST(PairTables, AMatrixWithoutTitleIsTakenForBandwidths) {
  const Document document = only("   D\\D     0      1\n     0    -   50.0\n     1   48.0   -\n");
  ASSERT_EQ(document.format, Format::kPairTables);
  EXPECT_EQ(fact(document, "matrix0.lowest_bytes_per_s"), 48e9);
}

TEST(Perftest, MegabytesOfPerftestAreMebibytes) {
  const Document document = only(
      "                    RDMA_Write BW Test\n Dual-port       : OFF\t\tDevice         : mlx5_0\n"
      " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n 1048576    1000    100.0    100.0   0.0001\n");
  EXPECT_EQ(fact(document, "peak_bus_bytes_per_s"), 100.0 * 1024 * 1024);
}

TEST(GroupedMatrix, GroupsOfGpusAreTakenApart) {
  const Document document = only("          GPU0-1   GPU2-3   mlx5_0\nGPU0-1    X        PHB      PIX\nGPU2-3    PHB      X        PHB\nmlx5_0    PIX      PHB      X\n");
  ASSERT_EQ(document.format, Format::kTopoMatrix);
  const auto host = host_in(document);
  ASSERT_TRUE(host);
  ASSERT_EQ(host->gpus().size(), 4U);
  EXPECT_EQ(topology::path_between(*host, host->gpus()[1], host->nics()[0]).path, topology::PathClass::kPix);
  EXPECT_EQ(topology::path_between(*host, host->gpus()[3], host->nics()[0]).path, topology::PathClass::kPhb);
}

}  // namespace
}  // namespace chokepoint::wiring
