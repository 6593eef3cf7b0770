// SPDX-License-Identifier: Apache-2.0
#pragma once
// The options that describe a job, shared by predict and plan.
#include <CLI/CLI.hpp>
#include <chokepoint/job/read_job.hpp>
#include <string>

namespace chokepoint::cli {

struct JobOptions {
  std::string file;
  job::Options values;
};

/// Everything but the job file itself.
void add_job_values(CLI::App& command, JobOptions& options);
void add_job_options(CLI::App& command, JobOptions& options);
Result<job::JobFile> load_job(const JobOptions& options);

}  // namespace chokepoint::cli
