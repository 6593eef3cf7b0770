// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/compute/kernels.hpp>
#include <chokepoint/validate/validate.hpp>
#include <gtest/gtest.h>

namespace chokepoint::validate {
namespace {

std::string table(const std::string& device, const std::string& gemm) {
  return R"({"schema":"chokepoint.measure-compute/1","device":")" + device +
         R"(","device_type":"cuda","torch":"2.3.0","launch_s":5e-6,"copy_bytes_per_s":1.79e12,"gemm":[)" + gemm + "]}";
}

TEST(MeasuredCompute, EachKernelStandsBesideTheModel) {
  const auto part = hardware::find_accelerator("A100-SXM4-80GB");
  ASSERT_TRUE(part);
  const double exact = compute::KernelModel(*part).gemm_s(hardware::Dtype::kBf16, 8192, 8192, 8192);
  const auto report = validate_measured_compute(
      table("NVIDIA A100-SXM4-80GB", R"({"dtype":"bf16","m":8192,"n":8192,"k":8192,"clock":"sustained","time_s":)" +
                                         std::to_string(exact * 2) + "}"),
      "t.json");
  ASSERT_TRUE(report) << format(report.error());
  ASSERT_EQ(report->rows.size(), 2u);
  EXPECT_NEAR(*report->rows[0].error, -0.5, 1e-3);
  EXPECT_EQ(report->by_table.size(), 2u);
}

TEST(MeasuredCompute, APartThatTheCatalogueDoesNotHaveCountsAgainstCoverage) {
  const auto report = validate_measured_compute(
      table("Abacus 9000", R"({"dtype":"bf16","m":64,"n":64,"k":64,"clock":"burst","time_s":1e-4},{"dtype":"bf16"})"), "t.json");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->overall.rows, 3);
  EXPECT_EQ(report->overall.predicted, 0);
  EXPECT_FALSE(report->rows[0].reason.empty());
  EXPECT_NE(report->rows[2].reason.find("gemm[1]"), std::string::npos);
}

TEST(MeasuredCompute, IsToldApartByItsFirstCharacter) {
  const auto kind = recognise_table(" {\"schema\":1}", "t.json");
  ASSERT_TRUE(kind);
  EXPECT_EQ(*kind, Table::kMeasuredCompute);
}

}  // namespace
}  // namespace chokepoint::validate
