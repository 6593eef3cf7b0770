// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/text.hpp>
#include <chokepoint/base/units.hpp>
#include <chokepoint/base/yaml.hpp>

#include <cmath>
#include <fmt/format.h>
#include <set>
#include <sstream>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

namespace chokepoint {

struct YamlMap::State {
  YAML::Node node;
  std::string file;
  std::string path;            // "cluster.fabric", for messages
  std::set<std::string> asked;
};

namespace {

SourcePos position_of(const YAML::Node& node, const std::string& file) {
  const YAML::Mark mark = node.Mark();
  if (mark.is_null()) return {file, 0, 0};
  return {file, mark.line + 1, mark.column + 1};
}

/// yaml-cpp accepts repeated keys and keeps one silently; find the second occurrence.
Result<bool> check_structure(const YAML::Node& node, const std::string& file) {
  if (node.IsMap()) {
    std::set<std::string> seen;
    for (const auto& entry : node) {
      if (!entry.first.IsScalar()) return fail("a key must be a plain word", position_of(entry.first, file));
      if (!seen.insert(entry.first.Scalar()).second) {
        return fail(fmt::format("key '{}' appears twice", entry.first.Scalar()), position_of(entry.first, file));
      }
      TRY_INTO([[maybe_unused]] const bool ok, check_structure(entry.second, file));
    }
  } else if (node.IsSequence()) {
    for (const auto& item : node) {
      TRY_INTO([[maybe_unused]] const bool ok, check_structure(item, file));
    }
  }
  return true;
}

/// Walks a document's events before any node is built. Refuses aliases (they let a short document unfold to an enormous
/// one, and none of our formats needs them) and depth that would exhaust the stack.
class Gate : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw YAML::ParserException(mark, "aliases (*name) are not supported; write the value out");
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    enter(mark);
  }
  void OnSequenceEnd() override { --depth_; }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    enter(mark);
  }
  void OnMapEnd() override { --depth_; }

 private:
  void enter(const YAML::Mark& mark) {
    if (++depth_ > 64) throw YAML::ParserException(mark, "nested deeper than 64 levels");
  }
  int depth_ = 0;
};

/// Place of the first control character, which is never part of a text file; yaml-cpp hangs on some of them.
std::optional<Error> find_control_character(std::string_view text, const std::string& file) {
  int line = 1;
  int column = 1;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\t' && c != '\n' && c != '\r') || byte == 0x7f) {
      return Error{fmt::format("holds the control character 0x{:02x}, expected a text file", byte), {file, line, column}, {}};
    }
    column = c == '\n' ? 1 : column + 1;
    if (c == '\n') ++line;
  }
  return std::nullopt;
}

}  // namespace

Result<YamlMap> YamlMap::parse(std::string_view text, std::string file) {
  if (const auto found = find_control_character(text, file)) return tl::make_unexpected(*found);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser gate_parser(stream);
    Gate gate;
    const bool any = gate_parser.HandleNextDocument(gate);
    // Asked once more only: yaml-cpp gives empty documents for ever where a text goes on with a stray "," or "]".
    if (any && gate_parser.HandleNextDocument(gate)) return fail("holds more than one YAML document, expected one", {file, 0, 0});
    auto state = std::make_shared<State>();
    state->node.reset(YAML::Load(std::string(text)));
    if (state->node.IsNull()) return fail("is empty, expected YAML with 'key: value' lines", {file, 1, 1});
    state->file = file;
    if (!state->node.IsMap()) {
      return fail("expected 'key: value' lines at the top level", position_of(state->node, file));
    }
    TRY_INTO([[maybe_unused]] const bool ok, check_structure(state->node, file));
    return YamlMap(std::move(state));
  } catch (const YAML::Exception& error) {
    const bool known = !error.mark.is_null();
    return fail("not valid YAML: " + error.msg,
                {file, known ? error.mark.line + 1 : 0, known ? error.mark.column + 1 : 0});
  }
}

bool YamlMap::has(const std::string& key) const {
  state_->asked.insert(key);
  const YAML::Node& node = state_->node;
  return static_cast<bool>(node[key]) && !node[key].IsNull();
}

std::vector<std::string> YamlMap::keys() const {
  std::vector<std::string> names;
  for (const auto& entry : state_->node) names.push_back(entry.first.Scalar());
  return names;
}

SourcePos YamlMap::position() const { return position_of(state_->node, state_->file); }

SourcePos YamlMap::position(const std::string& key) const {
  const YAML::Node& node = state_->node;
  return node[key] ? position_of(node[key], state_->file) : position();
}

Result<std::optional<std::string>> YamlMap::text(const std::string& key) const {
  if (!has(key)) return std::optional<std::string>{};
  const YAML::Node& node = state_->node;
  if (!node[key].IsScalar()) return fail(fmt::format("'{}' must be a single value", key), position(key));
  return std::optional<std::string>(node[key].Scalar());
}

Result<std::optional<double>> YamlMap::number(const std::string& key, double low, double high) const {
  TRY_INTO(const std::optional<std::string> value, text(key));
  if (!value) return std::optional<double>{};
  const auto number = to_number(*value);
  if (!number) return fail(fmt::format("'{}' is '{}', expected a number", key, *value), position(key));
  if (*number < low || *number > high) {
    return fail(fmt::format("'{}' is {}, expected a value from {:g} to {:g}", key, *value, low, high), position(key));
  }
  return number;
}

Result<std::optional<int>> YamlMap::integer(const std::string& key, int low, int high) const {
  TRY_INTO(const std::optional<std::string> value, text(key));
  if (!value) return std::optional<int>{};
  const auto number = to_int(*value);
  if (!number) return fail(fmt::format("'{}' is '{}', expected a whole number", key, *value), position(key));
  if (*number < low || *number > high) {
    return fail(fmt::format("'{}' is {}, expected a whole number from {} to {}", key, *value, low, high), position(key));
  }
  return number;
}

Result<std::optional<bool>> YamlMap::boolean(const std::string& key) const {
  TRY_INTO(const std::optional<std::string> value, text(key));
  if (!value) return std::optional<bool>{};
  const std::string word = lower(*value);
  if (word == "true" || word == "yes" || word == "on") return std::optional<bool>(true);
  if (word == "false" || word == "no" || word == "off") return std::optional<bool>(false);
  return fail(fmt::format("'{}' is '{}', expected true or false", key, *value), position(key));
}

namespace {
using Parser = Result<double> (*)(std::string_view);
Result<std::optional<double>> quantity(const YamlMap& map, const std::string& key, Parser parser) {
  TRY_INTO(const std::optional<std::string> value, map.text(key));
  if (!value) return std::optional<double>{};
  Result<double> parsed = parser(*value);
  if (!parsed) return fail(fmt::format("'{}': {}", key, parsed.error().message), map.position(key));
  return std::optional<double>(*parsed);
}
Result<double> required(const YamlMap& map, const std::string& key, Result<std::optional<double>> value) {
  if (!value) return tl::make_unexpected(std::move(value).error());
  if (!*value) return fail(fmt::format("'{}' is missing", key), map.position());
  return **value;
}
}  // namespace

Result<std::optional<double>> YamlMap::rate(const std::string& key) const {
  // A link that carries nothing is no link, and no real one is slower than a modem: zero would divide, a tiny rate is a
  // slip of units.
  constexpr double kSlowest_bytes_per_s = 1e3;
  TRY_INTO(const std::optional<double> value, quantity(*this, key, parse_rate));
  if (value && *value < kSlowest_bytes_per_s) {
    return fail(fmt::format("'{}' is {}, expected at least {}", key, format_rate(*value), format_rate(kSlowest_bytes_per_s)), position(key),
                {"leave the key out when the rate is not known"});
  }
  return value;
}
Result<std::optional<double>> YamlMap::bytes(const std::string& key) const { return quantity(*this, key, parse_bytes); }
Result<std::optional<double>> YamlMap::duration(const std::string& key) const { return quantity(*this, key, parse_duration); }
Result<std::optional<double>> YamlMap::flop_rate(const std::string& key) const { return quantity(*this, key, parse_flop_rate); }

Result<std::optional<YamlMap>> YamlMap::map(const std::string& key) const {
  if (!has(key)) return std::optional<YamlMap>{};
  const YAML::Node& node = state_->node;
  if (!node[key].IsMap()) return fail(fmt::format("'{}' must hold 'key: value' lines", key), position(key));
  auto state = std::make_shared<State>();
  state->node.reset(node[key]);
  state->file = state_->file;
  state->path = state_->path.empty() ? key : state_->path + "." + key;
  return std::optional<YamlMap>(YamlMap(std::move(state)));
}

Result<std::vector<YamlMap>> YamlMap::maps(const std::string& key) const {
  std::vector<YamlMap> items;
  if (!has(key)) return items;
  const YAML::Node& node = state_->node;
  if (!node[key].IsSequence()) return fail(fmt::format("'{}' must be a list ('- key: value' items)", key), position(key));
  for (const auto& item : node[key]) {
    if (!item.IsMap()) return fail(fmt::format("each item of '{}' must hold 'key: value' lines", key), position_of(item, state_->file));
    auto state = std::make_shared<State>();
    state->node.reset(static_cast<YAML::Node>(item));
    state->file = state_->file;
    state->path = (state_->path.empty() ? key : state_->path + "." + key) + "[]";
    items.push_back(YamlMap(std::move(state)));
  }
  return items;
}

Result<std::vector<std::string>> YamlMap::texts(const std::string& key) const {
  std::vector<std::string> items;
  if (!has(key)) return items;
  const YAML::Node& node = state_->node;
  if (node[key].IsScalar()) return std::vector<std::string>{node[key].Scalar()};
  if (!node[key].IsSequence()) return fail(fmt::format("'{}' must be a list of values", key), position(key));
  for (const auto& item : node[key]) {
    if (!item.IsScalar()) return fail(fmt::format("each item of '{}' must be a single value", key), position_of(item, state_->file));
    items.push_back(item.Scalar());
  }
  return items;
}

Result<std::string> YamlMap::required_text(const std::string& key) const {
  TRY_INTO(const std::optional<std::string> value, text(key));
  if (!value) return fail(fmt::format("'{}' is missing", key), position());
  return *value;
}
Result<double> YamlMap::required_number(const std::string& key, double low, double high) const {
  return required(*this, key, number(key, low, high));
}
Result<int> YamlMap::required_int(const std::string& key, int low, int high) const {
  TRY_INTO(const std::optional<int> value, integer(key, low, high));
  if (!value) return fail(fmt::format("'{}' is missing", key), position());
  return *value;
}
Result<double> YamlMap::required_rate(const std::string& key) const { return required(*this, key, rate(key)); }
Result<double> YamlMap::required_bytes(const std::string& key) const { return required(*this, key, bytes(key)); }
Result<double> YamlMap::required_flop_rate(const std::string& key) const { return required(*this, key, flop_rate(key)); }
Result<YamlMap> YamlMap::required_map(const std::string& key) const {
  TRY_INTO(const std::optional<YamlMap> value, map(key));
  if (!value) return fail(fmt::format("'{}' is missing", key), position());
  return *value;
}

Result<bool> YamlMap::finish() const {
  const std::vector<std::string> known(state_->asked.begin(), state_->asked.end());
  for (const auto& entry : state_->node) {
    const std::string& key = entry.first.Scalar();
    if (state_->asked.count(key) != 0) continue;
    std::vector<std::string> notes;
    if (const auto close = nearest(key, known)) notes.push_back(fmt::format("did you mean '{}'?", *close));
    notes.push_back(fmt::format("known here: {}", fmt::join(known, ", ")));
    return fail(fmt::format("unknown key '{}'{}", key, state_->path.empty() ? "" : " in '" + state_->path + "'"),
                position_of(entry.first, state_->file), std::move(notes));
  }
  return true;
}

}  // namespace chokepoint
