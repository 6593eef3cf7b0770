// SPDX-License-Identifier: Apache-2.0
#include "csv.hpp"

#include "csv_number.hpp"

#include <algorithm>
#include <chokepoint/base/text.hpp>
#include <cstdint>
#include <fmt/format.h>

namespace chokepoint::validate {
namespace {

/// More columns than any table of ours has ten times over: a line without end is no header.
constexpr std::size_t kMostColumns = 1000;
/// A field longer than this is an opening quote that lost its partner.
constexpr std::size_t kLongestField = 256 * 1024;

void append_utf8(std::string& out, std::uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
  } else if (code < 0x10000) {
    out += {static_cast<char>(0xE0 | (code >> 12)), static_cast<char>(0x80 | ((code >> 6) & 0x3F)),
            static_cast<char>(0x80 | (code & 0x3F))};
  } else {
    out += {static_cast<char>(0xF0 | (code >> 18)), static_cast<char>(0x80 | ((code >> 12) & 0x3F)),
            static_cast<char>(0x80 | ((code >> 6) & 0x3F)), static_cast<char>(0x80 | (code & 0x3F))};
  }
}

/// UTF-16 with a byte order mark, as spreadsheets save "Unicode text", as UTF-8; nothing for other text.
std::optional<std::string> utf8_of_utf16(std::string_view text) {
  constexpr std::uint32_t kReplacement = 0xFFFD;
  const bool little = text.substr(0, 2) == "\xFF\xFE";
  if (!little && text.substr(0, 2) != "\xFE\xFF") return std::nullopt;
  const auto unit = [&](std::size_t at) {
    const auto low = static_cast<unsigned char>(text[at + (little ? 0 : 1)]);
    const auto high = static_cast<unsigned char>(text[at + (little ? 1 : 0)]);
    return static_cast<std::uint32_t>(high << 8 | low);
  };
  std::string out;
  out.reserve(text.size() / 2);
  for (std::size_t at = 2; at + 1 < text.size(); at += 2) {
    std::uint32_t code = unit(at);
    if (code >= 0xD800 && code < 0xE000) {
      const std::uint32_t low = code < 0xDC00 && at + 3 < text.size() ? unit(at + 2) : 0;
      const bool pair = low >= 0xDC00 && low < 0xE000;
      code = pair ? 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00) : kReplacement;
      at += pair ? 2 : 0;
    }
    append_utf8(out, code);
  }
  return out;
}

/// Comma, unless the first line that is not blank has none but has tabs or semicolons.
char separator_of(std::string_view text) {
  const std::size_t start = std::min(text.find_first_not_of("\r\n"), text.size());
  const std::string_view line = text.substr(start, text.find_first_of("\r\n", start) - start);
  if (line.find(',') != std::string_view::npos) return ',';
  if (line.find('\t') != std::string_view::npos) return '\t';
  return line.find(';') != std::string_view::npos ? ';' : ',';
}

/// Reads records one after the other. A record that breaks the quoting rules is refused and reading goes on with the
/// line after the one where the offending field began, so that one bad quote costs one row.
class Reader {
 public:
  Reader(std::string_view text, char separator, std::size_t columns)
      : text_(text), separator_(separator), stops_{separator, '\r', '\n'}, columns_(columns) {}

  /// Fields beyond this number are counted, not kept.
  void expect_columns(std::size_t columns) { columns_ = columns; }

  /// The next record that is not a blank line; false at the end.
  bool next(CsvRow& row) {
    while (at_ < text_.size() && at_end_of_line()) skip_end_of_line();
    if (at_ >= text_.size()) return false;
    row = CsvRow{};
    row.line = line_;
    fields_ = 0;
    surplus_ = false;
    while (true) {
      ++fields_;
      CsvCell cell{{}, line_, column()};
      const bool read = read_field(cell, row);
      if (fields_ <= columns_) {
        row.cells.push_back(std::move(cell));
      } else {
        surplus_ |= !trim(cell.text).empty();
      }
      if (!read) return true;
      if (at_ < text_.size() && text_[at_] == separator_) {
        ++at_;
        continue;
      }
      skip_end_of_line();
      return true;
    }
  }

  std::size_t fields() const { return fields_; }     ///< of the last record
  bool has_surplus_text() const { return surplus_; }  ///< beyond the expected columns

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

  bool read_field(CsvCell& cell, CsvRow& row) {
    if (at_ < text_.size() && text_[at_] == '"') return read_quoted(cell, row);
    const std::size_t end = std::min(text_.find_first_of(stops_, at_), text_.size());
    cell.text = text_.substr(at_, end - at_);
    at_ = end;
    return true;
  }

  bool read_quoted(CsvCell& cell, CsvRow& row) {
    const std::size_t opened_at = at_;
    const std::size_t opened_line_start = line_start_;
    ++at_;
    while (at_ < text_.size() && cell.text.size() < kLongestField) {
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
    if (at_ >= text_.size() || text_[at_] == separator_ || at_end_of_line()) return true;
    row.refused = fmt::format("{}:{}: found {} after the closing quote, expected a separator or the end of the line; "
                              "double quotes that belong to the text",
                              line_, column(), in_quotes(text_.substr(at_, 1)));
    skip_line();
    return false;
  }

  std::string_view text_;
  char separator_;
  std::string stops_;
  std::size_t columns_;
  std::size_t fields_ = 0;
  bool surplus_ = false;
  std::size_t at_ = 0;
  std::size_t line_start_ = 0;
  int line_ = 1;
};

bool says_header_again(const CsvRow& row, const std::vector<std::string>& header) {
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (trim(row.cells[i].text) != header[i]) return false;
  }
  return true;
}

/// The first field with a NUL byte, which no text has.
const CsvCell* with_nul(const CsvRow& row) {
  for (const CsvCell& cell : row.cells) {
    if (cell.text.find('\0') != std::string::npos) return &cell;
  }
  return nullptr;
}

void check_row(CsvRow& row, const Reader& reader, const std::vector<std::string>& header) {
  if (!row.refused.empty()) return;
  if (const CsvCell* cell = with_nul(row)) {
    row.refused = fmt::format("{}:{}: found a NUL byte, expected text; save the table as plain text in UTF-8", cell->line,
                              cell->column);
  } else if (row.cells.size() < header.size() || reader.has_surplus_text()) {
    const bool more = row.cells.size() == header.size();
    row.refused = fmt::format("{}:1: the row has {} fields, expected the {} of the header; {}", row.line, reader.fields(),
                              header.size(),
                              more ? "a field that contains the separator needs quotes" : "is it cut short?");
  } else if (says_header_again(row, header)) {
    row.refused = fmt::format("{}:1: the header is repeated here, expected a run; remove the line", row.line);
    row.repeats_header = true;
  }
}

Result<bool> check_header(const CsvRow& row, std::size_t fields, const std::string& file) {
  const SourcePos start{file, row.line, 1};
  if (!row.refused.empty()) return fail("the header cannot be read: " + row.refused, start);
  if (with_nul(row) != nullptr) {
    return fail("found a NUL byte in the header, expected text: a binary file, or UTF-16 without its mark", start,
                {"save the table as CSV in UTF-8"});
  }
  if (fields > kMostColumns) {
    return fail(fmt::format("the header has {} columns, expected at most {}", fields, kMostColumns), start);
  }
  if (row.cells.size() == 1) {
    return fail(fmt::format("the header has one column, {}; expected names separated by commas", in_quotes(row.cells[0].text)),
                start, {"save the table as CSV, with the names of the columns in the first line"});
  }
  return true;
}

}  // namespace

Result<CsvTable> CsvTable::parse(std::string_view text, const std::string& file) {
  CsvTable table;
  table.file_ = file;
  const std::optional<std::string> decoded = utf8_of_utf16(text);
  if (decoded) text = *decoded;
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) text.remove_prefix(kByteOrderMark.size());
  table.separator_ = separator_of(text);
  Reader reader(text, table.separator_, kMostColumns);
  CsvRow row;
  if (!reader.next(row)) return fail("the table is empty, expected a header line with column names", {file, 1, 1});
  if (auto checked = check_header(row, reader.fields(), file); !checked) return tl::make_unexpected(checked.error());
  for (const CsvCell& cell : row.cells) {
    std::string column(trim(cell.text));
    const SourcePos pos{file, cell.line, cell.column};
    const bool is_new = column.empty() || table.index_.emplace(column, static_cast<int>(table.header_.size())).second;
    if (!is_new) {
      return fail(fmt::format("column {} stands twice in the header, expected each name once", in_quotes(column)), pos,
                  {"remove one of the two, or rename it"});
    }
    table.header_.push_back(std::move(column));
    table.header_positions_.push_back(pos);
  }
  reader.expect_columns(table.header_.size());
  while (reader.next(row)) {
    row.number = static_cast<int>(table.rows_.size()) + 1;
    check_row(row, reader, table.header_);
    if (!row.refused.empty()) row.refused = file + ":" + row.refused;
    if (row.repeats_header) row.cells.clear();
    table.rows_.push_back(std::move(row));
  }
  return table;
}

std::string one_line(const Error& error) {
  std::string text;
  if (!error.pos.file.empty()) text = fmt::format("{}:{}:{}: ", error.pos.file, error.pos.line, error.pos.column);
  text += error.message;
  for (const std::string& note : error.notes) text += "; " + note;
  return text;
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
  if (value) return value;
  const std::string hint = number_hint(found);
  return fail(fmt::format("{} is {}, expected a number", column, in_quotes(found)), position(row, column),
              hint.empty() ? std::vector<std::string>{} : std::vector<std::string>{hint});
}

std::vector<Note> CsvTable::compare_header(std::span<const std::string> known) const {
  std::vector<Note> notes;
  if (separator_ != ',') {
    notes.push_back({separator_ == ';' ? "fields are read as separated by semicolons" : "fields are read as separated by tabs",
                     {file_, 1, 1}});
  }
  for (std::size_t i = 0; i < header_.size(); ++i) {
    if (header_[i].empty() || std::find(known.begin(), known.end(), header_[i]) != known.end()) continue;
    std::string text = fmt::format("column {} is not known and is not read", in_quotes(header_[i]));
    if (const auto close = nearest(header_[i], known)) text += fmt::format("; did you mean '{}'?", *close);
    notes.push_back({std::move(text), header_positions_[i]});
  }
  for (const std::string& column : known) {
    if (!has(column)) notes.push_back({fmt::format("column '{}' is missing and counts as empty", column), {file_, 1, 1}});
  }
  return notes;
}

}  // namespace chokepoint::validate
