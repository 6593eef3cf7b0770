// SPDX-License-Identifier: Apache-2.0
#pragma once
// A read-only SQLite file: columns by name, absent tables and columns as values and not as failures.
#include <chokepoint/base/result.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace chokepoint::trace {

class SqliteRows {
 public:
  explicit SqliteRows(sqlite3_stmt* statement) : statement_(statement) {}
  ~SqliteRows();
  SqliteRows(const SqliteRows&) = delete;
  SqliteRows& operator=(const SqliteRows&) = delete;
  bool next();
  /// The file turned out to be damaged in the middle of the rows.
  bool failed() const { return failed_; }
  std::int64_t integer(int column) const;
  bool is_null(int column) const;
  std::string_view text(int column) const;

 private:
  sqlite3_stmt* statement_;
  bool failed_ = false;
};

class SqliteFile {
 public:
  static Result<SqliteFile> open(const std::string& path);
  bool has_table(const std::string& table) const;
  bool has_column(const std::string& table, const std::string& column) const;
  /// `column` of `table` as an expression: NULL where it does not exist.
  std::string column_or_null(const std::string& table, const std::string& column) const;
  Result<std::unique_ptr<SqliteRows>> query(const std::string& sql) const;

 private:
  struct Close {
    void operator()(sqlite3* file) const;
  };
  std::unique_ptr<sqlite3, Close> file_;
  std::string path_;
};

}  // namespace chokepoint::trace
