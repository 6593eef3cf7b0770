// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/hardware/catalogue.hpp>
#include <gtest/gtest.h>

namespace chokepoint::hardware {
namespace {

TEST(Links, PcieLaneRatesFollowTheLineCode) {
  // 16 lanes x 16 GT/s x 128/130 / 8 = 31.508 GB/s; generation 5 twice that; generation 2 uses 8b/10b: 16 x 0.5 GB/s.
  EXPECT_NEAR(*pcie_bytes_per_s(4, 16), 31.508e9, 1e6);
  EXPECT_NEAR(*pcie_bytes_per_s(5, 16), 63.015e9, 1e6);
  EXPECT_NEAR(*pcie_bytes_per_s(3, 8), 7.877e9, 1e6);
  EXPECT_DOUBLE_EQ(*pcie_bytes_per_s(2, 16), 8e9);
  // 16 x 64 GT/s / 8 x 242/256
  EXPECT_DOUBLE_EQ(*pcie_bytes_per_s(6, 16), 121e9);
}

TEST(Links, ImpossiblePcieLinksAreErrors) {
  EXPECT_FALSE(pcie_bytes_per_s(0, 16));
  EXPECT_FALSE(pcie_bytes_per_s(7, 16));
  EXPECT_FALSE(pcie_bytes_per_s(4, 0));
  EXPECT_FALSE(pcie_bytes_per_s(4, 3));
}

TEST(Links, NvlinkRatesArePerLinkAndDirection) {
  EXPECT_DOUBLE_EQ(*nvlink_bytes_per_s(1), 20e9);
  EXPECT_DOUBLE_EQ(*nvlink_bytes_per_s(3), 25e9);
  EXPECT_DOUBLE_EQ(*nvlink_bytes_per_s(5), 50e9);
  EXPECT_FALSE(nvlink_bytes_per_s(6));
}

}  // namespace
}  // namespace chokepoint::hardware
