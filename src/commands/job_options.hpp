// SPDX-License-Identifier: Apache-2.0
#pragma once
// The options that describe a job, shared by predict and plan.
#include <CLI/CLI.hpp>
#include <chokepoint/job/read_job.hpp>
#include <string>
#include <vector>

namespace chokepoint::commands {

struct JobOptions {
  std::string file;
  job::Options values;
};

/// Everything but the job file itself.
void add_job_values(CLI::App& command, JobOptions& options);
void add_job_options(CLI::App& command, JobOptions& options);
Result<job::JobFile> load_job(const JobOptions& options);
/// A result with what became of the settings, where the job came out of a framework's config.
std::string with_settings(std::string text, const job::JobFile& file, bool json, bool quiet);
/// What the options read, as far as these are files: never to be replaced by a result.
std::vector<std::string> input_files(const JobOptions& options);
/// Inputs and the files that stand in them (a job names a cluster file, that one a host file): no output may replace one.
std::vector<std::string> with_files_they_name(std::vector<std::string> files);

}  // namespace chokepoint::commands
