// SPDX-License-Identifier: Apache-2.0
#pragma once
// nvidia-smi's other forms of what -q says.
#include <chokepoint/wiring/gpu_tools.hpp>

namespace chokepoint::wiring {

/// The heading of `nvidia-smi --query-gpu=... --format=csv` with columns about links.
bool is_smi_table_heading(std::string_view line);
Result<SmiQuery> read_smi_table(std::string_view text, const std::string& file);
/// `nvidia-smi -q -x`.
Result<SmiQuery> read_smi_xml(std::string_view text, const std::string& file);

}  // namespace chokepoint::wiring
