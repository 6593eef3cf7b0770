// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/measure/compute_probe.hpp>
#include <gtest/gtest.h>

namespace chokepoint::measure {
namespace {

constexpr const char* kHead =
    R"({"schema":"chokepoint.measure-compute/1","device":"NVIDIA A100-SXM4-80GB","device_type":"cuda","torch":"2.3.0",)"
    R"("launch_s":5e-6,"copy_bytes_per_s":1.7e12)";

std::string table(const std::string& rest) { return std::string(kHead) + rest + "}"; }

TEST(ComputeTable, RowsAreReadAsTheyStand) {
  const auto read = read_compute_table(
      table(R"(,"gemm":[{"dtype":"bf16","m":8192,"n":4096,"k":2048,"clock":"sustained","time_s":6e-4}],)"
            R"("attention":[{"dtype":"bf16","kernel":"sdpa","batch":1,"heads":32,"kv_heads":8,"head_dim":128,)"
            R"("sequence":4096,"causal":true,"forward_s":1e-3,"forward_backward_s":4e-3}])"),
      "t.json");
  ASSERT_TRUE(read) << format(read.error());
  ASSERT_EQ(read->gemm.size(), 1u);
  EXPECT_EQ(read->gemm[0].clock, compute::Clock::kSustained);
  EXPECT_DOUBLE_EQ(read->gemm[0].n, 4096);
  ASSERT_EQ(read->attention.size(), 1u);
  EXPECT_DOUBLE_EQ(read->attention[0].shape.kv_sequence, 4096);
  EXPECT_TRUE(read->refused.empty());
}

TEST(ComputeTable, ARowWithAnImpossibleFigureIsRefusedWithItsReason) {
  const auto read = read_compute_table(
      table(R"(,"gemm":[{"dtype":"bf16","m":8192,"n":0,"k":2048,"clock":"burst","time_s":6e-4},)"
            R"({"dtype":"int3","m":1,"n":1,"k":1,"clock":"burst","time_s":1e-4},7,)"
            R"({"dtype":"bf16","m":64,"n":64,"k":64,"clock":"burst","time_s":1e-5}])"),
      "t.json");
  ASSERT_TRUE(read) << format(read.error());
  EXPECT_EQ(read->gemm.size(), 1u);
  ASSERT_EQ(read->refused.size(), 3u);
  EXPECT_EQ(read->refused[0].text, "gemm[0]: n is not in its range");
  EXPECT_EQ(read->refused[1].text, "gemm[1]: dtype is not a known dtype");
  EXPECT_EQ(read->refused[2].text, "gemm[2]: it is not an object");
}

TEST(ComputeTable, ABrokenTextIsAnErrorWithItsPlace) {
  const auto broken = read_compute_table("{\n \"schema\": ,\n}", "t.json");
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().pos.line, 2);
  const auto other = read_compute_table("{\"schema\":\"x\"}", "t.json");
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("chokepoint.measure-compute/1"), std::string::npos);
  EXPECT_FALSE(read_compute_table("[]", "t.json"));
  EXPECT_FALSE(read_compute_table(R"({"schema":"chokepoint.measure-compute/1"})", "t.json"));
}

TEST(ComputeTable, RowsStandBesideTheModel) {
  const auto part = hardware::find_accelerator("NVIDIA A100-SXM4-80GB");
  ASSERT_TRUE(part);
  const auto read = read_compute_table(
      table(R"(,"gemm":[{"dtype":"bf16","m":16,"n":16,"k":16,"clock":"burst","time_s":5e-6},)"
            R"({"dtype":"bf16","m":8192,"n":8192,"k":8192,"clock":"sustained","time_s":4.2e-3}])"),
      "t.json");
  ASSERT_TRUE(read);
  const auto rows = compare(*read, *part);
  ASSERT_EQ(rows.size(), 3u);  // and the copy
  EXPECT_GE(rows[0].predicted_s, 5e-6);  // nothing shows faster than a launch
  EXPECT_DOUBLE_EQ(rows[1].predicted_s, compute::KernelModel(*part).gemm_s(hardware::Dtype::kBf16, 8192, 8192, 8192));
  // 2 GiB at 1.7 TB/s: 1.263 ms.
  EXPECT_NEAR(rows[2].measured_s, 1.263e-3, 1e-6);
}

TEST(ComputeTable, APowerLimitBelowTheDataSheetSlowsSustainedProducts) {
  const auto part = hardware::find_accelerator("NVIDIA A100-SXM4-80GB");
  ASSERT_TRUE(part);
  const std::string gemm = R"("gemm":[{"dtype":"bf16","m":8192,"n":8192,"k":8192,"clock":"sustained","time_s":4.2e-3}])";
  const auto full = read_compute_table(table("," + gemm), "t.json");
  const auto capped = read_compute_table(table(R"(,"power_limit_w":300,)" + gemm), "t.json");
  ASSERT_TRUE(full && capped);
  EXPECT_GT(compare(*capped, *part)[0].predicted_s, 1.1 * compare(*full, *part)[0].predicted_s);
}

}  // namespace
}  // namespace chokepoint::measure
