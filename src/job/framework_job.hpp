// SPDX-License-Identifier: Apache-2.0
#pragma once
// A framework's config in the place of a job file.
#include <chokepoint/job/read_job.hpp>

namespace chokepoint::job {

Result<JobFile> read_framework_job(std::string_view text, const std::string& file, const Options& options);

}  // namespace chokepoint::job
