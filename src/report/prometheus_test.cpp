// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/report/diagnose_view.hpp>

#include <gtest/gtest.h>

namespace chokepoint::report {
namespace {

using namespace diagnose;

TEST(Prometheus, EveryMetricHasItsHeadOnceAndLabelsAreEscaped) {
  Diagnosis d;
  d.measured_s = 1.5;
  d.ideal_s = 1;
  d.causes = {{"wire", "group \"a\\b\"\n", "", "", 0.25, 1.25}, {"host", "host", "", "", 0.25, 1.25}, {"host", "host", "", "", 0.125, 1.25}};
  RankResult r;
  r.rank = 3;
  r.bill.ns[0] = 2'000'000'000;
  r.collective_wait_ns = 500'000'000;
  d.ranks = {r};
  const std::string text = diagnose_prometheus(d);
  EXPECT_NE(text.find("# TYPE chokepoint_step_seconds gauge\nchokepoint_step_seconds 1.5\n"), std::string::npos) << text;
  EXPECT_NE(text.find("chokepoint_cause_cost_seconds{cause=\"wire\",where=\"group \\\"a\\\\b\\\"\\n\"} 0.25\n"), std::string::npos) << text;
  EXPECT_NE(text.find("{cause=\"host\",where=\"host\"} 0.375\n"), std::string::npos) << text;  // a set of labels stands once
  EXPECT_NE(text.find("chokepoint_rank_wait_seconds{rank=\"3\"} 0.5\n"), std::string::npos) << text;
  const std::string head = "# HELP chokepoint_rank_seconds ";
  EXPECT_EQ(text.find(head), text.rfind(head));
}

TEST(Prometheus, AFollowedLogHasItsStepAndLevels) {
  WatchedLog log;
  log.file = "train.log";
  log.last_step = 120;
  log.level_s = 1.3;
  log.first_level_s = 1;
  WatchEvent event;
  const std::string text = watch_prometheus({log}, {event, event});
  EXPECT_NE(text.find("chokepoint_log_step{log=\"train.log\"} 120\n"), std::string::npos) << text;
  EXPECT_NE(text.find("chokepoint_log_step_seconds{log=\"train.log\"} 1.3\n"), std::string::npos) << text;
  EXPECT_NE(text.find("chokepoint_watch_events{kind=\"slower\"} 2\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace chokepoint::report
