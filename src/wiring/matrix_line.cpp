// SPDX-License-Identifier: Apache-2.0
#include "matrix_line.hpp"

#include <chokepoint/base/text.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace chokepoint::wiring {

using topology::PathClass;

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_alpha(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_alnum(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

/// Length of what is left of a colour sequence when its escape character got lost or was written out: "[4m",
/// "^[[0m", "\033[1;32m". 0 when there is none here.
std::size_t escape_remnant(std::string_view text) {
  static constexpr std::array<std::string_view, 6> kIntroducers{"^[[", "\\033[", "\\x1b[", "\\e[", "\xe2\x90\x9b[", "["};
  for (const std::string_view introducer : kIntroducers) {
    if (text.substr(0, introducer.size()) != introducer) continue;
    std::size_t end = introducer.size();
    while (end < text.size() && (is_digit(text[end]) || text[end] == ';')) ++end;
    if (end < text.size() && (text[end] == 'm' || text[end] == 'K')) return end + 1;
    return 0;
  }
  return 0;
}

/// What stands for a blank (or nothing) in copied text, with its replacement.
constexpr std::array<std::pair<std::string_view, std::string_view>, 17> kReplacements{{{"\xc2\xa0", " "},
                                                                                       {"\xe2\x80\x8b", ""},
                                                                                       {"\xef\xbb\xbf", ""},
                                                                                       {"\xe2\x94\x82", "|"},
                                                                                       {"\xe2\x94\x83", "|"},
                                                                                       {"\xe2\x80\x93", "-"},
                                                                                       {"\xe2\x80\x94", "-"},
                                                                                       {"&nbsp;", " "},
                                                                                       {"&gt;", ">"},
                                                                                       {"&lt;", "<"},
                                                                                       {"<br>", ""},
                                                                                       {"<pre>", ""},
                                                                                       {"</pre>", ""},
                                                                                       {"<code>", ""},
                                                                                       {"</code>", ""},
                                                                                       {"**", ""},
                                                                                       {"\\_", "_"}}};

/// "GPU 0" -> "GPU0", where a blank slipped in.
void join_gpu_numbers(std::string& text) {
  for (std::size_t at = text.find("GPU "); at != std::string::npos; at = text.find("GPU ", at + 1)) {
    if (at > 0 && is_alnum(text[at - 1])) continue;
    if (at + 4 < text.size() && is_digit(text[at + 4])) text.erase(at + 3, 1);
  }
}

/// "[1,0]<stdout>:GPU0" -> "[1,0]<stdout>:", "GPU0".
void split_prefixes(Line& line) {
  for (std::size_t i = 0; i < line.words.size(); ++i) {
    const std::string text = line.words[i].text;
    const std::size_t end = text.find_last_of(":>])|");
    if (end == std::string::npos || !is_device_name(std::string_view(text).substr(end + 1))) continue;
    Word device = line.words[i];
    device.text = text.substr(end + 1);
    device.column += static_cast<int>(end) + 1;
    line.words[i].text = text.substr(0, end + 1);
    line.words.insert(line.words.begin() + static_cast<std::ptrdiff_t>(i) + 1, std::move(device));
    return;  // a line has one prefix
  }
}

}  // namespace

std::string clean_line(std::string_view raw) {
  const std::string plain = strip_ansi(raw);
  std::string clean;
  std::size_t i = 0;
  while (i < plain.size()) {
    const std::string_view rest = std::string_view(plain).substr(i);
    if (const std::size_t remnant = escape_remnant(rest); remnant > 0) {
      i += remnant;
      continue;
    }
    const auto* found = std::find_if(kReplacements.begin(), kReplacements.end(),
                                     [rest](const auto& entry) { return rest.substr(0, entry.first.size()) == entry.first; });
    if (found != kReplacements.end()) {
      clean += found->second;
      i += found->first.size();
    } else {
      const char c = plain[i++];
      if (c == '`') continue;
      clean += static_cast<unsigned char>(c) < 0x20 && c != '\t' ? ' ' : c;
    }
  }
  join_gpu_numbers(clean);
  return clean;
}

Line cut_line(const std::string& clean, int number) {
  Line line;
  line.number = number;
  const bool pipes = std::count(clean.begin(), clean.end(), '|') >= 2;
  const char separator = pipes ? '|' : '\t';
  line.fields = clean.find(separator) != std::string::npos;
  int column = 0;
  int field = 0;
  bool in_word = false;
  for (const char c : clean) {
    if (c == ' ' || c == '\t' || (pipes && c == '|')) {
      in_word = false;
      if (c == separator) ++field;
      column = c == '\t' ? (column / 8 + 1) * 8 : column + 1;
      continue;
    }
    if (!in_word) line.words.push_back({{}, column, field});
    in_word = true;
    line.words.back().text += c;
    ++column;
  }
  split_prefixes(line);
  return line;
}

bool is_gpu_name(std::string_view text) {
  return text.size() > 3 && text.size() <= 7 && starts_with_ignoring_case(text, "gpu") && std::all_of(text.begin() + 3, text.end(), is_digit);
}

bool is_gpu_group(std::string_view text) {
  const std::size_t dash = text.find_first_of("-~");
  if (dash == std::string_view::npos || !is_gpu_name(text.substr(0, dash))) return false;
  const std::string_view last = text.substr(dash + 1);
  return is_gpu_name(last) || (!last.empty() && std::all_of(last.begin(), last.end(), is_digit));
}

bool is_device_name(std::string_view text) {
  if (text.empty() || text.size() > 32 || !is_alpha(text.front())) return false;
  if (!std::any_of(text.begin(), text.end(), is_digit)) return false;
  if (!std::all_of(text.begin(), text.end(), [](char c) { return is_alnum(c) || c == '_' || c == '-' || c == '.'; })) return false;
  std::string_view rest;
  return parse_cells(text, rest).empty();
}

bool is_nic_name(std::string_view text) {
  static constexpr std::array<std::string_view, 9> kStems{"nic", "mlx", "bnxt", "hfi", "irdma", "rocep", "rdmap", "efa", "cxi"};
  return is_device_name(text) &&
         std::any_of(kStems.begin(), kStems.end(), [text](std::string_view stem) { return starts_with_ignoring_case(text, stem); });
}

std::vector<MatrixCell> parse_cells(std::string_view word, std::string_view& rest) {
  // SOC and PSB are what drivers before 2017 printed for SYS and PIX.
  static constexpr std::array<std::pair<std::string_view, PathClass>, 7> kClasses{{{"PIX", PathClass::kPix},
                                                                                   {"PXB", PathClass::kPxb},
                                                                                   {"PHB", PathClass::kPhb},
                                                                                   {"NODE", PathClass::kNode},
                                                                                   {"SYS", PathClass::kSys},
                                                                                   {"SOC", PathClass::kSys},
                                                                                   {"PSB", PathClass::kPix}}};
  std::vector<MatrixCell> cells;
  rest = word;
  while (!rest.empty()) {
    if (rest.front() == 'X') {
      cells.push_back({PathClass::kSelf, 0});
      rest.remove_prefix(1);
      continue;
    }
    if (rest.size() > 2 && rest[0] == 'N' && rest[1] == 'V' && is_digit(rest[2])) {
      // At most 18 links exist, so a second digit belongs to the class only up to there ("NV1848-95": NV18, 48-95).
      int links = rest[2] - '0';
      std::size_t length = 3;
      if (rest.size() > 3 && is_digit(rest[3]) && links * 10 + (rest[3] - '0') <= 18 && links > 0) {
        links = links * 10 + (rest[3] - '0');
        length = 4;
      }
      // More digits are no affinity ("NV99", "NV1000000"), and no link is no NVLink.
      const std::string_view after = rest.substr(length);
      const bool only_digits = std::all_of(after.begin(), after.end(), is_digit);
      if (links == 0 || (only_digits && after.size() > (length == 4 ? 2 : 0))) break;
      cells.push_back({PathClass::kNvLink, links});
      rest.remove_prefix(length);
      continue;
    }
    const auto* found = std::find_if(kClasses.begin(), kClasses.end(),
                                     [&rest](const auto& entry) { return rest.substr(0, entry.first.size()) == entry.first; });
    if (found == kClasses.end()) break;
    cells.push_back({found->second, 0});
    rest.remove_prefix(found->first.size());
  }
  // A class may be followed by an affinity that ran into it, but not by letters: "X11", "SYSTEM", "NODES".
  const bool word_goes_on = !rest.empty() && !is_digit(rest.front()) && rest.substr(0, 3) != "N/A";
  const bool name_with_x = cells.size() == 1 && cells.front().path == PathClass::kSelf && !rest.empty();
  if (word_goes_on || name_with_x) {
    cells.clear();
    rest = word;
  }
  return cells;
}

bool is_blank_cell(std::string_view text) {
  const std::string word = lower(text);
  return word == "n/a" || word == "-" || word == "--" || word == "?" || word == "na" || word == "...";
}

}  // namespace chokepoint::wiring
