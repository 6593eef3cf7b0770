// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/units.hpp>

#include <gtest/gtest.h>

namespace chokepoint {
namespace {

TEST(Units, BitsAndBytesDifferByEight) {
  EXPECT_DOUBLE_EQ(*parse_rate("400 Gb/s"), 50e9);
  EXPECT_DOUBLE_EQ(*parse_rate("400Gbps"), 50e9);
  EXPECT_DOUBLE_EQ(*parse_rate("400 GB/s"), 400e9);
}

TEST(Units, BinaryAndDecimalPrefixesDiffer) {
  EXPECT_DOUBLE_EQ(*parse_bytes("80 GiB"), 80.0 * 1024 * 1024 * 1024);
  EXPECT_DOUBLE_EQ(*parse_bytes("80 GB"), 80e9);
  EXPECT_DOUBLE_EQ(*parse_bytes("1,024 B"), 1024);
}

TEST(Units, NumberWithoutUnitIsAnError) {
  ASSERT_FALSE(parse_rate("400"));
  EXPECT_EQ(parse_rate("400").error().message, "'400' has no unit; expected one such as \"400 Gb/s\"");
  EXPECT_TRUE(parse_rate("0"));
}

TEST(Units, WrongKindOfUnitIsAnError) {
  EXPECT_FALSE(parse_rate("400 GiB"));
  EXPECT_FALSE(parse_bytes("80 Gb"));
  EXPECT_FALSE(parse_duration("3 parsecs"));
  EXPECT_FALSE(parse_rate("-1 Gb/s"));
}

TEST(Units, QuantitiesThatOverflowAreErrors) {
  EXPECT_EQ(parse_duration("233e305h").error().message, "'233e305h' is out of range; expected at most 1e30 in SI units");
  EXPECT_FALSE(parse_bytes("1e308 GiB"));
  EXPECT_FALSE(parse_rate("1e300 Pb/s"));
}

TEST(Units, DurationsAndExponents) {
  EXPECT_DOUBLE_EQ(*parse_duration("8.68s"), 8.68);
  EXPECT_DOUBLE_EQ(*parse_duration("1.5 ms"), 1.5e-3);
  EXPECT_DOUBLE_EQ(*parse_flop_rate("3.12e2 TFLOP/s"), 312e12);
}

TEST(Units, FormatsThreeSignificantDigits) {
  EXPECT_EQ(format_rate(25e9), "25.0 GB/s");
  EXPECT_EQ(format_bytes(80 * kGiB), "80.0 GiB");
  EXPECT_EQ(format_duration(0.0123), "12.3 ms");
  EXPECT_EQ(format_count(1234567), "1,234,567");
  EXPECT_EQ(format_billions(8.03e9), "8.03 B");
}

}  // namespace
}  // namespace chokepoint
