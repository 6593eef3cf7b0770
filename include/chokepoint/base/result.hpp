// SPDX-License-Identifier: Apache-2.0
#pragma once
// Results of operations that a user's input can make fail.
//
//   Result<double> rate = parse_rate("400 Gb/s");
//   if (!rate) return tl::make_unexpected(rate.error());
//
// An Error says where, what was found, what was expected and how to mend it; format() lays it out as
//   file:line:column: error: message
//     note
#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

namespace chokepoint {

/// A place in an input. Line and column count from 1; 0 means unknown.
struct SourcePos {
  std::string file;
  int line = 0;
  int column = 0;
  bool operator==(const SourcePos&) const = default;
};

/// One failure, in the user's terms. `message` holds what was found and what was expected; `notes` how to mend it.
struct Error {
  std::string message;
  SourcePos pos;
  std::vector<std::string> notes;
};

template <class T>
using Result = tl::expected<T, Error>;

/// Shorthand for returning a failure.
inline tl::unexpected<Error> fail(std::string message, SourcePos pos = {}, std::vector<std::string> notes = {}) {
  return tl::make_unexpected(Error{std::move(message), std::move(pos), std::move(notes)});
}

/// `file:line:column: error: message`, then each note on its own indented line.
std::string format(const Error& error);

/// Something the user should know although nothing failed: an assumption taken, a value repaired, a line dropped.
struct Note {
  std::string text;
  SourcePos pos;
  bool operator==(const Note&) const = default;
};

}  // namespace chokepoint

/// Evaluates a Result expression; on failure returns its error from the enclosing function, else binds the value.
#define CHOKEPOINT_CONCAT_INNER(a, b) a##b
#define CHOKEPOINT_CONCAT(a, b) CHOKEPOINT_CONCAT_INNER(a, b)
#define TRY_INTO(lhs, expr) TRY_INTO_IMPL(CHOKEPOINT_CONCAT(try_result_, __LINE__), lhs, expr)
#define TRY_INTO_IMPL(tmp, lhs, expr)                          \
  auto tmp = (expr);                                           \
  if (!tmp) return tl::make_unexpected(std::move(tmp).error()); \
  lhs = std::move(*tmp)
