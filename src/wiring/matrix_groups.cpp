// SPDX-License-Identifier: Apache-2.0
// A matrix that somebody shortened by hand: rows and columns "GPU0-3" stand for four GPUs each. What the paths inside
// such a group are, the text does not say; they stay unknown.
#include "matrix.hpp"
#include "scan.hpp"

#include <chokepoint/base/text.hpp>

#include <algorithm>
#include <fmt/format.h>

namespace chokepoint::wiring {

namespace {

constexpr int kMaxGroup = 16;

struct Group {
  std::string label;
  std::size_t first = 0;  ///< index of its first device
  std::size_t count = 1;
};

/// "GPU0-3" -> 0, 3.
std::optional<std::pair<int, int>> gpu_range(std::string_view word) {
  if (word.substr(0, 3) != "GPU") return std::nullopt;
  const std::size_t dash = word.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto first = to_int(word.substr(3, dash - 3));
  const auto last = to_int(word.substr(dash + 1));
  if (!first || !last || *first < 0 || *last < *first || *last - *first >= kMaxGroup) return std::nullopt;
  return std::make_pair(*first, *last);
}

MatrixCell cell_of(std::string_view word) {
  using topology::PathClass;
  for (const PathClass path : {PathClass::kPix, PathClass::kPxb, PathClass::kPhb, PathClass::kNode, PathClass::kSys}) {
    if (word == topology::path_class_name(path)) return {path, 0};
  }
  if (word.substr(0, 2) == "NV") return {PathClass::kNvLink, to_int(word.substr(2)).value_or(0)};
  return {};
}

bool is_label(std::string_view word) { return gpu_range(word).has_value() || word.substr(0, 3) == "mlx" || word.substr(0, 3) == "NIC"; }

std::vector<Group> add_columns(const std::vector<std::string_view>& words, Matrix& matrix) {
  std::vector<Group> groups;
  for (const std::string_view word : words) {
    if (!is_label(word)) break;
    Group group{std::string(word), matrix.devices.size(), 1};
    const auto range = gpu_range(word);
    for (int i = range ? range->first : 0; i <= (range ? range->second : 0); ++i) {
      MatrixDevice device;
      device.label = range ? fmt::format("GPU{}", i) : std::string(word);
      device.gpu = range.has_value();
      device.has_row = true;
      matrix.devices.push_back(std::move(device));
    }
    group.count = matrix.devices.size() - group.first;
    groups.push_back(std::move(group));
  }
  matrix.cells.assign(matrix.devices.size() * matrix.devices.size(), {});
  return groups;
}

}  // namespace

std::optional<Matrix> parse_grouped_matrix(std::string_view text, const std::string& file) {
  Matrix matrix;
  std::vector<Group> groups;
  int number = 0;
  int rows = 0;
  for (const std::string_view line : split_lines(text)) {
    ++number;
    const std::vector<std::string_view> words = split_blanks(line);
    if (words.size() < 2 || !is_label(words[0])) continue;
    if (groups.empty()) {
      if (!is_label(words[1]) || !gpu_range(words[0])) continue;
      groups = add_columns(words, matrix);
      matrix.line = number;
      continue;
    }
    const auto row = std::find_if(groups.begin(), groups.end(), [&words](const Group& group) { return group.label == words[0]; });
    if (row == groups.end()) continue;
    ++rows;
    for (std::size_t j = 0; j < groups.size() && j + 1 < words.size(); ++j) {
      const MatrixCell cell = cell_of(words[j + 1]);
      for (std::size_t a = row->first; a < row->first + row->count; ++a) {
        for (std::size_t b = groups[j].first; b < groups[j].first + groups[j].count; ++b) {
          if (a == b) matrix.at(a, b) = {topology::PathClass::kSelf, 0};
          else if (cell.path != topology::PathClass::kUnknown) matrix.at(a, b) = matrix.at(b, a) = cell;
        }
      }
    }
  }
  if (groups.empty() || rows == 0) return std::nullopt;
  matrix.notes.push_back({"repaired: rows and columns that stand for several GPUs (\"GPU0-3\") taken apart; paths inside such a group stay unknown", {file, matrix.line, 0}});
  return matrix;
}

}  // namespace chokepoint::wiring
