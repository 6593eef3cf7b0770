// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/diagnose/intervals.hpp>

#include <gtest/gtest.h>

namespace chokepoint::diagnose {
namespace {

TEST(Intervals, UnionJoinsWhatOverlapsOrTouches) {
  EXPECT_EQ(united({{5, 7}, {0, 2}, {2, 3}, {6, 9}, {4, 4}}), (Intervals{{0, 3}, {5, 9}}));
}

TEST(Intervals, DifferenceSplitsAroundHoles) {
  EXPECT_EQ(without({{0, 10}, {20, 30}}, {{-1, 1}, {3, 4}, {9, 21}, {40, 50}}), (Intervals{{1, 3}, {4, 9}, {21, 30}}));
}

TEST(Intervals, CommonAndDifferenceTileTheFirst) {
  const Intervals a{{0, 10}, {12, 20}, {25, 26}};
  const Intervals b{{5, 13}, {19, 30}};
  EXPECT_EQ(common(a, b), (Intervals{{5, 10}, {12, 13}, {19, 20}, {25, 26}}));
  EXPECT_EQ(length(common(a, b)) + length(without(a, b)), length(a));
  EXPECT_EQ(length(united(a, b)), length(a) + length(b) - length(common(a, b)));
}

}  // namespace
}  // namespace chokepoint::diagnose
