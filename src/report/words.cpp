// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/report/words.hpp>

#include <algorithm>
#include <chokepoint/base/text.hpp>
#include <optional>

namespace chokepoint::embedded {
extern const std::string_view words_ru;
}

namespace chokepoint::report {

namespace {

/// Entries inside entries: a sentence, its clauses one after the other, a clause's link.
constexpr int kDeepest = 8;

std::string filled(std::string_view form, const std::vector<std::string>& values) {
  std::string out;
  std::size_t next = 0;
  for (std::size_t i = 0; i < form.size(); ++i) {
    const std::size_t close = form[i] == '{' ? form.find('}', i) : std::string_view::npos;
    const bool short_enough = close != std::string_view::npos && close - i <= 2;
    if (!short_enough) {
      out += form[i];
      continue;
    }
    const std::size_t at = close == i + 1 ? next++ : static_cast<std::size_t>(form[i + 1] - '1');
    if (at < values.size()) out += values[at];
    i = close;
  }
  return out;
}

/// The parts of `text` that stand where the pattern has gaps; none when it does not match.
std::optional<std::vector<std::string>> captured(const std::vector<std::string>& pieces, std::string_view text) {
  if (text.substr(0, pieces.front().size()) != pieces.front()) return std::nullopt;
  std::vector<std::string> parts;
  std::size_t at = pieces.front().size();
  for (std::size_t i = 1; i < pieces.size(); ++i) {
    const std::string& piece = pieces[i];
    const bool last = i + 1 == pieces.size();
    if (last && text.size() < at + piece.size()) return std::nullopt;
    // The last gap is as short as can be: what precedes it may hold the same signs, "Idle (no work) (3 % of the time)".
    const bool before_last = i + 2 == pieces.size();
    const std::size_t room =
        text.size() < pieces.back().size() + piece.size() ? 0 : text.size() - pieces.back().size() - piece.size();
    const std::size_t found = last          ? text.size() - piece.size()
                              : before_last ? text.rfind(piece, room)
                                            : text.find(piece, at);
    if (found < at) return std::nullopt;
    if (found == std::string_view::npos || text.substr(found, piece.size()) != piece || found == at)
      return std::nullopt;
    parts.emplace_back(text.substr(at, found - at));
    at = found + piece.size();
  }
  return parts;
}

std::size_t literal(const std::vector<std::string>& pieces) {
  std::size_t sum = 0;
  for (const std::string& piece : pieces) sum += piece.size();
  return sum;
}

}  // namespace

Words::Words(std::string_view lang, std::string_view catalogue) : lang_(lang) {
  std::string_view english;
  for (const std::string_view line : split_lines(catalogue)) {
    if (line.empty() || line.front() == '#') {
      english = {};
    } else if (english.empty()) {
      english = line;
    } else {
      entries_.emplace(english, line);
      english = {};
    }
  }
  for (const auto& [text, translation] : entries_) {
    Pattern pattern{{}, translation};
    std::size_t at = 0;
    for (std::size_t gap = text.find("{}"); gap != std::string::npos; gap = text.find("{}", at)) {
      pattern.pieces.push_back(text.substr(at, gap - at));
      at = gap + 2;
    }
    if (pattern.pieces.empty()) continue;
    pattern.pieces.push_back(text.substr(at));
    if (literal(pattern.pieces) > 2) patterns_.push_back(std::move(pattern));
  }
  std::stable_sort(patterns_.begin(), patterns_.end(),
                   [](const Pattern& a, const Pattern& b) { return literal(a.pieces) > literal(b.pieces); });
}

const Words& Words::of(std::string_view lang) {
  static const Words english("en", "");
  if (lang != "ru") return english;
  static const Words russian("ru", embedded::words_ru);
  return russian;
}

std::string Words::translated(std::string_view text, int depth) const {
  if (const auto whole = entries_.find(text); whole != entries_.end()) return whole->second;
  if (depth >= kDeepest) return std::string(text);
  for (const Pattern& pattern : patterns_) {
    auto parts = captured(pattern.pieces, text);
    if (!parts) continue;
    for (std::string& part : *parts) part = translated(part, depth + 1);
    return filled(pattern.translation, *parts);
  }
  return std::string(text);
}

std::string Words::operator()(std::string_view text) const {
  return entries_.empty() ? std::string(text) : translated(text, 0);
}

std::string Words::operator()(std::string_view text, std::initializer_list<std::string> values) const {
  const auto entry = entries_.find(text);
  return filled(entry == entries_.end() ? text : std::string_view(entry->second), std::vector<std::string>(values));
}

}  // namespace chokepoint::report
