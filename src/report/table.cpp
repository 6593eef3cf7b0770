// SPDX-License-Identifier: Apache-2.0
#include "table.hpp"

#include <algorithm>
#include <chokepoint/base/text.hpp>

namespace chokepoint::report {

namespace {

std::string without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::string table(const std::vector<Column>& columns, const std::vector<std::vector<std::string>>& rows, const Style& style) {
  std::vector<int> widths;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    int width = display_width(columns[c].title);
    for (const auto& row : rows) width = std::max(width, display_width(row[c]));
    widths.push_back(width);
  }
  const auto line = [&](auto cell_of) {
    std::string out;
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const std::string& cell = cell_of(c);
      out += (c > 0 ? "  " : "") + (columns[c].right ? pad_left(cell, widths[c]) : pad_right(cell, widths[c]));
    }
    return without_trailing_blanks(std::move(out));
  };
  std::string out = style.bold(line([&](std::size_t c) -> const std::string& { return columns[c].title; })) + "\n";
  for (const auto& row : rows) out += line([&](std::size_t c) -> const std::string& { return row[c]; }) + "\n";
  return out;
}

std::string facts(const std::vector<std::pair<std::string, std::string>>& pairs, const Style& style) {
  int label_width = 0;
  for (const auto& [label, value] : pairs) {
    if (!value.empty()) label_width = std::max(label_width, display_width(label));
  }
  const int room = std::max(30, style.width - label_width - 4);
  std::string out;
  for (const auto& [label, value] : pairs) {
    if (value.empty()) continue;
    std::string line = "  " + style.dim(pad_right(label, label_width)) + " ";
    int used = 0;
    for (const std::string_view word : split_blanks(value)) {
      const int width = display_width(word);
      if (used > 0 && used + 1 + width > room) {
        out += line + "\n";
        line = std::string(static_cast<std::size_t>(label_width) + 3, ' ');
        used = 0;
      }
      line += " ";
      line += word;
      used += 1 + width;
    }
    out += line + "\n";
  }
  return out;
}

}  // namespace chokepoint::report
