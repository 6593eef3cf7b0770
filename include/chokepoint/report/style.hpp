// SPDX-License-Identifier: Apache-2.0
#pragma once
// Colour and bars for a terminal; plain text elsewhere.
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::report {

class Words;

struct Style {
  bool colour = false;  ///< ANSI colours
  int width = 100;      ///< columns
  bool bars = false;    ///< bars beside figures
  const Words* words = nullptr;  ///< language of texts; English without

  /// The text in this language (words.hpp).
  std::string say(std::string_view text) const;
  std::string say(std::string_view text, std::initializer_list<std::string> values) const;

  std::string bold(std::string_view text) const { return wrap("1", text); }
  std::string dim(std::string_view text) const { return wrap("2", text); }
  std::string green(std::string_view text) const { return wrap("32", text); }
  std::string yellow(std::string_view text) const { return wrap("33", text); }
  std::string red(std::string_view text) const { return wrap("31", text); }
  std::string cyan(std::string_view text) const { return wrap("36", text); }

 private:
  std::string wrap(std::string_view code, std::string_view text) const;
};

/// Style for standard output: bars on a terminal, colour unless NO_COLOR is set, width from the terminal.
/// `lang`: language of texts.
Style terminal_style(std::string_view lang = "en");
/// A bar of `cells` characters of which `fraction` (0..1) is filled, in eighths of a cell.
std::string bar(double fraction, int cells);
/// Number of terminal columns of UTF-8 text without escape sequences.
int display_width(std::string_view text);
/// Pads with blanks on the right (or left) to `columns` display columns.
std::string pad_right(std::string_view text, int columns);
std::string pad_left(std::string_view text, int columns);
/// Lines of at most `columns` display columns, broken at blanks; a longer word gets a line of its own. At least one line.
std::vector<std::string> wrapped(std::string_view text, int columns);

}  // namespace chokepoint::report
