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

TEST(ValidateCollectives, SwappedBandwidthsAreRefused) {
  // 7 GB in 70 ms: 100 GB/s, and 175 GB/s of bus bandwidth on eight ranks.
  const CollectivesReport report = report_of(
      "a,A100-SXM4-80GB,8,1,8,NVLink3+NVSwitch,,all_reduce,7000000000,70000,100,175\n"
      "a,A100-SXM4-80GB,8,1,8,NVLink3+NVSwitch,,all_reduce,7000000000,70000,175,100\n"
      "a,A100-SXM4-80GB,8,1,8,NVLink3+NVSwitch,,all_reduce,7000000000,70000,100,140\n");
  ASSERT_EQ(report.rows.size(), 3U);
  EXPECT_EQ(report.rows[0].reason, "");
  EXPECT_EQ(report.rows[1].reason, "algbw_GBs and busbw_GBs are swapped");
  EXPECT_EQ(report.rows[2].reason, "busbw_GBs is 1.4 times algbw_GBs, expected 1.75 for all_reduce of 8 ranks");
  EXPECT_EQ(report.overall.rows, 1);
}

TEST(ValidateCollectives, TimesInAnotherUnitAreRefused) {
  const CollectivesReport report = report_of("a,A100-SXM4-80GB,8,1,8,NVLink3+NVSwitch,,all_reduce,7000000000,70,100,175\n");
  EXPECT_EQ(report.rows.at(0).reason, "time_us and the bandwidth differ by a factor of 0.001: is the time in milliseconds?");
}

TEST(ValidateCollectives, RetypedNumbersRepeatedHeadersAndPartialRowsSayWhy) {
  const CollectivesReport report = report_of(
      "a,A100-SXM4-80GB,8,1,8,NVLink3+NVSwitch,,all_reduce,64M,70000,,\n"
      "a,A100-SXM4-80GB,8,1,8,NVLink3+NVSwitch,,all_reduce,7000000000,70 ms,,\n" + std::string(kHeader) +
      "a,A100-SXM4-80GB,8,1\n"
      "a,A100-SXM4-80GB,8,1,8,NVLink3+NVSwitch,,all_reduce,7000000000,-5,,\n"
      "a,A100-SXM4-80GB,8,1,8,NVLink3+NVSwitch,,all_reduce,7000000000,,,\n");
  ASSERT_EQ(report.rows.size(), 6U);
  for (const CollectiveRow& row : report.rows) {
    EXPECT_NE(row.reason, "") << row.row;
    EXPECT_FALSE(row.predicted_time_s.has_value()) << row.row;
  }
  EXPECT_EQ(report.rows[4].reason, "negative time or bandwidth");
  EXPECT_EQ(report.rows[5].reason, "no time and no bandwidth");
}

TEST(ValidateCollectives, RowsCarryTheFloorOfTheirLinks) {
  // All_gather of 8 GB on eight GPUs: 7 GB into each over 300 GB/s, 23.3 ms; measured 35 ms, one and a half times that.
  const CollectivesReport report = report_of("a,A100-SXM4-80GB,8,1,8,NVLink3+NVSwitch,,all_gather,8000000000,35000,,\n");
  EXPECT_NEAR(report.rows.at(0).floor_s.value_or(0), 7e9 / 300e9, 1e-6);
  EXPECT_NEAR(report.rows.at(0).measured_over_floor().value_or(0), 1.5, 1e-3);
  EXPECT_NEAR(report.median_over_floor, 1.5, 1e-3);
}

TEST(ValidateCollectives, OneProcessForAllGpusLaunchesThemOneAfterTheOther) {
  constexpr const char* kWithSoftware = "accelerator,n_gpus,n_nodes,gpus_per_node,intra_link,inter_link,op,message_bytes,time_us,software\n";
  const auto report = validate_collectives(std::string(kWithSoftware) +
                                               "A100-SXM4-80GB,8,1,8,NVLink3+NVSwitch,,all_gather,1024,20,nccl-tests\n"
                                               "A100-SXM4-80GB,8,1,8,NVLink3+NVSwitch,,all_gather,1024,20,nccl-tests started by MPI\n"
                                               "A100-SXM4-80GB,8,1,8,NVLink3+NVSwitch,,reduce,1024,20,nccl-tests\n",
                                           "t.csv");
  ASSERT_TRUE(report) << report.error().message;
  const double launch_s = collective::Constants{}.launch_gpu_s * 8;
  const double alone_s = report->rows.at(1).predicted_time_s.value_or(0);
  EXPECT_NEAR(report->rows.at(0).predicted_time_s.value_or(0), std::hypot(alone_s, launch_s), 1e-9);
  EXPECT_LT(report->rows.at(2).predicted_time_s.value_or(0), launch_s);
}

TEST(ValidateCollectives, PublishedTableStaysInsideItsBand) {
  const std::string path = std::string(CHOKEPOINT_SOURCE_DIR) + "/../shared/measurements/collectives.csv";
  if (!file_exists(path)) GTEST_SKIP() << "no published measurements beside the repository";
  const auto text = read_text_file(path);
  ASSERT_TRUE(text);
  const auto report = validate_collectives(*text, path);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_GE(report->overall.coverage(), 0.97);
  EXPECT_LE(report->overall.median_absolute, 0.10);
  EXPECT_LE(std::abs(report->overall.bias), 0.10);
}

}  // namespace
}  // namespace chokepoint::validate
