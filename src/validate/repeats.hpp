// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rows that the model cannot tell apart: how far do their measurements differ.
#include <chokepoint/validate/validate.hpp>
#include <string>
#include <vector>

namespace chokepoint::validate {

/// The run apart from its strategy: source, trust, machine, model, sequence, batch (when stated), software.
std::string job_key(const RunRow& row);
/// The same with the strategy and what was predicted for it.
std::string configuration_key(const RunRow& row);
/// Time per token, which compares runs of different batch.
double measured_s_per_token(const RunRow& row);
double predicted_s_per_token(const RunRow& row);

std::vector<Repeats> repeats_of(const std::vector<RunRow>& rows);

}  // namespace chokepoint::validate
