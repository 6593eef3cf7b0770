// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/yaml.hpp>

#include <gtest/gtest.h>

namespace chokepoint {
namespace {

TEST(Yaml, UnknownKeySuggestsTheNearest) {
  const auto map = YamlMap::parse("batch: 8\nsequense: 4096\n", "job.yaml");
  ASSERT_TRUE(map);
  ASSERT_TRUE(map->integer("batch", 1, 100));
  ASSERT_TRUE(map->integer("sequence", 1, 100));
  const auto done = map->finish();
  ASSERT_FALSE(done);
  EXPECT_EQ(format(done.error()),
            "job.yaml:2:1: error: unknown key 'sequense'\n  did you mean 'sequence'?\n  known here: batch, sequence\n");
}

TEST(Yaml, DuplicateKeysAndOutOfRangeValuesAreErrors) {
  EXPECT_EQ(YamlMap::parse("a: 1\na: 2\n", "f").error().pos.line, 2);
  const auto map = YamlMap::parse("n: 900\n", "f");
  EXPECT_EQ(map->integer("n", 1, 100).error().message, "'n' is 900, expected a whole number from 1 to 100");
}

TEST(Yaml, BandwidthNeedsAUnit) {
  const auto map = YamlMap::parse("bandwidth: 400\n", "f");
  EXPECT_EQ(map->rate("bandwidth").error().message, "'bandwidth': '400' has no unit; expected one such as \"400 Gb/s\"");
}

TEST(Yaml, BandwidthOfNothingIsAnError) {
  const auto map = YamlMap::parse("a: 0 GB/s\nb: 1e-300 B/s\nc: 1 GB/s\n", "f");
  EXPECT_EQ(map->rate("a").error().message, "'a' is 0 B/s, expected at least 1.00 kB/s");
  EXPECT_FALSE(map->rate("b"));
  EXPECT_TRUE(map->rate("c"));
}

TEST(Yaml, AliasesAndBrokenDocumentsAreRefused) {
  EXPECT_EQ(format(YamlMap::parse("a: &x 1\n\"b\": *x\n", "f").error()),
            "f:2:6: error: not valid YAML: aliases (*name) are not supported; write the value out\n");
  EXPECT_FALSE(YamlMap::parse("a: [1, 2\n", "f"));
  EXPECT_FALSE(YamlMap::parse("", "f"));
  EXPECT_FALSE(YamlMap::parse("- 1\n", "f"));
}

TEST(Yaml, ControlCharactersAreRefusedWithTheirPlace) {
  using namespace std::string_view_literals;
  EXPECT_EQ(format(YamlMap::parse("a: 1\nb: \"x\0\"\n"sv, "f").error()),
            "f:2:6: error: holds the control character 0x00, expected a text file\n");
}

TEST(Yaml, NestingIsBounded) {
  const std::string deep = "a: " + std::string(100, '[') + std::string(100, ']');
  EXPECT_EQ(format(YamlMap::parse(deep, "f").error()),
            "f:1:67: error: not valid YAML: nested deeper than 64 levels\n");
}

}  // namespace
}  // namespace chokepoint
