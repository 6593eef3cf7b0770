// SPDX-License-Identifier: Apache-2.0
#include "accelerator_name.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <chokepoint/base/catalogue_text.hpp>
#include <chokepoint/base/text.hpp>
#include <vector>

namespace chokepoint::hardware {

namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// Text without bracketed remarks, cut at a slash ("H100/H200 class" means the first).
std::string without_remarks(std::string_view text) {
  std::string out;
  int depth = 0;
  for (const char c : text) {
    if (c == '(' || c == '[') ++depth;
    if (c == '/' && depth == 0) break;
    if (depth == 0) out += c;
    if ((c == ')' || c == ']') && depth > 0) --depth;
  }
  return out;
}

/// Lower-case runs of letters and digits; form words that stick to what stands before them ("a100sxm4") are split off.
std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> out;
  std::string word;
  const auto flush = [&] {
    if (word.empty()) return;
    for (const std::string_view form : {"sxm", "pcie"}) {
      const std::size_t at = word.find(form);
      if (at != std::string::npos && at > 0) {
        out.push_back(word.substr(0, at));
        word.erase(0, at);
      }
    }
    out.push_back(word);
    word.clear();
  };
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else {
      flush();
    }
  }
  flush();
  return out;
}

bool is_filler(const std::string& word) {
  static constexpr std::array<std::string_view, 27> kFiller = {
      "nvidia", "amd",  "intel", "google",  "tesla",    "geforce", "quadro", "instinct",   "habana",
      "class",  "gpu",  "gpus",  "tensor",  "core",     "cloud",   "hbm",    "hbm2",       "hbm2e",
      "hbm3",   "hbm3e", "gddr6", "gddr6x", "gddr7",    "edition", "server", "workstation", "generation"};
  return std::find(kFiller.begin(), kFiller.end(), word) != kFiller.end();
}

std::optional<std::string> form_of(const std::string& word) {
  if (word == "pcie" || word == "pci") return "pcie";
  if (word == "nvl") return "nvl";
  if (word == "oam") return "sxm";
  if (word.rfind("sxm", 0) == 0 && word.size() <= 4) return "sxm";
  return std::nullopt;
}

/// "80gb", "80g", "80gib" -> 80
std::optional<double> memory_of(const std::string& word) {
  std::size_t digits = 0;
  while (digits < word.size() && is_digit(word[digits])) ++digits;
  const std::string unit = word.substr(digits);
  if (digits == 0 || (unit != "gb" && unit != "g" && unit != "gib")) return std::nullopt;
  return to_number(std::string_view(word).substr(0, digits));
}

}  // namespace

SpelledAccelerator read_spelling(std::string_view text) {
  SpelledAccelerator spelled;
  const std::vector<std::string> all = words(without_remarks(text.substr(0, 200)));
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string& word = all[i];
    if (is_filler(word)) continue;
    spelled.plain += word;
    if (const auto form = form_of(word)) {
      spelled.form = form;
    } else if (const auto memory = memory_of(word)) {
      spelled.memory_gb = memory;
    } else if (i + 1 < all.size() && (all[i + 1] == "gb" || all[i + 1] == "gib") && to_number(word)) {
      spelled.memory_gb = to_number(word);
      ++i;
    } else if (word == "gcd") {
      continue;
    } else {
      spelled.family += word;
    }
  }
  return spelled;
}

}  // namespace chokepoint::hardware
