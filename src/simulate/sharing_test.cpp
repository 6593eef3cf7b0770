// SPDX-License-Identifier: Apache-2.0
#include "sharing.hpp"

#include <gtest/gtest.h>

namespace chokepoint::simulate {
namespace {

model::Model gpt(int hidden) {
  model::Model m;
  m.hidden = hidden;
  m.ffn_hidden = 4 * hidden;
  m.head_dim = 64;
  m.heads = m.kv_heads = hidden / 64;
  m.gated_mlp = false;
  return m;
}

constexpr double kCap = 25.0 * 1048576 / 2;  // 13.1 M elements of 16 bits

TEST(Buckets, SmallTensorsShareABucket) {
  // One layer of 1,024: down 4.19 M, up 4.19 M, out 1.05 M, qkv 3.15 M = 12.58 M. In reverse order the second layer's down
  // closes the first bucket at 16.8 M, the third's up the second at 16.8 M, the fourth's out the third at 13.6 M; the
  // last qkv stays in a fourth.
  EXPECT_EQ(ddp_buckets(gpt(1024), 1, 4 * 12.0 * 1024 * 1024, kCap, false), 4);
}

TEST(Buckets, LargeTensorsAreNotCut) {
  // 8,192: every one of the four tensors (67 to 268 M elements) is larger than a bucket.
  EXPECT_EQ(ddp_buckets(gpt(8192), 1, 3 * 12.0 * 8192 * 8192, kCap, false), 12);
}

TEST(Buckets, TensorParallelismMakesThemFewer) {
  const double parameters = 24 * 12.0 * 4096 * 4096;
  EXPECT_LT(ddp_buckets(gpt(4096), 8, parameters / 8, kCap, false), ddp_buckets(gpt(4096), 1, parameters, kCap, false));
}

TEST(Buckets, ThereIsAtLeastOne) { EXPECT_EQ(ddp_buckets(gpt(1024), 1, 1000, kCap, true), 1); }

}  // namespace
}  // namespace chokepoint::simulate
