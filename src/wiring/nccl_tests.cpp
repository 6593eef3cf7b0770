// SPDX-License-Identifier: Apache-2.0
// nccl-tests and rccl-tests. A row is found by content (size, count, data type), so prefixes of launchers do not matter;
// which columns follow the type is read from the last header, or from how many numbers there are.
#include <chokepoint/wiring/tables.hpp>

#include "scan.hpp"

#include <chokepoint/base/text.hpp>
#include <chokepoint/base/units.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <set>

namespace chokepoint::wiring {

namespace {

constexpr std::size_t kMaxRows = 1 << 20;
/// Source: nccl-tests src/common.cu, names of types and operations.
constexpr std::array<std::string_view, 17> kTypes{"int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "float", "double", "bfloat16",
                                                  "fp8_e4m3", "fp8_e5m2", "f8e4m3", "f8e5m2", "char", "int", "fp16"};
constexpr std::array<std::string_view, 8> kReductions{"sum", "prod", "max", "min", "avg", "mulsum", "none", "all"};

struct OpWord {
  std::string_view word;
  std::string_view op;
};
constexpr std::array<OpWord, 17> kOpWords{{{"all_reduce", "all_reduce"},   {"allreduce", "all_reduce"},     {"reduce_scatter", "reduce_scatter"},
                                           {"reducescatter", "reduce_scatter"}, {"all_gather", "all_gather"}, {"allgather", "all_gather"},
                                           {"alltoall", "all_to_all"},      {"all_to_all", "all_to_all"},    {"sendrecv", "send_recv"},
                                           {"send_recv", "send_recv"},      {"broadcast_perf", "broadcast"}, {"broadcast", "broadcast"},
                                           {"reduce_perf", "reduce"},       {"gather_perf", "gather"},       {"scatter_perf", "scatter"},
                                           {"hypercube", "hypercube"},      {"-t reduce ", "reduce"}}};

bool is_type(std::string_view word) { return std::find(kTypes.begin(), kTypes.end(), word) != kTypes.end(); }
bool is_reduction(std::string_view word) { return std::find(kReductions.begin(), kReductions.end(), word) != kReductions.end(); }

struct Shape {
  bool reductions = false;  ///< rows named one
  bool roots = false;       ///< a root rank, not -1
};

class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}
  Result<MeasuredTable> read(std::string_view text);

 private:
  bool row(const std::vector<std::string_view>& words, int number);
  bool device(std::string_view line);
  void header(std::string_view line, int number);
  void name_op(std::string_view text);

  std::string file_;
  MeasuredTable table_;
  Shape shape_;
  std::set<int> seen_ranks_;
  bool header_root_ = false;
  bool header_seen_ = false;
  bool named_by_command_ = false;
};

/// "#  Rank  0 Group  0 Pid 85 on node0 device  0 [0000:cc:00] NVIDIA H200".
bool Reader::device(std::string_view line) {
  const std::size_t rank_at = line.find("Rank ");
  const std::size_t on = line.find(" on ");
  const std::size_t dev = line.find(" device ");
  if (rank_at == std::string_view::npos || on == std::string_view::npos || dev == std::string_view::npos || on < rank_at || dev < on) return false;
  TableDevice found;
  found.rank = leading_int(line.substr(rank_at + 5)).value_or(-1);
  if (found.rank < 0 || found.rank > (1 << 20) || table_.devices.size() > (1U << 20)) return false;
  found.host = std::string(trim(line.substr(on + 4, dev - on - 4)));
  found.device = leading_int(line.substr(dev + 8)).value_or(0);
  const auto bus = between(line.substr(dev), "[", "]");
  const auto rest = after(line.substr(dev), "]");
  if (bus) found.bus_id = pci_address(*bus);
  if (rest) found.name = std::string(trim(*rest));
  if (seen_ranks_.insert(found.rank).second) table_.devices.push_back(std::move(found));
  return true;
}

void Reader::header(std::string_view line, int number) {
  if (!contains(line, "size") || !contains(line, "algbw")) return;
  header_seen_ = true;
  header_root_ = contains(line, " root ");
  if (table_.header_line == 0) table_.header_line = number;
}

bool Reader::row(const std::vector<std::string_view>& words, int number) {
  std::size_t at = 0;
  while (at + 2 < words.size() && !(is_digits(words[at]) && is_digits(words[at + 1]) && is_type(words[at + 2]))) ++at;
  if (at + 2 >= words.size()) return false;
  TableRow found;
  found.bytes = to_number(words[at]).value_or(0.0);
  found.count = to_number(words[at + 1]).value_or(0.0);
  found.line = number;
  at += 3;
  bool reduction = false;
  if (at < words.size() && is_reduction(words[at])) {
    reduction = words[at] != "none";
    ++at;
  }
  std::vector<double> values;  // N/A becomes -1
  for (; at < words.size(); ++at) {
    const auto value = to_number(words[at]);
    if (!value && words[at] != "N/A" && words[at] != "nan" && words[at] != "-nan" && words[at] != "inf") break;
    values.push_back(value.value_or(-1));
  }
  const bool root = header_seen_ ? header_root_ : values.size() == 5 || values.size() == 9;
  std::size_t first = 0;
  if (root && !values.empty()) {
    if (values[0] >= 0) shape_.roots = true;
    first = 1;
  }
  if (values.size() < first + 3) return false;
  found.time_s = std::max(0.0, values[first]) * 1e-6;
  found.algorithm_bytes_per_s = gbyte(std::max(0.0, values[first + 1]));
  found.bus_bytes_per_s = gbyte(std::max(0.0, values[first + 2]));
  const std::size_t checks = values.size() - first == 6 ? 3 : 4;
  if (checks == 4 && values.size() > first + 3 && values[first + 3] > 1) ++table_.wrong;
  if (values.size() >= first + checks + 3) {
    found.in_place_time_s = std::max(0.0, values[first + checks]) * 1e-6;
    found.in_place_bus_bytes_per_s = gbyte(std::max(0.0, values[first + checks + 2]));
  }
  shape_.reductions = shape_.reductions || reduction;
  if (table_.rows.size() < kMaxRows) table_.rows.push_back(std::move(found));
  return true;
}

void Reader::name_op(std::string_view text) {
  for (const OpWord& entry : kOpWords) {
    if (!contains(text, entry.word)) continue;
    table_.op = std::string(entry.op);
    named_by_command_ = true;
    return;
  }
}

/// What the numbers say where no command does: the ratio of bus to algorithm bandwidth, and which columns there are.
std::string op_from_numbers(const MeasuredTable& table, const Shape& shape) {
  const TableRow* row = table.largest();
  if (row == nullptr || row->algorithm_bytes_per_s < 0.5e9) return shape.roots ? (shape.reductions ? "reduce" : "broadcast") : "";
  const double ratio = row->bus_bytes_per_s / row->algorithm_bytes_per_s;
  if (shape.roots) return shape.reductions ? "reduce" : "broadcast";
  if (!shape.reductions) return ratio > 0.995 && ratio < 1.005 ? "send_recv" : "all_gather";
  const int ranks = table.stated_ranks();
  if (ranks == 2) return ratio > 0.75 ? "all_reduce" : "reduce_scatter";
  return ratio > 1.005 ? "all_reduce" : "reduce_scatter";
}

Result<MeasuredTable> Reader::read(std::string_view text) {
  int number = 0;
  bool seen_table = false;
  for (const std::string_view line : split_lines(text)) {
    ++number;
    if (device(line)) {
      seen_table = true;
      continue;
    }
    if (contains(line, "algbw")) header(line, number);
    if (contains(line, "nThread") && contains(line, "minBytes")) {
      seen_table = true;
      if (table_.header_line == 0) table_.header_line = number;
    }
    if (const auto average = after(line, "Avg bus bandwidth")) {
      if (const auto value = after(*average, ":")) {
        if (const auto rate = leading_number(*value)) table_.average_bus_bytes_per_s = gbyte(*rate);
      }
    }
    if (row(split_blanks(line), number)) seen_table = true;
    else if (!named_by_command_ && !contains(line, "NCCL INFO")) name_op(line);
  }
  if (!seen_table && !header_seen_) return fail("no table of nccl-tests", {file_, 0, 0}, {"expected rows \"size count type ... time algbw busbw\""});
  const std::string derived = op_from_numbers(table_, shape_);
  if (table_.op.empty()) table_.op = derived;
  if (table_.op == "all_gather" && !named_by_command_) table_.notes.push_back({"all_gather and all_to_all print the same columns; taken for all_gather", {file_, table_.header_line, 0}});
  if (table_.rows.empty()) table_.notes.push_back({"cut short: header without rows", {file_, table_.header_line, 0}});
  if (table_.wrong > 0) table_.notes.push_back({fmt::format("{} rows failed the result check", table_.wrong), {file_, table_.header_line, 0}});
  const int stated = table_.stated_ranks();
  if (stated > static_cast<int>(table_.devices.size())) {
    table_.notes.push_back({fmt::format("the list of devices shows {} of {} ranks", table_.devices.size(), stated), {file_, table_.header_line, 0}});
  }
  return std::move(table_);
}

}  // namespace

Result<MeasuredTable> read_nccl_tests(std::string_view text, const std::string& file) { return Reader(file).read(text); }

}  // namespace chokepoint::wiring
