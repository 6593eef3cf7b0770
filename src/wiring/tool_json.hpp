// SPDX-License-Identifier: Apache-2.0
#pragma once
// JSON that tools print in place of their tables.
#include <chokepoint/wiring/gpu_tools.hpp>
#include <chokepoint/wiring/tables.hpp>
#include <chokepoint/wiring/wiring.hpp>

namespace chokepoint::wiring {

/// nvbandwidth -j, rocm-smi --showtopo --json, amd-smi topology --json; kUnknown for any other text.
Format json_format(std::string_view head);
/// nvbandwidth's JSON as the text it prints without -j.
Result<std::string> nvbandwidth_text(std::string_view json, const std::string& file);
Result<RocmTopology> read_rocm_json(std::string_view json, const std::string& file);

}  // namespace chokepoint::wiring
