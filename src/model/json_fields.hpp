// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checked access to the fields of a JSON object, with the place of a field in the text for messages.
#include <chokepoint/base/result.hpp>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::model {

/// One JSON object. Several names may mean one field (older configs); the first present one counts, null is absent.
class JsonFields {
 public:
  using Names = std::initializer_list<const char*>;

  /// Errors carry file, line and column.
  static Result<JsonFields> parse(std::string_view text, const std::string& file);

  bool has(Names names) const;
  /// Present, be it as null.
  bool mentions(const char* name) const;
  Result<std::optional<int>> integer(Names names, int low, int high) const;
  /// The field, or `fallback` when absent.
  Result<int> integer_or(Names names, int fallback, int low, int high) const;
  Result<bool> boolean_or(Names names, bool fallback) const;
  Result<std::optional<double>> number(Names names, double low, double high) const;
  Result<std::optional<std::string>> text(Names names) const;
  Result<std::vector<int>> integers(Names names) const;
  Result<std::vector<std::string>> texts(Names names) const;
  /// A nested object; no value when absent.
  Result<std::optional<JsonFields>> object(Names names) const;

  SourcePos position(std::string_view name) const;
  const std::string& file() const;

 private:
  struct State;
  explicit JsonFields(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace chokepoint::model
