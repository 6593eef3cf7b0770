// SPDX-License-Identifier: Apache-2.0
#pragma once
// Users' text inside HTML, SVG, Markdown and CSV.
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::report {

/// Text as it may stand between tags and in quoted attributes.
std::string escaped(std::string_view text);
/// Text as it may stand in a cell of a Markdown table.
std::string markdown_cell(std::string_view text);
/// Rows of equal length with a heading, as a Markdown table; numbers of columns in `right` align at the right.
std::string markdown_table(const std::vector<std::string>& heads, const std::vector<std::vector<std::string>>& rows,
                           std::string_view right);
/// One line of a CSV file: quoted where needed (RFC 4180), with its end.
std::string csv_line(const std::vector<std::string>& cells);

}  // namespace chokepoint::report
