// SPDX-License-Identifier: Apache-2.0
#pragma once
// The options that bound or steer the planner's search, and its progress on a terminal.
#include <CLI/CLI.hpp>
#include <chokepoint/parallel/job.hpp>
#include <chokepoint/plan/plan.hpp>
#include <string>

#include "interrupt.hpp"

namespace chokepoint::commands {

struct SearchOptions {
  double margin_percent = 0;
  int max_micro_batch = 0;
  int max_accumulate = 0;
  std::string freeze;
  bool any_framework = false;
  double time_limit_s = 0;
  double budget_usd = 0;
  double tokens = 0;
  double price = 0;      ///< US dollars per accelerator-hour; 0: the cluster file's
  int engine = 4;
  bool pareto = false;
};

void add_search_options(CLI::App& command, SearchOptions& options);
/// Constraints and time limit into the planner's options; the error names the option that lacks another.
Result<bool> apply(const SearchOptions& options, const parallel::Job& job, plan::Options& search);
double price_of(const SearchOptions& options, const parallel::Job& job);

/// While it lives, Ctrl-C ends the search instead of the program, and a long search shows itself on a terminal.
class Watch {
 public:
  explicit Watch(plan::Options& search, bool quiet);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  Interrupt interrupt_;
  bool shown_ = false;
};

}  // namespace chokepoint::commands
