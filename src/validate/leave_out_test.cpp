// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/validate/calibrated.hpp>
#include <chokepoint/validate/leave_out.hpp>

#include <chokepoint/base/files.hpp>
#include <gtest/gtest.h>

#include <cmath>

#include "fit_rows.hpp"

namespace chokepoint::validate {
namespace {

/// Sources that all measured one job, at micro-batches 1, 2 and 4, on hosts that take `slow` times as long (small jobs wait for their
/// host).
RunsReport machines(const std::vector<double>& slow) {
  const auto text = read_text_file(std::string(CHOKEPOINT_TEST_DATA) + "/validate/runs.csv");
  const auto seen = validate_runs(text.value_or(""), "runs.csv");
  RunsReport report;
  if (!seen || !seen->rows[0].job) return report;
  for (std::size_t machine = 0; machine < slow.size(); ++machine) {
    simulate::Parameters parameters;
    parameters.compute.launch.eager_2021_s *= slow[machine];
    parameters.step.python_forward_s *= slow[machine];
    parameters.step.python_backward_s *= slow[machine];
    for (const int micro_batch : {1, 2, 4}) {
      RunRow row = seen->rows[0];
      row.source_id = "machine" + std::to_string(machine);
      row.trust = "A";
      row.job->global_batch = 64.0 * micro_batch;
      row.strategy.micro_batch = micro_batch;
      row.prediction = predict_with(row, {});
      row.measured_step_time_s = predict_with(row, parameters).step_time_s;
      row.step_time_error = row.prediction->step_time_s / *row.measured_step_time_s - 1;
      report.rows.push_back(std::move(row));
    }
  }
  return report;
}

TEST(LeaveOut, ConstantsFittedOnOtherMachinesPredictThisOne) {
  const LeaveOutReport report = leave_out(machines({1.2, 1.2, 1.2, 1.2}), LeftOut::kSource);
  ASSERT_EQ(report.groups.size(), 4u);
  ASSERT_EQ(report.left_out.by_trust.size(), 1u);
  EXPECT_GT(report.shipped.by_trust[0].median_of_source_medians, 0.03);
  EXPECT_LT(report.left_out.by_trust[0].median_of_source_medians, 0.5 * report.shipped.by_trust[0].median_of_source_medians);
}

TEST(LeaveOut, AnOddSourceDoesNotHelpToPredictItself) {
  const RunsReport runs = machines({1, 1, 1, 1.5});
  const LeaveOutReport report = leave_out(runs, LeftOut::kSource);
  const Summary& in_sample = report.fitted.by_source_a[3];
  const Summary& left_out = report.left_out.by_source_a[3];
  EXPECT_GT(left_out.median_absolute, in_sample.median_absolute);
  // Without it the others say that the shipped constants are right.
  EXPECT_NEAR(left_out.median_absolute, report.shipped.by_source_a[3].median_absolute, 0.01);
}

TEST(LeaveOut, UnknownWordsAreRefused) {
  EXPECT_EQ(parse_left_out("framework").value(), LeftOut::kFramework);
  EXPECT_FALSE(parse_left_out("model"));
}

TEST(Calibrated, OneRowOfAMachineTellsItsOthers) {
  const CalibratedReport report = calibrate_on_rows(machines({1.25, 0.9}), 1, 3);
  ASSERT_EQ(report.sources.size(), 2u);
  for (const CalibratedSource& source : report.sources) {
    EXPECT_EQ(source.choices, 3) << source.source;
    EXPECT_LT(source.calibrated, 0.5 * source.uncalibrated) << source.source;
  }
  EXPECT_EQ(report.worse, 0);
}

TEST(Calibrated, SourcesWithTooFewRowsAreLeftAlone) { EXPECT_TRUE(calibrate_on_rows(machines({1.25}), 1, 4).sources.empty()); }

}  // namespace
}  // namespace chokepoint::validate
