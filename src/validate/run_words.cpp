// SPDX-License-Identifier: Apache-2.0
#include "run_words.hpp"

#include <algorithm>
#include <chokepoint/base/text.hpp>

namespace chokepoint::validate {
namespace {

constexpr int kFirstYear = 2017;  // Attention Is All You Need
constexpr int kLastYear = 2035;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// First run of exactly four digits that is a year.
std::optional<int> plain_year(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    if (!is_digit(text[i])) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && is_digit(text[end])) ++end;
    if (end - i == 4) {
      const auto year = to_int(text.substr(i, 4));
      if (year && *year >= kFirstYear && *year <= kLastYear) return year;
    }
    i = end;
  }
  return std::nullopt;
}

/// "24.07", "25.04.rc2": year and month as vendors number containers.
std::optional<int> version_year(std::string_view text) {
  for (std::size_t i = 0; i + 5 <= text.size(); ++i) {
    const bool starts = i == 0 || (!is_digit(text[i - 1]) && text[i - 1] != '.');
    const bool ends = i + 5 == text.size() || !is_digit(text[i + 5]);
    if (!starts || !ends || text[i + 2] != '.') continue;
    const auto year = to_int(text.substr(i, 2));
    const auto month = to_int(text.substr(i + 3, 2));
    if (year && month && *year >= 19 && *year <= 35 && *month >= 1 && *month <= 12) return 2000 + *year;
  }
  return std::nullopt;
}

/// "2023-05-03" or "2023-05": a date, not a count.
std::optional<int> dated_year(std::string_view text) {
  for (std::size_t i = 0; i + 7 <= text.size(); ++i) {
    if (text[i + 4] != '-' || (i > 0 && is_digit(text[i - 1]))) continue;
    const auto year = to_int(text.substr(i, 4));
    const auto month = to_int(text.substr(i + 5, 2));
    if (year && month && *year >= kFirstYear && *year <= kLastYear && *month >= 1 && *month <= 12) return year;
  }
  return std::nullopt;
}

}  // namespace

bool mentions(std::string_view text, std::initializer_list<std::string_view> phrases) {
  const std::string low = lower(text);
  return std::any_of(phrases.begin(), phrases.end(),
                     [&](std::string_view phrase) { return low.find(phrase) != std::string::npos; });
}

std::optional<double> number_after(std::string_view text, std::string_view phrase) {
  const std::string low = lower(text);
  const std::size_t at = low.find(phrase);
  if (at == std::string::npos) return std::nullopt;
  const std::size_t begin = at + phrase.size();
  std::size_t end = begin;
  while (end < low.size() && (is_digit(low[end]) || low[end] == '.')) ++end;
  while (end > begin && low[end - 1] == '.') --end;
  return to_number(std::string_view(low).substr(begin, end - begin));
}

std::optional<double> number_before(std::string_view text, std::string_view phrase) {
  const std::string low = lower(text);
  const std::size_t end = low.find(phrase);
  if (end == std::string::npos) return std::nullopt;
  std::size_t begin = end;
  while (begin > 0 && (is_digit(low[begin - 1]) || low[begin - 1] == '.')) --begin;
  return to_number(std::string_view(low).substr(begin, end - begin));
}

std::optional<parallel::Framework> framework_from_words(std::string_view words) {
  using parallel::Framework;
  if (mentions(words, {"maxtext", "pathways", "jax"})) return Framework::kMaxtext;
  if (mentions(words, {"nanotron"})) return Framework::kNanotron;
  if (mentions(words, {"llm-foundry", "llmfoundry", "composer"})) return Framework::kLlmFoundry;
  if (mentions(words, {"fms-fsdp", "fms_fsdp"})) return Framework::kFmsFsdp;
  if (mentions(words, {"torchtitan", "automodel", "fsdp2", "olmo-core"})) return Framework::kTorchtitan;
  const bool megatron = mentions(words, {"megatron", "nemo", "internevo", "oneflow", "hai-llm", "haiscale",
                                         "model+sequence parallel"});
  const bool deepspeed = mentions(words, {"deepspeed", "colossal", "gemini"});
  const bool fsdp = mentions(words, {"fsdp"});
  if (megatron && deepspeed) return Framework::kMegatronDeepspeed;
  if (megatron && !fsdp) return Framework::kMegatron;
  if (deepspeed) return Framework::kDeepspeed;
  if (fsdp || mentions(words, {"pytorch", "trainer", "lightning", "lit-gpt", "ddp", "accelerate"})) {
    return Framework::kPytorch;
  }
  return std::nullopt;
}

bool is_megatron_core(std::string_view framework_words, int year) {
  if (mentions(framework_words, {"deepspeed"})) return false;
  if (mentions(framework_words, {"megatron-core", "mcore", "megatron-bridge", "transformerengine"})) return true;
  if (mentions(framework_words, {"nemo"})) return year >= 2023;
  // Megatron-LM trains through Megatron-Core and Transformer Engine by default since core 0.8 (mid 2024).
  return mentions(framework_words, {"megatron"}) && year >= 2025;
}

std::optional<int> year_from_words(const RunFields& row) {
  if (const auto year = version_year(row.framework)) return year;
  for (const std::string* text : {&row.source, &row.source_id}) {
    if (const auto year = plain_year(*text)) return year;
  }
  for (const std::string* text : {&row.source, &row.notes}) {
    if (const auto year = version_year(*text)) return year;
  }
  for (const std::string* text : {&row.notes, &row.where}) {
    if (const auto year = dated_year(*text)) return year;
  }
  return std::nullopt;
}

FlopsCounted flops_counted(const RunFields& row) {
  if (mentions(row.notes, {"flops=hardware"})) return FlopsCounted::kHardware;
  if (mentions(row.notes, {"causal attention", "causal half", "half the attention"})) return FlopsCounted::kModelCausal;
  if (mentions(row.notes, {"flops=model"})) return FlopsCounted::kModel;
  if (mentions(row.notes, {"hardware", "recompute counted", "recomputation counted", "counts activation recomputation",
                           "incl. recompute", "recomputation assumed"})) {
    return FlopsCounted::kHardware;
  }
  // The frameworks' own counters: Megatron-Bridge, and MaxText since 2025, count the causal half.
  const bool maxtext_causal = mentions(row.framework, {"maxtext"}) && year_from_words(row).value_or(2024) >= 2025;
  if (mentions(row.framework, {"megatron-bridge"}) || maxtext_causal) return FlopsCounted::kModelCausal;
  return FlopsCounted::kModel;
}

std::optional<double> flops_per_parameter_and_token(std::string_view notes) {
  for (const std::string_view phrase : {"*p*tokens", "*n*tokens", "*params*tokens", "*p*token"}) {
    if (const auto factor = number_before(notes, phrase)) return factor;
  }
  return std::nullopt;
}

}  // namespace chokepoint::validate
