// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/catalogue_text.hpp>
#include <chokepoint/base/text.hpp>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>

namespace chokepoint {

std::string letters_and_digits(std::string_view text) {
  const auto is_digit_at = [&](std::size_t i) { return i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])) != 0; };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const bool decimal_point = c == '.' && i > 0 && is_digit_at(i - 1) && is_digit_at(i + 1);
    if (std::isalnum(c) != 0 || decimal_point) out += static_cast<char>(std::tolower(c));
  }
  return out;
}

std::vector<std::string> CatalogueText::header(std::size_t index, std::string_view key) const {
  std::vector<std::string> values;
  std::string_view rest = documents_[index];
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
    if (line.size() <= key.size() || line.substr(0, key.size()) != key || line[key.size()] != ':') continue;
    std::string_view value = trim(line.substr(key.size() + 1));
    if (!value.empty() && value.front() == '[') value.remove_prefix(1);
    if (!value.empty() && value.back() == ']') value.remove_suffix(1);
    for (const std::string_view piece : split(value, ',')) {
      if (!trim(piece).empty()) values.emplace_back(trim(piece));
    }
    break;
  }
  return values;
}

std::optional<std::size_t> CatalogueText::find(std::string_view name) const {
  const std::string wanted = letters_and_digits(name);
  if (wanted.empty()) return std::nullopt;
  const auto same = [&](const std::string& candidate) { return letters_and_digits(candidate) == wanted; };
  for (const std::string_view key : {std::string_view("name"), std::string_view("aliases")}) {
    for (std::size_t i = 0; i < documents_.size(); ++i) {
      const std::vector<std::string> names = header(i, key);
      if (std::any_of(names.begin(), names.end(), same)) return i;
    }
  }
  return std::nullopt;
}

std::optional<std::string> CatalogueText::suggestion(std::string_view name) const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < documents_.size(); ++i) {
    for (std::string& candidate : header(i, "name")) names.push_back(std::move(candidate));
  }
  if (const auto close = nearest(name, names)) return close;
  // A name cut short or with too much detail still deserves a hint: the first entry that shares the longest beginning.
  const std::string wanted = letters_and_digits(name);
  std::size_t best_length = 2;
  std::optional<std::string> best;
  for (const std::string& candidate : names) {
    const std::string plain = letters_and_digits(candidate);
    const auto [end, unused] = std::mismatch(plain.begin(), plain.begin() + static_cast<std::ptrdiff_t>(std::min(plain.size(), wanted.size())),
                                             wanted.begin());
    const auto length = static_cast<std::size_t>(end - plain.begin());
    if (length > best_length) {
      best_length = length;
      best = candidate;
    }
  }
  return best;
}

Result<YamlMap> CatalogueText::parse(std::size_t index) const {
  std::size_t lines_before = 0;
  for (std::size_t i = 0; i < index; ++i) {
    lines_before += static_cast<std::size_t>(std::count(documents_[i].begin(), documents_[i].end(), '\n')) + 1;
  }
  auto map = YamlMap::parse(documents_[index], std::string(file_));
  if (!map && map.error().pos.line > 0) map.error().pos.line += static_cast<int>(lines_before);
  return map;
}

tl::unexpected<Error> CatalogueText::unknown(std::string_view kind, std::string_view name, std::string_view command) const {
  std::vector<std::string> notes;
  if (const auto close = suggestion(name)) notes.push_back(fmt::format("did you mean '{}'?", *close));
  notes.push_back(fmt::format("'chokepoint {}' lists all", command));
  return fail(fmt::format("unknown {} '{}'", kind, name.substr(0, 200)), {}, std::move(notes));
}

void broken_catalogue(const Error& error) {
  std::fputs(("internal error: a compiled-in catalogue is broken\n" + format(error)).c_str(), stderr);
  std::abort();
}

}  // namespace chokepoint
