// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/files.hpp>
#include <chokepoint/validate/validate.hpp>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace chokepoint::validate {
namespace {

constexpr const char* kHeader = "system,accelerator,n_gpus,n_nodes,gpus_per_node,intra_link,inter_link,op,message_bytes,time_us,algbw_GBs,busbw_GBs\n";

CollectivesReport report_of(const std::string& rows) {
  auto report = validate_collectives(kHeader + rows, "table.csv");
  EXPECT_TRUE(report) << report.error().message;
  return report.value_or(CollectivesReport{});
}

TEST(ValidateCollectives, TimeComesFromWhicheverFigureTheRowHas) {
  // 7 GB x 2 x 7/8 at 175 GB/s of bus bandwidth, and 7 GB at 100 GB/s of algorithm bandwidth, are both 70 ms.
  const CollectivesReport report = report_of(
      "a,A100-SXM4-80GB,8,1,8,NVLink3+NVSwitch,,all_reduce,7000000000,70000,,\n"
      "a,A100-SXM4-80GB,8,1,8,NVLink3+NVSwitch,,all_reduce,7000000000,,,175\n"
      "a,A100-SXM4-80GB,8,1,8,NVLink3+NVSwitch,,all_reduce,7000000000,,100,\n");
  ASSERT_EQ(report.rows.size(), 3U);
  for (const CollectiveRow& row : report.rows) {
    EXPECT_NEAR(row.measured_time_s.value_or(0), 0.07, 1e-9);
    EXPECT_TRUE(row.predicted_time_s.has_value()) << row.reason;
  }
  EXPECT_EQ(report.overall.predicted, 3);
}

TEST(ValidateCollectives, RowsThatCannotBePredictedSayWhy) {
  const CollectivesReport report = report_of(
      "a,not stated,8,1,8,,,all_reduce,1000,5,,\n"
      "b,A100-SXM4-80GB,8,1,8,NVLink3+NVSwitch,,all_reduce,,5,,\n"
      "c,A100-SXM4-80GB,7,2,8,NVLink3+NVSwitch,8xHDR200-IB per node,all_reduce,1000,5,,\n"
      "d,A100-SXM4-80GB,8,1,8,NVLink3+NVSwitch,,all_hands,1000,5,,\n");
  ASSERT_EQ(report.rows.size(), 4U);
  EXPECT_EQ(report.rows[0].reason, "accelerator 'not stated' is not in the catalogue");
  EXPECT_EQ(report.rows[1].reason, "message size not stated");
  EXPECT_EQ(report.rows[2].reason, "7 ranks do not divide over 2 hosts");
  EXPECT_NE(report.rows[3].reason, "");
  EXPECT_EQ(report.overall.predicted, 0);
  EXPECT_EQ(report.overall.rows, 1);  // only the first row has a measured time that can be told
}

TEST(ValidateCollectives, ColumnsThatAreMissingAreNamed) {
  const auto report = validate_collectives("op,message_bytes\nall_reduce,8\n", "t.csv");
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().message, "table of collectives without column 'accelerator'");
}

TEST(ValidateCollectives, PublishedTableStaysInsideItsBand) {
  const std::string path = std::string(CHOKEPOINT_SOURCE_DIR) + "/../shared/measurements/collectives.csv";
  if (!file_exists(path)) GTEST_SKIP() << "no published measurements beside the repository";
  const auto text = read_text_file(path);
  ASSERT_TRUE(text);
  const auto report = validate_collectives(*text, path);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_GE(report->overall.coverage(), 0.97);
  // A tenth of the rows is one machine whose NCCL fell back to one slow socket path (docs/models/collective.md).
  EXPECT_LE(report->overall.median_absolute, 0.20);
  EXPECT_LE(std::abs(report->overall.bias), 0.10);
}

}  // namespace
}  // namespace chokepoint::validate
