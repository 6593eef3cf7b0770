// SPDX-License-Identifier: Apache-2.0
#pragma once
// Small text tools shared by the importers.
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint {

std::string_view trim(std::string_view text);
std::vector<std::string_view> split(std::string_view text, char separator);
/// Splits at runs of blanks and tabs; empty pieces are dropped.
std::vector<std::string_view> split_blanks(std::string_view text);
/// Lines without their end marker (\n or \r\n).
std::vector<std::string_view> split_lines(std::string_view text);
bool starts_with_ignoring_case(std::string_view text, std::string_view prefix);
std::string lower(std::string_view text);
/// Whole text as a number; no value when anything is left over, or when it is not finite.
std::optional<double> to_number(std::string_view text);
std::optional<int> to_int(std::string_view text);
/// The candidate within edit distance 3 (at most half the word), for "did you mean".
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);
/// Names joined by commas, consecutive numbers shortened: "GPU0-3, GPU6".
std::string short_list(const std::vector<std::string>& names);
/// Removes ANSI escape sequences.
std::string strip_ansi(std::string_view text);

}  // namespace chokepoint
