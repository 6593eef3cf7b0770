// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/trace/flight_recorder.hpp>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "json_scan.hpp"
#include "pickle.hpp"
#include "source.hpp"

namespace chokepoint::trace {

namespace {

using Json = nlohmann::json;
constexpr std::size_t kMostBytes = std::size_t{1} << 30;

std::string text_of(const Json& object, const char* key) {
  const auto at = object.find(key);
  if (at == object.end() || at->is_null()) return {};
  return at->is_string() ? at->get<std::string>() : at->dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::int64_t integer_of(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_number_integer() ? at->get<std::int64_t>() : -1;
}

bool truth_of(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_boolean() && at->get<bool>();
}

/// "[0, 4, 8, 12]" -> numbers; empty where the list is cut short by dots.
std::vector<int> ranks_of(std::string_view text) {
  std::vector<int> ranks;
  if (text.find("..") != std::string_view::npos) return ranks;
  int value = -1;
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
      value = std::min((value < 0 ? 0 : value) * 10 + (c - '0'), 1 << 24);
    } else if (value >= 0) {
      ranks.push_back(value);
      value = -1;
    }
  }
  return ranks;
}

FlightState state_of(std::string_view word) {
  if (word == "scheduled") return FlightState::kScheduled;
  if (word == "started") return FlightState::kStarted;
  if (word == "completed") return FlightState::kCompleted;
  return FlightState::kUnknown;
}

FlightEntry entry_of(const Json& json) {
  FlightEntry e;
  if (const auto group = json.find("process_group"); group != json.end() && group->is_array() && group->size() == 2) {
    e.group = (*group)[0].is_string() ? (*group)[0].get<std::string>() : std::string();
    e.description = (*group)[1].is_string() ? (*group)[1].get<std::string>() : std::string();
  }
  e.op = text_of(json, "profiling_name");
  if (e.op.rfind("nccl:", 0) == 0) e.op.erase(0, 5);
  e.sizes = text_of(json, "input_sizes");
  e.dtype = text_of(json, "input_dtypes");
  e.point_to_point = truth_of(json, "is_p2p");
  e.sequence = integer_of(json, e.point_to_point ? "p2p_seq_id" : "collective_seq_id");
  e.created_ns = integer_of(json, "time_created_ns");
  e.state = state_of(text_of(json, "state"));
  return e;
}

/// Digits at the end of the name, before an extension.
int rank_at_end(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  if (const std::size_t dot = name.find('.'); dot != std::string_view::npos) name = name.substr(0, dot);
  std::size_t from = name.size();
  while (from > 0 && std::isdigit(static_cast<unsigned char>(name[from - 1])) != 0) --from;
  std::int64_t rank = -1;
  if (from == name.size() || name.size() - from > 8 || !parse_integer(name.substr(from), rank)) return -1;
  return static_cast<int>(rank);
}

}  // namespace

Result<FlightDump> read_flight_text(std::string_view content, const std::string& file) {
  Json json;
  if (!content.empty() && content[0] == '\x80') {
    TRY_INTO(json, read_pickle(content, file));
  } else {
    json = Json::parse(content, nullptr, false);
    if (json.is_discarded()) return fail("not JSON, or cut off", {file, 0, 0}, {"expected a flight recorder dump (pickle or JSON)"});
  }
  if (!json.is_object() || (json.find("entries") == json.end() && json.find("pg_config") == json.end())) {
    return fail("no flight recorder dump: neither 'entries' nor 'pg_config'", {file, 0, 0});
  }
  FlightDump dump;
  dump.file = file;
  dump.rank = rank_at_end(file);
  dump.version = text_of(json, "version");
  if (const auto config = json.find("pg_config"); config != json.end() && config->is_object()) {
    for (const auto& [key, group] : config->items()) {
      if (!group.is_object()) continue;
      const std::string name = text_of(group, "name");
      dump.groups[name.empty() ? key : name] = {text_of(group, "desc"), ranks_of(text_of(group, "ranks"))};
    }
  }
  if (const auto entries = json.find("entries"); entries != json.end() && entries->is_array()) {
    for (const Json& entry : *entries) {
      if (entry.is_object()) dump.entries.push_back(entry_of(entry));
    }
  }
  return dump;
}

Result<FlightDump> read_flight_dump(const std::string& path) {
  TRY_INTO(const std::string content, read_whole(path, kMostBytes));
  return read_flight_text(content, path);
}

}  // namespace chokepoint::trace
