// SPDX-License-Identifier: Apache-2.0
#include "search_options.hpp"

#include <chokepoint/base/units.hpp>

#include <cstdio>
#include <fmt/format.h>

namespace chokepoint::commands {

namespace {

/// Shorter searches say nothing.
constexpr double kSilent_s = 1;

std::string progress_line(const plan::Progress& p) {
  std::string line = fmt::format("\r{:.0f} s, {:.0f} % of the layouts", p.elapsed_s, 100 * p.done);
  if (p.best_s > 0) line += fmt::format(", best {}", format_duration(p.best_s));
  if (p.best_s > 0 && p.bound_s > 0 && p.bound_s < p.best_s) line += fmt::format(", at most {:.1f} % faster exists", 100 * (p.best_s / p.bound_s - 1));
  return line + " (Ctrl-C: the best so far)\033[K";
}

}  // namespace

void add_search_options(CLI::App& command, SearchOptions& o) {
  command.add_option("--margin", o.margin_percent, "memory of each accelerator that stays free, in per cent")->check(CLI::Range(0.0, 95.0));
  command.add_option("--max-microbatch", o.max_micro_batch, "largest micro-batch, in sequences")->check(CLI::Range(1, 1 << 20));
  command.add_option("--max-accumulate", o.max_accumulate, "most micro-steps in a step")->check(CLI::Range(1, 1 << 20));
  command.add_option("--freeze", o.freeze, "words of a strategy that every candidate has, for example \"tensor=8 schedule=1f1b\"");
  command.add_flag("--any-framework", o.any_framework, "also choices that the job's framework does not have: zero-bubble schedules, ZeRO++, offload");
  command.add_option("--time-limit", o.time_limit_s, "seconds after which the best found is taken, with the gap that is proved; the event engine's runs count")->check(CLI::Range(0.001, 1e6));
  command.add_option("--budget", o.budget_usd, "US dollars that --tokens may cost")->check(CLI::Range(0.01, 1e12));
  command.add_option("--tokens", o.tokens, "tokens of the run, for --budget")->check(CLI::Range(1.0, 1e18));
  command.add_option("--price", o.price, "US dollars per accelerator-hour; else the cluster file's")->check(CLI::Range(0.0, 1e5));
  command.add_option("--engine", o.engine, "leading candidates that the event engine runs too, with what may overtake them there; 0: none")->check(CLI::Range(0, 100));
  command.add_flag("--pareto", o.pareto, "also what nothing beats in time, memory and, with a price, money (fewer accelerators included)");
}

double price_of(const SearchOptions& o, const parallel::Job& job) {
  return o.price > 0 ? o.price : job.cluster.prices.accelerator_hour_usd.value_or(0);
}

Result<bool> apply(const SearchOptions& o, const parallel::Job& job, plan::Options& search) {
  search.constraints.memory_margin = o.margin_percent / 100;
  search.constraints.largest_micro_batch = o.max_micro_batch;
  search.constraints.most_accumulation = o.max_accumulate;
  search.constraints.frozen = o.freeze;
  search.constraints.any_framework = o.any_framework;
  search.time_limit_s = o.time_limit_s;
  if (o.budget_usd <= 0) return true;
  if (o.tokens <= 0) return fail("--budget is money for a number of tokens", {}, {"add --tokens, for example --tokens 300e9"});
  const double price = price_of(o, job);
  if (price <= 0) return fail("--budget needs the price of an accelerator-hour", {}, {"add --price, or accelerator_hour_usd to the cluster file"});
  const double steps = o.tokens / (job.global_batch * job.sequence);
  search.constraints.longest_step_s = o.budget_usd / steps / (price / 3600 * job.gpus);
  return true;
}

Watch::Watch(plan::Options& search, bool quiet) {
  if (!interrupt_.watching()) return;
  const bool shows = progress_shows(quiet);
  search.report = [this, shows](const plan::Progress& p) {
    if (shows && p.elapsed_s > kSilent_s) {
      std::fputs(progress_line(p).c_str(), stderr);
      shown_ = true;
    }
    return !Interrupt::asked();
  };
}

Watch::~Watch() {
  if (shown_) std::fputs("\r\033[K", stderr);
}

}  // namespace chokepoint::commands
