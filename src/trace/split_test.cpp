// SPDX-License-Identifier: Apache-2.0
#include "split.hpp"

#include <chokepoint/trace/trace.hpp>
#include <gtest/gtest.h>

namespace chokepoint::trace {
namespace {

std::string named(int pid, const char* name) {
  return "{\"ph\":\"M\",\"pid\":" + std::to_string(pid) + ",\"tid\":0,\"name\":\"process_name\",\"args\":{\"name\":\"" + name + "\"}}";
}
std::string kernel(int pid, double ts, int correlation) {
  return "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"pid\":" + std::to_string(pid) + ",\"tid\":7,\"ts\":" + std::to_string(ts) +
         ",\"dur\":5,\"args\":{\"stream\":7,\"correlation\":" + std::to_string(correlation) + "}}";
}
std::string launch(int pid, double ts, int correlation) {
  return "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":" + std::to_string(pid) + ",\"tid\":1,\"ts\":" + std::to_string(ts) +
         ",\"dur\":1,\"args\":{\"correlation\":" + std::to_string(correlation) + "}}";
}
Result<std::vector<RankTrace>> read(const std::vector<std::string>& events) {
  std::string text = "[";
  for (const std::string& e : events) text += (text.size() > 1 ? ",\n" : "") + e;
  return read_chrome_ranks_text(text + "]", "merged.json");
}

TEST(Split, ProcessesNamedByRankBecomeTracesOfTheirOwnWhereverTheNameStands) {
  const auto traces = read({kernel(0, 10, 1), launch(100, 8, 1), kernel(5, 20, 1), kernel(5, 30, 2), launch(105, 18, 1), named(0, "rank 0 (stage 0)"),
                            named(5, "rank 12"), named(100, "host of rank 0"), named(105, "host of rank 12")});
  ASSERT_TRUE(traces) << format(traces.error());
  ASSERT_EQ(traces->size(), 2u);
  EXPECT_EQ((*traces)[0].rank, 0);
  EXPECT_EQ((*traces)[1].rank, 12);
  EXPECT_TRUE((*traces)[1].rank_known);
  EXPECT_EQ((*traces)[0].device.size(), 1u);
  EXPECT_EQ((*traces)[1].device.size(), 2u);
  // The same correlation in both: each joins its own launch.
  EXPECT_EQ((*traces)[1].host_events.start_ns[static_cast<std::size_t>((*traces)[1].device.launch[0])], 18'000);
  EXPECT_EQ((*traces)[0].host_events.start_ns[static_cast<std::size_t>((*traces)[0].device.launch[0])], 8'000);
  EXPECT_EQ((*traces)[1].device.launch[1], -1);
}

TEST(Split, ProcessesThatLaunchOntoTheirOwnDeviceAreRanksInOrder) {
  const auto traces = read({launch(4001, 8, 1), launch(4002, 9, 2), kernel(0, 10, 1), kernel(1, 20, 2)});
  ASSERT_TRUE(traces);
  ASSERT_EQ(traces->size(), 2u);
  EXPECT_FALSE((*traces)[0].rank_known);
  EXPECT_EQ((*traces)[1].device.start_ns[0], 20'000);
}

TEST(Split, OneProcessWithTwoDevicesStaysOneTrace) {
  const auto traces = read({launch(4001, 8, 1), launch(4001, 9, 2), kernel(0, 10, 1), kernel(1, 20, 2), named(4001, "python"), named(0, "python")});
  ASSERT_TRUE(traces);
  ASSERT_EQ(traces->size(), 1u);
  EXPECT_EQ((*traces)[0].device.size(), 2u);
}

TEST(Split, EventsOfNoRankAreCounted) {
  const auto traces = read({kernel(0, 10, 1), kernel(1, 20, 2), launch(77, 5, 9), named(0, "Rank: 0"), named(1, "rank1")});
  ASSERT_TRUE(traces);
  ASSERT_EQ(traces->size(), 2u);
  EXPECT_EQ((*traces)[0].notes.back(), "1 events belong to no rank and are not used");
}

TEST(Split, WordsThatSayARank) {
  EXPECT_EQ(rank_in_words("rank 3 (stage 1)"), 3);
  EXPECT_EQ(rank_in_words("Rank: 17"), 17);
  EXPECT_EQ(rank_in_words("host of rank_4"), 4);
  EXPECT_EQ(rank_in_words("frank"), -1);
  EXPECT_EQ(rank_in_words("python"), -1);
}

}  // namespace
}  // namespace chokepoint::trace
