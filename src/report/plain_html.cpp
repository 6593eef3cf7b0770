// SPDX-License-Identifier: Apache-2.0
// The Markdown that these reports write, and no other, as HTML for readers whose browser runs no scripts.
#include "plain_html.hpp"

#include <chokepoint/base/text.hpp>
#include <vector>

namespace chokepoint::report {

namespace {

/// One character of text. Cells have their '<' and '&' escaped already: such entities stay, everything else is escaped.
void put(std::string& out, std::string_view text, std::size_t at) {
  const char c = text[at];
  if (c == '&') {
    for (const std::string_view entity : {"&lt;", "&gt;", "&amp;", "&quot;"}) {
      if (text.substr(at, entity.size()) != entity) continue;
      out += c;
      return;
    }
    out += "&amp;";
  } else if (c == '<') {
    out += "&lt;";
  } else if (c == '>') {
    out += "&gt;";
  } else {
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
}

/// Text with **strong** and `code`; a backslash takes the meaning from the sign after it.
std::string inline_html(std::string_view text) {
  std::string out;
  bool strong = false;
  bool code = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && !code) {
      put(out, text, ++i);
    } else if (text[i] == '`') {
      out += code ? "</code>" : (strong ? "" : "<code>");
      if (code || !strong) code = !code;
    } else if (!code && text.substr(i, 2) == "**") {
      out += strong ? "</strong>" : "<strong>";
      strong = !strong;
      ++i;
    } else {
      put(out, text, i);
    }
  }
  return out + (code ? "</code>" : "") + (strong ? "</strong>" : "");
}

std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells(1);
  for (std::size_t i = 1; i < line.size(); ++i) {
    if (line[i] == '\\' && i + 1 < line.size()) {
      cells.back() += line[i];
      cells.back() += line[++i];
    } else if (line[i] == '|') {
      cells.emplace_back();
    } else {
      cells.back() += line[i];
    }
  }
  if (cells.size() > 1) cells.pop_back();  // after the last bar
  return cells;
}

std::string row_html(std::string_view line, const std::string& rule, std::string_view tag) {
  const std::vector<std::string> cells = cells_of(line);
  const std::vector<std::string> rules = cells_of(rule);
  std::string out = "<tr>";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const bool right = i < rules.size() && trim(rules[i]).ends_with(':');
    out += "<" + std::string(tag) + (right ? " style=\"text-align:right\">" : " style=\"text-align:left\">") +
           inline_html(trim(cells[i])) + "</" + std::string(tag) + ">";
  }
  return out + "</tr>\n";
}

/// The heading of a part that Markdown readers can fold; none otherwise.
std::string_view summary_of(std::string_view line) {
  constexpr std::string_view kOpen = "<details><summary>";
  constexpr std::string_view kClose = "</summary>";
  if (!line.starts_with(kOpen) || !line.ends_with(kClose)) return {};
  return line.substr(kOpen.size(), line.size() - kOpen.size() - kClose.size());
}

}  // namespace

std::string plain_html(std::string_view markdown) {
  std::string out;
  const std::vector<std::string_view> lines = split_lines(markdown);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = trim(lines[i]);
    if (line.empty() || line == "</details>") continue;
    if (const std::string_view summary = summary_of(line); !summary.empty()) {
      out += "<h2>" + inline_html(summary) + "</h2>\n";
      continue;
    }
    if (line.starts_with("|") && i + 1 < lines.size() && trim(lines[i + 1]).starts_with("|-")) {
      const std::string rule(trim(lines[i + 1]));
      out += "<table>\n<thead>" + row_html(line, rule, "th") + "</thead>\n<tbody>\n";
      for (i += 2; i < lines.size() && trim(lines[i]).starts_with("|"); ++i) out += row_html(trim(lines[i]), rule, "td");
      out += "</tbody></table>\n";
      --i;
    } else if (line.starts_with("#")) {
      const std::size_t level = line.find_first_not_of('#');
      out += "<h2>" + inline_html(trim(line.substr(std::min(level, line.size())))) + "</h2>\n";
    } else if (line.starts_with("- ")) {
      out += "<ul>\n";
      for (; i < lines.size() && trim(lines[i]).starts_with("- "); ++i)
        out += "<li>" + inline_html(trim(lines[i]).substr(2)) + "</li>\n";
      out += "</ul>\n";
      --i;
    } else {
      out += "<p>" + inline_html(line) + "</p>\n";
    }
  }
  return out;
}

}  // namespace chokepoint::report
