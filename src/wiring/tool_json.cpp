// SPDX-License-Identifier: Apache-2.0
// Sources of the forms: nvbandwidth's README (-j), rocm-smi and amd-smi (their --json).
#include "tool_json.hpp"

#include "scan.hpp"

#include <chokepoint/base/text.hpp>

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace chokepoint::wiring {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMostGpus = 256;
constexpr std::size_t kMostText = 64u << 20;  ///< of a table written out

Result<Json> parsed(std::string_view json, const std::string& file) {
  Json found = Json::parse(json.begin(), json.end(), nullptr, false);
  if (found.is_discarded()) return fail("not valid JSON, or cut short", {file, 0, 0});
  return found;
}

std::string text_of(const Json& value) { return value.is_string() ? value.get<std::string>() : value.is_number() ? value.dump() : std::string(); }

const Json& child(const Json& object, const char* key) {
  static const Json kNone;
  if (!object.is_object()) return kNone;
  const auto found = object.find(key);
  return found == object.end() ? kNone : *found;
}

template <class Value>
void put(std::vector<std::vector<Value>>& square, int row, int column, const Value& value, const Value& empty) {
  const auto size = static_cast<std::size_t>(std::max(row, column)) + 1;
  if (square.size() < size) square.resize(size);
  for (auto& cells : square) cells.resize(std::max(cells.size(), square.size()), empty);
  square[static_cast<std::size_t>(row)][static_cast<std::size_t>(column)] = value;
}

void put_pair(RocmTopology& found, std::string_view what, int a, int b, const std::string& value) {
  if (a < 0 || b < 0 || a >= kMostGpus || b >= kMostGpus || a == b) return;
  found.gpus = std::max({found.gpus, a + 1, b + 1});
  for (const auto& [row, column] : {std::pair{a, b}, std::pair{b, a}}) {
    if (contains_ignoring_case(what, "weight")) put(found.weights, row, column, to_int(value).value_or(-1), 0);
    else if (contains_ignoring_case(what, "hops")) put(found.hops, row, column, to_int(value).value_or(-1), 0);
    else if (contains_ignoring_case(what, "link")) put(found.links, row, column, value, std::string("0"));
  }
}

/// "(Topology) Weight between DRM devices 0 and 1": both numbers.
std::optional<std::pair<int, int>> devices_in(std::string_view key) {
  const auto rest = after(key, "devices ");
  if (!rest) return std::nullopt;
  const auto first = leading_int(*rest);
  const auto second = leading_int(after(*rest, " and ").value_or(""));
  if (!first || !second) return std::nullopt;
  return std::pair{*first, *second};
}

void read_card(RocmTopology& found, int gpu, const Json& values) {
  if (gpu < 0 || gpu >= kMostGpus || !values.is_object()) return;
  found.gpus = std::max(found.gpus, gpu + 1);
  for (const auto& [key, value] : values.items()) {
    if (contains_ignoring_case(key, "numa node")) {
      if (const auto node = to_int(text_of(value)); node && *node >= 0 && *node < kMostGpus) found.numa[gpu] = *node;
    } else if (contains_ignoring_case(key, "card series") || contains_ignoring_case(key, "card model")) {
      found.names.resize(std::max(found.names.size(), static_cast<std::size_t>(gpu) + 1));
      found.names[static_cast<std::size_t>(gpu)] = text_of(value);
    }
  }
}

/// amd-smi: a list of GPUs, each with its links.
void read_list(RocmTopology& found, const Json& list) {
  for (const Json& entry : list) {
    const int gpu = to_int(text_of(child(entry, "gpu"))).value_or(-1);
    if (gpu < 0 || gpu >= kMostGpus) continue;
    found.gpus = std::max(found.gpus, gpu + 1);
    found.bus_ids.resize(std::max(found.bus_ids.size(), static_cast<std::size_t>(gpu) + 1));
    found.bus_ids[static_cast<std::size_t>(gpu)] = pci_address(text_of(child(entry, "bdf")));
    const Json& links = child(entry, "links");
    if (!links.is_array()) continue;
    for (const Json& link : links) {
      const int other = to_int(text_of(child(link, "gpu"))).value_or(-1);
      for (const auto& [key, what] : {std::pair{"weight", "weight"}, {"num_hops", "hops"}, {"link_type", "link"}}) {
        if (const std::string value = text_of(child(link, key)); !value.empty()) put_pair(found, what, gpu, other, value);
      }
    }
  }
}

}  // namespace

Format json_format(std::string_view head) {
  head = trim(head.substr(0, 1 << 16));
  if (head.empty() || (head.front() != '{' && head.front() != '[')) return Format::kUnknown;
  if (contains(head, "\"nvbandwidth\"")) return Format::kPairTables;
  if (contains(head, "\"(Topology) ")) return Format::kRocmTopology;
  if (contains(head, "\"links\"") && contains(head, "\"num_hops\"")) return Format::kRocmTopology;
  return Format::kUnknown;
}

Result<std::string> nvbandwidth_text(std::string_view json, const std::string& file) {
  TRY_INTO(const Json root, parsed(json, file));
  const Json& cases = child(child(root, "nvbandwidth"), "testcases");
  if (!cases.is_array()) return fail("no list \"testcases\"", {file, 0, 0}, {"save the output of `nvbandwidth -j`"});
  std::string text = "nvbandwidth Version: JSON\n";
  for (const Json& entry : cases) {
    const Json& matrix = child(entry, "bandwidth_matrix");
    const std::string name = text_of(child(entry, "name"));
    if (!matrix.is_array() || matrix.empty() || text.size() > kMostText) continue;
    const bool latency = contains(name, "latency");
    const std::string said = text_of(child(entry, "bandwidth_description"));
    text += fmt::format("\n{}: {}\n  ", name, !said.empty() ? said : latency ? "latency (us)" : contains(name, "host") ? "memcpy CPU(row) GPU(column) bandwidth (GB/s)" : "memcpy bandwidth (GB/s)");
    std::size_t columns = 0;
    for (const Json& row : matrix) columns = std::max(columns, row.is_array() ? row.size() : std::size_t{0});
    if (columns > static_cast<std::size_t>(kMostGpus)) continue;
    for (std::size_t i = 0; i < columns; ++i) text += fmt::format("  {}", i);
    int number = 0;
    for (const Json& row : matrix) {
      if (!row.is_array() || number >= kMostGpus) break;
      text += fmt::format("\n{}", number++);
      for (const Json& value : row) {
        const std::string word(trim(text_of(value)));
        text += "  " + (to_number(word) ? word : std::string("N/A"));
      }
    }
    text += "\n\n";
    if (const std::string sum = text_of(child(entry, "sum")); !sum.empty()) text += fmt::format("SUM {} {}\n", name, sum);
  }
  return text;
}

Result<RocmTopology> read_rocm_json(std::string_view json, const std::string& file) {
  TRY_INTO(const Json root, parsed(json, file));
  RocmTopology found;
  if (root.is_array()) read_list(found, root);
  if (root.is_object()) {
    for (const auto& [key, value] : root.items()) {
      if (key.substr(0, 4) == "card") read_card(found, to_int(key.substr(4)).value_or(-1), value);
      if (key != "system" || !value.is_object()) continue;
      for (const auto& [name, cell] : value.items()) {
        if (const auto devices = devices_in(name)) put_pair(found, name, devices->first, devices->second, text_of(cell));
      }
    }
  }
  if (found.gpus == 0) return fail("no GPU listed", {file, 0, 0}, {"save the output of `rocm-smi --showtopo --json` or `amd-smi topology --json`"});
  if (found.links.empty()) found.notes.push_back({"no link types in the file; the links between the GPUs stay unknown", {file, 0, 0}});
  return found;
}

}  // namespace chokepoint::wiring
