// SPDX-License-Identifier: Apache-2.0
#include "framework_job.hpp"

#include <chokepoint/base/files.hpp>

#include <fmt/format.h>

namespace chokepoint::job {

namespace {

/// One message that names every option the settings leave open, not one after the other.
std::optional<Error> missing(const frameworks::Reading& reading, const Options& options, const std::string& file) {
  std::vector<std::string> notes;
  const bool batch = reading.batch || reading.batch_tokens || reading.micro_batch_given;
  std::string list;
  const auto add = [&](const char* option, std::string note) {
    list += (list.empty() ? "" : ", ") + std::string(option);
    notes.push_back(std::move(note));
  };
  if (!options.model && !reading.model && !reading.model_name) {
    std::string why = "the settings do not give the sizes of the model";
    for (const frameworks::Setting& s : reading.settings) {
      if (s.note.find("is not in the catalogue") != std::string::npos) why = s.note.substr(0, s.note.find(':'));
    }
    add("--model", "--model llama-3-8b, or the path of a config.json: " + why);
  }
  if (!options.cluster)
    add("--cluster",
        "--cluster dgx-h100, a cluster file, or what nvidia-smi topo -m printed: no framework's config says it");
  if (!options.sequence && !reading.sequence) add("--seq", "--seq 4096: tokens per sequence");
  if (!options.batch && !batch) add("--batch", "--batch 256: sequences per optimizer step, all ranks together");
  if (notes.empty()) return std::nullopt;
  return Error{fmt::format("these settings ({}) leave open what a prediction needs: {}", reading.framework, list),
               {file, 0, 0},
               std::move(notes)};
}

Options merged(const Options& options, const frameworks::Reading& reading, bool batch_known) {
  Options all = options;
  if (!all.model && reading.model) all.sizes = reading.model;
  if (!all.model && !reading.model) all.model = reading.model_name;
  if (!all.sequence) all.sequence = reading.sequence;
  if (!all.gpus && !all.hosts) {
    all.gpus = reading.gpus;
    all.hosts = reading.hosts;
  }
  if (!all.precision && reading.dtype) all.precision = std::string(hardware::name(*reading.dtype));
  if (!all.framework) all.framework = std::string(parallel::name(reading.software));
  if (!all.attention && reading.attention) all.attention = std::string(compute::name(*reading.attention));
  if (!all.batch) all.batch = batch_known && reading.batch ? *reading.batch : 1;
  return all;
}

/// A cluster file has its own number of hosts; the launch line's must not contradict it.
Options without_hosts(Options options) {
  options.hosts.reset();
  return options;
}

}  // namespace

Result<JobFile> read_framework_job(std::string_view text, const std::string& file, const Options& options) {
  const std::string directory = directory_of(file);
  const frameworks::Open open = [&](const std::string& path) -> Result<std::string> {
    const std::string beside = path.empty() || path.front() == '/' ? path : directory + "/" + path;
    return read_text_file(file_exists(beside) ? beside : path);
  };
  TRY_INTO(frameworks::Reading reading, frameworks::read(text, file, open));
  if (const auto open_options = missing(reading, options, file)) return tl::make_unexpected(*open_options);
  const Options all = merged(options, reading, true);
  Result<JobFile> job = read_job("", "", all);
  if (!job && !options.hosts && all.hosts) job = read_job("", "", without_hosts(all));
  if (!job) return tl::make_unexpected(std::move(job).error());
  frameworks::apply(reading, job->job);
  if (options.framework) {
    TRY_INTO(job->job.framework, parallel::parse_framework(*options.framework));
  }
  if (options.compiled) job->job.compiled = *options.compiled;
  Result<parallel::Strategy> strategy = frameworks::settle(reading, job->job, options.batch.has_value());
  if (!strategy) {
    for (const frameworks::Finding& finding : reading.findings)
      strategy.error().notes.push_back(fmt::format("also: {}; {}", finding.what, finding.fix));
    return tl::make_unexpected(std::move(strategy).error());
  }
  if (!job->strategy) job->strategy = *strategy;
  job->settings = std::move(reading);
  return job;
}

}  // namespace chokepoint::job
