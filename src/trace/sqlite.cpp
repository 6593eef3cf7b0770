// SPDX-License-Identifier: Apache-2.0
#include "sqlite.hpp"

#include <cstdio>
#include <sqlite3.h>

namespace chokepoint::trace {

SqliteRows::~SqliteRows() { sqlite3_finalize(statement_); }

bool SqliteRows::next() {
  const int code = sqlite3_step(statement_);
  failed_ = code != SQLITE_ROW && code != SQLITE_DONE;
  return code == SQLITE_ROW;
}

std::int64_t SqliteRows::integer(int column) const { return sqlite3_column_int64(statement_, column); }
bool SqliteRows::is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
std::string_view SqliteRows::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return text == nullptr ? std::string_view() : std::string_view(text, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)));
}

void SqliteFile::Close::operator()(sqlite3* file) const { sqlite3_close(file); }

namespace {

/// A path as part of a URI: what could be taken for a separator is escaped.
std::string escaped(const std::string& path) {
  std::string out;
  for (const char c : path) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '/' || c == '.' || c == '_' || c == '-';
    char hex[8];
    std::snprintf(hex, sizeof hex, "%%%02X", static_cast<unsigned>(static_cast<unsigned char>(c)));
    if (plain) {
      out += c;
    } else {
      out += hex;
    }
  }
  return out;
}

}  // namespace

Result<SqliteFile> SqliteFile::open(const std::string& path) {
  SqliteFile result;
  result.path_ = path;
  sqlite3* file = nullptr;
  // Immutable: no lock and no journal are looked for, so that a read-only folder works.
  const std::string uri = "file:" + escaped(path) + "?immutable=1";
  const int code = sqlite3_open_v2(uri.c_str(), &file, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr);
  result.file_.reset(file);
  if (code != SQLITE_OK) return fail("cannot open as SQLite: " + std::string(sqlite3_errstr(code)), {path, 0, 0});
  return result;
}

Result<std::unique_ptr<SqliteRows>> SqliteFile::query(const std::string& sql) const {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(file_.get(), sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) {
    return fail("cannot read: " + std::string(sqlite3_errmsg(file_.get())), {path_, 0, 0}, {"expected a whole export of nsys (nsys export --type sqlite)"});
  }
  return std::make_unique<SqliteRows>(statement);
}

bool SqliteFile::has_table(const std::string& table) const {
  const auto rows = query("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '" + table + "'");
  return rows && (*rows)->next();
}

bool SqliteFile::has_column(const std::string& table, const std::string& column) const {
  const auto rows = query("SELECT 1 FROM pragma_table_info('" + table + "') WHERE name = '" + column + "'");
  return rows && (*rows)->next();
}

std::string SqliteFile::column_or_null(const std::string& table, const std::string& column) const {
  return has_column(table, column) ? "\"" + column + "\"" : "NULL";
}

}  // namespace chokepoint::trace
