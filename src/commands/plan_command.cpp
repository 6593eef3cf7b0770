// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/plan/rematch.hpp>
#include <chokepoint/report/pages.hpp>
#include <chokepoint/report/settings_view.hpp>
#include <algorithm>
#include <chrono>
#include <memory>

#include "commands.hpp"
#include "job_changes.hpp"
#include "job_options.hpp"
#include "profile_option.hpp"
#include "report_files.hpp"
#include "search_options.hpp"
#include "simulate_options.hpp"

namespace chokepoint::commands {

namespace {

struct PlanOptions {
  JobOptions job;
  int top = 10;
  SearchOptions search;
  std::string profile;
  std::vector<std::string> changes;
  ReportFiles files;
};

/// Points of the picture of time against memory.
constexpr int kMostDrawn = 1000;
constexpr std::size_t kNearestCompared = 4;

/// Beside the best of each layout, the page shows every strategy that fits.
Result<report::PlanReport> page_report(const parallel::Job& job, const plan::Plan& plan, plan::Options search, bool drawn) {
  report::PlanReport report{job, plan, {}, {}};
  if (plan.candidates.empty()) return report;
  report.nearest.runs = validate::nearest_runs(job, plan.candidates.front().strategy, kNearestCompared);
  if (!drawn) return report;
  search.variants = true;
  search.top = kMostDrawn;
  search.explain = false;
  TRY_INTO(plan::Plan all, plan::make_plan(job, search));
  report.every = std::move(all.candidates);
  return report;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The search, and what is asked about its leading candidates.
Result<plan::Plan> searched(const PlanOptions& options, const CommonOptions& common, const parallel::Job& job, plan::Options& search) {
  TRY_INTO([[maybe_unused]] const bool complete, apply(options.search, job, search));
  const auto start = std::chrono::steady_clock::now();
  plan::Options watched = search;
  const Watch watch(watched, common.quiet);
  TRY_INTO(plan::Plan plan, plan::make_plan(job, watched));
  const auto left_s = [&] {  // of the limit; hardly any where the search took it all
    return search.time_limit_s > 0 ? std::max(1e-9, search.time_limit_s - seconds_since(start)) : 0;
  };
  if (options.search.engine > 0) plan::rematch(job, search, static_cast<std::size_t>(options.search.engine), left_s(), plan);
  plan::find_undecided(job, search.parameters, plan);
  if (options.search.pareto) {
    plan::Options limited = search;
    limited.time_limit_s = left_s();
    plan::find_pareto(job, limited, price_of(options.search, job), plan);
  }
  return plan;
}

/// 0 an answer with its proof, 1 nothing fits, 4 the search was stopped.
int exit_code(const plan::Plan& plan) {
  if (plan.stopped && !plan.optimal) return 4;
  return plan.candidates.empty() ? 1 : 0;
}

Result<std::string> make(const PlanOptions& options, const CommonOptions& common, int& code) {
  TRY_INTO([[maybe_unused]] const bool safe, check_reports(options.files, common, input_files(options.job)));
  TRY_INTO(job::JobFile file, load_job(options.job));
  TRY_INTO(LoadedProfile profile, load_profile(options.profile));
  TRY_INTO([[maybe_unused]] const bool applied, apply_changes(options.changes, file, profile.parameters));
  file.job.assumptions.insert(file.job.assumptions.end(), profile.assumptions.begin(), profile.assumptions.end());
  plan::Options search;
  search.parameters = profile.parameters;
  search.top = options.top;
  TRY_INTO(const plan::Plan plan, searched(options, common, file.job, search));
  code = exit_code(plan);
  const bool fits = !plan.candidates.empty();
  TRY_INTO(report::PlanReport report, page_report(file.job, plan, search, options.files.draws()));
  std::optional<engine::Simulated> simulated;
  if (fits && options.files.draws()) {
    simulated = for_picture(simulate::Predictor(file.job, {}, profile.parameters), plan.candidates.front());
    if (simulated) report.simulated = &*simulated;
  }
  const report::Words& words = report::Words::of(common.lang);
  return write_reports(options.files, {[&](report::PageForm form) { return report::plan_html(report, words, form); }, [&] { return report::plan_markdown(report, words); }, [&] { return report::plan_csv(report); }}, [&] {
    std::string text = common.json ? report::plan_json(file.job, plan) : report::plan_text(file.job, plan, report::terminal_style(common.lang), common.quiet);
    if (file.settings && file.strategy && !common.json) {
      const auto own = simulate::Predictor(file.job, {}, profile.parameters).predict(*file.strategy);
      if (own) text += report::own_strategy_text(*own, plan, report::terminal_style(common.lang));
    }
    return with_settings(std::move(text), file, common.json, common.quiet);
  });
}

}  // namespace

void add_plan(CLI::App& app, CommonOptions& common, Action& action) {
  auto options = std::make_shared<PlanOptions>();
  CLI::App* command = app.add_subcommand("plan", "Rank strategies on this wiring: best first, and why the others lost");
  add_common(*command, common, Speaks::kEnglishAndRussian);
  add_job_options(*command, options->job);
  add_profile_option(*command, options->profile);
  add_change_option(*command, options->changes);
  command->add_option("--top", options->top, "candidates shown")->check(CLI::Range(1, 1000));
  add_search_options(*command, options->search);
  add_report_options(*command, options->files);
  command->callback([options, &common, &action] {
    action = [options, &common] {
      int code = 0;
      const Result<std::string> text = make(*options, common, code);
      return text ? deliver(common, *text, code, input_files(options->job)) : report_error(text.error());
    };
  });
}

}  // namespace chokepoint::commands
