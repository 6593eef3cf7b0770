// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/progress.hpp>
#include <chokepoint/whatif/study.hpp>

#include "scenario_for_tests.hpp"

namespace chokepoint::whatif {
namespace {

TEST(Stopped, AStudyThatIsStoppedSaysWhatItLeftOut) {
  StudyOptions options;
  options.sensitivities = options.scale = options.break_even = true;
  options.scaling.last = 64;
  int rounds = 0;
  // The job as it is and the sensitivities are done, the first size of the curve is not.
  const ProgressListener listener([&](double share) { rounds = share > 0.5 ? 1 : 0; }, [&] { return rounds > 0; });
  const auto study = make_study(scenario_of({}), {}, shipped_prices(), options);
  ASSERT_TRUE(study) << format(study.error());
  EXPECT_TRUE(study->baseline.own);
  ASSERT_FALSE(study->left_out.empty());
  EXPECT_EQ(study->left_out.back(), "break-even");
  EXPECT_FALSE(study->break_even);
  ASSERT_TRUE(study->sensitivities);
}

TEST(Stopped, NothingIsLeftOutWhenNobodyStops) {
  StudyOptions options;
  options.sensitivities = true;
  const auto study = make_study(scenario_of({}), {}, shipped_prices(), options);
  ASSERT_TRUE(study);
  EXPECT_TRUE(study->left_out.empty());
}

TEST(Useful, SavingsAndBreakEvenCountWhatFailuresTake) {
  // Nothing changes but the failures that both sides count: half of the time trains before and after, so a token costs
  // twice as much on either side and what is saved a day stays what it is per useful token.
  const Scenario base = scenario_of({});
  const auto known = baseline(base);
  ASSERT_TRUE(known);
  HourlyPrice price;
  price.usd = price.running_usd = 2;
  const simulate::Prediction& p = *known->own.prediction;
  simulate::Prediction faster = p;
  faster.step_time_s = p.step_time_s / 2;
  const parallel::Job& job = base.job;
  // 16 x 2 USD x 24 h = 768 USD a day; twice as fast costs half: 384 saved. With half the goodput after, nothing is.
  EXPECT_NEAR(payback(job, p, price, job, faster, price, 0).saved_usd_per_day, 384, 1e-9);
  EXPECT_NEAR(payback(job, p, price, job, faster, price, 0, {1, 1, 0}, {0.5, 1, 0}).saved_usd_per_day, 0, 1e-9);
  EXPECT_NEAR(payback(job, p, price, job, faster, price, 0, {1, 1.25, 0}, {1, 1.25, 0}).saved_usd_per_day, 480, 1e-9);
}

}  // namespace
}  // namespace chokepoint::whatif
