// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

namespace chokepoint::wiring {

/// 'l' or 'b' for UTF-16 of that byte order, marked or not; 0 for anything else.
char utf16_order(std::string_view text);

}  // namespace chokepoint::wiring
