// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/files.hpp>
#include <chokepoint/base/parallel.hpp>
#include <chokepoint/collective/collective.hpp>
#include <chokepoint/diagnose/diagnose.hpp>
#include <chokepoint/diagnose/hang.hpp>
#include <chokepoint/diagnose/log_trend.hpp>
#include <chokepoint/diagnose/regression.hpp>
#include <chokepoint/diagnose/slow_link.hpp>
#include <chokepoint/diagnose/straggler.hpp>
#include <chokepoint/diagnose/worth.hpp>
#include <chokepoint/report/diagnose_read.hpp>
#include <chokepoint/report/pages.hpp>
#include <chokepoint/trace/flight_recorder.hpp>
#include <chokepoint/trace/op_timeline.hpp>
#include <chokepoint/trace/trace.hpp>
#include <chokepoint/trace/trainer_log.hpp>
#include <chokepoint/wiring/wiring.hpp>
#include <memory>
#include <type_traits>
#include <variant>

#include "commands.hpp"
#include "diagnose_inputs.hpp"
#include "report_files.hpp"

namespace chokepoint::commands {

namespace {

struct DiagnoseOptions {
  std::vector<std::string> inputs;
  std::vector<std::string> baseline;  ///< files of the earlier run, folders opened
  double tolerance = diagnose::kUsualTolerance;
  std::string cluster;
  int hosts = 1;
  diagnose::Prices prices{0, 0, 0};  ///< 0 accelerators: as many as the traces' world
  std::string prometheus;
  FollowOptions follow;
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

/// How one kind of result is shown.
struct Presenter {
  ReportMakers make;
  std::function<std::string()> text;
  std::function<std::string()> json;
  std::function<std::string()> prometheus;
  std::optional<diagnose::Regression> baseline;
  std::optional<diagnose::WorthReport> worth;
  report::DiagnoseExtras extras() const { return {baseline ? &*baseline : nullptr, worth ? &*worth : nullptr}; }
};

/// What causes are worth, where tokens or a price were given.
std::optional<diagnose::WorthReport> worth(const DiagnoseOptions& options, const std::vector<diagnose::Cause>& causes, double measured_s, int accelerators) {
  diagnose::Prices prices = options.prices;
  if (prices.tokens_per_step <= 0 && prices.per_accelerator_hour <= 0) return std::nullopt;
  if (prices.accelerators < 1) prices.accelerators = accelerators;
  return diagnose::worth_of(causes, measured_s, prices);
}

/// The result as it was asked for: printed, and as files. A regression is a negative verdict.
int present(const DiagnoseOptions& options, const CommonOptions& common, const Presenter& p, int code = 0) {
  if (!options.prometheus.empty()) {
    if (const auto written = write_text_file(options.prometheus, p.prometheus()); !written) return report_error(written.error());
  }
  const auto text = [&] {
    if (common.json) return p.json();
    std::string out = p.baseline ? report::regression_text(*p.baseline, report::terminal_style(common.lang), common.quiet) : std::string();
    if (!p.baseline || !common.quiet) out += p.text();
    if (p.worth && !common.quiet) out += report::worth_text(*p.worth, report::terminal_style(common.lang));
    return out;
  };
  const Result<std::string> printed = write_reports(options.files, p.make, text);
  if (!printed) return report_error(printed.error());
  return deliver(common, *printed, p.baseline && p.baseline->slower ? 1 : code, options.inputs);
}

/// The baseline as an earlier diagnosis saved it with --json; nothing where it is something else, to be read as the inputs are.
template <class T>
Result<std::optional<T>> saved_baseline(const std::vector<std::string>& files) {
  if constexpr (!std::is_same_v<T, diagnose::StragglerReport>) {
    if (files.size() != 1) return std::optional<T>();
    const Result<std::string> text = read_text_file(files.front());
    if (!text || !report::looks_like_saved_diagnosis(*text)) return std::optional<T>();
    TRY_INTO(report::SavedDiagnosis saved, report::read_saved_diagnosis(*text, files.front()));
    if (T* same = std::get_if<T>(&saved)) return std::optional<T>(std::move(*same));
    return fail("the saved diagnosis is of another kind than the inputs", {files.front(), 0, 0}, {"compare traces with traces, and a log with a log"});
  }
  return std::optional<T>();
}

/// Now, and before where a baseline is given: `read` turns files into one diagnosis.
template <class T, class Read>
Result<std::optional<diagnose::Regression>> against_baseline(const DiagnoseOptions& options, const T& now, Read read) {
  if (options.baseline.empty()) return std::optional<diagnose::Regression>();
  TRY_INTO(const std::optional<T> saved, saved_baseline<T>(options.baseline));
  if (saved) return std::optional<diagnose::Regression>(diagnose::compare(*saved, now, options.tolerance));
  TRY_INTO(const T before, read(options.baseline));
  return std::optional<diagnose::Regression>(diagnose::compare(before, now, options.tolerance));
}

int run_traces(const DiagnoseOptions& options, const CommonOptions& common) {
  diagnose::Options how;
  std::unique_ptr<collective::Network> network;
  std::optional<topology::Cluster> cluster;
  if (!options.cluster.empty()) {
    Result<topology::Cluster> wiring = read_cluster(options);
    if (!wiring) return report_error(wiring.error());
    cluster = std::move(*wiring);
    const Result<hardware::Accelerator> accelerator = hardware::find_accelerator(cluster->hosts.front().host.accelerator);
    if (!accelerator) return report_error(accelerator.error());
    network = std::make_unique<collective::Network>(*cluster, *accelerator);
    how.network = network.get();
    how.gpus_per_host = cluster->gpus_per_host();
  }
  const auto read = [&](const std::vector<std::string>& paths) -> Result<diagnose::Diagnosis> {
    TRY_INTO(std::vector<trace::RankTrace> traces, read_traces(paths));
    TRY_INTO(diagnose::Diagnosis diagnosis, diagnose::diagnose(std::move(traces), how));
    if (cluster) diagnose::name_slow_link(diagnosis, *cluster);
    return diagnosis;
  };
  const Result<diagnose::Diagnosis> d = read(options.inputs);
  if (!d) return report_error(d.error());
  const auto baseline = against_baseline(options, *d, read);
  if (!baseline) return report_error(baseline.error());
  const report::Words& words = report::Words::of(common.lang);
  Presenter p;
  p.make = {[&](report::PageForm form) { return report::diagnose_html(*d, words, form); }, [&] { return report::diagnose_markdown(*d, words); }, [&] { return report::diagnose_csv(*d); }};
  p.text = [&] { return report::diagnose_text(*d, report::terminal_style(common.lang), common.quiet); };
  p.json = [&] { return report::diagnose_json(*d, p.extras()); };
  p.prometheus = [&] { return report::diagnose_prometheus(*d); };
  p.worth = worth(options, d->causes, d->measured_s, d->world_size);
  p.baseline = *baseline;
  return present(options, common, p, code_of(*d));
}

int run_timeline(const DiagnoseOptions& options, const CommonOptions& common) {
  const auto read = [](const std::vector<std::string>& paths) -> Result<diagnose::StragglerReport> {
    if (paths.size() != 1) return fail("a timeline of operations stands in one file, found " + std::to_string(paths.size()));
    TRY_INTO(const trace::OpTimeline timeline, trace::read_op_timeline(paths.front()));
    return diagnose::find_stragglers(timeline);
  };
  const Result<diagnose::StragglerReport> r = read(options.inputs);
  if (!r) return report_error(r.error());
  const auto baseline = against_baseline(options, *r, read);
  if (!baseline) return report_error(baseline.error());
  const report::Words& words = report::Words::of(common.lang);
  Presenter p;
  p.make = {[&](report::PageForm form) { return report::straggler_html(*r, words, form); }, [&] { return report::straggler_markdown(*r, words); }, [&] { return report::straggler_csv(*r); }};
  p.text = [&] { return report::straggler_text(*r, report::terminal_style(common.lang), common.quiet); };
  p.json = [&] { return report::straggler_json(*r, p.extras()); };
  p.prometheus = [&] { return report::straggler_prometheus(*r); };
  p.worth = worth(options, r->causes, r->measured_s, static_cast<int>(r->workers.size()));
  p.baseline = *baseline;
  return present(options, common, p);
}

int run_log(const DiagnoseOptions& options, const CommonOptions& common) {
  const auto read = [](const std::vector<std::string>& paths) -> Result<diagnose::LogReport> {
    if (paths.size() != 1) return fail("one log is compared with one log, found " + std::to_string(paths.size()));
    TRY_INTO(const trace::TrainerLog log, trace::read_trainer_log(paths.front()));
    return diagnose::find_trend(log);
  };
  const Result<diagnose::LogReport> r = read(options.inputs);
  if (!r) return report_error(r.error());
  const auto baseline = against_baseline(options, *r, read);
  if (!baseline) return report_error(baseline.error());
  const report::Words& words = report::Words::of(common.lang);
  Presenter p;
  p.make = {[&](report::PageForm form) { return report::log_html(*r, words, form); }, [&] { return report::log_markdown(*r, words); }, [&] { return report::log_csv(*r); }};
  p.text = [&] { return report::log_text(*r, report::terminal_style(common.lang), common.quiet); };
  p.json = [&] { return report::log_json(*r, p.extras()); };
  p.prometheus = [&] { return report::log_prometheus(*r); };
  if (r->seconds_known) p.worth = worth(options, r->causes, r->mean_s, 1);
  p.baseline = *baseline;
  return present(options, common, p);
}

int run_dumps(const DiagnoseOptions& options, const CommonOptions& common) {
  if (!options.baseline.empty()) return report_error({"flight recorder dumps tell of one hang: there is nothing to compare them with", {}, {"leave --baseline out"}});
  std::vector<trace::FlightDump> dumps;
  for (const std::string& path : options.inputs) {
    Result<trace::FlightDump> dump = trace::read_flight_dump(path);
    if (!dump) return report_error(dump.error());
    dumps.push_back(std::move(*dump));
  }
  const Result<diagnose::HangReport> r = diagnose::find_hang(std::move(dumps));
  if (!r) return report_error(r.error());
  const report::Words& words = report::Words::of(common.lang);
  Presenter p;
  p.make = {[&](report::PageForm form) { return report::hang_html(*r, words, form); }, [&] { return report::hang_markdown(*r, words); }, [&] { return report::hang_csv(*r); }};
  p.text = [&] { return report::hang_text(*r, report::terminal_style(common.lang), common.quiet); };
  p.json = [&] { return report::hang_json(*r); };
  p.prometheus = [&] { return report::hang_prometheus(*r); };
  return present(options, common, p);
}

/// All files of one job have one format, except that both kinds of trace may stand together.
int run_formats(const DiagnoseOptions& options, const CommonOptions& common) {
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

int run(const DiagnoseOptions& given, const CommonOptions& common) {
  DiagnoseOptions options = given;
  if (options.follow.asked) {
    if (!options.baseline.empty()) return report_error({"--follow watches a running job: it takes no --baseline", {}, {"compare the finished log instead"}});
    options.follow.prometheus = options.prometheus;
    return follow_logs(options.inputs, options.follow, common);
  }
  for (std::vector<std::string>* list : {&options.inputs, &options.baseline}) {
    Result<std::vector<std::string>> opened = with_folders_opened(*list);
    if (!opened) return report_error(opened.error());
    *list = std::move(*opened);
  }
  std::vector<std::string> read = options.inputs;
  read.insert(read.end(), options.baseline.begin(), options.baseline.end());
  read.push_back(options.cluster);
  if (const auto safe = check_output(options.prometheus, read); !safe) return report_error(safe.error());
  if (const auto safe = check_reports(options.files, common, std::move(read)); !safe) return report_error(safe.error());
  return run_formats(options, common);
}

}  // namespace

void add_diagnose(CLI::App& app, CommonOptions& common, Action& action) {
  auto options = std::make_shared<DiagnoseOptions>();
  CLI::App* command = app.add_subcommand("diagnose", "Real traces of a job: where the time goes, who waits for whom, why");
  add_common(*command, common, Speaks::kEnglishAndRussian);
  command->add_option("inputs", options->inputs, "traces of one job's ranks (Kineto or Chrome JSON, plain, gz or zst; Nsight SQLite), or its NCCL flight recorder dumps, or one timeline of operations, or a trainer's log; a folder stands for its files")->required();
  command->add_option("--cluster", options->cluster, "the job's wiring (cluster file or catalogue name): what its collectives should reach");
  command->add_option("--hosts", options->hosts, "number of hosts, with a catalogue name")->check(CLI::Range(1, 1 << 20));
  command->add_option("--baseline", options->baseline, "the same of an earlier run, or its saved --json: what made the job slower since; exit code 1 if it is. A file, a folder or a quoted pattern; may be repeated")->allow_extra_args(false);
  command->add_option("--tolerance", options->tolerance, "share of the step time by which it may have grown (0.05)")->check(CLI::Range(0.0, 10.0));
  command->add_option("--tokens-per-step", options->prices.tokens_per_step, "tokens of a step, all ranks together: tokens/s now and without each cause")->check(CLI::Range(0.0, 1e15));
  command->add_option("--price", options->prices.per_accelerator_hour, "price of an accelerator for an hour, in any currency: what each cause costs a day")->check(CLI::Range(0.0, 1e9));
  command->add_option("--gpus", options->prices.accelerators, "accelerators that are paid for (the ranks of the traces)")->check(CLI::Range(1, 1 << 24));
  command->add_option("--prometheus", options->prometheus, "also write the result as metrics for Prometheus' textfile collector; the file is replaced at once");
  add_follow_options(*command, options->follow);
  add_report_options(*command, options->files);
  command->callback([options, &common, &action] {
    action = [options, &common] { return run(*options, common); };
  });
}

}  // namespace chokepoint::commands
