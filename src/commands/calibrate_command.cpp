// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/files.hpp>
#include <chokepoint/base/units.hpp>
#include <chokepoint/calibrate/profile.hpp>
#include <chokepoint/report/fit_view.hpp>
#include <chokepoint/validate/validate.hpp>
#include <iostream>
#include <list>
#include <memory>

#include "commands.hpp"
#include "job_options.hpp"

namespace chokepoint::commands {

namespace {

struct CalibrateOptions {
  std::vector<std::string> files;
  JobOptions job;
  std::string measured;
  std::string profile;
  bool force = false;
};

constexpr int kNegative = 1;

/// The machine as far as options and job file describe it.
Result<calibrate::Machine> machine_of(const CalibrateOptions& options) {
  calibrate::Machine machine;
  const job::Options& values = options.job.values;
  if (values.cluster) {
    TRY_INTO(machine.cluster, job::resolve_cluster(*values.cluster, ".", values.hosts, values.gpus, values.accelerator));
    if (values.network) { TRY_INTO([[maybe_unused]] const bool used, job::apply_network(*machine.cluster, *values.network, ".")); }
  }
  if (values.accelerator) { TRY_INTO(machine.accelerator, hardware::find_accelerator(*values.accelerator)); }
  if (machine.cluster && !machine.accelerator && !machine.cluster->hosts.empty()) {
    const std::string& name = machine.cluster->hosts.front().host.accelerator;
    if (auto found = hardware::find_accelerator(name); found) machine.accelerator = *found;
  }
  return machine;
}

/// Runs of a table become steps; the report owns their jobs.
Result<calibrate::Input> steps_of(const std::string& text, const std::string& file, std::list<validate::RunsReport>& owners) {
  TRY_INTO(validate::RunsReport runs, validate::validate_runs(text, file));
  owners.push_back(std::move(runs));
  calibrate::Input input{file, "steps", {}, {}, owners.back().notes};
  for (const validate::RunRow& row : owners.back().rows) {
    if (!row.job || !row.measured_step_time_s || !(*row.measured_step_time_s > 0)) {
      input.notes.push_back({"row left out: " + (row.reason.empty() ? std::string("no measured time") : row.reason), {file, row.row + 1, 0}});
      continue;
    }
    input.observations.push_back(calibrate::step_observation(*row.job, row.strategy, *row.measured_step_time_s, file));
    input.labels.push_back("step of row " + std::to_string(row.row));
  }
  if (input.observations.empty()) return fail("no row of this table can be used", {file, 0, 0}, {"chokepoint validate says why"});
  return input;
}

Result<calibrate::Input> measured_step(const CalibrateOptions& options, std::list<job::JobFile>& owners) {
  TRY_INTO(const double measured_s, parse_duration(options.measured));
  if (!(measured_s > 0)) return fail("--measured must be above zero");
  TRY_INTO(job::JobFile file, load_job(options.job));
  owners.push_back(std::move(file));
  const job::JobFile& kept = owners.back();
  if (!kept.strategy) return fail("a measured step needs its strategy", {options.job.file, 0, 0}, {"give --strategy"});
  TRY_INTO(const parallel::Strategy strategy, parallel::completed(kept.job, *kept.strategy));
  calibrate::Input input{"--measured " + options.measured, "step", {}, {}, {}};
  input.observations.push_back(calibrate::step_observation(kept.job, strategy, measured_s, input.name));
  input.labels.push_back("step of the job");
  return input;
}

int run(const CalibrateOptions& options, const CommonOptions& common) {
  std::list<validate::RunsReport> reports;  // observations point into these
  std::list<job::JobFile> jobs;
  const auto machine = machine_of(options);
  if (!machine) return report_error(machine.error());
  std::vector<calibrate::Input> inputs;
  for (const std::string& file : options.files) {
    const auto text = read_text_file(file);
    if (!text) return report_error(text.error());
    const auto table = validate::recognise_table(*text, file);
    if (table && *table == validate::Table::kRuns) {
      auto steps = steps_of(*text, file, reports);
      if (!steps) return report_error(steps.error());
      inputs.push_back(std::move(*steps));
      continue;
    }
    auto measured = calibrate::read_measurements(*text, file, *machine);
    if (!measured) return report_error(measured.error());
    for (calibrate::Input& input : *measured) inputs.push_back(std::move(input));
  }
  if (!options.measured.empty()) {
    auto step = measured_step(options, jobs);
    if (!step) return report_error(step.error());
    inputs.push_back(std::move(*step));
  }
  if (inputs.empty()) return report_error(Error{"nothing to calibrate on", {}, {"give tables of nccl-tests, kernel timings, runs as CSV, or a job with --measured"}});
  const auto profile = calibrate::make_profile(inputs);
  if (!profile) return report_error(profile.error());
  const bool refused = profile->makes_worse() && !options.force;
  const bool writes = !options.profile.empty() && !refused;
  if (writes) {
    if (auto written = write_text_file(options.profile, calibrate::to_yaml(*profile)); !written) return report_error(written.error());
  }
  report::Style style;
  if (common.out == "-") style = report::terminal_style();
  std::vector<Note> notes;
  for (const calibrate::Input& input : inputs) notes.insert(notes.end(), input.notes.begin(), input.notes.end());
  const std::string written = writes ? options.profile : "";
  return deliver(common, common.json ? report::profile_json(*profile, notes, written) : report::profile_text(*profile, notes, written, style),
                 refused ? kNegative : 0);
}

}  // namespace

void add_calibrate(CLI::App& app, CommonOptions& common, Action& action) {
  auto options = std::make_shared<CalibrateOptions>();
  CLI::App* command = app.add_subcommand("calibrate", "A machine's own parameters from what was measured on it");
  command->add_option("FILE", options->files,
                      "tables of nccl-tests, rccl-tests, OSU, perftest or nvbandwidth, kernel timings (JSON), training runs (CSV)");
  command->add_option("--job", options->job.file, "job file of the measured step");
  add_job_values(*command, options->job);
  command->add_option("--strategy", options->job.values.strategy, "strategy of the measured step");
  command->add_option("--measured", options->measured, "measured step time of the job, for example 8.68s");
  command->add_option("-o,--write-profile", options->profile, "write the profile to this file (predict, plan and validate take it as --profile)");
  command->add_flag("--force", options->force, "write it even where rows held back come out worse");
  add_common(*command, common);
  command->callback([options, &common, &action] { action = [options, &common] { return run(*options, common); }; });
}

}  // namespace chokepoint::commands
