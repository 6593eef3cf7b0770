// SPDX-License-Identifier: Apache-2.0
#pragma once
// How much of the time a long run trains: failures, the work since the last checkpoint that they undo, restarts, the
// checkpoints themselves, and waiting for hosts when no spare is left. docs/models/whatif.md derives the formulas.
#include <chokepoint/base/parameter.hpp>
#include <chokepoint/parallel/job.hpp>
#include <optional>
#include <vector>

namespace chokepoint::whatif {

struct Failures {
  /// Unexpected interruptions of one accelerator per hour. Llama 3 herd of models (arXiv 2407.21783), table 5: 419 in
  /// 54 days on 16,384 H100. Meta's research clusters (HPCA 2025): 6.50 and 2.34 per 1,000 node-days, 3.4e-5
  /// and 1.2e-5.
  double per_accelerator_hour = 419.0 / (54 * 24 * 16384.0);
  /// Share that needs another host: 78 % of those interruptions were hardware (same table).
  double hardware_share = 0.78;
  /// Detection, diagnosis and start of a new job: under ten minutes (MegaScale, NSDI 2024).
  double restart_s = 600;
  /// Repair of a host that failed. Estimate.
  double repair_s = 24 * 3600.0;
  /// Checkpoint storage per host: 2 TB/s sustained for 16,384 accelerators (Llama 3, section 3.3), one host in 2,048.
  double storage_bytes_per_s_per_host = 1e9;
  /// State written: 16-bit weights, fp32 master and two moments.
  double checkpoint_bytes_per_parameter = 14;
  std::optional<double> interval_s;  ///< work between checkpoints; empty: the best
  std::optional<int> spare_hosts;    ///< empty: as many as make useful time cheapest
};

struct Goodput {
  double failures_per_day = 0;
  double mean_time_between_failures_s = 0;
  double checkpoint_bytes = 0;
  double checkpoint_s = 0;         ///< the job stands still while it is written
  double restart_s = 0;            ///< with reading the checkpoint back
  double interval_s = 0;           ///< used below
  double young_daly_s = 0;         ///< sqrt(2 C M), for comparison
  double best_interval_s = 0;      ///< exact optimum of the formula used
  int spare_hosts = 0;             ///< given, or as many as make useful time cheapest
  double fraction_checkpoint = 0;  ///< of the wall time
  double fraction_lost_work = 0;   ///< redone after failures, and restarts
  double fraction_waiting = 0;     ///< no spare host left
  double goodput = 1;              ///< the rest
};

Goodput goodput_of(const parallel::Job& job, const Failures& failures = {});

/// Share of the time that trains, for work of `interval_s` between checkpoints of `checkpoint_s`, failures at
/// `rate_per_s` and `restart_s` to come back (Daly 2006, exponential failures, which may also strike during a restart).
double training_share(double interval_s, double checkpoint_s, double rate_per_s, double restart_s);
/// The interval at which training_share is greatest: the root of e^(r(t + C)) (1 - r t) = 1.
double best_interval(double checkpoint_s, double rate_per_s);

std::vector<Parameter> goodput_parameters();

}  // namespace chokepoint::whatif
