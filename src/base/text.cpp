// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/text.hpp>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace chokepoint {

namespace {
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\v' || c == '\f'; }
char to_lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }
}  // namespace

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  for (;;) {
    const std::size_t end = text.find(separator);
    pieces.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return pieces;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> split_blanks(std::string_view text) {
  std::vector<std::string_view> pieces;
  std::size_t i = 0;
  while (i < text.size()) {
    while (i < text.size() && is_blank(text[i])) ++i;
    const std::size_t begin = i;
    while (i < text.size() && !is_blank(text[i])) ++i;
    if (i > begin) pieces.push_back(text.substr(begin, i - begin));
  }
  return pieces;
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    lines.push_back(line);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

bool starts_with_ignoring_case(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() &&
         std::equal(prefix.begin(), prefix.end(), text.begin(), [](char a, char b) { return to_lower(a) == to_lower(b); });
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), to_lower);
  return out;
}

std::optional<double> to_number(std::string_view text) {
  text = trim(text);
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<int> to_int(std::string_view text) {
  text = trim(text);
  int value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates) {
  constexpr std::size_t kLongestName = 256;  // what is longer was no misspelt name, and comparing costs its square
  std::optional<std::string> best;
  if (word.size() > kLongestName) return best;
  std::size_t best_distance = std::min<std::size_t>(4, word.size() / 2 + 1);
  std::vector<std::size_t> row;
  for (const std::string& candidate : candidates) {
    const std::size_t apart = std::max(candidate.size(), word.size()) - std::min(candidate.size(), word.size());
    if (apart >= best_distance) continue;  // the distance is at least that
    row.resize(candidate.size() + 1);
    for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= word.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t j = 1; j < row.size(); ++j) {
        const std::size_t cost = to_lower(word[i - 1]) == to_lower(candidate[j - 1]) ? 0 : 1;
        const std::size_t next = std::min({row[j] + 1, row[j - 1] + 1, diagonal + cost});
        diagonal = row[j];
        row[j] = next;
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = candidate;
    }
  }
  return best;
}

std::string short_list(const std::vector<std::string>& names) {
  std::string text;
  std::size_t i = 0;
  const auto number_of = [](const std::string& name, std::string& stem) {
    std::size_t digits = name.size();
    while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
    stem = name.substr(0, digits);
    return digits == name.size() || name.size() - digits > 6 ? -1 : std::stoi(name.substr(digits));
  };
  while (i < names.size()) {
    std::string stem;
    const int first = number_of(names[i], stem);
    std::size_t end = i + 1;
    std::string other;
    while (end < names.size() && first >= 0 && number_of(names[end], other) == first + static_cast<int>(end - i) && other == stem) ++end;
    text += (text.empty() ? "" : ", ") + names[i];
    if (end - i > 1) text += (end - i > 2 ? "-" : ", " + stem) + std::to_string(first + static_cast<int>(end - i) - 1);
    i = end;
  }
  return text;
}

std::string strip_ansi(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b' && i + 1 < text.size() && text[i + 1] == '[') {
      i += 2;
      while (i < text.size() && !(text[i] >= '@' && text[i] <= '~')) ++i;
      continue;
    }
    out += text[i];
  }
  return out;
}

}  // namespace chokepoint
