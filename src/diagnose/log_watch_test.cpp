// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/diagnose/log_watch.hpp>

#include <gtest/gtest.h>

namespace chokepoint::diagnose {
namespace {

std::string line(int step, double seconds) {
  return " iteration " + std::to_string(step) + "/ 500 | elapsed time per iteration (ms): " + std::to_string(1000 * seconds) + " | loss: 2.1 |\n";
}

/// Feeds steps one by one; all events.
std::vector<WatchEvent> watched(LogWatch& watch, int from, int to, double (*seconds)(int), std::size_t log = 0) {
  std::vector<WatchEvent> events;
  for (int k = from; k <= to; ++k) {
    for (WatchEvent& e : watch.feed(log, line(k, seconds(k)))) events.push_back(std::move(e));
  }
  return events;
}

TEST(LogWatch, EvenStepsSayNothing) {
  LogWatch watch({"log"});
  EXPECT_TRUE(watched(watch, 1, 200, [](int k) { return 1.0 + 0.01 * (k % 3); }).empty());
  EXPECT_EQ(watch.state()[0].steps, 200);
  EXPECT_EQ(watch.state()[0].last_step, 200);
  EXPECT_NEAR(watch.state()[0].level_s, 1.01, 0.011);
}

// 1.0 s until step 49, 1.3 s from 50, 0.9 s from 100: each level is told once, with the step where it began.
TEST(LogWatch, EachChangeOfLevelIsToldOnceWhereItBegan) {
  LogWatch watch({"log"});
  const auto events = watched(watch, 1, 150, [](int k) { return k < 50 ? 1.0 : k < 100 ? 1.3 : 0.9; });
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].kind, WatchEvent::Kind::kSlower);
  EXPECT_EQ(events[0].step, 50);
  EXPECT_EQ(events[0].what, "Steps take +30.0 % from step 50 on: 1.00 s -> 1.30 s");
  EXPECT_EQ(events[1].kind, WatchEvent::Kind::kFaster);
  EXPECT_EQ(events[1].step, 100);
  EXPECT_NEAR(watch.state()[0].first_level_s, 1.0, 1e-9);
  EXPECT_NEAR(watch.state()[0].level_s, 0.9, 1e-9);
}

TEST(LogWatch, APeriodicStallIsToldOnce) {
  LogWatch watch({"log"});
  const auto events = watched(watch, 1, 200, [](int k) { return k % 20 == 0 ? 4.0 : 1.0; });
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, WatchEvent::Kind::kPeriodicStall);
  EXPECT_EQ(events[0].what, "Every 20th logged step is slow, by 3.00 s");
}

TEST(LogWatch, TheLogBehindTheOthersIsAStraggler) {
  LogWatch watch({"rank0", "rank1", "rank2"});
  std::vector<WatchEvent> events;
  for (int k = 1; k <= 40; ++k) {
    for (std::size_t log = 0; log < 3; ++log) {
      for (WatchEvent& e : watch.feed(log, line(k, log == 1 ? 1.2 : 1.0))) events.push_back(std::move(e));
    }
  }
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, WatchEvent::Kind::kStraggler);
  EXPECT_EQ(events[0].file, "rank1");
}

TEST(LogWatch, AStepNumberThatGoesBackIsARestart) {
  LogWatch watch({"log"});
  watched(watch, 1, 30, [](int) { return 1.0; });
  watch.restart(0);
  const auto events = watched(watch, 21, 60, [](int) { return 1.0; });
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].what, "The job went back from step 30 to step 21");
}

// Steps of 20 s: ten of them, 200 s, is when silence is told; once, until a line comes.
TEST(LogWatch, SilenceIsToldOnceItIsFarBeyondAStep) {
  LogWatch watch({"log"});
  EXPECT_FALSE(watch.silent(0, 1e6));
  watched(watch, 1, 20, [](int) { return 20.0; });
  EXPECT_FALSE(watch.silent(0, 199));
  ASSERT_TRUE(watch.silent(0, 201));
  EXPECT_FALSE(watch.silent(0, 300));
}

TEST(LogWatch, MemoryIsBounded) {
  LogWatch watch({"log"});
  std::string text;
  for (int k = 1; k <= 50000; ++k) text += line(k, 1.0);
  EXPECT_TRUE(watch.feed(0, text).empty());
  EXPECT_EQ(watch.state()[0].steps, 50000);
  EXPECT_LE(static_cast<std::size_t>(watch.state()[0].report->steps), 2 * LogWatch::kKept);
}

}  // namespace
}  // namespace chokepoint::diagnose
