// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/diagnose/worth.hpp>

namespace chokepoint::diagnose {

WorthReport worth_of(const std::vector<Cause>& causes, double measured_s, const Prices& prices) {
  WorthReport report;
  if (measured_s <= 0) return report;
  constexpr double kHoursPerDay = 24;
  report.tokens_per_s = prices.tokens_per_step / measured_s;
  report.price_per_day = prices.per_accelerator_hour * prices.accelerators * kHoursPerDay;
  for (const Cause& c : causes) {
    Worth w{c.id, c.where, 0, 0};
    if (c.step_time_without_s > 0) w.tokens_per_s = prices.tokens_per_step / c.step_time_without_s;
    // The same tokens take less of the day.
    w.saved_per_day = report.price_per_day * (1 - c.step_time_without_s / measured_s);
    report.causes.push_back(w);
  }
  return report;
}

}  // namespace chokepoint::diagnose
