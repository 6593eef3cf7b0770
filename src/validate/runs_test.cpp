// SPDX-License-Identifier: Apache-2.0
#include "runs_summary.hpp"
#include "summary.hpp"

#include <chokepoint/base/files.hpp>
#include <chokepoint/base/text.hpp>
#include <gmock/gmock.h>

namespace chokepoint::validate {
namespace {

using testing::HasSubstr;

std::string data(const std::string& name) {
  return read_text_file(std::string(CHOKEPOINT_TEST_DATA) + "/validate/" + name).value_or("");
}

TEST(ValidateRuns, EveryRowIsPredictedOrSaysWhyNot) {
  const auto report = validate_runs(data("runs.csv"), "runs.csv");
  ASSERT_TRUE(report) << format(report.error());
  ASSERT_EQ(report->rows.size(), 7u);
  for (const RunRow& row : report->rows) EXPECT_NE(row.step_time_error.has_value(), !row.reason.empty()) << row.row;
  EXPECT_THAT(report->rows[3].reason, HasSubstr("number of GPUs"));
  EXPECT_THAT(report->rows[4].reason, HasSubstr("header is repeated"));
  EXPECT_THAT(report->rows[5].reason, HasSubstr("runs.csv:7:1: the row has 4 fields"));
  EXPECT_THAT(report->rows[6].reason, HasSubstr("runs.csv:8:44: hidden is '1O24', expected a number; letters in place of digits? write 1024"));
  EXPECT_EQ(report->overall.rows, 6);  // the repeated header is no run
  EXPECT_EQ(report->refused, 3);
  EXPECT_EQ(report->overall.predicted, 3);
}

TEST(ValidateRuns, TheSameRunWithTwiceTheTimeHasHalfTheRatio) {
  const auto report = validate_runs(data("runs.csv"), "runs.csv");
  ASSERT_TRUE(report);
  const double once = 1 + *report->rows[0].step_time_error;
  const double twice = 1 + *report->rows[1].step_time_error;
  EXPECT_NEAR(once / twice, 2, 1e-9);
  // 64 sequences x 1,024 tokens / (16 GPUs x 20,000 tokens/s)
  EXPECT_NEAR(*report->rows[2].measured_step_time_s, 64.0 * 1024 / (16 * 20000), 1e-12);
  EXPECT_EQ(report->rows[2].measured_figure, "tokens/s");
}

TEST(ValidateRuns, MissingColumnsAreNoted) {
  const auto report = validate_runs("accelerator,n_gpus,seq_lenght\nA100,8,1024\n", "t.csv");
  ASSERT_TRUE(report);
  ASSERT_FALSE(report->notes.empty());
  EXPECT_THAT(report->notes[0].text, HasSubstr("did you mean 'seq_len'"));
}

TEST(ValidateFits, JudgesBothOutcomesAndRefusesOthers) {
  const auto report = validate_fits(data("oom.csv"), "oom.csv");
  ASSERT_TRUE(report) << format(report.error());
  EXPECT_EQ(report->out_of_memory, 1);
  EXPECT_EQ(report->out_of_memory_right, 1);
  EXPECT_EQ(report->ran, 1);
  EXPECT_EQ(report->ran_right, 1);
  EXPECT_EQ(report->not_judged, 1);
  EXPECT_THAT(report->rows[2].reason, HasSubstr("oom.csv:4:"));
}

TEST(RecogniseTable, ByItsHeader) {
  EXPECT_EQ(recognise_table(data("runs.csv"), "f").value(), Table::kRuns);
  EXPECT_EQ(recognise_table(data("oom.csv"), "f").value(), Table::kOom);
  EXPECT_EQ(recognise_table("system,op,message_bytes,busbw_GBs\n", "f").value(), Table::kCollectives);
  EXPECT_EQ(recognise_table("accelerator,m,n,k\n", "f").value(), Table::kMatmul);
  EXPECT_FALSE(recognise_table("a,b\n1,2\n", "f"));
}

RunRow judged(const char* source, const char* trust, double error) {
  RunRow row;
  row.source_id = source;
  row.trust = trust;
  row.has_figure = true;
  row.step_time_error = error;
  return row;
}

TEST(Summaries, EverySourceCountsOnce) {
  RunsReport report;
  // Source x: errors 10, 20, 30 % (median 20 %); y: one row of -40 %. Median of the medians: 30 %.
  report.rows = {judged("x", "A", 0.1), judged("x", "A", 0.2), judged("x", "A", 0.3), judged("y", "A", -0.4),
                 judged("z", "B", 0.9)};
  report.rows.push_back(RunRow{});
  report.rows.back().source_id = "y";
  report.rows.back().trust = "A";
  report.rows.back().has_figure = true;
  fill_summaries(report);
  EXPECT_NEAR(report.median_of_source_medians_a, 0.3, 1e-12);
  EXPECT_NEAR(report.median_of_source_medians_b, 0.9, 1e-12);
  ASSERT_EQ(report.by_trust.size(), 2u);
  EXPECT_EQ(report.by_trust[0].sources, 2);
  EXPECT_NEAR(report.by_trust[0].all.coverage(), 4.0 / 5, 1e-12);
  EXPECT_NEAR(report.by_trust[0].median_of_source_biases, (0.2 - 0.4) / 2, 1e-12);
}

TEST(Summaries, QuantilesAreLinearBetweenNeighbours) {
  EXPECT_DOUBLE_EQ(quantile({3, 1, 2}, 0.5), 2);
  EXPECT_DOUBLE_EQ(quantile({0, 10}, 0.9), 9);
  EXPECT_DOUBLE_EQ(quantile({}, 0.5), 0);
}

/// The header and every seventh line: all of them take seconds in a debug build. No field there holds a line break.
std::string sample(const std::string& table) {
  std::string out;
  int number = 0;
  for (const std::string_view line : split_lines(table)) {
    if (number++ % 7 == 0) out += std::string(line) + "\n";
  }
  return out;
}

TEST(PublishedRuns, EveryRowIsPredictedOrSaysWhyNot) {
  const auto text = read_text_file(std::string(CHOKEPOINT_SOURCE_DIR) + "/../shared/measurements/runs.csv");
  if (!text) GTEST_SKIP() << "../shared/measurements/runs.csv is not here: the published runs are NOT checked";
  const auto report = validate_runs(sample(*text), "runs.csv");
  ASSERT_TRUE(report);
  EXPECT_GT(report->rows.size(), 300u);
  for (const RunRow& row : report->rows) {
    EXPECT_TRUE(row.step_time_error || !row.reason.empty()) << "row " << row.row;
  }
  EXPECT_GE(report->overall.coverage(), 0.9);
}

}  // namespace
}  // namespace chokepoint::validate
