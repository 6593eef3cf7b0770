// SPDX-License-Identifier: Apache-2.0
#pragma once
// Comma-separated tables (RFC 4180) that people edit by hand: every row is read or refused with its place and reason.
// Tabs or semicolons separate where the header has no comma; UTF-16 with a byte order mark is read as well.
//
//   TRY_INTO(CsvTable table, CsvTable::parse(text, "runs.csv"));
//   for (const CsvRow& row : table.rows()) {
//     if (!row.refused.empty()) continue;                   // cut short, repeats the header, stray quote ...
//     TRY_INTO(std::optional<double> bytes, table.number(row, "bytes"));
#include <chokepoint/base/result.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace chokepoint::validate {

/// Text of one field without its quotes, and where the field begins.
struct CsvCell {
  std::string text;
  int line = 0;
  int column = 0;
};

struct CsvRow {
  int number = 0;              ///< 1 = first row after the header; blank lines do not count
  int line = 0;
  std::vector<CsvCell> cells;  ///< as many as the header has, unless the row is refused
  std::string refused;         ///< why the row cannot be read ("file:line:column: ..."); empty when it can
  bool repeats_header = false;  ///< refused because it only says the header again, as joined files do: no run is lost
};

class CsvTable {
 public:
  /// Fails only when there is no usable header; everything else refuses single rows.
  static Result<CsvTable> parse(std::string_view text, const std::string& file);

  const std::vector<std::string>& header() const { return header_; }
  const std::vector<CsvRow>& rows() const { return rows_; }
  const std::string& file() const { return file_; }
  char separator() const { return separator_; }
  bool has(std::string_view column) const { return find(column) >= 0; }

  /// Trimmed text of a field; empty when the field is empty, the column absent or the row refused.
  std::string_view text(const CsvRow& row, std::string_view column) const;
  /// No value for an empty field; an error with its place for anything that is not a finite number.
  Result<std::optional<double>> number(const CsvRow& row, std::string_view column) const;
  SourcePos position(const CsvRow& row, std::string_view column) const;

  /// One note for each column that `known` lacks (with the nearest known name) and each of `known` that is absent.
  std::vector<Note> compare_header(std::span<const std::string> known) const;

 private:
  int find(std::string_view column) const;

  char separator_ = ',';
  std::string file_;
  std::vector<std::string> header_;
  std::vector<SourcePos> header_positions_;
  std::unordered_map<std::string, int> index_;
  std::vector<CsvRow> rows_;
};

/// "file:line:column: what, expected what; how to mend": an error as one line, for the reason of a row.
std::string one_line(const Error& error);

}  // namespace chokepoint::validate
