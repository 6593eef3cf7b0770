// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/text.hpp>
#include <chokepoint/report/style.hpp>
#include <chokepoint/report/words.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace chokepoint::report {

std::string Style::wrap(std::string_view code, std::string_view text) const {
  if (!colour) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

std::string Style::say(std::string_view text) const { return words == nullptr ? std::string(text) : (*words)(text); }

std::string Style::say(std::string_view text, std::initializer_list<std::string> values) const {
  return (words == nullptr ? Words::english() : *words)(text, values);
}

Style terminal_style(std::string_view lang) {
  Style style;
  style.words = &Words::of(lang);
  style.bars = isatty(STDOUT_FILENO) == 1;
  style.colour = style.bars && std::getenv("NO_COLOR") == nullptr;
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40) style.width = size.ws_col;
  return style;
}

std::string bar(double fraction, int cells) {
  static constexpr std::string_view kEighths[] = {"", "\u258f", "\u258e", "\u258d", "\u258c", "\u258b", "\u258a", "\u2589"};
  const double clamped = std::isfinite(fraction) ? std::clamp(fraction, 0.0, 1.0) : 0.0;
  const long eighths = std::lround(clamped * cells * 8);
  std::string out;
  for (long i = 0; i < eighths / 8; ++i) out += "\u2588";
  out += kEighths[eighths % 8];
  return out;
}

int display_width(std::string_view text) {
  const std::string plain = strip_ansi(text);
  return static_cast<int>(std::count_if(plain.begin(), plain.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u;
  }));
}

std::string pad_right(std::string_view text, int columns) {
  return std::string(text) + std::string(static_cast<std::size_t>(std::max(0, columns - display_width(text))), ' ');
}

std::string pad_left(std::string_view text, int columns) {
  return std::string(static_cast<std::size_t>(std::max(0, columns - display_width(text))), ' ') + std::string(text);
}

std::vector<std::string> wrapped(std::string_view text, int columns) {
  std::vector<std::string> lines{""};
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    at = end + 1;
    if (word.empty()) continue;
    if (!lines.back().empty() && display_width(lines.back()) + 1 + display_width(word) > columns) lines.emplace_back();
    if (!lines.back().empty()) lines.back() += ' ';
    lines.back() += word;
  }
  return lines;
}

}  // namespace chokepoint::report
