// SPDX-License-Identifier: Apache-2.0
// Tables with a size in the first column: OSU micro-benchmarks, perftest, DeepSpeed's communication log.
#include <chokepoint/wiring/tables.hpp>

#include "scan.hpp"

#include <chokepoint/base/text.hpp>
#include <chokepoint/base/units.hpp>

#include <algorithm>
#include <fmt/format.h>

namespace chokepoint::wiring {

namespace {

/// "# OSU MPI-CUDA Allreduce Latency Test v5.9" -> "allreduce latency".
std::string osu_op(std::string_view title) {
  std::string words;
  for (const std::string_view word : split_blanks(title)) {
    const bool noise = word == "#" || word == "OSU" || word.substr(0, 3) == "MPI" || word == "Test" || (word.size() > 1 && word[0] == 'v' && is_digits(word.substr(1, 1)));
    if (noise) continue;
    words += (words.empty() ? "" : "_") + lower(word);
  }
  return words;
}

/// What the second column of an OSU table is, from its heading.
enum class OsuUnit { kMicroseconds, kMegabytesPerS, kMessagesPerS };

}  // namespace

Result<MeasuredTable> read_osu(std::string_view text, const std::string& file) {
  MeasuredTable table;
  table.kind = TableKind::kOsu;
  OsuUnit unit = OsuUnit::kMicroseconds;
  std::string pair;
  bool inside = false;
  int number = 0;
  for (const std::string_view line : split_lines(text)) {
    ++number;
    if (contains(line, "# OSU ")) {
      table.title = std::string(trim(line.substr(line.find("OSU "))));
      table.op = osu_op(table.title);
      table.bidirectional = contains(table.op, "bi-directional");
      if (table.header_line == 0) table.header_line = number;
      inside = true;
      unit = contains(table.op, "bandwidth") ? OsuUnit::kMegabytesPerS : OsuUnit::kMicroseconds;
      continue;
    }
    if (const auto visible = after(line, "VISIBLE_DEVICES=")) {
      pair = std::string(trim(visible->substr(0, visible->find_first_of(" ;"))));
      std::replace(pair.begin(), pair.end(), ',', '-');
    }
    if (inside && contains(line, "# Size")) {
      if (contains(line, "MB/s")) unit = OsuUnit::kMegabytesPerS;
      else if (contains(line, "Messages/s")) unit = OsuUnit::kMessagesPerS;
      else if (contains(line, "(us)")) unit = OsuUnit::kMicroseconds;
      continue;
    }
    const std::vector<std::string_view> words = split_blanks(line);
    if (!inside || words.size() < 2 || !is_digits(words[0])) continue;
    const auto bytes = to_number(words[0]);
    const auto value = to_number(words[1]);
    if (!bytes || !value || *value < 0) continue;
    TableRow row;
    row.bytes = *bytes;
    row.line = number;
    row.pair = pair;
    if (unit == OsuUnit::kMicroseconds) row.time_s = *value * 1e-6;
    if (unit == OsuUnit::kMegabytesPerS) row.algorithm_bytes_per_s = row.bus_bytes_per_s = *value * 1e6;
    if (unit == OsuUnit::kMicroseconds && row.time_s > 0) row.algorithm_bytes_per_s = row.bytes / row.time_s;
    table.rows.push_back(std::move(row));
  }
  if (!inside) return fail("no title of an OSU benchmark", {file, 0, 0}, {"expected a line \"# OSU MPI Bandwidth Test\""});
  if (table.rows.empty()) table.notes.push_back({"cut short: title without rows", {file, table.header_line, 0}});
  return table;
}

namespace {

/// "RDMA_Write Bidirectional BW Test" -> "ib_write_bw".
std::string perftest_op(std::string_view title) {
  const std::string text = lower(title);
  const std::string verb = contains(text, "write") ? "write" : contains(text, "read") ? "read" : contains(text, "send") ? "send" : contains(text, "atomic") ? "atomic" : "raw_ethernet";
  return "ib_" + verb + (contains(text, "latency") ? "_lat" : "_bw");
}

/// perftest prints mebibytes per second under "MB/sec" (bytes / 0x100000). Source: perftest's perftest_parameters.h.
double perftest_factor(std::string_view heading) {
  if (contains(heading, "Gb/sec")) return 1e9 / 8;
  if (contains(heading, "MiB/sec") || contains(heading, "MB/sec")) return kMiB;
  return 0;
}

void banner(MeasuredTable& table, std::string_view line) {
  // Two "key : value" pairs stand in one line, parted by at least two blanks or a tab.
  for (std::string_view rest = line; !rest.empty();) {
    const std::size_t colon = rest.find(':');
    if (colon == std::string_view::npos || table.settings.size() >= 64) return;
    const std::string_view key = trim(rest.substr(0, colon));
    std::string_view value = rest.substr(colon + 1);
    while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
    const std::size_t end = std::min(value.find("  "), value.find('\t'));
    const std::pair<std::string, std::string> found{std::string(key), std::string(trim(value.substr(0, end)))};
    if (std::find(table.settings.begin(), table.settings.end(), found) == table.settings.end()) table.settings.push_back(found);
    rest = end == std::string_view::npos ? std::string_view() : trim(value.substr(end));
  }
}

}  // namespace

Result<MeasuredTable> read_perftest(std::string_view text, const std::string& file) {
  MeasuredTable table;
  table.kind = TableKind::kPerftest;
  double factor = 0;
  bool latency = false;
  bool inside = false;
  int number = 0;
  for (const std::string_view line : split_lines(text)) {
    ++number;
    if (contains(line, "BW Test") || contains(line, "Latency Test")) {
      table.title = std::string(trim(line));
      table.op = perftest_op(line);
      table.bidirectional = contains(line, "Bidirectional");
    } else if (contains(line, "#bytes")) {
      inside = true;
      factor = perftest_factor(line);
      latency = contains(line, "t_typical") || contains(line, "t_avg") || contains(line, "usec");
      if (table.header_line == 0) table.header_line = number;
    } else if (!inside && contains(line, ":") && !contains(line, "address") && !contains(line, "GID:")) {
      banner(table, line);
    }
    const std::vector<std::string_view> words = split_blanks(line);
    if (!inside || words.size() < 4 || !is_digits(words[0]) || !is_digits(words[1])) continue;
    TableRow row;
    row.bytes = to_number(words[0]).value_or(0.0);
    row.count = to_number(words[1]).value_or(0.0);
    row.line = number;
    if (latency) {
      row.time_s = to_number(words[words.size() > 4 ? 4 : 3]).value_or(0.0) * 1e-6;  // typical
    } else {
      row.algorithm_bytes_per_s = row.bus_bytes_per_s = to_number(words[3]).value_or(0.0) * factor;
    }
    table.rows.push_back(std::move(row));
  }
  if (!inside && table.title.empty()) return fail("no table of perftest", {file, 0, 0}, {"expected a heading \"#bytes #iterations BW peak ...\""});
  if (table.op.empty()) table.op = latency ? "ib_lat" : "ib_bw";
  if (table.rows.empty()) table.notes.push_back({"cut short: heading without rows", {file, table.header_line, 0}});
  if (factor == kMiB) table.notes.push_back({"\"MB/sec\" of perftest counts 2^20 bytes", {file, table.header_line, 0}});
  return table;
}

namespace {

/// Each row "98.25 MB  1  8317.12  8317.12  0.20  0.19"; DeepSpeed's KB and MB are powers of 1024 (its convert_size).
bool deepspeed_row(MeasuredTable& table, const std::vector<std::string_view>& words, const std::string& op, int number) {
  if (words.size() < 7) return false;
  const auto size = to_number(words[0]);
  const std::string_view unit = words[1];
  const double scale = unit == "B" ? 1 : unit == "KB" ? 1024 : unit == "MB" ? kMiB : unit == "GB" ? kGiB : unit == "TB" ? kGiB * 1024 : 0;
  const auto latency = to_number(words[4]);
  const auto algorithm = to_number(words[5]);
  const auto bus = to_number(words[6]);
  if (!size || scale == 0 || !latency || !algorithm || !bus) return false;
  TableRow row;
  row.bytes = *size * scale;
  row.count = to_number(words[2]).value_or(0.0);
  row.op = op;
  row.time_s = *latency * 1e-3;
  row.algorithm_bytes_per_s = gbit(*algorithm);
  row.bus_bytes_per_s = gbit(*bus);
  row.line = number;
  table.rows.push_back(std::move(row));
  return true;
}

}  // namespace

Result<MeasuredTable> read_deepspeed_comms(std::string_view text, const std::string& file) {
  MeasuredTable table;
  table.kind = TableKind::kDeepSpeed;
  table.title = "DeepSpeed communication log";
  std::string op;
  int number = 0;
  for (const std::string_view line : split_lines(text)) {
    ++number;
    if (contains(line, "Comm. Op") && contains(line, "Message Size")) {
      table.header_line = number;
      continue;
    }
    if (table.header_line == 0 || trim(line).empty()) continue;
    const std::vector<std::string_view> words = split_blanks(line);
    if (deepspeed_row(table, words, op, number)) continue;
    if (!is_digits(words.front().substr(0, 1))) op = std::string(trim(line.substr(0, line.find('|'))));
  }
  if (table.header_line == 0) return fail("no table of DeepSpeed's communication log", {file, 0, 0}, {"expected a heading \"Comm. Op   Message Size ...\""});
  return table;
}

}  // namespace chokepoint::wiring
