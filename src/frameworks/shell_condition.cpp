// SPDX-License-Identifier: Apache-2.0
#include "shell_condition.hpp"

#include <chokepoint/base/text.hpp>

#include <algorithm>
#include <string_view>

namespace chokepoint::frameworks {

namespace {

/// A variable or a command whose value the script does not say.
bool unknown(std::string_view word) { return word.find('$') != std::string_view::npos || word.find('`') != std::string_view::npos; }

/// Patterns of [[ ]] and case may match anything.
bool pattern(std::string_view word) { return word.find_first_of("*?[") != std::string_view::npos; }

std::optional<bool> compared(std::string_view left, std::string_view op, std::string_view right) {
  if (unknown(left) || unknown(right)) return std::nullopt;
  if (op == "=" || op == "==") return pattern(right) ? std::nullopt : std::optional<bool>(left == right);
  if (op == "!=") return pattern(right) ? std::nullopt : std::optional<bool>(left != right);
  const auto a = to_int(left);
  const auto b = to_int(right);
  if (!a || !b) return std::nullopt;
  if (op == "-eq") return *a == *b;
  if (op == "-ne") return *a != *b;
  if (op == "-gt") return *a > *b;
  if (op == "-ge") return *a >= *b;
  if (op == "-lt") return *a < *b;
  if (op == "-le") return *a <= *b;
  return std::nullopt;
}

}  // namespace

std::optional<bool> condition(const std::vector<std::string>& words) {
  if (words.empty()) return std::nullopt;
  if (words.front() == "!") {
    const auto inner = condition({words.begin() + 1, words.end()});
    return inner ? std::optional<bool>(!*inner) : std::nullopt;
  }
  if (words.size() == 1 && (words.front() == "true" || words.front() == "false")) return words.front() == "true";
  const bool single = words.front() == "[" && words.back() == "]";
  const bool twice = words.front() == "[[" && words.back() == "]]";
  if (!single && !twice && words.front() != "test") return std::nullopt;
  std::vector<std::string> inner(words.begin() + 1, words.end() - (single || twice ? 1 : 0));
  if (!inner.empty() && inner.front() == "!") {
    inner.erase(inner.begin());
    const auto truth = inner.size() == 3 ? compared(inner[0], inner[1], inner[2]) : std::nullopt;
    return truth ? std::optional<bool>(!*truth) : std::nullopt;
  }
  if (inner.size() == 3) return compared(inner[0], inner[1], inner[2]);
  if (inner.size() != 2 || unknown(inner[1])) return std::nullopt;
  if (inner[0] == "-n") return !inner[1].empty();
  if (inner[0] == "-z") return inner[1].empty();
  return std::nullopt;  // files that only the machine knows
}

Branch Branches::now() const {
  Branch out = guard_;
  for (const Level& level : levels_) {
    if (level.state == Branch::kSkipped || out == Branch::kSkipped) return Branch::kSkipped;
    if (level.state == Branch::kOpen) out = Branch::kOpen;
  }
  return out;
}

void Branches::next(std::optional<bool> truth) {
  if (levels_.empty()) return;
  Level& level = levels_.back();
  if (level.done || truth == false) {
    level.state = Branch::kSkipped;
  } else if (level.open || !truth) {
    level.state = Branch::kOpen;
    level.open = true;
  } else {
    level.state = Branch::kTaken;
    level.done = true;
  }
}

void Branches::end() {
  if (!levels_.empty()) levels_.pop_back();
}

}  // namespace chokepoint::frameworks
