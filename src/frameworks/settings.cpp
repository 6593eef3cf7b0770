// SPDX-License-Identifier: Apache-2.0
#include "settings.hpp"

#include <chokepoint/base/text.hpp>
#include <chokepoint/base/yaml.hpp>

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace chokepoint::frameworks {

namespace {

bool matches(const Known& known, std::string_view key) {
  if (!known.key.ends_with('*')) return known.key == key;
  return key.starts_with(known.key.substr(0, known.key.size() - 1));
}

/// Numbers as they occur in configs: "5e8", "1_000_000".
std::optional<double> lenient_number(std::string_view text) {
  std::string plain;
  for (const char c : text) {
    if (c != '_') plain.push_back(c);
  }
  return to_number(plain);
}

std::string shown(const std::string& value) { return value.size() > 80 ? value.substr(0, 80) + "..." : value; }

std::vector<std::string> hints(const std::string& value) {
  if (value.find('$') == std::string::npos) return {};
  return {"the script does not set this variable: set it above, or write the number"};
}

}  // namespace

Settings::Settings(std::vector<Setting> list, bool underscores) : list_(std::move(list)) {
  for (Setting& setting : list_) {
    if (underscores) std::replace(setting.key.begin(), setting.key.end(), '-', '_');
  }
  for (std::size_t i = 0; i < list_.size(); ++i) {
    const auto later = std::find_if(list_.begin() + static_cast<std::ptrdiff_t>(i) + 1, list_.end(),
                                    [&](const Setting& other) { return other.key == list_[i].key; });
    if (later == list_.end()) continue;
    list_[i].use = Use::kNoEffect;
    list_[i].note = fmt::format("given again in line {}", later->pos.line);
  }
}

const Setting* Settings::find(std::string_view key) const {
  const auto found = std::find_if(list_.rbegin(), list_.rend(), [&](const Setting& s) { return s.key == key; });
  return found == list_.rend() ? nullptr : &*found;
}

Setting* Settings::slot(std::string_view key) {
  const auto found = std::find_if(list_.rbegin(), list_.rend(), [&](const Setting& s) { return s.key == key; });
  if (found == list_.rend()) return nullptr;
  if (found->use == Use::kUnknown) found->use = Use::kUsed;
  return &*found;
}

SourcePos Settings::pos(std::string_view key) const {
  const Setting* found = find(key);
  return found ? found->pos : SourcePos{};
}

std::optional<std::string> Settings::text(std::string_view key) {
  Setting* found = slot(key);
  if (!found || found->value.empty()) return std::nullopt;
  const std::string word = lower(found->value);
  if (word == "null" || word == "none" || word == "~") return std::nullopt;
  if (word == "auto") {
    found->note = "\"auto\": the Trainer fills it in from its own arguments";
    return std::nullopt;
  }
  return found->value;
}

Result<std::optional<double>> Settings::number(std::string_view key, double low, double high) {
  const auto value = text(key);
  if (!value) return std::optional<double>{};
  const auto number = lenient_number(*value);
  if (!number) return fail(fmt::format("{} is '{}', expected a number", key, shown(*value)), pos(key), hints(*value));
  if (*number < low || *number > high) {
    return fail(fmt::format("{} is {}, expected a value from {:g} to {:g}", key, shown(*value), low, high), pos(key));
  }
  return number;
}

Result<std::optional<int>> Settings::integer(std::string_view key, int low, int high) {
  const auto value = text(key);
  if (!value) return std::optional<int>{};
  const auto number = lenient_number(*value);
  if (!number || *number != std::floor(*number)) {
    return fail(fmt::format("{} is '{}', expected a whole number", key, shown(*value)), pos(key), hints(*value));
  }
  if (*number < low || *number > high) {
    return fail(fmt::format("{} is {}, expected a whole number from {} to {}", key, shown(*value), low, high),
                pos(key));
  }
  return std::optional<int>(static_cast<int>(*number));
}

Result<std::optional<bool>> Settings::boolean(std::string_view key) {
  if (!has(key)) return std::optional<bool>{};
  if (find(key)->value.empty()) {
    slot(key);
    return std::optional<bool>(true);
  }
  const auto value = text(key);
  if (!value) return std::optional<bool>{};
  const std::string word = lower(*value);
  if (word == "true" || word == "yes" || word == "on" || word == "1") return std::optional<bool>(true);
  if (word == "false" || word == "no" || word == "off" || word == "0") return std::optional<bool>(false);
  return fail(fmt::format("{} is '{}', expected true or false", key, shown(*value)), pos(key), hints(*value));
}

bool Settings::flag(std::string_view key) {
  const Setting* found = slot(key);
  if (!found) return false;
  const std::string word = lower(found->value);
  return word != "false" && word != "no" && word != "off" && word != "0" && word != "none" && word != "null";
}

void Settings::mark(std::string_view key, Use use, std::string note) {
  Setting* found = slot(key);
  if (!found) return;
  found->use = use;
  if (!note.empty()) found->note = std::move(note);
}

void Settings::classify(std::span<const Known> no_effect, std::span<const Known> not_modelled) {
  for (Setting& setting : list_) {
    if (setting.use != Use::kUnknown) continue;
    const Known* best = nullptr;  // the longest key that fits, of both lists
    for (const auto list : {no_effect, not_modelled}) {
      for (const Known& known : list) {
        if (!matches(known, setting.key) || (best && best->key.size() >= known.key.size())) continue;
        best = &known;
        setting.use = list.data() == no_effect.data() ? Use::kNoEffect : Use::kNotModelled;
      }
    }
    if (best) setting.note = std::string(best->note);
  }
}

void Settings::as_taken(std::span<const Taken> taken) {
  for (const Taken& known : taken) {
    const Setting* found = find(known.key);
    if (!found || found->use != Use::kUnknown) continue;
    const auto number = lenient_number(found->value);
    const bool same = number ? number == lenient_number(known.value) : lower(found->value) == known.value;
    if (same) mark(known.key, Use::kUsed, "as the model takes it");
  }
}

void append(std::vector<Setting>& out, const Settings& settings) {
  out.insert(out.end(), settings.list().begin(), settings.list().end());
}

namespace {

constexpr std::size_t kMostSettings = 20000;

Result<bool> flatten(const YamlMap& map, const std::string& prefix, std::vector<Setting>& out) {
  for (const std::string& key : map.keys()) {
    if (out.size() > kMostSettings) return fail("holds more settings than any training config", map.position(key));
    const std::string path = prefix.empty() ? key : prefix + "." + key;
    const SourcePos pos = map.position(key);
    if (!map.has(key)) {
      out.push_back({path, "", pos, Use::kNoEffect, "empty"});
      continue;
    }
    if (const auto inner = map.map(key); inner && *inner) {
      TRY_INTO([[maybe_unused]] const bool ok, flatten(**inner, path, out));
      continue;
    }
    if (const auto words = map.texts(key)) {
      out.push_back({path, fmt::format("{}", fmt::join(*words, ",")), pos, Use::kUnknown, ""});
      continue;
    }
    out.push_back({path, "(a list of sections)", pos, Use::kUnknown, ""});
  }
  return true;
}

}  // namespace

Result<std::vector<Setting>> flatten_yaml(std::string_view text, const std::string& file) {
  std::string plain(text);
  std::replace(plain.begin(), plain.end(), '\t', ' ');  // JSON may be indented by tabs, YAML may not
  const Result<YamlMap> parsed = YamlMap::parse(plain, file);
  if (!parsed && trim(text).starts_with('{')) {
    if (auto unbalanced = unbalanced_json(text, file)) return tl::make_unexpected(std::move(*unbalanced));
  }
  TRY_INTO(const YamlMap map, parsed);
  std::vector<Setting> out;
  TRY_INTO([[maybe_unused]] const bool ok, flatten(map, "", out));
  return out;
}

}  // namespace chokepoint::frameworks
