// SPDX-License-Identifier: Apache-2.0
#include "encoding.hpp"
#include "scan.hpp"

#include <chokepoint/base/text.hpp>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <fmt/format.h>

namespace chokepoint::wiring {

std::optional<std::string_view> after(std::string_view text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  return text.substr(at + mark.size());
}

std::optional<std::string_view> between(std::string_view text, std::string_view open, std::string_view close) {
  const auto rest = after(text, open);
  if (!rest) return std::nullopt;
  const std::size_t end = rest->find(close);
  if (end == std::string_view::npos) return std::nullopt;
  return rest->substr(0, end);
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool contains_ignoring_case(std::string_view text, std::string_view part) { return contains(lower(text), lower(part)); }

std::optional<double> leading_number(std::string_view text) {
  text = trim(text);
  std::size_t end = 0;
  if (end < text.size() && (text[end] == '-' || text[end] == '+')) ++end;
  while (end < text.size() && (std::isdigit(static_cast<unsigned char>(text[end])) != 0 || text[end] == '.')) ++end;
  return to_number(text.substr(0, end));
}

std::optional<int> leading_int(std::string_view text) {
  text = trim(text);
  std::size_t end = 0;
  while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
  return to_int(text.substr(0, end));
}

std::optional<unsigned long long> to_hex(std::string_view text) {
  if (text.substr(0, 2) == "0x" || text.substr(0, 2) == "0X") text.remove_prefix(2);
  unsigned long long value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (text.empty() || code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

std::string pci_address(std::string_view text) {
  text = trim(text);
  unsigned long long domain = 0;
  unsigned long long bus = 0;
  unsigned long long device = 0;
  unsigned long long function = 0;
  if (const std::size_t dot = text.find('.'); dot != std::string_view::npos) {
    const auto value = to_hex(text.substr(dot + 1));
    if (!value) return {};
    function = *value;
    text = text.substr(0, dot);
  }
  std::vector<unsigned long long> parts;
  for (const std::string_view piece : split(text, ':')) {
    const auto value = to_hex(piece);
    if (!value || *value > 0xffffffffULL) return {};
    parts.push_back(*value);
  }
  if (parts.size() > 3) return {};
  if (parts.size() == 3) domain = parts[0];
  if (parts.size() >= 2) device = parts.back();
  bus = parts.size() == 3 ? parts[1] : parts[0];
  if (bus > 0xff || device > 0x1f || function > 7) return {};
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", domain, bus, device, function);
}

std::optional<std::pair<std::string_view, std::string_view>> key_value(std::string_view line) {
  for (std::size_t at = line.find(':'); at != std::string_view::npos; at = line.find(':', at + 1)) {
    const bool open = at > 0 && (line[at - 1] == ' ' || line[at - 1] == '\t');
    const bool close = at + 1 == line.size() || line[at + 1] == ' ' || line[at + 1] == '\t';
    if (open || close) return std::make_pair(trim(line.substr(0, at)), trim(line.substr(at + 1)));
  }
  return std::nullopt;
}

std::size_t indent_of(std::string_view line) {
  constexpr std::size_t kTab = 8;
  std::size_t column = 0;
  for (const char c : line) {
    if (c == ' ') ++column;
    else if (c == '\t') column = (column / kTab + 1) * kTab;
    else break;
  }
  return column;
}

namespace {

/// UTF-16 with or without byte order mark -> its ASCII characters, others as '?'.
std::string from_utf16(std::string_view text, bool big_endian) {
  std::string out;
  out.reserve(text.size() / 2);
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    const auto low = static_cast<unsigned char>(text[i + (big_endian ? 1 : 0)]);
    const auto high = static_cast<unsigned char>(text[i + (big_endian ? 0 : 1)]);
    if (high == 0xfe && low == 0xff) continue;
    out += high == 0 && low < 0x80 ? static_cast<char>(low) : '?';
  }
  return out;
}

}  // namespace

char utf16_order(std::string_view text) {
  if (text.substr(0, 2) == "\xff\xfe") return 'l';
  if (text.substr(0, 2) == "\xfe\xff") return 'b';
  // Unmarked: what our tools print is nearly all ASCII, so every other byte is NUL.
  const std::string_view head = text.substr(0, 1024);
  std::size_t even = 0;
  std::size_t odd = 0;
  for (std::size_t i = 0; i < head.size(); ++i) (i % 2 == 0 ? even : odd) += head[i] == '\0' ? 1 : 0;
  const std::size_t most = head.size() * 4 / 10;
  if (head.size() < 8) return '\0';
  return odd > most && even == 0 ? 'l' : even > most && odd == 0 ? 'b' : '\0';
}

std::string plain_text(std::string_view text, const std::string& file, std::vector<Note>& notes) {
  const auto repaired = [&](std::string words) { notes.push_back({"repaired: " + std::move(words), {file, 0, 0}}); };
  if (text.substr(0, 3) == "\xef\xbb\xbf") text.remove_prefix(3);
  std::string out;
  if (const char order = utf16_order(text); order != '\0') {
    out = from_utf16(text, order == 'b');
    repaired("UTF-16 read as text");
  } else {
    out = std::string(text);
  }
  const std::size_t zeros = static_cast<std::size_t>(std::count(out.begin(), out.end(), '\0'));
  if (zeros > 0) {
    out.erase(std::remove(out.begin(), out.end(), '\0'), out.end());
    repaired(fmt::format("{} NUL bytes left out", zeros));
  }
  if (out.find('\n') == std::string::npos && out.find('\r') != std::string::npos) {
    std::replace(out.begin(), out.end(), '\r', '\n');
    repaired("lines that end with CR alone");
  }
  if (out.find('\x1b') != std::string::npos) {
    const std::size_t before = out.size();
    out = strip_ansi(out);
    repaired(fmt::format("{} bytes of terminal colour codes left out", before - out.size()));
  }
  return out;
}

namespace {

/// One bracket group "01-03,7" -> "01", "02", "03", "7".
bool expand_ranges(std::string_view ranges, std::size_t limit, std::vector<std::string>& out) {
  for (const std::string_view range : split(ranges, ',')) {
    const std::size_t dash = range.find('-');
    const std::string_view first = trim(range.substr(0, dash));
    const std::string_view last = dash == std::string_view::npos ? first : trim(range.substr(dash + 1));
    const auto begin = to_int(first);
    const auto end = to_int(last);
    constexpr std::size_t kMaxDigits = 9;
    if (!is_digits(first) || !is_digits(last) || first.size() > kMaxDigits || !begin || !end || *end < *begin) return false;
    if (static_cast<std::size_t>(*end - *begin) + out.size() >= limit) return false;
    for (int i = *begin; i <= *end; ++i) out.push_back(fmt::format("{:0{}}", i, first.size()));
  }
  return true;
}

bool expand_one(std::string_view name, std::size_t limit, std::vector<std::string>& out) {
  constexpr std::size_t kMaxName = 1024;
  if (name.size() > kMaxName) return false;
  std::vector<std::string> names{""};
  while (!name.empty()) {
    const std::size_t open = name.find('[');
    for (std::string& prefix : names) prefix += name.substr(0, open);
    if (open == std::string_view::npos) break;
    const std::size_t close = name.find(']', open);
    if (close == std::string_view::npos) return false;
    std::vector<std::string> middle;
    if (!expand_ranges(name.substr(open + 1, close - open - 1), limit, middle)) return false;
    if (names.size() * middle.size() + out.size() > limit) return false;
    std::vector<std::string> longer;
    for (const std::string& prefix : names) {
      for (const std::string& part : middle) longer.push_back(prefix + part);
    }
    names = std::move(longer);
    name.remove_prefix(close + 1);
  }
  for (std::string& found : names) {
    if (!found.empty()) out.push_back(std::move(found));
  }
  return out.size() <= limit;
}

}  // namespace

std::optional<std::vector<std::string>> expand_host_list(std::string_view text, std::size_t limit) {
  std::vector<std::string> out;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '[') ++depth;
    if (i < text.size() && text[i] == ']') --depth;
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    if (!expand_one(trim(text.substr(begin, i - begin)), limit, out)) return std::nullopt;
    begin = i + 1;
  }
  return out;
}

}  // namespace chokepoint::wiring
