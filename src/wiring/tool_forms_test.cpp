// SPDX-License-Identifier: Apache-2.0
// Other forms of what tools say: XML, JSON, CSV, other programs for the same ports and links.
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
  if (!documents) return Document{};
  EXPECT_EQ(documents->size(), 1U);
  return std::move(documents->front());
}

constexpr std::string_view kDevices =
    "hca_id:\tmlx5_0\n\tfw_ver:\t\t20.31.1014\n\tnode_guid:\tb8ce:f603:0012:3456\n\tvendor_part_id:\t4123\n\tphys_port_cnt:\t1\n\t\tport:\t1\n"
    "\t\t\tstate:\t\tPORT_ACTIVE (4)\n\t\t\tmax_mtu:\t4096 (5)\n\t\t\tactive_mtu:\t1024 (3)\n\t\t\tlink_layer:\tEthernet\n"
    "\t\t\tactive_width:\t4X (2)\n\t\t\tactive_speed:\t25.0 Gbps (32)\n\t\t\tphys_state:\tLINK_UP (5)\n\t\t\tGID[  0]:\tfe80:0000::1, RoCE v2\n"
    "hca_id:\tmlx5_1\n\tvendor_part_id:\t4123\n\tphys_port_cnt:\t1\n\t\tport:\t1\n\t\t\tstate:\t\tPORT_INIT (2)\n\t\t\tlink_layer:\tInfiniBand\n";

TEST(IbDevices, DevinfoGivesStateRatePacketsAndGids) {
  const Document document = only(kDevices);
  const auto& ports = std::get<IbPorts>(document.content).ports;
  ASSERT_EQ(ports.size(), 2U);
  EXPECT_EQ(ports[0].adapter, "mlx5_0");
  EXPECT_EQ(ports[0].type, "MT4123");
  EXPECT_EQ(ports[0].state, "Active");
  EXPECT_EQ(ports[0].physical, "LinkUp");
  EXPECT_DOUBLE_EQ(ports[0].bytes_per_s, 12.5e9);  // 4 lanes of 25 Gb/s
  EXPECT_EQ(ports[0].mtu, 1024);
  EXPECT_EQ(ports[0].mtu_max, 4096);
  EXPECT_EQ(ports[0].gids, std::vector<std::string>{"0: fe80:0000::1, RoCE v2"});
  EXPECT_EQ(ports[1].state, "Initializing");
  EXPECT_EQ(ports[1].firmware, "");
}

TEST(IbDevices, IbstatusGivesStateAndRate) {
  const Document document = only(
      "Infiniband device 'mlx5_0' port 1 status:\n\tdefault gid:\t fe80::1\n\tstate:\t\t 4: ACTIVE\n\tphys state:\t 5: LinkUp\n\trate:\t\t 200 Gb/sec (4X HDR)\n\tlink_layer:\t InfiniBand\n\n"
      "Infiniband device 'mlx5_1' port 2 status:\n\tstate:\t\t 1: DOWN\n\tphys state:\t 3: Disabled\n\trate:\t\t 40 Gb/sec (4X QDR)\n");
  const auto& ports = std::get<IbPorts>(document.content).ports;
  ASSERT_EQ(ports.size(), 2U);
  EXPECT_EQ(ports[0].state, "Active");
  EXPECT_DOUBLE_EQ(ports[0].bytes_per_s, 25e9);
  EXPECT_EQ(ports[1].port, 2);
  EXPECT_EQ(ports[1].physical, "Disabled");
}

TEST(IbDevices, AnotherListAddsWhatTheFirstLacksAndSaysWhereTheyDiffer) {
  IbPorts ports;
  IbPort own;
  own.adapter = "mlx5_0";
  own.port = 1;
  own.state = "Active";
  own.bytes_per_s = 25e9;
  ports.ports.push_back(own);
  const Document document = only(kDevices);
  const std::vector<std::string> differences = add_ports(ports, std::get<IbPorts>(document.content));
  ASSERT_EQ(ports.ports.size(), 2U);
  EXPECT_EQ(ports.ports[0].mtu, 1024);
  EXPECT_DOUBLE_EQ(ports.ports[0].bytes_per_s, 25e9);
  EXPECT_EQ(differences, std::vector<std::string>{"mlx5_0 port 1: 200 Gb/s here, 100 Gb/s by ibv_devinfo"});
}

TEST(SmiForms, XmlSaysWhatTheOutlineSays) {
  const Document document = only(
      "<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\">\n<nvidia_smi_log>\n<driver_version>535.129.03</driver_version><attached_gpus>1</attached_gpus>\n"
      "<gpu id=\"00000000:17:00.0\"><product_name>NVIDIA A100-SXM4-80GB</product_name><pci><pci_device_id>20B210DE</pci_device_id><pci_gpu_link_info>"
      "<pcie_gen><max_link_gen>4</max_link_gen><current_link_gen>3</current_link_gen></pcie_gen><link_widths><max_link_width>16x</max_link_width><current_link_width>8x</current_link_width></link_widths>"
      "</pci_gpu_link_info></pci><performance_state>P0</performance_state><clocks_event_reasons><clocks_event_reason_hw_thermal_slowdown>Active</clocks_event_reason_hw_thermal_slowdown>"
      "<clocks_event_reason_gpu_idle>Active</clocks_event_reason_gpu_idle></clocks_event_reasons></gpu></nvidia_smi_log>\n");
  const auto& query = std::get<SmiQuery>(document.content);
  EXPECT_EQ(query.driver, "535.129.03");
  ASSERT_EQ(query.gpus.size(), 1U);
  EXPECT_EQ(query.gpus[0].bus_id, "0000:17:00.0");
  EXPECT_EQ(query.gpus[0].pci_device, "10de:20b2");
  EXPECT_EQ(query.gpus[0].generation_max, 4);
  EXPECT_EQ(query.gpus[0].generation_current, 3);
  EXPECT_EQ(query.gpus[0].width_max, 16);
  EXPECT_EQ(query.gpus[0].width_current, 8);
  EXPECT_EQ(query.gpus[0].active_slowdowns, std::vector<std::string>{"HW Thermal Slowdown"});
}

TEST(SmiForms, ATableOfColumnsIsRead) {
  const Document document = only(
      "index, name, pci.bus_id, pcie.link.gen.max, pcie.link.gen.current, pcie.link.width.max, pcie.link.width.current, utilization.gpu [%]\n"
      "0, NVIDIA A100-SXM4-80GB, 00000000:07:00.0, 4, 4, 16, 16, 98 %\n1, NVIDIA A100-SXM4-80GB, 00000000:0B:00.0, 4, 4, 16, 8, 97 %\n2, cut\n");
  const auto& query = std::get<SmiQuery>(document.content);
  ASSERT_EQ(query.gpus.size(), 2U);
  EXPECT_EQ(query.gpus[1].bus_id, "0000:0b:00.0");
  EXPECT_EQ(query.gpus[1].width_current, 8);
  EXPECT_EQ(query.gpus[1].utilization, 97.0);
  ASSERT_EQ(query.notes.size(), 1U);
  EXPECT_EQ(query.notes[0].text, "1 lines have another number of cells than the heading");
}

TEST(ToolJson, NvbandwidthsMatricesAreRead) {
  const Document document = only(
      R"j({"nvbandwidth": {"Driver Version": "550.54.15", "testcases": [
        {"name": "host_to_device_memcpy_ce", "status": "Passed", "bandwidth_matrix": [["55.47", "55.50"]], "sum": 110.97},
        {"name": "device_to_device_memcpy_read_ce", "bandwidth_description": "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)", "bandwidth_matrix": [["N/A", "390.10"], ["391.00", "N/A"]]},
        {"name": "skipped", "status": "Waived"}]}})j");
  const auto& tables = std::get<PairTables>(document.content);
  ASSERT_EQ(tables.matrices.size(), 2U);
  EXPECT_TRUE(tables.matrices[0].host_memory);
  EXPECT_FALSE(tables.matrices[1].host_memory);
  EXPECT_DOUBLE_EQ(tables.matrices[1].lowest().value_or(0), 390.1e9);
  EXPECT_DOUBLE_EQ(tables.sums.at("host_to_device_memcpy_ce"), 110.97e9);
}

TEST(ToolJson, CutJsonIsAnError) {
  const auto documents = read_documents("{\"nvbandwidth\": {\"testcases\": [", "in.json");
  ASSERT_FALSE(documents);
  EXPECT_EQ(documents.error().message, "not valid JSON, or cut short");
}

TEST(ToolJson, RocmSmisPairsAreRead) {
  const Document document = only(
      R"j({"system": {"(Topology) Weight between DRM devices 0 and 1": "15", "(Topology) Hops between DRM devices 0 and 1": "1", "(Topology) Link type between DRM devices 0 and 1": "XGMI"},
          "card0": {"(Topology) Numa Node": "0"}, "card1": {"(Topology) Numa Node": "1"}})j");
  EXPECT_EQ(document.format, Format::kRocmTopology);
  EXPECT_EQ(fact(document, "links.XGMI"), 1);
  EXPECT_EQ(std::get<RocmTopology>(document.content).numa.at(1), 1);
  EXPECT_EQ(std::get<RocmTopology>(document.content).weights[1][0], 15);
}

constexpr std::string_view kAmdTables =
    "ACCESS TABLE:\n             0000:05:00.0  0000:26:00.0\n0000:05:00.0 ENABLED       ENABLED\n0000:26:00.0 ENABLED       ENABLED\n\n"
    "WEIGHT TABLE:\n             0000:05:00.0  0000:26:00.0\n0000:05:00.0 0             15\n0000:26:00.0 15            0\n\n"
    "LINK TYPE TABLE:\n             0000:05:00.0  0000:26:00.0\n0000:05:00.0 SELF          XGMI\n0000:26:00.0 XGMI          SELF\n\n"
    "NUMA BW TABLE:\n             0000:05:00.0  0000:26:00.0\n0000:05:00.0 N/A           50000-50000\n0000:26:00.0 50000-50000   N/A\n";

TEST(AmdSmi, TablesOverAddressesAreNoListOfDevices) {
  const Document document = only(kAmdTables);
  EXPECT_EQ(document.format, Format::kRocmTopology);
  const auto& found = std::get<RocmTopology>(document.content);
  EXPECT_EQ(found.gpus, 2);
  EXPECT_EQ(found.bus_ids[1], "0000:26:00.0");
  EXPECT_EQ(found.weights[0][1], 15);
  EXPECT_EQ(fact(document, "links.XGMI"), 1);
}

TEST(AmdSmi, JsonGivesTheSame) {
  const Document document = only(
      R"j([{"gpu": 0, "bdf": "0000:05:00.0", "links": [{"gpu": 0, "weight": 0, "link_type": "SELF", "num_hops": 0}, {"gpu": 1, "weight": 15, "link_type": "XGMI", "num_hops": 1}]},
          {"gpu": 1, "bdf": "0000:26:00.0", "links": []}])j");
  const auto& found = std::get<RocmTopology>(document.content);
  EXPECT_EQ(found.bus_ids[1], "0000:26:00.0");
  EXPECT_EQ(found.hops[1][0], 1);
  EXPECT_EQ(fact(document, "links.XGMI"), 1);
}

TEST(SlurmTopology, AMarkAtTheBeginningOfYamlIsNoSecondDocument) {
  const Document document = only("---\n- topology: t\n  cluster_default: true\n  tree:\n    switches:\n      - switch: top\n        children: s[1-2]\n      - switch: s1\n        nodes: n[1-2]\n      - switch: s2\n        nodes: n[3-4]\n");
  EXPECT_EQ(fact(document, "switches"), 3);
  EXPECT_EQ(fact(document, "nodes"), 4);
}

TEST(Document, ToolsThatSayItInAnotherFormAreNamed) {
  const auto overview = read_documents("| NVIDIA-SMI 550.54.15   Driver Version: 550.54.15 |\n|   0  NVIDIA H100  On |\n", "smi.txt");
  ASSERT_FALSE(overview);
  EXPECT_EQ(overview.error().message, "nvidia-smi's overview says nothing about links; `nvidia-smi topo -m` and `nvidia-smi -q` do");
  const auto drawing = read_documents("Machine (504GB total)\n  Package L#0\n    NUMANode L#0 (P#0 252GB)\n", "lstopo.txt");
  ASSERT_FALSE(drawing);
  EXPECT_EQ(drawing.error().message, "lstopo's drawing or text; `lstopo --of xml` is read");
}

// Two NICs within PIX of each other and PXB of a GPU: two cards at one switch chip, each with 16 lanes of its own.
TEST(TopoMatrix, NicsBelowOneSwitchDoNotShareASlot) {
  const Document document = only(
      "\tGPU0\tGPU1\tNIC0\tNIC1\nGPU0\t X \tNV12\tPXB\tPXB\nGPU1\tNV12\t X \tPXB\tPXB\nNIC0\tPXB\tPXB\t X \tPIX\nNIC1\tPXB\tPXB\tPIX\t X \n");
  const auto host = host_in(document);
  ASSERT_TRUE(host);
  const std::vector<int> nics = host->nics();
  int above = -1;
  double way = 0;
  for (const topology::Link& link : host->links) {
    if (link.from == nics[0]) above = link.to;
  }
  for (const topology::Link& link : host->links) {
    if (link.from == above && host->devices[static_cast<std::size_t>(link.to)].kind == topology::DeviceKind::kPcieSwitch) way = link.bandwidth.effective();
  }
  EXPECT_GT(way, 60e9);  // twice 31.5 GB/s
}

}  // namespace
}  // namespace chokepoint::wiring
