// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/units.hpp>
#include <chokepoint/report/pages.hpp>
#include <chokepoint/simulate/predict.hpp>
#include <memory>

#include "commands.hpp"
#include "job_changes.hpp"
#include "job_options.hpp"
#include "profile_option.hpp"
#include "report_files.hpp"
#include "simulate_options.hpp"
#include "timed_predict.hpp"

namespace chokepoint::commands {

namespace {

struct PredictOptions {
  JobOptions job;
  std::string measured;
  std::string profile;
  std::vector<std::string> changes;
  ReportFiles files;
  SimulateFlags simulate;
  TimedOptions timed;
  int nearest = 0;  ///< list as many published runs; 0: one line about them
};

constexpr int kNearestCompared = 4;

Result<std::string> predict(const PredictOptions& options, const CommonOptions& common, bool& fits) {
  TRY_INTO([[maybe_unused]] const bool safe, check_reports(options.files, common, input_files(options.job)));
  TRY_INTO(job::JobFile file, load_job(options.job));
  if (!file.strategy) {
    return fail("predict needs a strategy", {options.job.file, 0, 0},
                {"give --strategy \"tensor=8 pipeline=4 zero=1 microbatch=1\", or let chokepoint plan find one"});
  }
  std::optional<double> measured_s;
  if (!options.measured.empty()) {
    TRY_INTO(measured_s, parse_duration(options.measured));
    if (*measured_s <= 0) return fail("--measured must be above zero");
  }
  TRY_INTO(LoadedProfile profile, load_profile(options.profile));
  TRY_INTO([[maybe_unused]] const bool applied, apply_changes(options.changes, file, profile.parameters));
  file.job.assumptions.insert(file.job.assumptions.end(), profile.assumptions.begin(), profile.assumptions.end());
  const simulate::Predictor predictor(file.job, {}, profile.parameters);
  TRY_INTO(simulate::Prediction prediction, predictor.predict(*file.strategy));
  simulate::find_choke_points(file.job, prediction, profile.parameters);
  fits = prediction.memory.fits();
  std::optional<simulate::Implied> implied;
  if (measured_s) implied = simulate::implied_bandwidth(file.job, prediction, *measured_s, profile.parameters);
  const int near = options.nearest > 0 ? options.nearest : kNearestCompared;
  report::PredictReport report{file.job, prediction, implied, {}};
  report.nearest = {validate::nearest_runs(file.job, prediction.strategy, static_cast<std::size_t>(near)), options.nearest > 0};
  const report::Words& words = report::Words::of(common.lang);
  std::optional<Simulation> simulation;
  std::optional<engine::Simulated> simulated;
  SimulateFlags flags = options.simulate;
  flags.from_file = file.imperfections;
  flags.from_file_pos = file.imperfections_pos;
  if (flags.wanted()) {
    TRY_INTO(simulation, run_simulation(predictor, prediction, flags, input_files(options.job)));
  }
  if (simulation) {
    report.simulated = &simulation->step;
  } else if (options.files.draws()) {
    simulated = for_picture(predictor, prediction);
    if (simulated) report.simulated = &*simulated;
  }
  return write_reports(options.files, {[&](report::PageForm form) { return report::predict_html(report, words, form); }, [&] { return report::predict_markdown(report, words); }, [&] { return report::predict_csv(report); }}, [&] {
    std::string text = common.json ? report::predict_json(file.job, prediction, implied, report.nearest)
                                   : report::predict_text(file.job, prediction, implied, report::terminal_style(common.lang), common.quiet, report.nearest);
    if (simulation) text = with_simulation(text, *simulation, prediction, common.json);
    return with_settings(std::move(text), file, common.json, common.quiet);
  });
}

}  // namespace

void add_predict(CLI::App& app, CommonOptions& common, Action& action) {
  auto options = std::make_shared<PredictOptions>();
  CLI::App* command = app.add_subcommand("predict", "One strategy: step time, bill, efficiency ladder, memory, choke point");
  add_common(*command, common, Speaks::kEnglishAndRussian);
  add_job_options(*command, options->job);
  command->add_option("--strategy", options->job.values.strategy, "for example \"tensor=8 pipeline=4 zero=1 microbatch=1 recompute=selective\"");
  add_profile_option(*command, options->profile);
  add_change_option(*command, options->changes);
  add_simulate_options(*command, options->simulate);
  add_timed_options(*command, options->timed);
  command->add_option("--measured", options->measured, "measured step time, for example 8.68s: prints the bandwidth it implies");
  command->add_option("--nearest", options->nearest, "list this many of the most similar published runs")->check(CLI::Range(1, 100));
  add_report_options(*command, options->files);
  command->callback([options, &common, &action] {
    action = [options, &common] {
      options->timed.network = options->job.values.network.value_or("");
      if (!options->timed.plan.empty()) return predict_timed(options->timed, common);
      bool fits = true;
      const Result<std::string> text = predict(*options, common, fits);
      return text ? deliver(common, *text, fits ? 0 : 1, input_files(options->job)) : report_error(text.error());
    };
  });
}

}  // namespace chokepoint::commands
