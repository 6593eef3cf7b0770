// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/report/words.hpp>

#include <algorithm>
#include <chokepoint/base/files.hpp>
#include <gmock/gmock.h>
#include <regex>
#include <set>

namespace chokepoint::report {
namespace {

const Words& russian() { return Words::of("ru"); }

TEST(Words, EnglishIsTheTextItself) {
  EXPECT_EQ(Words::english()("Choke point"), "Choke point");
  EXPECT_EQ(Words::english()("stage {}", {"3"}), "stage 3");
}

TEST(Words, WhatTheCatalogueLacksStaysEnglish) { EXPECT_EQ(russian()("no such text at all"), "no such text at all"); }

TEST(Words, ComposedTextIsTranslatedPartByPart) {
  EXPECT_EQ(russian()("12 NVLinks of GPU0"), "12 NVLink у GPU0");
  // A sentence, its cause, and the share in it: three entries.
  EXPECT_EQ(russian()("Devices idle while the data loader works (6 % of the time): without it a step takes 1 s instead "
                      "of 2 s (-50 %)"),
            "Устройства простаивают, пока работает загрузчик данных (6 % времени): без этого шаг занимает 1 s вместо 2 "
            "s (-50 %)");
}

TEST(Words, ValuesCanChangeTheirOrder) {
  EXPECT_EQ(russian()("Steps take 7 % longer from step 40 on"), "Начиная с шага 40 шаги длиннее на 7 %");
}

/// Values that a text takes: {} and {2}.
std::size_t gaps(const std::string& text) {
  static const std::regex gap("\\{[1-9]?\\}");
  return static_cast<std::size_t>(
      std::distance(std::sregex_iterator(text.begin(), text.end(), gap), std::sregex_iterator()));
}

TEST(Words, EveryTranslationTakesTheValuesOfItsText) {
  EXPECT_GT(russian().entries().size(), 400u);
  for (const auto& [english, translation] : russian().entries()) {
    EXPECT_EQ(gaps(english), gaps(translation)) << english;
  }
}

/// Texts that stand in quotes after `call` in a source file.
std::set<std::string> texts_in(const std::string& file, const std::string& call) {
  const std::string source = read_text_file(std::string(CHOKEPOINT_SOURCE_DIR) + "/src/report/" + file).value_or("");
  EXPECT_FALSE(source.empty()) << file;
  const std::regex pattern(call + "\\(\"((?:[^\"\\\\]|\\\\.)*)\"");
  std::set<std::string> found;
  for (std::sregex_iterator at(source.begin(), source.end(), pattern), end; at != end; ++at) found.insert((*at)[1]);
  return found;
}

TEST(Words, EveryTextOfThePagesAndViewsIsInTheCatalogue) {
  // Units, names of columns that are the same in both languages.
  const std::set<std::string> same{"MFU; HFU {}"};
  for (const auto& [file, call] : std::vector<std::pair<std::string, std::string>>{{"page_charts.js", "T"},
                                                                                   {"page_prediction.js", "T"},
                                                                                   {"page_prediction.js", "section"},
                                                                                   {"page_diagnose.js", "T"},
                                                                                   {"page_diagnose.js", "section"},
                                                                                   {"prediction_parts.cpp", "say"},
                                                                                   {"predict_view.cpp", "say"},
                                                                                   {"plan_view.cpp", "say"},
                                                                                   {"whatif_text.cpp", "say"},
                                                                                   {"whatif_sections.cpp", "say"},
                                                                                   {"diagnose_text.cpp", "say"},
                                                                                   {"diagnose_stragglers.cpp", "say"},
                                                                                   {"diagnose_hang.cpp", "say"},
                                                                                   {"diagnose_log.cpp", "say"},
                                                                                   {"predict_files.cpp", "words"},
                                                                                   {"predict_pages.cpp", "words"},
                                                                                   {"diagnose_files.cpp", "words"}}) {
    for (std::string text : texts_in(file, call)) {
      for (std::size_t at = text.find("\\u00b7"); at != std::string::npos; at = text.find("\\u00b7"))
        text.replace(at, 6, "\u00b7");
      for (std::size_t at = text.find("\\u00b1"); at != std::string::npos; at = text.find("\\u00b1"))
        text.replace(at, 6, "\u00b1");
      EXPECT_TRUE(russian().entries().contains(text) || same.contains(text)) << file << ": " << text;
    }
  }
}

}  // namespace
}  // namespace chokepoint::report
