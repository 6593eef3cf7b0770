// SPDX-License-Identifier: Apache-2.0
#pragma once
// The text of a catalogue that was compiled into the library: one YAML document per entry. Start-up time is why entries
// stay text until somebody asks for them: parsing a whole catalogue takes milliseconds, one entry some microseconds.
#include <chokepoint/base/result.hpp>
#include <chokepoint/base/yaml.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint {

/// "NVIDIA A100-SXM4 80GB" -> "nvidiaa100sxm480gb": names compare by letters and digits alone. A
/// decimal point stays: "1.3b" is not "13b".
std::string letters_and_digits(std::string_view text);

/// Immutable view; constant-initialised, so it is ready before any other static object.
class CatalogueText {
 public:
  constexpr CatalogueText(std::string_view file, std::span<const std::string_view> documents)
      : file_(file), documents_(documents) {}

  std::size_t size() const { return documents_.size(); }
  std::string_view file() const { return file_; }

  /// Values of a top-level key written on one line ("name: x", "aliases: [x, y]"), without parsing the document.
  std::vector<std::string> header(std::size_t index, std::string_view key) const;
  /// The first entry whose name or alias has the same letters and digits as `name`.
  std::optional<std::size_t> find(std::string_view name) const;
  /// The name nearest to a misspelt one.
  std::optional<std::string> suggestion(std::string_view name) const;
  /// Parses one entry. An error is a fault of the catalogue, never of the user; its position counts in the whole file.
  Result<YamlMap> parse(std::size_t index) const;

  /// "unknown <kind> 'x'", with the nearest name and the command that lists all.
  tl::unexpected<Error> unknown(std::string_view kind, std::string_view name, std::string_view command) const;

 private:
  std::string_view file_;
  std::span<const std::string_view> documents_;
};

/// Ends the program: a compiled-in catalogue is broken, which the unit tests would have shown.
[[noreturn]] void broken_catalogue(const Error& error);

}  // namespace chokepoint
