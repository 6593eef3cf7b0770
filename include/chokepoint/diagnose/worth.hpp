// SPDX-License-Identifier: Apache-2.0
#pragma once
// What curing a cause is worth: tokens per second and money, where the batch and a price are known.
#include <chokepoint/diagnose/diagnose.hpp>
#include <string>
#include <vector>

namespace chokepoint::diagnose {

struct Prices {
  double tokens_per_step = 0;         ///< 0: unknown
  double per_accelerator_hour = 0;    ///< in any currency; 0: unknown
  int accelerators = 1;
};

/// Of one cause, in the order of the causes.
struct Worth {
  std::string id;
  std::string where;
  double tokens_per_s = 0;            ///< without the cause; 0: tokens unknown
  double saved_per_day = 0;           ///< the share of a day's price that the steps take longer; 0: price unknown
};

struct WorthReport {
  double tokens_per_s = 0;            ///< as measured
  double price_per_day = 0;
  std::vector<Worth> causes;
};

WorthReport worth_of(const std::vector<Cause>& causes, double measured_s, const Prices& prices);

}  // namespace chokepoint::diagnose
