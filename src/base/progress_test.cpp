// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chokepoint/base/progress.hpp>
#include <vector>

namespace chokepoint {
namespace {

TEST(Progress, LoopsInsideRoundsShareOutTheirPart) {
  std::vector<double> seen;
  const ProgressListener listener([&seen](double share) { seen.push_back(share); });
  ProgressLoop outer(2);
  for (int i = 0; i < 2; ++i) {
    const ProgressLoop::Round round(outer);
    ProgressLoop inner(4);
    for (int k = 0; k < 4; ++k) const ProgressLoop::Round one(inner);
  }
  // Two rounds of a half, each of four parts of an eighth; the end of a round says its last part's share once more.
  EXPECT_EQ(seen, (std::vector<double>{0.125, 0.25, 0.375, 0.5, 0.5, 0.625, 0.75, 0.875, 1, 1}));
}

TEST(Progress, NothingHappensWithoutAListenerOrWithoutRounds) {
  ProgressLoop loop(0);
  const ProgressLoop::Round round(loop);
}

TEST(Progress, AnEarlyEndLeavesTheOuterRoundWhole) {
  std::vector<double> seen;
  const ProgressListener listener([&seen](double share) { seen.push_back(share); });
  ProgressLoop outer(2);
  {
    const ProgressLoop::Round round(outer);
    ProgressLoop inner(10);
    const ProgressLoop::Round one(inner);  // and no more
  }
  EXPECT_EQ(seen, (std::vector<double>{0.05, 0.5}));
}

}  // namespace
}  // namespace chokepoint
