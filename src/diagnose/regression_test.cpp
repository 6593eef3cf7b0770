// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/diagnose/regression.hpp>
#include <chokepoint/trace/trace.hpp>

#include <gtest/gtest.h>

namespace chokepoint::diagnose {
namespace {

std::string span(const char* category, const std::string& name, double ts, double dur, const std::string& args) {
  return "{\"ph\":\"X\",\"cat\":\"" + std::string(category) + "\",\"name\":\"" + name + "\",\"pid\":0,\"tid\":1,\"ts\":" + std::to_string(ts) +
         ",\"dur\":" + std::to_string(dur) + ",\"args\":{" + args + "}}";
}

/// Four steps of three ranks: gemm, softmax, an all-reduce of `wire` us; the kernels of `slow` take `factor` times as long in softmax.
Result<Diagnosis> job(double gemm, double wire, int slow, double factor) {
  std::vector<trace::RankTrace> traces;
  const double period = gemm + 50 * factor + wire;
  for (int r = 0; r < 3; ++r) {
    std::string text = "{\"distributedInfo\":{\"rank\":" + std::to_string(r) + ",\"world_size\":3},\"traceEvents\":[";
    for (int k = 0; k < 5; ++k) {
      const double at = 1000 + k * period;
      const double softmax = r == slow ? 50 * factor : 50;
      text += (k > 0 ? ",\n" : "") + span("kernel", "gemm", at, gemm, "\"stream\":7") + ",\n" + span("kernel", "softmax", at + gemm, softmax, "\"stream\":7") + ",\n" +
              span("kernel", "ncclDevKernel_AllReduce", at + gemm + softmax, period - gemm - softmax,
                   "\"stream\":9,\"Collective name\":\"allreduce\",\"In msg nelems\":1000000,\"dtype\":\"Float\",\"Group size\":3,\"Process Group Name\":\"0\","
                   "\"Process Group Ranks\":\"[0, 1, 2]\"");
    }
    TRY_INTO(trace::RankTrace trace, trace::read_chrome_text(text + "]}", "rank" + std::to_string(r)));
    traces.push_back(std::move(trace));
  }
  return diagnose(std::move(traces));
}

void expect_sum(const Regression& r) {
  double sum = 0;
  for (const Change& c : r.causes) sum += c.delta_s();
  EXPECT_NEAR(sum, r.after_s - r.before_s, 1e-12);
}

TEST(Regression, NothingChangedIsNoRegression) {
  const auto before = job(100, 20, -1, 1);
  ASSERT_TRUE(before) << format(before.error());
  const Regression r = compare(*before, *before);
  EXPECT_FALSE(r.slower || r.faster);
  EXPECT_DOUBLE_EQ(r.before_s, r.after_s);
}

// softmax of rank 1 takes 100 us instead of 50, so all wait 50 us longer: 170 us become 220.
TEST(Regression, ARankThatBecameSlowIsNamedWithItsKernel) {
  const auto before = job(100, 20, -1, 1);
  const auto now = job(100, 20, 1, 2);
  ASSERT_TRUE(before && now);
  const Regression r = compare(*before, *now);
  EXPECT_TRUE(r.slower);
  EXPECT_EQ(r.cause, "slow-rank");
  EXPECT_EQ(r.rank, 1);
  EXPECT_EQ(r.op, "softmax");
  EXPECT_NEAR(r.after_s - r.before_s, 50e-6, 1e-9);
  expect_sum(r);
}

TEST(Regression, AKernelThatBecameSlowerEverywhereIsTheIdealsNotARanks) {
  const auto before = job(100, 20, -1, 1);
  const auto now = job(160, 20, -1, 1);
  ASSERT_TRUE(before && now);
  const Regression r = compare(*before, *now);
  EXPECT_TRUE(r.slower);
  EXPECT_EQ(r.cause, "ideal");
  EXPECT_EQ(r.rank, -1);
  EXPECT_EQ(r.op, "gemm");
  expect_sum(r);
}

TEST(Regression, ASlowerWireIsNamedWithItsCollective) {
  const auto before = job(100, 20, -1, 1);
  const auto now = job(100, 80, -1, 1);
  ASSERT_TRUE(before && now);
  const Regression r = compare(*before, *now);
  EXPECT_EQ(r.cause, "wire");
  EXPECT_EQ(r.op, "all_reduce of group 0, 3.81 MiB");
  EXPECT_TRUE(r.slower);
  EXPECT_TRUE(compare(*now, *before).faster);
  EXPECT_FALSE(compare(*before, *now, 0.8).slower);  // 60 us of 170 us are let pass
  expect_sum(r);
}

}  // namespace
}  // namespace chokepoint::diagnose
