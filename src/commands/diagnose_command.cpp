// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/files.hpp>
#include <chokepoint/base/parallel.hpp>
#include <chokepoint/collective/collective.hpp>
#include <chokepoint/diagnose/diagnose.hpp>
#include <chokepoint/diagnose/hang.hpp>
#include <chokepoint/diagnose/log_trend.hpp>
#include <chokepoint/diagnose/straggler.hpp>
#include <chokepoint/report/pages.hpp>
#include <chokepoint/trace/flight_recorder.hpp>
#include <chokepoint/trace/op_timeline.hpp>
#include <chokepoint/trace/trace.hpp>
#include <chokepoint/trace/trainer_log.hpp>
#include <chokepoint/wiring/wiring.hpp>
#include <memory>

#include "commands.hpp"
#include "report_files.hpp"

namespace chokepoint::commands {

namespace {

struct DiagnoseOptions {
  std::vector<std::string> inputs;
  std::string cluster;
  int hosts = 1;
  ReportFiles files;
};

/// A cluster file, or else a catalogue name.
Result<topology::Cluster> read_cluster(const DiagnoseOptions& options) {
  if (!file_exists(options.cluster)) return wiring::build_cluster(options.cluster, options.hosts);
  TRY_INTO(const std::string text, read_text_file(options.cluster));
  return wiring::read_cluster_yaml(text, options.cluster);
}

Result<std::vector<trace::RankTrace>> read_traces(const std::vector<std::string>& paths) {
  std::vector<Result<std::vector<trace::RankTrace>>> read(paths.size());
  parallel_for(paths.size(), [&](std::size_t i) { read[i] = trace::read_traces(paths[i]); });
  std::vector<trace::RankTrace> traces;
  for (Result<std::vector<trace::RankTrace>>& file : read) {
    if (!file) return tl::make_unexpected(std::move(file).error());
    for (trace::RankTrace& t : *file) traces.push_back(std::move(t));
  }
  return traces;
}

/// Exit code 4 where events are missing from the answer.
int code_of(const diagnose::Diagnosis& d) {
  for (const diagnose::RankResult& r : d.ranks) {
    if (r.defects[trace::Defect::kCutOff] + r.defects[trace::Defect::kDamagedStream] > 0) return 4;
  }
  return 0;
}

/// The result as it was asked for: printed, and as files.
int present(const DiagnoseOptions& options, const CommonOptions& common, const ReportMakers& make, const std::function<std::string()>& text, int code = 0) {
  const Result<std::string> printed = write_reports(options.files, make, text);
  return printed ? deliver(common, *printed, code, options.inputs) : report_error(printed.error());
}

int run_traces(const DiagnoseOptions& options, const CommonOptions& common) {
  Result<std::vector<trace::RankTrace>> traces = read_traces(options.inputs);
  if (!traces) return report_error(traces.error());
  diagnose::Options how;
  std::unique_ptr<collective::Network> network;
  if (!options.cluster.empty()) {
    const Result<topology::Cluster> cluster = read_cluster(options);
    if (!cluster) return report_error(cluster.error());
    const Result<hardware::Accelerator> accelerator = hardware::find_accelerator(cluster->hosts.front().host.accelerator);
    if (!accelerator) return report_error(accelerator.error());
    network = std::make_unique<collective::Network>(*cluster, *accelerator);
    how.network = network.get();
    how.gpus_per_host = cluster->gpus_per_host();
  }
  const Result<diagnose::Diagnosis> d = diagnose::diagnose(std::move(*traces), how);
  if (!d) return report_error(d.error());
  const report::Words& words = report::Words::of(common.lang);
  return present(options, common, {[&](report::PageForm form) { return report::diagnose_html(*d, words, form); }, [&] { return report::diagnose_markdown(*d, words); }, [&] { return report::diagnose_csv(*d); }},
                 [&] { return common.json ? report::diagnose_json(*d) : report::diagnose_text(*d, report::terminal_style(common.lang), common.quiet); }, code_of(*d));
}

int run_timeline(const DiagnoseOptions& options, const CommonOptions& common) {
  const std::string& path = options.inputs.front();
  const Result<trace::OpTimeline> timeline = trace::read_op_timeline(path);
  if (!timeline) return report_error(timeline.error());
  const Result<diagnose::StragglerReport> r = diagnose::find_stragglers(*timeline);
  if (!r) return report_error(r.error());
  const report::Words& words = report::Words::of(common.lang);
  return present(options, common, {[&](report::PageForm form) { return report::straggler_html(*r, words, form); }, [&] { return report::straggler_markdown(*r, words); }, [&] { return report::straggler_csv(*r); }},
                 [&] { return common.json ? report::straggler_json(*r) : report::straggler_text(*r, report::terminal_style(common.lang), common.quiet); });
}

int run_log(const DiagnoseOptions& options, const CommonOptions& common) {
  const std::string& path = options.inputs.front();
  const Result<trace::TrainerLog> log = trace::read_trainer_log(path);
  if (!log) return report_error(log.error());
  const Result<diagnose::LogReport> r = diagnose::find_trend(*log);
  if (!r) return report_error(r.error());
  const report::Words& words = report::Words::of(common.lang);
  return present(options, common, {[&](report::PageForm form) { return report::log_html(*r, words, form); }, [&] { return report::log_markdown(*r, words); }, [&] { return report::log_csv(*r); }},
                 [&] { return common.json ? report::log_json(*r) : report::log_text(*r, report::terminal_style(common.lang), common.quiet); });
}

int run_dumps(const DiagnoseOptions& options, const CommonOptions& common) {
  std::vector<trace::FlightDump> dumps;
  for (const std::string& path : options.inputs) {
    Result<trace::FlightDump> dump = trace::read_flight_dump(path);
    if (!dump) return report_error(dump.error());
    dumps.push_back(std::move(*dump));
  }
  const Result<diagnose::HangReport> r = diagnose::find_hang(std::move(dumps));
  if (!r) return report_error(r.error());
  const report::Words& words = report::Words::of(common.lang);
  return present(options, common, {[&](report::PageForm form) { return report::hang_html(*r, words, form); }, [&] { return report::hang_markdown(*r, words); }, [&] { return report::hang_csv(*r); }},
                 [&] { return common.json ? report::hang_json(*r) : report::hang_text(*r, report::terminal_style(common.lang), common.quiet); });
}

/// All files of one job have one format, except that both kinds of trace may stand together.
int run(const DiagnoseOptions& options, const CommonOptions& common) {
  std::vector<std::string> read = options.inputs;
  read.push_back(options.cluster);
  if (const auto safe = check_reports(options.files, common, std::move(read)); !safe) return report_error(safe.error());
  std::size_t timelines = 0;
  std::size_t dumps = 0;
  std::size_t logs = 0;
  for (const std::string& path : options.inputs) {
    const Result<trace::Format> format = trace::recognise_file(path);
    if (!format) return report_error(format.error());
    timelines += *format == trace::Format::kOpTimeline ? 1 : 0;
    dumps += *format == trace::Format::kFlightRecorder ? 1 : 0;
    logs += *format == trace::Format::kTrainerLog ? 1 : 0;
  }
  if (dumps == options.inputs.size()) return run_dumps(options, common);
  if (timelines == 1 && options.inputs.size() == 1) return run_timeline(options, common);
  if (logs == 1 && options.inputs.size() == 1) return run_log(options, common);
  if (timelines + dumps + logs > 0) {
    return report_error({"the files are of different kinds", {}, {"give either traces of one job, or its flight recorder dumps, or one timeline of operations, or one trainer's log"}});
  }
  return run_traces(options, common);
}

}  // namespace

void add_diagnose(CLI::App& app, CommonOptions& common, Action& action) {
  auto options = std::make_shared<DiagnoseOptions>();
  CLI::App* command = app.add_subcommand("diagnose", "Real traces of a job: where the time goes, who waits for whom, why");
  add_common(*command, common, Speaks::kEnglishAndRussian);
  command->add_option("inputs", options->inputs, "traces of one job's ranks (Kineto or Chrome JSON, plain, gz or zst; Nsight SQLite), or its NCCL flight recorder dumps, or one timeline of operations, or a trainer's log")->required();
  command->add_option("--cluster", options->cluster, "the job's wiring (cluster file or catalogue name): what its collectives should reach");
  command->add_option("--hosts", options->hosts, "number of hosts, with a catalogue name")->check(CLI::Range(1, 1 << 20));
  add_report_options(*command, options->files);
  command->callback([options, &common, &action] {
    action = [options, &common] { return run(*options, common); };
  });
}

}  // namespace chokepoint::commands
