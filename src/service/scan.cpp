// SPDX-License-Identifier: Apache-2.0
#include "scan.hpp"

#include <algorithm>

namespace chokepoint::service {
namespace {

constexpr int kDeepest = 64;
constexpr std::string_view kBlank = " \t\r\n";

/// Position after the string that begins at `at` with its quote.
std::size_t after_string(std::string_view text, std::size_t at) {
  for (++at; at < text.size(); ++at) {
    if (text[at] == '\\') ++at;
    else if (text[at] == '"') return at + 1;
  }
  return text.size();
}

bool is_true_after_colon(std::string_view text, std::size_t at) {
  at = std::min(text.find_first_not_of(kBlank, at), text.size());
  if (at == text.size() || text[at] != ':') return false;
  at = std::min(text.find_first_not_of(kBlank, at + 1), text.size());
  return text.substr(at, 4) == "true";
}

}  // namespace

SourcePos place_of(std::string_view text, std::size_t byte) {
  SourcePos pos{"request", 1, 1};
  for (std::size_t i = 0; i + 1 < std::min(byte, text.size()); ++i) {
    pos.column = text[i] == '\n' ? 1 : pos.column + 1;
    pos.line += text[i] == '\n' ? 1 : 0;
  }
  return pos;
}

std::optional<SourcePos> nested_too_deep(std::string_view text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '"') {
      i = after_string(text, i);
      continue;
    }
    if ((c == '{' || c == '[') && ++depth > kDeepest) return place_of(text, i + 1);
    if (c == '}' || c == ']') --depth;
    ++i;
  }
  return std::nullopt;
}

bool wants_async(std::string_view text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '"') {
      const std::size_t end = after_string(text, i);
      if (depth == 1 && text.substr(i, end - i) == "\"async\"" && is_true_after_colon(text, end)) return true;
      i = end;
      continue;
    }
    depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
    ++i;
  }
  return false;
}

}  // namespace chokepoint::service
