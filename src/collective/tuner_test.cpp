// SPDX-License-Identifier: Apache-2.0
#include "tuner.hpp"

#include <chokepoint/base/files.hpp>
#include <chokepoint/base/text.hpp>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <string>

namespace chokepoint::collective {
namespace {

/// 4 hosts x 8 GPUs on PCIe, one NIC, NCCL 2.12.
TunerInput pcie_hosts() {
  TunerInput in;
  in.ranks = 32;
  in.hosts = 4;
  in.channels = 2;
  in.bus_bytes_per_s = 12e9;
  in.nccl = 21212;
  return in;
}

TunerInput dgx(hardware::Architecture architecture, int channels, double bus_bytes_per_s, NcclVersion nccl) {
  TunerInput in;
  in.ranks = 8;
  in.channels = channels;
  in.bus_bytes_per_s = bus_bytes_per_s;
  in.nvlink = true;
  in.nvls = architecture == hardware::Architecture::kHopper;
  in.architecture = architecture;
  in.nccl = nccl;
  return in;
}

TEST(Tuner, SmallAllReduceOverHostsIsALowLatencyTree) {
  const Selection chosen = select(pcie_hosts(), 64);
  EXPECT_EQ(chosen.algorithm, "tree");
  EXPECT_EQ(chosen.protocol, "ll");
  // 4.4 + 2 x (7 x 1.0 x 1.8 + log2 4 x 5.0) = 49.6 us, and 64 B of transfer.
  EXPECT_NEAR(chosen.estimate_s, 49.6e-6, 0.1e-6);
}

TEST(Tuner, LargeMessagesTakeTheRingInSimple) {
  const Selection chosen = select(pcie_hosts(), 1e9);
  EXPECT_EQ(chosen.algorithm, "ring");
  EXPECT_EQ(chosen.protocol, "simple");
}

TEST(Tuner, ProtocolsFollowEachOtherWithSize) {
  const TunerInput in = dgx(hardware::Architecture::kAmpere, 24, 230e9, 21200);
  EXPECT_EQ(select(in, 1024).protocol, "ll");
  EXPECT_EQ(select(in, 4 << 20).protocol, "ll128");
  EXPECT_EQ(select(in, 1 << 30).protocol, "simple");
}

TEST(Tuner, NvlsNeedsAReleaseThatHasIt) {
  using hardware::Architecture;
  EXPECT_EQ(select(dgx(Architecture::kHopper, 16, 370e9, 21200), 1 << 30).algorithm, "ring");
  EXPECT_EQ(select(dgx(Architecture::kHopper, 16, 370e9, 21900), 1 << 30).algorithm, "nvls");
}

TEST(Tuner, GathersHaveNoTree) {
  TunerInput in = pcie_hosts();
  in.op = Op::kAllGather;
  for (double bytes = 64; bytes < 1e9; bytes *= 4) EXPECT_EQ(select(in, bytes).algorithm, "ring") << bytes;
}

TEST(Tuner, Ll128NeedsNvLink) {
  for (double bytes = 64; bytes < 1e9; bytes *= 2) EXPECT_NE(select(pcie_hosts(), bytes).protocol, "ll128") << bytes;
}

TEST(Tuner, AgreesWithChoicesThatALogPrints) {
  const std::string path = std::string(CHOKEPOINT_SOURCE_DIR) + "/../shared/wiring/nccl-info/rtx3090-4x8-mpi-firstrun-1.log";
  if (!file_exists(path)) GTEST_SKIP() << "no published logs beside the repository";
  const auto log = read_text_file(path);
  ASSERT_TRUE(log);
  // "... NCCL INFO 64 Bytes -> Algo 0 proto 0 time 49.675526"; NCCL 2.12 counts tree 0, ring 1 and ll 0, ll128 1, simple 2.
  const std::array<std::string_view, 2> algorithms{"tree", "ring"};
  const std::array<std::string_view, 3> protocols{"ll", "ll128", "simple"};
  int printed = 0;
  int agreed = 0;
  for (std::size_t at = log->find(" Bytes -> Algo "); at != std::string::npos; at = log->find(" Bytes -> Algo ", at + 1)) {
    const std::size_t begin = log->rfind(' ', at - 1) + 1;
    const auto bytes = to_int(std::string_view(*log).substr(begin, at - begin));
    const auto algorithm = static_cast<std::size_t>((*log)[at + 15] - '0');
    const auto protocol = static_cast<std::size_t>((*log)[at + 23] - '0');
    ASSERT_TRUE(bytes && algorithm < 2 && protocol < 3) << log->substr(begin, 60);
    const Selection chosen = select(pcie_hosts(), *bytes);
    ++printed;
    agreed += chosen.algorithm == algorithms[algorithm] && chosen.protocol == protocols[protocol] ? 1 : 0;
    EXPECT_NEAR(chosen.estimate_s * 1e6, std::strtod(log->c_str() + at + 30, nullptr), 0.1);
  }
  EXPECT_GT(printed, 0);
  EXPECT_EQ(agreed, printed);
}

}  // namespace
}  // namespace chokepoint::collective
