// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/parallel.hpp>
#include <chokepoint/diagnose/diagnose.hpp>
#include <chokepoint/report/diagnose_view.hpp>
#include <chokepoint/trace/trace.hpp>
#include <memory>

#include "commands.hpp"

namespace chokepoint::cli {

namespace {

struct DiagnoseOptions {
  std::vector<std::string> inputs;
};

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

int run(const DiagnoseOptions& options, const CommonOptions& common) {
  Result<std::vector<trace::RankTrace>> traces = read_traces(options.inputs);
  if (!traces) return report_error(traces.error());
  const Result<diagnose::Diagnosis> d = diagnose::diagnose(std::move(*traces));
  if (!d) return report_error(d.error());
  return deliver(common, common.json ? report::diagnose_json(*d) : report::diagnose_text(*d, report::terminal_style(), common.quiet), code_of(*d));
}

}  // namespace

void add_diagnose(CLI::App& app, CommonOptions& common, Action& action) {
  auto options = std::make_shared<DiagnoseOptions>();
  CLI::App* command = app.add_subcommand("diagnose", "Real traces of a job: where the time goes, who waits for whom, why");
  add_common(*command, common);
  command->add_option("inputs", options->inputs, "traces of one job, one or more per rank: Kineto or Chrome JSON (plain, gz, zst)")->required();
  command->callback([options, &common, &action] {
    action = [options, &common] { return run(*options, common); };
  });
}

}  // namespace chokepoint::cli
