// SPDX-License-Identifier: Apache-2.0
// Every collected trace against exact interval unions that were worked out by other means
// (../shared/traces/oracle_results.csv). The collection is not part of the repository: skips, loudly, where it is absent.
#include <chokepoint/base/files.hpp>
#include <chokepoint/base/text.hpp>
#include <chokepoint/diagnose/device_time.hpp>
#include <chokepoint/trace/trace.hpp>

#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <map>

namespace chokepoint::diagnose {
namespace {

const std::string kCollection = std::string(CHOKEPOINT_SOURCE_DIR) + "/../shared/traces/";

using Row = std::map<std::string, std::string>;

/// Rows of a CSV text with a header; fields may be quoted.
std::vector<Row> csv_rows(std::string_view text) {
  std::vector<std::string> header;
  std::vector<Row> rows;
  for (const std::string_view line : split_lines(text)) {
    if (line.empty()) continue;
    std::vector<std::string> fields{""};
    bool quoted = false;
    for (const char c : line) {
      if (c == '"') {
        quoted = !quoted;
      } else if (c == ',' && !quoted) {
        fields.emplace_back();
      } else {
        fields.back() += c;
      }
    }
    if (header.empty()) {
      header = fields;
      continue;
    }
    Row row;
    for (std::size_t i = 0; i < header.size() && i < fields.size(); ++i) row[header[i]] = fields[i];
    rows.push_back(std::move(row));
  }
  return rows;
}

std::int64_t ns_of(const std::string& us) { return std::llround(std::strtod(us.c_str(), nullptr) * 1000); }

/// The file's first ProfilerStep annotation on the host.
std::optional<Interval> first_step(const trace::RankTrace& trace) {
  const trace::HostEvents& h = trace.host_events;
  for (std::size_t i = 0; i < h.size(); ++i) {
    if (h.kind[i] == trace::HostKind::kAnnotation && trace.names[h.name[i]].substr(0, 12) == "ProfilerStep") return Interval{h.start_ns[i], h.end_ns[i]};
  }
  return std::nullopt;
}

/// Names of columns that differ, with both values.
std::string differences(const Row& row, const trace::RankTrace& trace) {
  const std::string& set = row.at("set");
  const Selection selection = set.find("launched") != std::string::npos ? Selection::kLaunched
                              : set.find("flow") != std::string::npos   ? Selection::kFlow
                                                                        : Selection::kAll;
  const std::optional<Interval> window = row.at("window") == "given" ? first_step(trace) : std::nullopt;
  const DeviceTime t = device_time(device_unions(trace, selection, window));
  const std::pair<const char*, std::int64_t> values[] = {
      {"span", t.span_ns}, {"compute", t.compute_ns}, {"comm", t.communication_ns}, {"mem", t.memory_ns}, {"busy", t.busy_ns},
      {"idle", t.idle_ns()}, {"overlap", t.overlap_ns}, {"exposed_comm", t.exposed_communication_ns},
      {"exposed_comm_strict", t.exposed_strict_ns}, {"exposed_mem", t.exposed_memory_ns}, {"exposed_memcpy_only", t.exposed_copy_ns},
      {"compute_with_memset", t.compute_and_set_ns}, {"hta_non_compute", t.busy_ns - t.compute_ns}};
  std::string text;
  for (const auto& [column, value] : values) {
    const std::int64_t expected = ns_of(row.at(column));
    if (expected != value) text += std::string(column) + " " + std::to_string(value) + ", expected " + std::to_string(expected) + " ns; ";
  }
  if (!row.at("start_ns").empty() && row.at("start_ns") != std::to_string(t.start_ns - trace.clock_base_ns)) text += "start " + std::to_string(t.start_ns) + ", expected " + row.at("start_ns");
  return text;
}

TEST(TraceCollection, EveryDeviceTimeEqualsTheOracleToTheNanosecond) {
  const auto text = read_text_file(kCollection + "oracle_results.csv");
  if (!text) GTEST_SKIP() << "NOT CHECKED: the collection " << kCollection << " is not here";
  int checked = 0;
  int equal = 0;
  for (const Row& row : csv_rows(*text)) {
    const std::string& file = row.at("file");
    if (file.find(".json") == std::string::npos || !file_exists(kCollection + file)) continue;
    const auto trace = trace::read_chrome_trace(kCollection + file);
    ASSERT_TRUE(trace) << format(trace.error());
    ++checked;
    const std::string differing = differences(row, *trace);
    EXPECT_EQ(differing, "") << row.at("set") << " " << file;
    if (differing.empty()) ++equal;
  }
  std::cout << equal << " of " << checked << " rows equal\n";
  EXPECT_GT(checked, 60);
}

}  // namespace
}  // namespace chokepoint::diagnose
