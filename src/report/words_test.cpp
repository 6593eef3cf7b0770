// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/report/words.hpp>

#include <algorithm>
#include <chokepoint/base/files.hpp>
#include <chokepoint/findings/findings.hpp>
#include <filesystem>
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
  const std::string text = "\"((?:[^\"\\\\]|\\\\.)*)\"";
  std::set<std::string> found;
  const std::regex pattern(call + "\\(" + text);
  for (std::sregex_iterator at(source.begin(), source.end(), pattern), end; at != end; ++at) found.insert((*at)[1]);
  // One of two, by a condition: say(count == 1 ? "{} rank" : "{} ranks", ...).
  const std::regex either(call + "\\([^\"\n]{1,60}\\? " + text + "\\s*: " + text);
  for (std::sregex_iterator at(source.begin(), source.end(), either), end; at != end; ++at) found.insert({(*at)[1], (*at)[2]});
  return found;
}

/// Sentences that a lower module composes: literals of `calls`, with {} for what varies. Pieces that follow others begin
/// with a sign (": ...", "; ..."); lists of names and figures ("{}{} x{}") are no sentences.
std::set<std::string> composed_in(const std::string& file, const std::string& calls) {
  const std::string source = read_text_file(std::string(CHOKEPOINT_SOURCE_DIR) + "/src/" + file).value_or("");
  EXPECT_FALSE(source.empty()) << file;
  const std::regex pattern("(?:" + calls + ")\"((?:[^\"\\\\]|\\\\.)*)\"");
  static const std::regex form("\\{:[^}]*\\}"), word("[a-z]{3,}"), item("^\\{\\}\\{\\}");
  std::set<std::string> found;
  for (std::sregex_iterator at(source.begin(), source.end(), pattern), end; at != end; ++at) {
    std::string text = std::regex_replace((*at)[1].str(), form, "{}");
    for (std::size_t quote = text.find("\\\""); quote != std::string::npos; quote = text.find("\\\"")) text.erase(quote, 1);
    if (std::regex_search(text, word) && text.find(' ') != std::string::npos && !std::regex_search(text, item)) found.insert(text);
  }
  return found;
}

TEST(Words, EveryTextOfThePagesAndViewsIsInTheCatalogue) {
  // Units, names of columns that are the same in both languages.
  const std::set<std::string> same{"MFU; HFU {}"};
  for (const auto& [file, call] : std::vector<std::pair<std::string, std::string>>{{"page_charts.js", "T"},
                                                                                   {"page_prediction.js", "T"},
                                                                                   {"page_prediction.js", "section"},
                                                                                   {"page_whatif.js", "T"},
                                                                                   {"page_whatif.js", "section"},
                                                                                   {"page_wiring.js", "T"},
                                                                                   {"page_wiring.js", "section"},
                                                                                   {"wiring_view.cpp", "say"},
                                                                                   {"wiring_findings.cpp", "say"},
                                                                                   {"wiring_pages.cpp", "words"},
                                                                                   {"wiring_svg.cpp", "words_"},
                                                                                   {"whatif_pages.cpp", "words"},
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

TEST(Words, EveryFixOfTheFindingsIsInTheCatalogue) {
  for (const findings::Check& check : findings::catalogue()) EXPECT_TRUE(russian().entries().contains(check.fix)) << check.id << ": " << check.fix;
}

TEST(Words, EverySentenceOfTheFindingsIsInTheCatalogue) {
  // Parts of sentences whose whole forms stand in the catalogue.
  const std::set<std::string> parts{"network Socket{}{}", "{} GPUs share {} NIC{} ({})", "{} ordered pairs of {} GPUs without peer access{}",
                                    "{} of {} connections over the network go without GPUDirect RDMA (\"{}\"){}", ", {} connections via NET/Socket",
                                    "; the log says \"{}\""};
  std::set<std::string> sentences;
  for (const char* file : {"fabric", "link", "log", "path", "table", "topology_file"})
    sentences.merge(composed_in(std::string("findings/") + file + "_checks.cpp", "fmt::format\\(|what \\+ |what \\+= |words \\+ "));
  EXPECT_GT(sentences.size(), 50u);
  for (const std::string& text : sentences) {
    const bool follows = text.front() == ':' || text.front() == ';' || text.front() == ' ';
    EXPECT_TRUE(parts.contains(text) || russian().entries().contains(follows ? "{}" + text : text)) << text;
  }
}

TEST(Words, EveryNoteAboutWiringFilesIsInTheCatalogue) {
  std::set<std::string> notes;
  const std::string folder = std::string(CHOKEPOINT_SOURCE_DIR) + "/src/";
  for (const char* module : {"wiring", "assemble"}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder + module)) {
      const std::string name = entry.path().filename().string();
      if (entry.path().extension() != ".cpp" || name.find("_test") != std::string::npos) continue;
      notes.merge(composed_in(std::string(module) + "/" + name, "notes\\.push_back\\(\\{(?:fmt::format\\()?|[^a-z_]note\\((?:fmt::format\\()?|contradict\\((?:fmt::format\\()?|"
                                                                "unknown\\.push_back\\((?:fmt::format\\()?|contradictions\\.push_back\\(\\{fmt::format\\("));
    }
  }
  EXPECT_GT(notes.size(), 80u);
  for (const std::string& text : notes) {
    // "repaired: " and "measured: " begin notes whose rest has entries of its own.
    const bool begins = text.back() == ' ';
    EXPECT_TRUE(russian().entries().contains(begins ? text + "{}" : text)) << text;
  }
}

TEST(Words, EveryNoteOfAChangeIsInTheCatalogue) {
  std::set<std::string> notes;
  for (const char* file : {"apply", "apply_real", "rewire"})
    notes.merge(composed_in(std::string("whatif/") + file + ".cpp", "notes\\.push_back\\(\\{(?:fmt::format\\()?"));
  EXPECT_GT(notes.size(), 10u);
  for (const std::string& text : notes) EXPECT_TRUE(russian().entries().contains(text)) << text;
}

}  // namespace
}  // namespace chokepoint::report
