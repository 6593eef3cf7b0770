// SPDX-License-Identifier: Apache-2.0
#pragma once
// The settings of one source (a config file, the arguments of a program, the environment) while they are interpreted:
// what is asked for becomes used, the rest is looked up in lists of what has no effect, and what remains is unknown.
#include <chokepoint/frameworks/frameworks.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::frameworks {

/// A known setting that is not read: its key, or a beginning followed by '*'.
struct Known {
  std::string_view key;
  std::string_view note;  ///< empty: no effect; else why it is not modelled, or what it means
};

/// A setting whose effect is part of the model at this value only.
struct Taken {
  std::string_view key;
  std::string_view value;
};

class Settings {
 public:
  Settings() = default;
  /// `underscores`: '-' and '_' are the same in keys (argparse). A repeated key keeps its last value.
  explicit Settings(std::vector<Setting> list, bool underscores = false);

  bool has(std::string_view key) const { return find(key) != nullptr; }
  const Setting* find(std::string_view key) const;
  SourcePos pos(std::string_view key) const;
  bool empty() const { return list_.empty(); }
  const std::vector<Setting>& list() const { return list_; }

  // No value when the key is absent, empty or "auto"; a value of the wrong kind is an error with its place.
  Result<std::optional<int>> integer(std::string_view key, int low, int high);
  Result<std::optional<double>> number(std::string_view key, double low, double high);
  /// A flag without value is on.
  Result<std::optional<bool>> boolean(std::string_view key);
  std::optional<std::string> text(std::string_view key);
  /// On and present; anything but a truth value counts as on.
  bool flag(std::string_view key);

  void mark(std::string_view key, Use use, std::string note = {});
  /// Marks settings not asked for yet that have the value the model takes anyway.
  void as_taken(std::span<const Taken> taken);
  /// Marks settings not asked for yet; the longest key that fits decides.
  void classify(std::span<const Known> no_effect, std::span<const Known> not_modelled);

 private:
  Setting* slot(std::string_view key);
  std::vector<Setting> list_;
};

/// Settings a reader was asked for but which only a later step can place, in one list with their sources.
void append(std::vector<Setting>& out, const Settings& settings);

/// The bracket or quote at fault when the text is no complete JSON, with its place.
std::optional<Error> unbalanced_json(std::string_view text, const std::string& file);
/// Settings of a file with nested keys, joined by dots. JSON is read as YAML, which it is a part of.
Result<std::vector<Setting>> flatten_yaml(std::string_view text, const std::string& file);
Result<std::vector<Setting>> flatten_toml(std::string_view text, const std::string& file);

}  // namespace chokepoint::frameworks
