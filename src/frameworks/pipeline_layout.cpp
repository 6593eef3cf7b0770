// SPDX-License-Identifier: Apache-2.0
#include "pipeline_layout.hpp"

#include <chokepoint/base/text.hpp>

#include <algorithm>
#include <cctype>
#include <fmt/format.h>

namespace chokepoint::frameworks {

namespace {

constexpr std::size_t kMostCells = 1u << 16;

/// Repeats the last unit of `out` that starts at `begin` so that it stands `count` times.
bool repeat(std::string& out, std::size_t begin, int count) {
  const std::string unit = out.substr(begin);
  if (unit.size() * static_cast<std::size_t>(count) + begin > kMostCells) return false;
  out.resize(begin);
  for (int i = 0; i < count; ++i) out += unit;
  return true;
}

}  // namespace

Result<std::vector<int>> parse_layout(std::string_view text, const SourcePos& pos) {
  std::string cells;
  std::size_t unit = 0;  // where the last letter or bracket began
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(') {
      open.push_back(cells.size());
    } else if (c == ')' && !open.empty()) {
      unit = open.back();
      open.pop_back();
    } else if (c == '*') {
      std::size_t end = i + 1;
      while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
      const auto count = to_int(text.substr(i + 1, end - i - 1));
      if (!count || *count < 0 || !repeat(cells, unit, *count))
        return fail("pipeline-model-parallel-layout: no usable number after '*'", pos);
      i = end - 1;
    } else if (c == 'E' || c == 't' || c == 'm' || c == 'L' || c == '|') {
      unit = cells.size();
      cells.push_back(c);
    } else if (c != ',' && c != ' ') {
      return fail(fmt::format("pipeline-model-parallel-layout: '{}' is not one of E t m L | ( ) * ,",
                              std::isprint(static_cast<unsigned char>(c)) != 0 ? c : '?'),
                  pos);
    }
    if (cells.size() > kMostCells) return fail("pipeline-model-parallel-layout describes more than 65536 layers", pos);
  }
  if (!open.empty()) return fail("pipeline-model-parallel-layout: a bracket is not closed", pos);
  std::vector<int> layers;
  for (const std::string_view stage : split(cells, '|')) {
    layers.push_back(static_cast<int>(std::count(stage.begin(), stage.end(), 't')));
  }
  return layers;
}

std::string layout_text(std::span<const int> layers) {
  std::string out = "E";
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (i > 0) out += "|";
    if (layers[i] > 0) out += fmt::format("t*{}", layers[i]);
  }
  return out + "L";
}

}  // namespace chokepoint::frameworks
