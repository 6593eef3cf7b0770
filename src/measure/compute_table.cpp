// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chokepoint/measure/compute_probe.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

namespace chokepoint::measure {
namespace {

using Json = nlohmann::json;

constexpr const char* kSchema = "chokepoint.measure-compute/1";
constexpr double kLongest_s = 3600;   ///< no kernel of the sweep runs longer
constexpr double kLargest = 1e9;      ///< no extent of a kernel is larger

/// One row with the first thing that is wrong with it.
struct Row {
  const Json& json;
  std::string wrong;

  void complain(const char* key, const char* expected) {
    if (wrong.empty()) wrong = std::string(key) + " is not " + expected;
  }
  double number(const char* key, double least, double most) {
    const auto at = json.find(key);
    if (at == json.end() || !at->is_number()) {
      complain(key, "a number");
      return 0;
    }
    const double value = at->get<double>();
    if (!(value >= least && value <= most)) complain(key, "in its range");
    return value;
  }
  double extent(const char* key) { return number(key, 1, kLargest); }
  double seconds(const char* key) { return number(key, 1e-9, kLongest_s); }
  std::optional<double> optional_seconds(const char* key) {
    const auto at = json.find(key);
    if (at == json.end() || at->is_null()) return std::nullopt;
    return seconds(key);
  }
  std::string text(const char* key) {
    const auto at = json.find(key);
    if (at != json.end() && at->is_string()) return at->get<std::string>();
    complain(key, "a text");
    return {};
  }
  hardware::Dtype dtype() {
    const auto parsed = hardware::parse_dtype(text("dtype"));
    if (parsed) return *parsed;
    complain("dtype", "a known dtype");
    return hardware::Dtype::kBf16;
  }
};

GemmTiming gemm(Row& row) {
  GemmTiming out;
  out.dtype = row.dtype();
  out.m = row.extent("m");
  out.n = row.extent("n");
  out.k = row.extent("k");
  out.time_s = row.seconds("time_s");
  const std::string clock = row.text("clock");
  if (clock != "burst" && clock != "sustained") row.complain("clock", "\"burst\" or \"sustained\"");
  out.clock = clock == "sustained" ? compute::Clock::kSustained : compute::Clock::kBurst;
  return out;
}

AttentionTiming attention(Row& row) {
  AttentionTiming out;
  out.dtype = row.dtype();
  out.kernel = row.text("kernel");
  out.shape.batch = row.extent("batch");
  out.shape.heads = row.extent("heads");
  out.shape.kv_heads = row.extent("kv_heads");
  out.shape.head_dim = row.extent("head_dim");
  out.shape.sequence = out.shape.kv_sequence = row.extent("sequence");
  const auto causal = row.json.find("causal");
  if (causal == row.json.end() || !causal->is_boolean()) row.complain("causal", "true or false");
  else out.shape.causal = causal->get<bool>();
  out.forward_s = row.seconds("forward_s");
  out.forward_backward_s = row.optional_seconds("forward_backward_s");
  if (out.forward_backward_s && *out.forward_backward_s <= out.forward_s)
    row.complain("forward_backward_s", "longer than forward_s");
  return out;
}

LayerTiming layer(Row& row) {
  LayerTiming out;
  out.dtype = row.dtype();
  out.mode = row.text("mode");
  if (out.mode != "eager" && out.mode != "compiled" && out.mode != "graph")
    row.complain("mode", "\"eager\", \"compiled\" or \"graph\"");
  out.hidden = row.extent("hidden");
  out.ffn_hidden = row.extent("ffn_hidden");
  out.heads = row.extent("heads");
  out.batch = row.extent("batch");
  out.sequence = row.extent("sequence");
  out.forward_s = row.seconds("forward_s");
  out.forward_backward_s = row.optional_seconds("forward_backward_s");
  return out;
}

template <class T>
void read_rows(const Json& root, const char* key, T (*read)(Row&), std::vector<T>& rows, std::vector<Note>& refused,
               const std::string& file) {
  const auto list = root.find(key);
  if (list == root.end() || list->is_null()) return;
  if (!list->is_array()) {
    refused.push_back({std::string(key) + " is not a list", {file, 0, 0}});
    return;
  }
  for (std::size_t i = 0; i < list->size(); ++i) {
    Row row{(*list)[i], {}};
    if (!row.json.is_object()) row.wrong = "it is not an object";
    T value{};
    if (row.wrong.empty()) value = read(row);
    if (row.wrong.empty()) rows.push_back(std::move(value));
    else refused.push_back({std::string(key) + "[" + std::to_string(i) + "]: " + row.wrong, {file, 0, 0}});
  }
}

/// Line and column of a byte of the text, both from 1.
SourcePos position(std::string_view text, std::size_t byte, const std::string& file) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n');
  const std::size_t start = before.rfind('\n');
  const std::size_t column = start == std::string_view::npos ? before.size() : before.size() - start - 1;
  return {file, static_cast<int>(line) + 1, static_cast<int>(std::max<std::size_t>(1, column))};
}

Result<Json> parse(std::string_view text, const std::string& file) {
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    return fail("this is no complete JSON text", position(text, error.byte, file),
                {"chokepoint measure --compute --run --out FILE writes such a table"});
  }
}

}  // namespace

Result<ComputeTable> read_compute_table(std::string_view text, const std::string& file) {
  TRY_INTO(const Json root, parse(text, file));
  const auto schema = root.is_object() ? root.find("schema") : root.end();
  if (!root.is_object() || schema == root.end() || *schema != kSchema)
    return fail("found no \"schema\": \"" + std::string(kSchema) + "\"", {file, 1, 1},
                {"expected the table that chokepoint measure --compute writes (docs/formats/measure-compute.md)"});
  ComputeTable out;
  Row head{root, {}};
  out.device = head.text("device");
  out.device_type = head.text("device_type");
  out.torch = head.text("torch");
  out.launch_s = head.number("launch_s", 1e-9, 1);
  out.copy_bytes_per_s = head.number("copy_bytes_per_s", 1, 1e16);
  if (!head.wrong.empty()) return fail(head.wrong, {file, 1, 1}, {"docs/formats/measure-compute.md lists the fields"});
  if (root.contains("compute_units")) out.compute_units = head.number("compute_units", 0, 1e6);
  if (root.contains("power_limit_w")) out.power_limit_w = head.number("power_limit_w", 0, 1e5);
  out.graph_launch_s = head.optional_seconds("graph_launch_s");
  if (!head.wrong.empty()) out.refused.push_back({head.wrong, {file, 0, 0}});
  read_rows(root, "gemm", gemm, out.gemm, out.refused, file);
  read_rows(root, "attention", attention, out.attention, out.refused, file);
  read_rows(root, "layer", layer, out.layer, out.refused, file);
  return out;
}

}  // namespace chokepoint::measure
