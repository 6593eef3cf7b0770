// SPDX-License-Identifier: Apache-2.0
#pragma once
// The index of the collected wiring files beside the repository, for the data tests.
#include <chokepoint/base/files.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::wiring {

inline const std::string kCollection = std::string(CHOKEPOINT_SOURCE_DIR) + "/../shared/wiring/";

/// A row of index.csv: `computed` says what was counted in the file by other means.
struct Entry {
  std::string file, kind, computed;
};

/// Rows of a quoted CSV text.
inline std::vector<std::vector<std::string>> csv_rows(std::string_view text) {
  std::vector<std::vector<std::string>> rows{{""}};
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' && quoted && i + 1 < text.size() && text[i + 1] == '"') {
      rows.back().back() += c;
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      rows.back().emplace_back();
    } else if (c == '\n' && !quoted) {
      rows.push_back({""});
    } else if (c != '\r') {
      rows.back().back() += c;
    }
  }
  return rows;
}

/// Files of index.csv that are there; none without the collection.
inline std::vector<Entry> entries() {
  std::vector<Entry> found;
  const auto text = read_text_file(kCollection + "index.csv");
  if (!text) return found;
  for (const auto& row : csv_rows(*text)) {
    if (row.size() >= 6 && row[0] != "file" && file_exists(kCollection + row[0])) found.push_back({row[0], row[1], row[5]});
  }
  return found;
}

inline std::vector<Entry> entries_of(std::string_view kind) {
  std::vector<Entry> found = entries();
  std::erase_if(found, [kind](const Entry& entry) { return entry.kind != kind; });
  return found;
}

}  // namespace chokepoint::wiring
