// SPDX-License-Identifier: Apache-2.0
#pragma once
// What must be known of a request's text before it is parsed: by scanning, at memory speed and without recursion.
#include <chokepoint/base/result.hpp>
#include <optional>
#include <string_view>

namespace chokepoint::service {

/// Line and column of a byte (counted from 1) of a request.
SourcePos place_of(std::string_view text, std::size_t byte);
/// Where brackets stand deeper than 64 levels: reading and writing such JSON would need a deep stack.
std::optional<SourcePos> nested_too_deep(std::string_view text);
/// Whether the outermost object has "async": true.
bool wants_async(std::string_view text);

}  // namespace chokepoint::service
