// SPDX-License-Identifier: Apache-2.0
#pragma once
// What to write instead of a text that is no plain number: decimal commas, thousands separators, units, percent signs,
// letters that look like digits.
#include <string>
#include <string_view>

namespace chokepoint::validate {

/// "write 12.5 with a decimal point"; empty when there is nothing better to say than "a number".
std::string number_hint(std::string_view found);

/// Text that came from outside, in quotes for a message: control characters shown as '?', long ones cut.
std::string in_quotes(std::string_view found);

}  // namespace chokepoint::validate
