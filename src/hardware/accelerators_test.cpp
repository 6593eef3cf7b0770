// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/units.hpp>
#include <chokepoint/hardware/catalogue.hpp>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <set>

namespace chokepoint::hardware {
namespace {

std::string resolved(std::string_view spelling) {
  const auto part = find_accelerator(spelling);
  return part ? part->name : "error: " + part.error().message;
}

TEST(Accelerators, EveryEntryParsesAndIsPlausible) {
  std::set<std::string> names;
  for (const Accelerator& part : accelerators()) {
    SCOPED_TRACE(part.name);
    EXPECT_TRUE(names.insert(part.name).second);
    EXPECT_FALSE(part.source.empty());
    EXPECT_GE(part.memory_bytes, 10 * kGiB);
    EXPECT_GE(part.memory_bytes_per_s, 250e9);
    EXPECT_GT(part.peak(Dtype::kFp16) + part.peak(Dtype::kBf16), 50e12);
    EXPECT_EQ(part.nvlinks > 0, part.nvlink_bytes_per_s > 0);
    // Every spelling a user may copy from the listing leads back to the entry.
    EXPECT_EQ(resolved(part.name), part.name);
    for (const std::string& alias : part.aliases) EXPECT_EQ(resolved(alias), part.name);
  }
}

TEST(Accelerators, PeaksAreDenseAndLinksPerDirection) {
  const Accelerator h100 = *find_accelerator("h100");
  EXPECT_DOUBLE_EQ(h100.peak(Dtype::kBf16), 989.4e12);  // not 1,979: that is with sparsity
  EXPECT_DOUBLE_EQ(h100.nvlinks * h100.nvlink_bytes_per_s, 450e9);  // 900 GB/s is the sum of both directions
  const Accelerator a100 = *find_accelerator("a100-sxm4-80gb");
  EXPECT_DOUBLE_EQ(a100.peak(Dtype::kBf16), 312e12);
  EXPECT_DOUBLE_EQ(a100.nvlinks * a100.nvlink_bytes_per_s, 300e9);
  const Accelerator b200 = *find_accelerator("b200");
  EXPECT_DOUBLE_EQ(b200.nvlinks * b200.nvlink_bytes_per_s, 900e9);
  EXPECT_EQ(find_accelerator("a800")->nvlinks, 8);
  EXPECT_EQ(find_accelerator("h800")->nvlinks, 8);
}

TEST(Accelerators, VoltaHasNoBf16) { EXPECT_EQ(find_accelerator("v100")->peak(Dtype::kBf16), 0); }

TEST(Accelerators, GeforceBoardsRefusePeerCopiesOverPcie) {
  for (const char* board : {"RTX 2080 Ti", "RTX 3090", "RTX 4090", "RTX 5090"}) {
    EXPECT_FALSE(find_accelerator(board)->pcie_peer_to_peer) << board;
  }
  EXPECT_TRUE(find_accelerator("RTX A6000")->pcie_peer_to_peer);
}

TEST(Accelerators, DriverNamesResolve) {
  EXPECT_EQ(resolved("NVIDIA A100-SXM4-80GB"), "a100-sxm4-80gb");
  EXPECT_EQ(resolved("NVIDIA A100 80GB PCIe"), "a100-pcie-80gb");
  EXPECT_EQ(resolved("A100-PCIE-40GB"), "a100-pcie-40gb");
  EXPECT_EQ(resolved("NVIDIA H100 80GB HBM3"), "h100-sxm5-80gb");
  EXPECT_EQ(resolved("NVIDIA H100 PCIe"), "h100-pcie-80gb");
  EXPECT_EQ(resolved("NVIDIA H100 NVL"), "h100-nvl-94gb");
  EXPECT_EQ(resolved("Tesla V100-SXM2-32GB"), "v100-sxm2-32gb");
  EXPECT_EQ(resolved("NVIDIA GeForce RTX 4090"), "rtx-4090");
  EXPECT_EQ(resolved("NVIDIA RTX 6000 Ada Generation"), "rtx-6000-ada");
  EXPECT_EQ(resolved("NVIDIA RTX PRO 6000 Blackwell Server Edition"), "rtx-pro-6000-blackwell");
  EXPECT_EQ(resolved("NVIDIA GH200 120GB"), "gh200-96gb");
  EXPECT_EQ(resolved("AMD Instinct MI300X OAM"), "mi300x");
}

TEST(Accelerators, LooseSpellingsFallToTheFirstFittingMember) {
  EXPECT_EQ(resolved("a100"), "a100-sxm4-40gb");
  EXPECT_EQ(resolved("A100-80GB"), "a100-sxm4-80gb");
  EXPECT_EQ(resolved("H100-95GB"), "h100-sxm5-96gb-hbm2e");
  EXPECT_EQ(resolved("V100-PCIe-16GB (some cloud)"), "v100-pcie-16gb");
  EXPECT_EQ(resolved("B200-SXM (power limited)"), "b200-sxm-180gb");
  EXPECT_EQ(resolved("Blackwell (B200 class)"), "b200-sxm-180gb");
  EXPECT_EQ(resolved("TPU v5p"), "tpu-v5p");
}

TEST(Accelerators, UnknownPartsAreErrorsWithTheNearestName) {
  const auto part = find_accelerator("rtx-4091");
  ASSERT_FALSE(part);
  EXPECT_EQ(format(part.error()),
            "error: unknown accelerator 'rtx-4091'\n  did you mean 'rtx-4090'?\n  'chokepoint accelerators' lists all\n");
  EXPECT_FALSE(find_accelerator(""));
  EXPECT_FALSE(find_accelerator("unknown"));
  EXPECT_FALSE(find_accelerator("not stated"));
  EXPECT_FALSE(find_accelerator("A100-60GB"));
  EXPECT_FALSE(find_accelerator("RTX 4090 Laptop"));
  EXPECT_FALSE(find_accelerator(std::string(100000, '(')));
}

/// Field `column` of each row of a simple CSV file (quoted fields may hold commas).
std::map<std::string, int> column_values(const std::string& path, const std::string& column) {
  std::map<std::string, int> values;
  std::ifstream in(path);
  std::string line;
  std::size_t wanted = 0;
  for (bool header = true; std::getline(in, line); header = false) {
    std::vector<std::string> fields(1);
    bool quoted = false;
    for (const char c : line) {
      if (c == '"') {
        quoted = !quoted;
      } else if (c == ',' && !quoted) {
        fields.emplace_back();
      } else if (c != '\r') {
        fields.back() += c;
      }
    }
    if (header) {
      while (wanted < fields.size() && fields[wanted] != column) ++wanted;
    } else if (wanted < fields.size()) {
      ++values[fields[wanted]];
    }
  }
  return values;
}

TEST(Accelerators, EverySpellingOfThePublishedMeasurementsResolves) {
  const std::string folder = std::string(CHOKEPOINT_SOURCE_DIR) + "/../shared/measurements/";
  const auto runs = column_values(folder + "runs.csv", "accelerator");
  if (runs.empty()) GTEST_SKIP() << "published measurements are absent: " << folder;
  for (const char* file : {"runs.csv", "collectives.csv", "matmul_efficiency.csv", "oom.csv"}) {
    for (const auto& [spelling, rows] : column_values(folder + file, "accelerator")) {
      const bool says_nothing = spelling.empty() || spelling == "not stated" || spelling.rfind("unknown", 0) == 0;
      EXPECT_EQ(find_accelerator(spelling).has_value(), !says_nothing) << file << ": '" << spelling << "', rows " << rows;
    }
  }
}

}  // namespace
}  // namespace chokepoint::hardware
