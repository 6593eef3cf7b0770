// SPDX-License-Identifier: Apache-2.0
#pragma once
// --change of predict and plan: the changed job alone, where whatif sets it beside the job as it is.
#include <CLI/CLI.hpp>
#include <chokepoint/job/read_job.hpp>
#include <chokepoint/simulate/predict.hpp>
#include <string>
#include <vector>

namespace chokepoint::commands {

void add_change_option(CLI::App& command, std::vector<std::string>& changes);
/// The job, its strategy and the parameters after all changes; what a change brought along is among the assumptions.
/// Errors: as whatif's, and clock=, which moves what MFU is held against.
Result<bool> apply_changes(const std::vector<std::string>& changes, job::JobFile& file, simulate::Parameters& parameters);

}  // namespace chokepoint::commands
