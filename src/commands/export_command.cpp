// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/files.hpp>
#include <chokepoint/base/units.hpp>
#include <chokepoint/frameworks/export.hpp>
#include <chokepoint/plan/plan.hpp>
#include <chokepoint/report/settings_view.hpp>
#include <filesystem>
#include <memory>
#include <optional>

#include "commands.hpp"
#include "job_options.hpp"
#include "profile_option.hpp"

namespace chokepoint::commands {

namespace {

/// Layouts of a plan that are tried in turn: enough to hold every family.
constexpr int kCandidates = 200;

struct ExportOptions {
  JobOptions job;
  std::string target;
  std::string profile;
  bool best = false;
};

struct Chosen {
  parallel::Strategy strategy;
  frameworks::Export result;
};

/// Of the planner's strategies the one whose settings, as the framework can express them, make the shortest step.
Result<Chosen> best_expressible(const parallel::Job& job, const plan::Plan& plan, frameworks::Target target,
                                const simulate::Parameters& parameters) {
  std::optional<Error> first;
  std::optional<Chosen> chosen;
  double shortest_s = 0;
  const simulate::Predictor predictor(job, {}, parameters);
  for (const simulate::Prediction& candidate : plan.candidates) {
    if (chosen && candidate.step_time_s >= shortest_s) break;
    Result<frameworks::Export> result = frameworks::export_settings(job, candidate.strategy, target);
    if (!result) {
      if (!first) first = result.error();
      continue;
    }
    const Result<parallel::Strategy> expressed = parallel::completed(job, result->expressed);
    if (!expressed) continue;
    const simulate::Prediction written = predictor.evaluate(*expressed);
    if (!written.memory.fits() || (chosen && written.step_time_s >= shortest_s)) continue;
    shortest_s = written.step_time_s;
    chosen = Chosen{candidate.strategy, std::move(*result)};
  }
  if (!chosen && first) return tl::make_unexpected(*first);
  if (!chosen) return fail("no strategy that fits has settings in this framework", {}, {"--strategy names one"});
  const simulate::Prediction& best = plan.candidates.front();
  if (shortest_s > best.step_time_s * 1.001) {
    chosen->result.notices.push_back("the best strategy (" + parallel::title(best.strategy) + ", " + format_duration(best.step_time_s) +
                                     ") has no settings here" + (first ? ": " + first->message : "") + "; these take " +
                                     format_duration(shortest_s));
  }
  return std::move(*chosen);
}

/// The strategy asked for, that of the job, or the planner's best.
Result<Chosen> choose(const ExportOptions& options, job::JobFile& file, frameworks::Target target) {
  if (file.strategy && !options.best) {
    TRY_INTO(const parallel::Strategy strategy, parallel::completed(file.job, *file.strategy));
    TRY_INTO(frameworks::Export result, frameworks::export_settings(file.job, strategy, target));
    return Chosen{strategy, std::move(result)};
  }
  TRY_INTO(const LoadedProfile profile, load_profile(options.profile));
  plan::Options search;
  search.parameters = profile.parameters;
  search.top = kCandidates;
  TRY_INTO(const plan::Plan plan, plan::make_plan(file.job, search));
  if (plan.candidates.empty()) {
    return fail("no strategy fits in memory, so there is none to export", {options.job.file, 0, 0},
                {"chokepoint plan says what would fit"});
  }
  return best_expressible(file.job, plan, target, profile.parameters);
}

bool is_directory(const std::string& path) {
  std::error_code ignored;
  return path.ends_with('/') || std::filesystem::is_directory(path, ignored);
}

/// Every file of the export under its own name.
Result<std::string> write_each(const frameworks::Export& result, const std::string& directory,
                               const std::vector<std::string>& inputs) {
  std::error_code failed;
  std::filesystem::create_directories(directory, failed);
  if (failed) return fail("cannot create the directory " + directory + ": " + failed.message());
  std::string listed;
  for (const frameworks::File& file : result.files) {
    const std::string path = (std::filesystem::path(directory) / file.name).string();
    TRY_INTO([[maybe_unused]] const bool safe, check_output(path, inputs));
    TRY_INTO([[maybe_unused]] const bool written, write_text_file(path, file.text));
    listed += path + "\n";
  }
  for (const std::string& notice : result.notices) listed += "note: " + notice + "\n";
  return listed;
}

Result<int> run(const ExportOptions& options, const CommonOptions& common) {
  TRY_INTO(const frameworks::Target target, frameworks::parse_target(options.target));
  TRY_INTO(job::JobFile file, load_job(options.job));
  TRY_INTO(const Chosen found, choose(options, file, target));
  const frameworks::Export& result = found.result;
  if (!common.json && common.out != "-" && !common.out.empty() && !is_directory(common.out) && result.files.size() > 1) {
    return fail("there are " + std::to_string(result.files.size()) + " files to write and --out names one", {common.out, 0, 0},
                {"expected a directory: --out " + common.out + "/"});
  }
  if (!common.json && is_directory(common.out)) {
    TRY_INTO(const std::string listed, write_each(result, common.out, input_files(options.job)));
    CommonOptions terminal = common;
    terminal.out = "-";
    return deliver(terminal, common.quiet ? "" : listed);
  }
  const std::string text = common.json ? report::export_json(result, file.job, found.strategy, frameworks::name(target))
                                       : report::export_text(result, report::terminal_style(), common.quiet);
  return deliver(common, text, 0, input_files(options.job));
}

}  // namespace

void add_export(CLI::App& app, CommonOptions& common, Action& action) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* command =
      app.add_subcommand("export", "A strategy in a framework's own settings, with launch line, hostfile or rank map");
  add_common(*command, common);
  add_job_options(*command, options->job);
  add_profile_option(*command, options->profile);
  command->add_option("--strategy", options->job.values.strategy,
                      "strategy to write; else the job's own, else the best that plan finds");
  command->add_flag("--best", options->best, "the best that plan finds, even where the job has a strategy of its own");
  command->add_option("--to", options->target, "megatron, deepspeed, torchtitan, accelerate, nemo, hostfile or rankmap")
      ->required();
  command->callback([options, &common, &action] {
    action = [options, &common] {
      const Result<int> code = run(*options, common);
      return code ? *code : report_error(code.error());
    };
  });
}

}  // namespace chokepoint::commands
