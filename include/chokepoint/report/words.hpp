// SPDX-License-Identifier: Apache-2.0
#pragma once
// The language of texts. Reports are written in English; a catalogue (src/report/words_LANG.txt) turns them into
// another language text by text. What it does not know stays English.
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::report {

class Words {
 public:
  /// "en" or "ru"; anything else is English.
  static const Words& of(std::string_view lang);
  static const Words& english() { return of("en"); }

  std::string_view lang() const { return lang_; }
  /// The text in this language: an entry as a whole, or one whose {} stand for parts of it, which are translated in
  /// turn.
  std::string operator()(std::string_view text) const;
  /// An entry whose {} are filled with values in order; {2} in a translation is the second value.
  std::string operator()(std::string_view text, std::initializer_list<std::string> values) const;
  const std::map<std::string, std::string, std::less<>>& entries() const { return entries_; }

 private:
  Words(std::string_view lang, std::string_view catalogue);
  std::string translated(std::string_view text, int depth) const;

  struct Pattern {
    std::vector<std::string> pieces;  ///< what stands before, between and after the {}
    std::string translation;
  };
  std::string lang_;
  std::map<std::string, std::string, std::less<>> entries_;
  std::vector<Pattern> patterns_;  ///< most literal text first
};

}  // namespace chokepoint::report
