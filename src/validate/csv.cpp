// SPDX-License-Identifier: Apache-2.0
#include "csv.hpp"

#include <algorithm>
#include <chokepoint/base/text.hpp>
#include <fmt/format.h>

namespace chokepoint::validate {
namespace {

/// Reads records one after the other. A record that breaks the quoting rules is refused and reading goes on with the
/// line after the one where the offending field began, so that one bad quote costs one row.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (text_.substr(0, kByteOrderMark.size()) == kByteOrderMark) at_ = kByteOrderMark.size();
    line_start_ = at_;
  }

  /// The next record that is not a blank line; false at the end.
  bool next(CsvRow& row) {
    while (at_ < text_.size() && at_end_of_line()) skip_end_of_line();
    if (at_ >= text_.size()) return false;
    row = CsvRow{};
    row.line = line_;
    while (true) {
      row.cells.push_back(CsvCell{{}, line_, column()});
      if (!read_field(row)) return true;
      if (at_ < text_.size() && text_[at_] == ',') {
        ++at_;
        continue;
      }
      skip_end_of_line();
      return true;
    }
  }

 private:
  int column() const { return static_cast<int>(at_ - line_start_) + 1; }
  bool at_end_of_line() const { return text_[at_] == '\n' || text_[at_] == '\r'; }

  void skip_end_of_line() {
    if (at_ >= text_.size()) return;
    if (text_[at_] == '\r') ++at_;
    if (at_ < text_.size() && text_[at_] == '\n') ++at_;
    ++line_;
    line_start_ = at_;
  }

  void skip_line() {
    while (at_ < text_.size() && !at_end_of_line()) ++at_;
    skip_end_of_line();
  }

  bool read_field(CsvRow& row) {
    if (at_ < text_.size() && text_[at_] == '"') return read_quoted(row);
    const std::size_t end = std::min(text_.find_first_of(",\r\n", at_), text_.size());
    row.cells.back().text = text_.substr(at_, end - at_);
    at_ = end;
    return true;
  }

  bool read_quoted(CsvRow& row) {
    CsvCell& cell = row.cells.back();
    const std::size_t opened_at = at_;
    const std::size_t opened_line_start = line_start_;
    ++at_;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        if (at_ >= text_.size() || text_[at_] != '"') return check_after_quote(row);
      } else if (c == '\n') {
        ++line_;
        line_start_ = at_ + 1;
      }
      cell.text += c;
      ++at_;
    }
    row.refused = fmt::format("{}:{}: this quote is never closed; double it (\"\") if it belongs to the text",
                              cell.line, cell.column);
    at_ = opened_at;
    line_ = cell.line;
    line_start_ = opened_line_start;
    skip_line();
    return false;
  }

  bool check_after_quote(CsvRow& row) {
    if (at_ >= text_.size() || text_[at_] == ',' || at_end_of_line()) return true;
    row.refused = fmt::format("{}:{}: found '{}' after the closing quote, expected a comma or the end of the line",
                              line_, column(), text_[at_]);
    skip_line();
    return false;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_start_ = 0;
  int line_ = 1;
};

bool repeats_header(const CsvRow& row, const std::vector<std::string>& header) {
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (trim(row.cells[i].text) != header[i]) return false;
  }
  return true;
}

void check_row(CsvRow& row, const std::vector<std::string>& header) {
  if (!row.refused.empty()) return;
  if (row.cells.size() != header.size()) {
    row.refused = fmt::format("{}:1: the row has {} fields, the header {}; a field with a comma needs quotes", row.line,
                              row.cells.size(), header.size());
  } else if (repeats_header(row, header)) {
    row.refused = fmt::format("{}:1: the header is repeated here", row.line);
  }
}

}  // namespace

Result<CsvTable> CsvTable::parse(std::string_view text, const std::string& file) {
  CsvTable table;
  table.file_ = file;
  Reader reader(text);
  CsvRow row;
  if (!reader.next(row)) return fail("the table is empty, expected a header line with column names", {file, 1, 1});
  if (!row.refused.empty()) return fail("the header cannot be read: " + row.refused, {file, row.line, 1});
  if (row.cells.size() == 1) {
    return fail(fmt::format("the header has one column, '{}'; expected names separated by commas",
                            row.cells[0].text.substr(0, 60)),
                {file, row.line, 1}, {"save the table as CSV with commas, not tabs or semicolons"});
  }
  for (const CsvCell& cell : row.cells) {
    std::string column(trim(cell.text));
    const SourcePos pos{file, cell.line, cell.column};
    const bool is_new = table.index_.emplace(column, static_cast<int>(table.header_.size())).second;
    if (!is_new) return fail(fmt::format("column '{}' stands twice in the header", column), pos);
    table.header_.push_back(std::move(column));
    table.header_positions_.push_back(pos);
  }
  while (reader.next(row)) {
    row.number = static_cast<int>(table.rows_.size()) + 1;
    check_row(row, table.header_);
    table.rows_.push_back(std::move(row));
  }
  return table;
}

int CsvTable::find(std::string_view column) const {
  const auto found = index_.find(std::string(column));
  return found == index_.end() ? -1 : found->second;
}

std::string_view CsvTable::text(const CsvRow& row, std::string_view column) const {
  const int index = find(column);
  if (index < 0 || static_cast<std::size_t>(index) >= row.cells.size()) return {};
  return trim(row.cells[static_cast<std::size_t>(index)].text);
}

SourcePos CsvTable::position(const CsvRow& row, std::string_view column) const {
  const int index = find(column);
  if (index < 0 || static_cast<std::size_t>(index) >= row.cells.size()) return {file_, row.line, 1};
  const CsvCell& cell = row.cells[static_cast<std::size_t>(index)];
  return {file_, cell.line, cell.column};
}

Result<std::optional<double>> CsvTable::number(const CsvRow& row, std::string_view column) const {
  const std::string_view found = text(row, column);
  if (found.empty()) return std::optional<double>();
  const std::optional<double> value = to_number(found);
  if (!value) return fail(fmt::format("{} is '{}', expected a number", column, found), position(row, column));
  return value;
}

std::vector<Note> CsvTable::compare_header(std::span<const std::string> known) const {
  std::vector<Note> notes;
  for (std::size_t i = 0; i < header_.size(); ++i) {
    if (std::find(known.begin(), known.end(), header_[i]) != known.end()) continue;
    std::string text = fmt::format("column '{}' is not known and is not read", header_[i]);
    if (const auto close = nearest(header_[i], known)) text += fmt::format("; did you mean '{}'?", *close);
    notes.push_back({std::move(text), header_positions_[i]});
  }
  for (const std::string& column : known) {
    if (!has(column)) notes.push_back({fmt::format("column '{}' is missing and counts as empty", column), {file_, 1, 1}});
  }
  return notes;
}

}  // namespace chokepoint::validate
