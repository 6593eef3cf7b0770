// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/parallel.hpp>

#include <gtest/gtest.h>
#include <vector>

namespace chokepoint {
namespace {

TEST(ParallelFor, CallsEveryIndexOnce) {
  std::vector<int> calls(1000, 0);
  parallel_for(calls.size(), [&](std::size_t i) { ++calls[i]; });
  EXPECT_EQ(calls, std::vector<int>(1000, 1));
}

TEST(ParallelFor, AnEmptyLoopCallsNothing) {
  int calls = 0;
  parallel_for(0, [&](std::size_t) { ++calls; });
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace chokepoint
