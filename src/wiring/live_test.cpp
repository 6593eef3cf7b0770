// SPDX-License-Identifier: Apache-2.0
// Small sysfs trees of our own, with real folders and links.
#include <chokepoint/wiring/live.hpp>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace chokepoint::wiring {
namespace {

namespace fs = std::filesystem;

class Sysfs : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(::testing::TempDir()) / ("sysfs-" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(root_);
    fs::create_directories(root_ / "bus/pci/devices");
    put("devices/system/node/node0/distance", "10 21");
    put("devices/system/node/node1/distance", "21 10");
  }
  void TearDown() override { fs::remove_all(root_); }

  void put(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << "\n";
  }
  /// `path` below devices/pci0000:00, the last part its address.
  void device(const std::string& path, const std::string& kind, const std::string& vendor, const std::string& speed, int width, int most_width, int numa) {
    const std::string folder = "devices/pci0000:00/" + path + "/";
    put(folder + "class", kind);
    put(folder + "vendor", vendor);
    put(folder + "device", "0x1234");
    put(folder + "current_link_speed", speed);
    put(folder + "max_link_speed", "32.0 GT/s PCIe");
    put(folder + "current_link_width", std::to_string(width));
    put(folder + "max_link_width", std::to_string(most_width));
    put(folder + "numa_node", std::to_string(numa));
    fs::create_directory_symlink("../../../devices/pci0000:00/" + path, root_ / "bus/pci/devices" / fs::path(path).filename());
  }
  void class_device(const std::string& kind, const std::string& name, const std::string& pci) {
    fs::create_directories(root_ / "class" / kind / name);
    fs::create_directory_symlink("../../../devices/pci0000:00/" + pci, root_ / "class" / kind / name / "device");
  }
  LiveReading read() {
    Result<LiveReading> reading = read_live(root_.string(), "here");
    EXPECT_TRUE(reading) << (reading ? "" : reading.error().message);
    return reading ? std::move(*reading) : LiveReading{};
  }

  fs::path root_;
};

constexpr const char* kSwitch = "0000:00:01.0/0000:01:00.0";

TEST_F(Sysfs, GpuAndNicUnderOneSwitchWithWhatTheirLinksTrainedAt) {
  device("0000:00:01.0", "0x060400", "0x8086", "32.0 GT/s PCIe", 16, 16, 1);
  device(kSwitch, "0x060400", "0x1000", "32.0 GT/s PCIe", 16, 16, 1);
  for (const auto& [port, end] : {std::pair{"0000:02:00.0", "0000:03:00.0"}, {"0000:02:01.0", "0000:04:00.0"}}) {
    device(std::string(kSwitch) + "/" + port, "0x060400", "0x1000", "32.0 GT/s PCIe", 16, 16, 1);
    const bool gpu = std::string(end) == "0000:03:00.0";
    device(std::string(kSwitch) + "/" + port + "/" + end, gpu ? "0x030200" : "0x020700", gpu ? "0x10de" : "0x15b3", "32.0 GT/s PCIe", gpu ? 8 : 16, 16, 1);
  }
  const std::string nic = std::string(kSwitch) + "/0000:02:01.0/0000:04:00.0";
  class_device("infiniband", "mlx5_0", nic);
  put("class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE");
  put("class/infiniband/mlx5_0/ports/1/phys_state", "5: LinkUp");
  put("class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)");
  put("class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand");
  const LiveReading reading = read();
  ASSERT_EQ(reading.documents.size(), 2U);
  EXPECT_TRUE(reading.infiniband);
  const std::optional<topology::Host> host = host_in(reading.documents.front());
  ASSERT_TRUE(host);
  ASSERT_EQ(host->gpus().size(), 1U);
  ASSERT_EQ(host->nics().size(), 1U);
  const int gpu = host->gpus().front();
  const topology::Device& card = host->devices[static_cast<std::size_t>(host->nics().front())];
  EXPECT_EQ(card.alias, "mlx5_0");
  EXPECT_EQ(card.line_bytes_per_s, 50e9);
  EXPECT_EQ(card.numa, 1);
  EXPECT_EQ(topology::path_between(*host, gpu, host->nics().front()).path, topology::PathClass::kPix);
  for (const topology::Link& link : host->links) {
    if (link.from != gpu) continue;
    EXPECT_EQ(link.width, 16);  // the slot; it trained at half
    EXPECT_NEAR(*link.bandwidth.negotiated_bytes_per_s, *link.bandwidth.specified_bytes_per_s / 2, 1);
  }
  const auto* ports = std::get_if<IbPorts>(&reading.documents[1].content);
  ASSERT_NE(ports, nullptr);
  EXPECT_EQ(ports->ports.front().state, "Active");
  EXPECT_EQ(ports->ports.front().physical, "LinkUp");
}

TEST_F(Sysfs, InterfaceWithoutSpeedAndLinkIsSaidToBeUnseen) {
  device("0000:00:05.0", "0x020000", "0x1af4", "Unknown", 0, 0, -1);
  class_device("net", "eth0", "0000:00:05.0");
  put("class/net/eth0/speed", "-1");
  put("class/net/lo/speed", "");
  const LiveReading reading = read();
  ASSERT_EQ(reading.documents.size(), 1U);
  EXPECT_FALSE(reading.infiniband);
  bool speed = false;
  bool link = false;
  for (const std::string& line : reading.unseen) {
    speed = speed || line.rfind("eth0: its speed", 0) == 0;
    link = link || line.rfind("link speed and width of 1 ", 0) == 0;
  }
  EXPECT_TRUE(speed);
  EXPECT_TRUE(link);
}

TEST_F(Sysfs, EmptyOrMissingTreeIsAnErrorOrSaysWhatItHides) {
  EXPECT_FALSE(read_live((root_ / "nowhere").string(), ""));
  const LiveReading reading = read();
  ASSERT_FALSE(reading.unseen.empty());
  EXPECT_EQ(reading.unseen.front().rfind("PCI devices: none", 0), 0U);
}

TEST_F(Sysfs, FoldersThatLieInThemselvesDoNotHang) {
  device("0000:00:01.0", "0x060400", "0x8086", "8.0 GT/s PCIe", 16, 16, 0);
  fs::create_directory_symlink("../../../bus/pci/devices", root_ / "bus/pci/devices/0000:09:00.0");
  EXPECT_FALSE(read().documents.empty());
}

}  // namespace
}  // namespace chokepoint::wiring
