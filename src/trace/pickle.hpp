// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chokepoint/base/result.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace chokepoint::trace {

/// Plain values of a pickle (dictionaries with text keys, lists, tuples, text, numbers, truth values, None) as JSON. Any
/// opcode that would build another object is refused: nothing is imported or called.
Result<nlohmann::json> read_pickle(std::string_view content, const std::string& file);

}  // namespace chokepoint::trace
