// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/collective/gloo.hpp>
#include <gtest/gtest.h>

#include <map>

namespace chokepoint::collective {
namespace {

std::map<int, double> sent_by(const GlooSchedule& schedule) {
  std::map<int, double> sent;
  for (const GlooMessage& message : schedule.messages) sent[message.from] += message.bytes;
  return sent;
}

TEST(GlooSchedule, AllReduceSendsAllButTwoSegmentsTwice) {
  // 4 ranks, 1 MiB: 8 segments of 128 KiB, each phase sends 6: 2 x 6 x 128 KiB = 1.5 MiB a rank, the usual 2(n-1)/n.
  const GlooSchedule small = gloo_schedule(Op::kAllReduce, 1024.0 * 1024, {0, 1, 2, 3});
  for (const auto& [rank, bytes] : sent_by(small)) EXPECT_EQ(bytes, 1.5 * 1024 * 1024) << rank;
  // 32 MiB: segments are cut at 1 MiB, so 32 of them, and 30 in each phase: 60 MiB instead of 48.
  const GlooSchedule large = gloo_schedule(Op::kAllReduce, 32.0 * 1024 * 1024, {0, 1, 2, 3});
  for (const auto& [rank, bytes] : sent_by(large)) EXPECT_EQ(bytes, 60.0 * 1024 * 1024) << rank;
}

TEST(GlooSchedule, RingsRunBackwardsForAllReduceAndForwardsForAllGather) {
  for (const GlooMessage& message : gloo_schedule(Op::kAllReduce, 4096, {0, 1, 2}).messages) EXPECT_EQ(message.to, (message.from + 2) % 3);
  for (const GlooMessage& message : gloo_schedule(Op::kAllGather, 4096, {0, 1, 2}).messages) EXPECT_EQ(message.to, (message.from + 1) % 3);
}

TEST(GlooSchedule, AllGatherAndAllToAllSendTheOthersParts) {
  for (const Op op : {Op::kAllGather, Op::kAllToAll}) {
    // (n - 1) parts of 4096 / 4 bytes.
    for (const auto& [rank, bytes] : sent_by(gloo_schedule(op, 4096, {0, 1, 2, 3}))) EXPECT_EQ(bytes, 3072) << rank;
  }
}

TEST(GlooSchedule, BroadcastReachesEveryRankOnce) {
  for (const int root : {0, 2}) {
    std::map<int, int> received;
    for (const GlooMessage& message : gloo_schedule(Op::kBroadcast, 10, {0, 1, 2, 3, 4}, root).messages) ++received[message.to];
    EXPECT_EQ(received.size(), 4U);
    EXPECT_EQ(received.count(root), 0U);
    for (const auto& [rank, count] : received) EXPECT_EQ(count, 1) << rank;
  }
}

TEST(GlooSchedule, EveryMessageIsPostedByBothSidesAndNothingByOthers) {
  for (const Op op : {Op::kAllReduce, Op::kAllGather, Op::kBroadcast, Op::kAllToAll}) {
    const GlooSchedule schedule = gloo_schedule(op, 1e6, {0, 1, 2, 3, 4});
    std::map<int, int> posts;
    for (std::size_t position = 0; position < schedule.actions.size(); ++position) {
      for (const GlooAction& action : schedule.actions[position]) {
        const GlooMessage& message = schedule.messages[static_cast<std::size_t>(action.message)];
        EXPECT_TRUE(message.from == static_cast<int>(position) || message.to == static_cast<int>(position));
        if (action.step == GlooStep::kPost) ++posts[action.message];
      }
    }
    EXPECT_EQ(posts.size(), schedule.messages.size());
    for (const auto& [message, count] : posts) EXPECT_EQ(count, 2) << message;
  }
}

TEST(GlooSchedule, NothingToDoGivesNothing) {
  EXPECT_TRUE(gloo_schedule(Op::kAllReduce, 1e6, {0}).messages.empty());
  EXPECT_TRUE(gloo_schedule(Op::kAllReduce, 0, {0, 1}).messages.empty());
  EXPECT_TRUE(gloo_schedule(Op::kReduceScatter, 1e6, {0, 1}).messages.empty());
}

}  // namespace
}  // namespace chokepoint::collective
