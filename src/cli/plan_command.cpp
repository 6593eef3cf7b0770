// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/plan/plan.hpp>
#include <chokepoint/report/predict_view.hpp>
#include <memory>

#include "commands.hpp"
#include "job_options.hpp"
#include "profile_option.hpp"

namespace chokepoint::cli {

namespace {

struct PlanOptions {
  JobOptions job;
  int top = 10;
  std::string profile;
};

Result<std::string> make(const PlanOptions& options, const CommonOptions& common, bool& fits) {
  TRY_INTO(job::JobFile file, load_job(options.job));
  TRY_INTO(const LoadedProfile profile, load_profile(options.profile));
  file.job.assumptions.insert(file.job.assumptions.end(), profile.assumptions.begin(), profile.assumptions.end());
  plan::Options search;
  search.parameters = profile.parameters;
  search.top = options.top;
  TRY_INTO(const plan::Plan plan, plan::make_plan(file.job, search));
  fits = !plan.candidates.empty();
  std::string text = common.json ? report::plan_json(file.job, plan)
                                 : report::plan_text(file.job, plan, report::terminal_style(), common.quiet);
  return with_settings(std::move(text), file, common.json, common.quiet);
}

}  // namespace

void add_plan(CLI::App& app, CommonOptions& common, Action& action) {
  auto options = std::make_shared<PlanOptions>();
  CLI::App* command = app.add_subcommand("plan", "Rank strategies on this wiring: best first, and why the others lost");
  add_common(*command, common);
  add_job_options(*command, options->job);
  add_profile_option(*command, options->profile);
  command->add_option("--top", options->top, "candidates shown")->check(CLI::Range(1, 1000));
  command->callback([options, &common, &action] {
    action = [options, &common] {
      bool fits = true;
      const Result<std::string> text = make(*options, common, fits);
      return text ? deliver(common, *text, fits ? 0 : 1, input_files(options->job)) : report_error(text.error());
    };
  });
}

}  // namespace chokepoint::cli
