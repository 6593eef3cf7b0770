// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where a decision tips: the price at which a change equals staying, the slowest network that still does, the largest
// model, batch and sequence that fit.
#include <chokepoint/whatif/money.hpp>
#include <optional>
#include <string>

namespace chokepoint::whatif {

/// Price of an accelerator-hour after the change at which a token costs what it costs now, and the most that the parts
/// may cost so that the money saved over `years` pays for them.
struct PriceBreakEven {
  double usd_per_hour_after = 0;
  double purchase_usd = 0;  ///< 0 where the change saves nothing
  double years = 0;
};
PriceBreakEven price_break_even(const Baseline& baseline, const Answer& answer, const HourlyPrice& price, double years,
                                const Footing& before = {}, const Footing& after = {});

/// The slowest way between hosts that keeps `efficiency` of the speed that an infinitely fast one would give.
struct NetworkBreakEven {
  double efficiency = 0.9;
  double now_efficiency = 0;          ///< of the network there is
  double now_bytes_per_s = 0;         ///< of one host, as the model reaches it
  std::optional<double> bytes_per_s;  ///< none: no network keeps it, or the job needs none
  std::string why_not;
};
NetworkBreakEven network_break_even(const Scenario& scenario, const parallel::Strategy& strategy,
                                    double efficiency = 0.9);

/// Largest values that fit in memory, everything else equal. 0: not even one.
struct Largest {
  int layers = 0;
  int sequence = 0;     ///< in steps of 1,024
  int micro_batch = 0;  ///< same strategy only: more accumulation makes any batch fit
};
/// With the strategy given; any legal accumulation.
Largest largest_kept(const Scenario& scenario, const parallel::Strategy& strategy);
/// With the best strategy of each size.
Largest largest_replanned(const Scenario& scenario);

}  // namespace chokepoint::whatif
