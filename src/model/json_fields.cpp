// SPDX-License-Identifier: Apache-2.0
#include "json_fields.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace chokepoint::model {

using Json = nlohmann::json;

struct JsonFields::State {
  std::shared_ptr<const Json> document;
  std::shared_ptr<const std::string> text;
  const Json* object = nullptr;
  std::string file;
};

namespace {

SourcePos position_at(std::string_view text, std::size_t offset, const std::string& file) {
  offset = std::min(offset, text.size());
  const std::string_view before = text.substr(0, offset);
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const std::size_t line_start = before.rfind('\n');
  const std::size_t column = line_start == std::string_view::npos ? offset : offset - line_start - 1;
  return {file, static_cast<int>(lines) + 1, static_cast<int>(column) + 1};
}

const char* kind_of(const Json& value) {
  switch (value.type()) {
    case Json::value_t::object: return "an object";
    case Json::value_t::array: return "a list";
    case Json::value_t::string: return "a text";
    case Json::value_t::boolean: return "true or false";
    case Json::value_t::null: return "null";
    default: return "a number";
  }
}

/// The whole number a JSON value holds; integers written as "4096.0" count.
std::optional<double> whole(const Json& value) {
  if (!value.is_number()) return std::nullopt;
  const double number = value.get<double>();
  if (!std::isfinite(number) || number != std::floor(number)) return std::nullopt;
  return number;
}

struct Found {
  const char* name = nullptr;
  const Json* value = nullptr;
};

Found find(const Json& object, JsonFields::Names names) {
  for (const char* name : names) {
    const auto it = object.find(name);
    if (it != object.end() && !it->is_null()) return {name, &*it};
  }
  return {};
}

tl::unexpected<Error> wrong(const JsonFields& fields, const Found& found, const std::string& expected) {
  // Long and nested values are named by their kind, others printed.
  const std::string shown = found.value->is_primitive() && !found.value->is_string() ? found.value->dump() : kind_of(*found.value);
  return fail(fmt::format("'{}' is {}, expected {}", found.name, shown, expected), fields.position(found.name));
}

}  // namespace

Result<JsonFields> JsonFields::parse(std::string_view text, const std::string& file) {
  auto state = std::make_shared<State>();
  state->file = file;
  state->text = std::make_shared<const std::string>(text);
  try {
    state->document = std::make_shared<const Json>(Json::parse(text));
  } catch (const Json::parse_error& error) {
    // nlohmann counts bytes from 1 and points behind the last one it read.
    return fail("not valid JSON", position_at(text, error.byte > 0 ? error.byte - 1 : 0, file),
                {"a config.json starts with '{' and holds numbers, not NaN or Infinity"});
  } catch (const Json::exception& error) {
    return fail(fmt::format("not valid JSON: {}", error.what()), {file, 1, 1});
  }
  if (!state->document->is_object()) {
    return fail(fmt::format("holds {}, expected the object of a Hugging Face config.json", kind_of(*state->document)), {file, 1, 1});
  }
  state->object = state->document.get();
  return JsonFields(std::move(state));
}

bool JsonFields::has(Names names) const { return find(*state_->object, names).value != nullptr; }

bool JsonFields::mentions(const char* name) const { return state_->object->contains(name); }

Result<std::optional<int>> JsonFields::integer(Names names, int low, int high) const {
  const Found found = find(*state_->object, names);
  if (found.value == nullptr) return std::optional<int>{};
  const auto number = whole(*found.value);
  if (!number) return wrong(*this, found, "a whole number");
  if (*number < low || *number > high) return wrong(*this, found, fmt::format("{} to {}", low, high));
  return std::optional<int>(static_cast<int>(*number));
}

Result<int> JsonFields::integer_or(Names names, int fallback, int low, int high) const {
  TRY_INTO(const std::optional<int> value, integer(names, low, high));
  return value.value_or(fallback);
}

Result<bool> JsonFields::boolean_or(Names names, bool fallback) const {
  const Found found = find(*state_->object, names);
  if (found.value == nullptr) return fallback;
  if (!found.value->is_boolean()) return wrong(*this, found, "true or false");
  return found.value->get<bool>();
}

Result<std::optional<double>> JsonFields::number(Names names, double low, double high) const {
  const Found found = find(*state_->object, names);
  if (found.value == nullptr) return std::optional<double>{};
  if (!found.value->is_number()) return wrong(*this, found, "a number");
  const double value = found.value->get<double>();
  if (!(value >= low && value <= high)) return wrong(*this, found, fmt::format("{:g} to {:g}", low, high));
  return std::optional<double>(value);
}

Result<std::optional<std::string>> JsonFields::text(Names names) const {
  const Found found = find(*state_->object, names);
  if (found.value == nullptr) return std::optional<std::string>{};
  if (!found.value->is_string()) return wrong(*this, found, "a text");
  return std::optional<std::string>(found.value->get<std::string>());
}

Result<std::vector<int>> JsonFields::integers(Names names) const {
  std::vector<int> values;
  const Found found = find(*state_->object, names);
  if (found.value == nullptr) return values;
  if (!found.value->is_array()) return wrong(*this, found, "a list of whole numbers");
  for (const Json& item : *found.value) {
    const auto number = whole(item);
    if (!number || *number < 0 || *number > 1e9) return wrong(*this, found, "a list of whole numbers");
    values.push_back(static_cast<int>(*number));
  }
  return values;
}

Result<std::vector<std::string>> JsonFields::texts(Names names) const {
  std::vector<std::string> values;
  const Found found = find(*state_->object, names);
  if (found.value == nullptr) return values;
  if (!found.value->is_array()) return wrong(*this, found, "a list of texts");
  for (const Json& item : *found.value) {
    if (!item.is_string()) return wrong(*this, found, "a list of texts");
    values.push_back(item.get<std::string>());
  }
  return values;
}

Result<std::optional<JsonFields>> JsonFields::object(Names names) const {
  const Found found = find(*state_->object, names);
  if (found.value == nullptr) return std::optional<JsonFields>{};
  if (!found.value->is_object()) return wrong(*this, found, "an object");
  auto state = std::make_shared<State>(*state_);
  state->object = found.value;
  return std::optional<JsonFields>(JsonFields(std::move(state)));
}

SourcePos JsonFields::position(std::string_view name) const {
  // The parser keeps no places; the first such key in the text is the one in all but contrived files.
  const std::size_t at = state_->text->find(fmt::format("\"{}\"", name));
  return at == std::string::npos ? SourcePos{state_->file, 1, 1} : position_at(*state_->text, at, state_->file);
}

const std::string& JsonFields::file() const { return state_->file; }

}  // namespace chokepoint::model
