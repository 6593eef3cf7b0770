// SPDX-License-Identifier: Apache-2.0
#pragma once
// Columns of text that are as wide as their widest cell, and "label  value" lines.
#include <chokepoint/report/style.hpp>
#include <string>
#include <utility>
#include <vector>

namespace chokepoint::report {

struct Column {
  std::string title;
  bool right = false;  ///< numbers align at the right
};

std::string table(const std::vector<Column>& columns, const std::vector<std::vector<std::string>>& rows, const Style& style);
/// Lines of "label  value"; pairs with an empty value are left out, long values wrap under themselves.
std::string facts(const std::vector<std::pair<std::string, std::string>>& pairs, const Style& style);

}  // namespace chokepoint::report
