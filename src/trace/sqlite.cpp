// SPDX-License-Identifier: Apache-2.0
#include "sqlite.hpp"

#include <chokepoint/base/files.hpp>
#include <chokepoint/base/memory_files.hpp>
#include <cstdio>
#include <cstring>
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

/// Opens a database that stands in memory. Its copy says that it keeps no write-ahead log: in memory there can be none.
int open_content(const std::string& content, sqlite3** file) {
  constexpr std::size_t kHeader_bytes = 100;
  constexpr std::size_t kWriteVersion = 18;
  int code = sqlite3_open_v2(":memory:", file, SQLITE_OPEN_READWRITE, nullptr);
  if (code != SQLITE_OK || content.size() < kHeader_bytes) return code == SQLITE_OK ? SQLITE_NOTADB : code;
  auto* copy = static_cast<unsigned char*>(sqlite3_malloc64(content.size()));
  if (copy == nullptr) return SQLITE_NOMEM;
  std::memcpy(copy, content.data(), content.size());
  copy[kWriteVersion] = copy[kWriteVersion + 1] = 1;
  const auto size = static_cast<sqlite3_int64>(content.size());
  return sqlite3_deserialize(*file, "main", copy, size, size, SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY);
}

}  // namespace

Result<SqliteFile> SqliteFile::open(const std::string& path) {
  SqliteFile result;
  result.path_ = path;
  sqlite3* file = nullptr;
  if (const MemoryFiles* memory = memory_files()) {
    if (const std::string* content = memory->find(path)) {
      const int code = open_content(*content, &file);
      result.file_.reset(file);
      if (code != SQLITE_OK) return fail("cannot open as SQLite: " + std::string(sqlite3_errstr(code)), {path, 0, 0});
      return result;
    }
    if (!memory->disk_open()) return no_such_file(path);
  }
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
