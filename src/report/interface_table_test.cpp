// SPDX-License-Identifier: Apache-2.0
// The table of interfaces in docs/from-the-problem.md is what the catalogue and the collective model say.
#include <chokepoint/base/files.hpp>
#include <chokepoint/base/text.hpp>
#include <chokepoint/collective/constants.hpp>
#include <chokepoint/hardware/catalogue.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace chokepoint::report {
namespace {

struct Interface {
  double raw_bytes_per_s = 0;
  double ring_bytes_per_s = 0;
  double hop_s = 0;
};

std::map<std::string, Interface> interfaces() {
  const collective::Constants k;
  std::map<std::string, Interface> out;
  for (int generation = 3; generation <= 6; ++generation) {
    const double raw = hardware::pcie_bytes_per_s(generation, 16).value();
    out["PCIe " + std::to_string(generation) + ".0 x16"] = {raw, k.pcie * raw, k.ll.pcie_hop_s};
  }
  const auto nvlink = [&](const char* title, const char* accelerator, double share) {
    const auto part = hardware::find_accelerator(accelerator).value();
    const double raw = part.nvlinks * part.nvlink_bytes_per_s;
    out[title] = {raw, share * raw, k.ll.nvlink_hop_s};
  };
  nvlink("NVLink of a V100 SXM2", "v100-sxm2-32gb", k.nvlink_volta.ring);
  nvlink("NVLink of an A100", "a100-sxm4-80gb", k.nvlink_ampere.ring);
  nvlink("NVLink of an H100 SXM", "h100-sxm5-80gb", k.nvlink_hopper.ring);
  nvlink("NVLink of a B200", "b200-sxm-180gb", k.nvlink_blackwell.ring);
  for (const int rate : {100, 200, 400, 800}) {
    const double raw = rate * 1e9 / 8;
    out[std::to_string(rate) + " Gb/s InfiniBand"] = {raw, k.infiniband * raw, k.ll.network_hop_s};
  }
  out["400 Gb/s RoCE"] = {50e9, k.roce * 50e9, k.ll.network_hop_s};
  for (const int rate : {25, 100}) {
    const double raw = rate * 1e9 / 8;
    out[std::to_string(rate) + " Gb/s Ethernet, TCP"] = {raw, std::min(k.tcp * raw, k.tcp_cap_bytes_per_s),
                                                         k.tcp_hop * k.ll.network_hop_s};
  }
  return out;
}

/// The number that a cell starts with.
double number_of(std::string_view cell) {
  const std::string_view text = trim(cell);
  return to_number(text.substr(0, text.find(' '))).value_or(-1);
}

std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells;
  for (std::size_t at = 1; at < line.size();) {
    const std::size_t end = std::min(line.find('|', at), line.size());
    cells.emplace_back(trim(line.substr(at, end - at)));
    at = end + 1;
  }
  return cells;
}

TEST(InterfaceTable, IsWhatTheCatalogueAndTheModelSay) {
  const auto page = read_text_file(std::string(CHOKEPOINT_SOURCE_DIR) + "/docs/from-the-problem.md");
  ASSERT_TRUE(page);
  const auto expected = interfaces();
  std::size_t rows = 0;
  for (const std::string_view line : split_lines(*page)) {
    if (!line.starts_with("| ")) continue;
    const std::vector<std::string> cells = cells_of(line);
    const auto one = expected.find(cells.front());
    if (one == expected.end() || cells.size() != 4) continue;
    ++rows;
    // Printed with one digit after the point, or as whole GB/s.
    const auto rounding = [](const std::string& cell) { return cell.find('.') == std::string::npos ? 0.501 : 0.0501; };
    EXPECT_NEAR(number_of(cells[1]), one->second.raw_bytes_per_s / 1e9, rounding(cells[1])) << line;
    EXPECT_NEAR(number_of(cells[2]), one->second.ring_bytes_per_s / 1e9, rounding(cells[2])) << line;
    EXPECT_NEAR(number_of(cells[3]), one->second.hop_s * 1e6, rounding(cells[3])) << line;
  }
  EXPECT_EQ(rows, expected.size());
}

}  // namespace
}  // namespace chokepoint::report
