// SPDX-License-Identifier: Apache-2.0
#include "csv_number.hpp"

#include <algorithm>
#include <chokepoint/base/text.hpp>
#include <fmt/format.h>

namespace chokepoint::validate {
namespace {

constexpr std::size_t kShown = 40;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The text without every occurrence of `piece`.
std::string without(std::string_view text, std::string_view piece) {
  std::string out(text);
  for (std::size_t at = out.find(piece); at != std::string::npos; at = out.find(piece, at)) out.erase(at, piece.size());
  return out;
}

/// Blanks and marks that people put between thousands: a space, a no-break space, a narrow one, apostrophe, underscore.
std::string_view thousands_mark(std::string_view text) {
  for (const std::string_view mark : {" ", "\xC2\xA0", "\xE2\x80\xAF", "\xE2\x80\x89", "'", "_"}) {
    const std::size_t at = text.find(mark);
    if (at == std::string_view::npos || at == 0) continue;
    if (is_digit(text[at - 1]) && at + mark.size() < text.size() && is_digit(text[at + mark.size()])) return mark;
  }
  return {};
}

std::string comma_hint(std::string_view text) {
  const std::string joined = without(text, ",");
  if (!to_number(joined)) return "";
  const std::size_t first = text.find(',');
  if (text.find(',', first + 1) != std::string_view::npos) return "write " + joined + " without separators";
  std::string pointed(text);
  pointed[first] = '.';
  if (text.size() - first == 4 && first > 0 && first <= 3 && text[0] != '0') {
    return fmt::format("write {} if the comma parts thousands, {} if it is a decimal mark", joined, pointed);
  }
  return to_number(pointed) ? "write " + pointed + " with a decimal point" : "";
}

/// Letters that stand for digits in retyped or scanned tables.
std::string digits_for_letters(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c == 'O' || c == 'o') c = '0';
    if (c == 'l' || c == 'I') c = '1';
  }
  return out;
}

}  // namespace

std::string number_hint(std::string_view found) {
  const std::string_view text = trim(found);
  if (text.empty()) return "";
  if (text.back() == '%') {
    const auto percent = to_number(text.substr(0, text.size() - 1));
    return percent ? fmt::format("write the share {:g}", *percent / 100) : "";
  }
  const std::string word = lower(text);
  for (const std::string_view unknown : {"nan", "inf", "-inf", "n/a", "na", "none", "null", "-", "?", "--", "tbd", "oom"}) {
    if (word == unknown) return "leave the field empty where the figure is not known";
  }
  if (const std::string_view mark = thousands_mark(text); !mark.empty()) {
    const std::string joined = without(text, mark);
    if (to_number(joined)) return "write " + joined + " without blanks or marks";
  }
  if (text.find(',') != std::string_view::npos) {
    if (std::string hint = comma_hint(text); !hint.empty()) return hint;
  }
  if (to_number(digits_for_letters(text))) return "letters in place of digits? write " + digits_for_letters(text);
  if (text.front() == '~' || text.front() == '<' || text.front() == '>' || text.substr(0, 3) == "\xE2\x89\x88") {
    return "write the number alone, and that it is approximate in the notes";
  }
  std::size_t end = text.size();
  while (end > 0 && !is_digit(text[end - 1]) && text[end - 1] != '.') --end;
  const std::string_view rest = trim(text.substr(end));
  if (end == 0 || !to_number(text.substr(0, end))) return "";
  if (rest == "e" || rest == "E" || rest == "e+" || rest == "e-" || rest == "E+" || rest == "E-") {
    return "the exponent is missing";
  }
  return "write the number alone, in the unit of the column";
}

std::string in_quotes(std::string_view found) {
  std::string out = "'";
  out += found.substr(0, kShown);
  std::replace_if(out.begin(), out.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }, '?');
  return out + (found.size() > kShown ? "...'" : "'");
}

}  // namespace chokepoint::validate
