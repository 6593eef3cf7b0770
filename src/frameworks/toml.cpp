// SPDX-License-Identifier: Apache-2.0
// TOML through toml++, which is header-only and slow to compile: this file alone includes it.
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include <fmt/format.h>

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
    const std::string path = prefix.empty() ? std::string(std::string_view(key)) : prefix + "." + std::string(std::string_view(key));
    if (const toml::table* inner = value.as_table()) {
      flatten(*inner, path, file, out);
      continue;
    }
    const auto begin = value.source().begin;
    const toml::array* array = value.as_array();
    out.push_back({path, array ? listed(*array) : scalar(value),
                   {file, static_cast<int>(begin.line), static_cast<int>(begin.column)}, Use::kUnknown, ""});
  }
}

}  // namespace

Result<std::vector<Setting>> flatten_toml(std::string_view text, const std::string& file) {
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    const auto begin = parsed.error().source().begin;
    return fail(fmt::format("not valid TOML: {}", parsed.error().description()),
                {file, static_cast<int>(begin.line), static_cast<int>(begin.column)});
  }
  std::vector<Setting> out;
  flatten(parsed.table(), "", file, out);
  return out;
}

}  // namespace chokepoint::frameworks
