// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/report/predict_view.hpp>
#include <chokepoint/wiring/wiring.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>

#include "test_jobs.hpp"

namespace chokepoint::report {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

parallel::Job job_on(const char* cluster, int hosts, const char* model) { return chokepoint::job_on(cluster, hosts, model, 4096, 256); }

int widest_line(const std::string& text) {
  std::istringstream lines(text);
  int widest = 0;
  for (std::string line; std::getline(lines, line);) {
    // The command to paste is not broken.
    if (line.find("--strategy") == std::string::npos) widest = std::max(widest, display_width(line));
  }
  return widest;
}

TEST(Wrapped, BreaksAtBlanksAndKeepsLongWordsWhole) {
  EXPECT_THAT(wrapped("one two three", 8), ElementsAre("one two", "three"));
  EXPECT_THAT(wrapped("a incomprehensible b", 4), ElementsAre("a", "incomprehensible", "b"));
  EXPECT_THAT(wrapped("", 10), ElementsAre(""));
}

TEST(PlanView, FitsTheTerminal) {
  const auto job = job_on("dgx-a100", 2, "llama-3-8b");
  const auto plan = plan::make_plan(job);
  ASSERT_TRUE(plan);
  for (const int width : {80, 100, 140}) {
    Style style;
    style.bars = true;
    style.width = width;
    EXPECT_LE(widest_line(plan_text(job, *plan, style, false)), width);
  }
}

TEST(PlanView, SaysWhatWouldFitWhenNothingDoes) {
  const auto job = job_on("rtx3090-2", 1, "llama-3-70b");
  const auto plan = plan::make_plan(job);
  ASSERT_TRUE(plan);
  const std::string text = plan_text(job, *plan, {}, false);
  EXPECT_THAT(text, HasSubstr("Nothing fits."));
  EXPECT_THAT(text, HasSubstr("Closest: "));
  EXPECT_THAT(text, HasSubstr("It would fit  "));
}

}  // namespace
}  // namespace chokepoint::report
