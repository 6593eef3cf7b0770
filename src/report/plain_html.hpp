// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

namespace chokepoint::report {

/// A report's own Markdown (tables, lists, headings, **strong**, `code`) as well-formed HTML. Whatever users' text it
/// holds stays text.
std::string plain_html(std::string_view markdown);

}  // namespace chokepoint::report
