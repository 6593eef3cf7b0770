// SPDX-License-Identifier: Apache-2.0
// TOML through toml++, which is header-only and slow to compile: this file alone includes it.
//
// A table header such as "[<a]" reaches an assertion of toml++ 3.3, which a release build turns into undefined
// behaviour: its assertions throw here, in every build.
#if __has_include(<toml++/toml.h>)
#undef NDEBUG
#include <stdexcept>
namespace chokepoint::frameworks {
constexpr void assert_toml(bool holds) {
  if (!holds) throw std::logic_error("an assertion of toml++");
}
}  // namespace chokepoint::frameworks
#define TOML_ASSERT(expr) ::chokepoint::frameworks::assert_toml(static_cast<bool>(expr))
#define TOML_EXCEPTIONS 1
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include <chokepoint/base/text.hpp>

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <optional>

#include "settings.hpp"

namespace chokepoint::frameworks {

namespace {

std::string scalar(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* integer = node.as_integer()) return fmt::format("{}", integer->get());
  if (const auto* real = node.as_floating_point()) return fmt::format("{}", real->get());
  if (const auto* truth = node.as_boolean()) return truth->get() ? "true" : "false";
  return "(a date)";
}

std::string listed(const toml::array& array) {
  std::string out;
  for (const toml::node& item : array) {
    if (item.is_table() || item.is_array()) return "(a list of sections)";
    out += (out.empty() ? "" : ",") + scalar(item);
  }
  return out;
}

/// toml++ refuses documents nested deeper than 256 levels, so the recursion is bounded.
void flatten(const toml::table& table, const std::string& prefix, const std::string& file, std::vector<Setting>& out) {
  for (auto&& [key, value] : table) {
    const std::string path =
        prefix.empty() ? std::string(std::string_view(key)) : prefix + "." + std::string(std::string_view(key));
    if (const toml::table* inner = value.as_table()) {
      flatten(*inner, path, file, out);
      continue;
    }
    const auto begin = value.source().begin;
    const toml::array* array = value.as_array();
    out.push_back({path,
                   array ? listed(*array) : scalar(value),
                   {file, static_cast<int>(begin.line), static_cast<int>(begin.column)},
                   Use::kUnknown,
                   ""});
  }
}

/// Offset of the first byte that is no UTF-8 or a control character; toml++'s own checks assume there is none in names.
std::optional<std::size_t> find_foreign_byte(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const std::size_t length = byte < 0x80         ? 1
                               : byte >> 5 == 0x6  ? 2
                               : byte >> 4 == 0xe  ? 3
                               : byte >> 3 == 0x1e ? 4
                                                   : 0;
    if (length == 0 || i + length > text.size() || (byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r'))
      return i;
    for (std::size_t k = 1; k < length; ++k) {
      if (static_cast<unsigned char>(text[i + k]) >> 6 != 0x2) return i;
    }
    i += length;
  }
  return std::nullopt;
}

/// The first table header with a character that no bare name has.
SourcePos odd_header(std::string_view text, const std::string& file) {
  int line = 0;
  for (const std::string_view each : split_lines(text)) {
    ++line;
    const std::size_t begin = each.find_first_not_of(" \t[");
    if (begin == std::string_view::npos || !trim(each).starts_with('[')) continue;
    const std::size_t end = each.find(']', begin);
    for (std::size_t i = begin; i < std::min(end, each.size()); ++i) {
      const char c = each[i];
      const bool bare = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.' || c == ' ' || c == '"' || c == '\'';
      if (!bare) return {file, line, static_cast<int>(i) + 1};
    }
  }
  return {file, 0, 0};
}

}  // namespace

Result<std::vector<Setting>> flatten_toml(std::string_view text, const std::string& file) {
  if (const auto offset = find_foreign_byte(text)) {
    const int line =
        1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(*offset), '\n'));
    return fail("holds a byte that is no UTF-8 text, expected a TOML file", {file, line, 0});
  }
  try {
    const toml::table parsed = toml::parse(text);
    std::vector<Setting> out;
    flatten(parsed, "", file, out);
    // Tables come sorted by name; people read files by line.
    std::stable_sort(out.begin(), out.end(),
                     [](const Setting& a, const Setting& b) { return a.pos.line < b.pos.line; });
    return out;
  } catch (const toml::parse_error& error) {
    const auto begin = error.source().begin;
    return fail(fmt::format("not valid TOML: {}", error.description()),
                {file, static_cast<int>(begin.line), static_cast<int>(begin.column)});
  } catch (const std::logic_error&) {
    return fail("not valid TOML: a table's name must be letters, digits, '-', '_' or text in quotes", odd_header(text, file));
  }
}

}  // namespace chokepoint::frameworks

#else
#include "settings.hpp"

namespace chokepoint::frameworks {

Result<std::vector<Setting>> flatten_toml(std::string_view, const std::string& file) {
  return fail("this program was built without toml++ and cannot read TOML", {file, 0, 0},
              {"install libtomlplusplus-dev and build again; DeepSpeed, accelerate, NeMo and Megatron files need none"});
}

}  // namespace chokepoint::frameworks
#endif
