// SPDX-License-Identifier: Apache-2.0
#include "page.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "markup.hpp"
#include "plain_html.hpp"

namespace chokepoint::embedded {
extern const std::string_view page_frame;
extern const std::string_view page_style;
extern const std::string_view page_charts;
}  // namespace chokepoint::embedded

namespace chokepoint::report {

namespace {

using Json = nlohmann::ordered_json;

/// JSON that may stand inside a script element of HTML and of XML: no text of it can end the element, open a comment or
/// look like an entity.
std::string script_text(const Json& json) {
  const std::string plain = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string out;
  out.reserve(plain.size());
  for (const char c : plain) {
    switch (c) {
      case '<':
        out += "\\u003c";
        break;
      case '>':
        out += "\\u003e";
        break;
      case '&':
        out += "\\u0026";
        break;
      default:
        out += c;
    }
  }
  return out;
}

/// Sentences in the data; what programs compare (kinds, names of classes, strategies) stays.
void translate(Json& value, const Words& words) {
  static constexpr std::array<std::string_view, 18> kSentences{
      "where",     "change",      "reason", "assumptions", "suspect", "what",   "remedy", "differences",
      "would_fit", "choke_point", "notes",  "evidence",    "link",    "family", "cause",
      "fix",       "unknown",     "text"};
  if (words.entries().empty()) return;
  const auto text = [&words](Json& v) {
    if (v.is_string()) v = words(v.get_ref<const std::string&>());
  };
  if (value.is_array()) {
    for (Json& item : value) translate(item, words);
  } else if (value.is_object()) {
    for (auto& [key, item] : value.items()) {
      const bool sentence = std::find(kSentences.begin(), kSentences.end(), key) != kSentences.end();
      if (sentence && item.is_string())
        text(item);
      else if (sentence && item.is_array())
        for (Json& line : item) text(line);
      if (item.is_structured()) translate(item, words);
    }
  }
}

}  // namespace

std::string html_page(const Page& page, const Words& words, PageForm form) {
  Json data = page.data;
  translate(data, words);
  if (form == PageForm::kData) {
    const Json parts{{"view", page.view}, {"kind", page.kind}, {"verdict", page.verdict}, {"facts", page.facts}, {"data", std::move(data)}};
    return parts.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  if (!words.entries().empty()) data["words"] = words.entries();
  const std::array<std::pair<std::string_view, std::string>, 12> fields{{
      {"LANG", std::string(words.lang())},
      {"TITLE", escaped(page.kind + ": " + page.verdict)},
      {"STYLE", std::string(embedded::page_style)},
      {"KIND", escaped(page.kind)},
      {"THEME", words("light / dark")},
      {"VERDICT", escaped(page.verdict)},
      {"FACTS", escaped(page.facts)},
      {"NOSCRIPT", words("The pictures of this page are drawn by its own script, which is switched off here.")},
      {"PLAIN", plain_html(page.markdown)},
      {"DATA", script_text(data)},
      {"CHARTS", std::string(embedded::page_charts)},
      {"PAGE", std::string(page.script)},
  }};
  // One pass over the frame, so that a marker inside a user's text stays text.
  std::string out;
  std::string_view rest = embedded::page_frame;
  while (!rest.empty()) {
    const std::size_t at = rest.find('@');
    out += rest.substr(0, at);
    if (at == std::string_view::npos) break;
    const std::size_t end = rest.find('@', at + 1);
    const std::string_view word = rest.substr(at + 1, end - at - 1);
    for (const auto& [name, text] : fields) {
      if (name == word) out += text;
    }
    rest.remove_prefix(end + 1);
  }
  return out;
}

}  // namespace chokepoint::report
