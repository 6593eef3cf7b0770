// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/diagnose/worth.hpp>

#include <gtest/gtest.h>

namespace chokepoint::diagnose {
namespace {

// 8 accelerators at 2.5 an hour cost 480 a day. A step of 2 s is 1.5 s without the cause: a quarter of the day, 120, is saved, and
// 4096 tokens a step are 2730.7 a second instead of 2048.
TEST(Worth, ACureSavesTheShareOfTheDayThatStepsTakeLonger) {
  const WorthReport r = worth_of({{"wire", "data-reduce", "", "", 0.4, 1.5}}, 2, {4096, 2.5, 8});
  EXPECT_DOUBLE_EQ(r.tokens_per_s, 2048);
  EXPECT_DOUBLE_EQ(r.price_per_day, 480);
  ASSERT_EQ(r.causes.size(), 1u);
  EXPECT_NEAR(r.causes[0].tokens_per_s, 2730.667, 1e-3);
  EXPECT_DOUBLE_EQ(r.causes[0].saved_per_day, 120);
}

TEST(Worth, WhatIsNotKnownStaysZero) {
  const WorthReport r = worth_of({{"wire", "data-reduce", "", "", 0.4, 1.5}}, 2, {0, 0, 8});
  EXPECT_EQ(r.causes.at(0).tokens_per_s, 0);
  EXPECT_EQ(r.causes.at(0).saved_per_day, 0);
  EXPECT_TRUE(worth_of({}, 0, {4096, 2.5, 8}).causes.empty());
}

}  // namespace
}  // namespace chokepoint::diagnose
