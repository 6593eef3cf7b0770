// SPDX-License-Identifier: Apache-2.0
#pragma once
// Strict reading of YAML mappings: every key must be asked for, unknown and duplicate keys are errors with a
// suggestion, quantities must carry their unit.
//
//   TRY_INTO(YamlMap map, YamlMap::parse(text, "job.yaml"));
//   TRY_INTO(int batch, map.required_int("batch", 1, 1 << 24));
//   TRY_INTO(double rate, map.required_rate("bandwidth"));
//   return map.finish();      // reports keys nobody asked for
#include <chokepoint/base/result.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint {

/// One mapping of a YAML document, with the path to it for messages. Copyable; copies share the record of asked keys.
class YamlMap {
 public:
  /// Parses a document whose top level is a mapping. Errors carry file, line and column.
  static Result<YamlMap> parse(std::string_view text, std::string file);

  bool has(const std::string& key) const;
  std::vector<std::string> keys() const;
  SourcePos position() const;
  SourcePos position(const std::string& key) const;

  // Optional accessors give no value when the key is absent; a present key of the wrong kind is an error.
  Result<std::optional<std::string>> text(const std::string& key) const;
  Result<std::optional<double>> number(const std::string& key, double low, double high) const;
  Result<std::optional<int>> integer(const std::string& key, int low, int high) const;
  Result<std::optional<bool>> boolean(const std::string& key) const;
  Result<std::optional<double>> rate(const std::string& key) const;       ///< bytes per second
  Result<std::optional<double>> bytes(const std::string& key) const;      ///< bytes
  Result<std::optional<double>> duration(const std::string& key) const;   ///< seconds
  Result<std::optional<double>> flop_rate(const std::string& key) const;  ///< FLOP per second
  Result<std::optional<YamlMap>> map(const std::string& key) const;
  /// A sequence of mappings; empty when the key is absent.
  Result<std::vector<YamlMap>> maps(const std::string& key) const;
  /// A sequence of scalars; a single scalar counts as a sequence of one.
  Result<std::vector<std::string>> texts(const std::string& key) const;

  Result<std::string> required_text(const std::string& key) const;
  Result<double> required_number(const std::string& key, double low, double high) const;
  Result<int> required_int(const std::string& key, int low, int high) const;
  Result<double> required_rate(const std::string& key) const;
  Result<double> required_bytes(const std::string& key) const;
  Result<double> required_flop_rate(const std::string& key) const;
  Result<YamlMap> required_map(const std::string& key) const;

  /// Error for the first key that no accessor asked for, with the nearest known key.
  Result<bool> finish() const;

 private:
  struct State;
  explicit YamlMap(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace chokepoint
