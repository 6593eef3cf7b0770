// SPDX-License-Identifier: Apache-2.0
#pragma once
// Everything that `chokepoint whatif` answers about one job, as one value: changes, sensitivities, scaling, break-even,
// money and goodput. Reports print it, nothing is worked out there.
#include <chokepoint/whatif/break_even.hpp>
#include <chokepoint/whatif/scaling.hpp>
#include <chokepoint/whatif/sensitivity.hpp>
#include <optional>
#include <string>
#include <vector>

namespace chokepoint::whatif {

struct StudyOptions {
  bool each = false;          ///< also every change on its own
  bool alternatives = false;  ///< only every change on its own: several values of one thing may stand side by side
  bool sensitivities = false;
  bool scale = false;
  bool break_even = false;
  ScaleOptions scaling;     ///< its basis, failures and tokens hold for the whole study
  double by_s = 0;          ///< deadline of the run; 0: none
  double efficiency = 0.9;  ///< that the slowest network must keep
};

/// A rung of the efficiency ladder, with what the step down to it costs.
struct PricedRung {
  std::string name;
  double fraction = 1;
  std::optional<double> usd_per_day;
};

struct PricedAnswer {
  Answer answer;
  std::optional<Money> kept_money, best_money;
  BillOfMaterials bought;  ///< empty where only settings change or the hour is rented
  BillOfMaterials spared;  ///< parts that are then not needed: what a cluster not yet bought saves
  std::optional<Payback> payback;
  std::optional<PriceBreakEven> break_even;
  std::string price_missing;
};

struct BreakEven {
  NetworkBreakEven network;
  Largest kept, replanned;
};

struct Study {
  Baseline baseline;
  Goodput goodput;
  std::optional<Money> money;       ///< of the job's own strategy
  std::optional<Money> best_money;  ///< of the planner's best without any change
  std::string price_missing;        ///< why there is no money
  std::vector<PricedRung> ladder;
  std::vector<PricedAnswer> answers;
  std::optional<Sensitivities> sensitivities;
  std::vector<ScalePoint> scale;
  std::optional<BreakEven> break_even;
  std::optional<Deadline> deadline;
  StudyOptions options;
  std::vector<std::string> left_out;  ///< parts that were stopped (stop_requested), in words; the others are whole
};

Result<Study> make_study(const Scenario& scenario, const std::vector<Change>& changes, const Prices& prices,
                         const StudyOptions& options);

}  // namespace chokepoint::whatif
