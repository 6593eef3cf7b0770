// SPDX-License-Identifier: Apache-2.0
#pragma once
// Small scanning steps that several importers share.
#include <chokepoint/base/result.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace chokepoint::wiring {

/// What follows `mark`; no value when it is not there.
std::optional<std::string_view> after(std::string_view text, std::string_view mark);
/// What stands between `open` and the next `close`.
std::optional<std::string_view> between(std::string_view text, std::string_view open, std::string_view close);
bool contains(std::string_view text, std::string_view part);
bool contains_ignoring_case(std::string_view text, std::string_view part);
/// The number at the beginning of the text after blanks: "25.781 GB/s" -> 25.781, "16x" -> 16.
std::optional<double> leading_number(std::string_view text);
std::optional<int> leading_int(std::string_view text);
std::optional<unsigned long long> to_hex(std::string_view text);
bool is_digits(std::string_view text);
/// "00000000:06:00.0", "06:00.0", "0000:06:00", "0x06" -> "0000:06:00.0"; empty when it is no PCI address.
std::string pci_address(std::string_view text);
/// "Key   : value" at the first colon that has a blank before it or behind it.
std::optional<std::pair<std::string_view, std::string_view>> key_value(std::string_view line);
/// Blanks and tabs before the first other character; a tab counts as eight.
std::size_t indent_of(std::string_view line);
/// Text as it would be without what people's tools put around it: byte order mark, UTF-16, NUL bytes, colour codes.
/// Every repair that was needed becomes a note.
std::string plain_text(std::string_view text, const std::string& file, std::vector<Note>& notes);
/// "node[01-03,7]", "a,b" -> names; at most `limit`, else no value.
std::optional<std::vector<std::string>> expand_host_list(std::string_view text, std::size_t limit);

}  // namespace chokepoint::wiring
