// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/trace/op_timeline.hpp>

#include <algorithm>
#include <array>
#include <chokepoint/base/text.hpp>
#include <cmath>
#include <map>
#include <set>

#include "json_scan.hpp"
#include "source.hpp"

namespace chokepoint::trace {

namespace {

constexpr std::array<std::string_view, static_cast<std::size_t>(OpType::kCount)> kNames = {
    "forward-compute", "backward-compute", "forward-send", "forward-recv", "backward-send", "backward-recv", "params-all-gather",
    "grads-reduce-scatter", "separate-grads-all-reduce", "layernorm-grads-all-reduce", "embedding-grads-all-reduce",
    "optimizer-clip-main-grad", "optimizer", "gc"};

constexpr int kMostRanks = 1 << 14;
constexpr std::size_t kMostBytes = std::size_t{4} << 30;

struct RawRow {
  std::int64_t data_rank = -1, stage = -1, step = -1, sequence = -1, chunk = -1;
  std::string_view type;
  std::int64_t start_ns = 0, duration_ns = 0;
};

class Builder {
 public:
  explicit Builder(std::string file) { timeline_.file = std::move(file); }

  void add(const RawRow& row) {
    const auto known = std::find(kNames.begin(), kNames.end(), row.type);
    const auto small = [](std::int64_t value, std::int64_t most) { return value >= 0 && value < most; };
    if (known == kNames.end() || !small(row.data_rank, kMostRanks) || !small(row.stage, kMostRanks) || !small(row.step, std::int64_t{1} << 31) ||
        !small(row.sequence, std::int64_t{1} << 24)) {
      ++timeline_.unknown;
      return;
    }
    OpTimeline& t = timeline_;
    t.data_rank.push_back(static_cast<std::int16_t>(row.data_rank));
    t.stage.push_back(static_cast<std::int16_t>(row.stage));
    t.step.push_back(static_cast<std::int32_t>(row.step));
    t.type.push_back(static_cast<OpType>(known - kNames.begin()));
    t.sequence.push_back(static_cast<std::int32_t>(row.sequence));
    t.chunk.push_back(static_cast<std::int16_t>(std::clamp<std::int64_t>(row.chunk, -1, kMostRanks)));
    t.start_ns.push_back(row.start_ns);
    t.end_ns.push_back(row.start_ns + row.duration_ns);
    if (row.duration_ns < 0) ++t.negative;
  }

  Result<OpTimeline> close() {
    OpTimeline& t = timeline_;
    if (t.size() == 0) return fail("no operations of a known type", {t.file, 0, 0}, {"expected rows such as forward-compute, backward-recv"});
    const std::set<std::int32_t> steps(t.step.begin(), t.step.end());
    t.steps.assign(steps.begin(), steps.end());
    for (std::int32_t& step : t.step) step = static_cast<std::int32_t>(std::lower_bound(t.steps.begin(), t.steps.end(), step) - t.steps.begin());
    t.data_ranks = *std::max_element(t.data_rank.begin(), t.data_rank.end()) + 1;
    t.stages = *std::max_element(t.stage.begin(), t.stage.end()) + 1;
    return std::move(t);
  }

 private:
  OpTimeline timeline_;
};

Result<OpTimeline> read_csv(std::string_view text, const std::string& file) {
  Builder builder(file);
  const std::vector<std::string_view> lines = split_lines(text);
  const std::vector<std::string_view> header = split(lines.front(), ',');
  const auto column = [&header](std::string_view name) {
    return static_cast<std::size_t>(std::find(header.begin(), header.end(), name) - header.begin());
  };
  const std::array<std::string_view, 7> needed = {"dp_rank", "stage", "step", "optype", "start_ts", "duration", "seq_id"};
  for (const std::string_view name : needed) {
    if (column(name) == header.size()) return fail("column '" + std::string(name) + "' is missing", {file, 1, 1});
  }
  const std::size_t chunk = column("mc");
  constexpr double kMost_s = 4e9;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    const std::vector<std::string_view> fields = split(lines[i], ',');
    const int line = static_cast<int>(i) + 1;
    if (fields.size() != header.size()) {
      return fail("found " + std::to_string(fields.size()) + " fields, expected " + std::to_string(header.size()), {file, line, 1});
    }
    RawRow row;
    row.type = fields[column("optype")];
    const auto start = to_number(fields[column("start_ts")]);
    const auto duration = to_number(fields[column("duration")]);
    if (!start || !duration || std::fabs(*start) > kMost_s || std::fabs(*duration) > kMost_s) return fail("start_ts or duration is no time in seconds", {file, line, 1});
    row.start_ns = std::llround(*start * 1e9);
    row.duration_ns = std::llround(*duration * 1e9);
    const std::pair<std::string_view, std::int64_t*> integers[] = {{"dp_rank", &row.data_rank}, {"stage", &row.stage}, {"step", &row.step}, {"seq_id", &row.sequence}};
    for (const auto& [name, to] : integers) {
      if (!parse_integer(fields[column(name)], *to)) return fail("'" + std::string(name) + "' is no number", {file, line, 1});
    }
    if (chunk < header.size()) parse_integer(fields[chunk], row.chunk);
    builder.add(row);
  }
  return builder.close();
}

struct TimelineEvent {
  std::string_view phase, name, pid, tid, ts, dur, args;
};

Scan read_timeline_event(const char*& p, const char* end, TimelineEvent& event) {
  std::string_view key;
  Value value;
  for (;;) {
    bool at_end = false;
    if (const Scan scan = read_key(p, end, key, at_end); scan != Scan::kDone) return scan;
    if (at_end) return Scan::kDone;
    if (const Scan scan = read_value(p, end, value); scan != Scan::kDone) return scan;
    const std::pair<std::string_view, std::string_view*> fields[] = {{"ph", &event.phase}, {"name", &event.name}, {"pid", &event.pid}, {"tid", &event.tid},
                                                                     {"ts", &event.ts},    {"dur", &event.dur},   {"args", &event.args}};
    for (const auto& [name, to] : fields) {
      if (key == name) *to = value.text;
    }
  }
}

/// Calls use(key, value text) for each member of an object.
template <class F>
void each_member(std::string_view object, F use) {
  if (object.size() < 2) return;
  const char* p = object.data() + 1;
  const char* end = object.data() + object.size();
  std::string_view key;
  Value value;
  bool at_end = false;
  while (read_key(p, end, key, at_end) == Scan::kDone && !at_end && read_value(p, end, value) == Scan::kDone) use(key, value.text);
}

/// P of "PP rank P, TP rank T, ...", -1 otherwise.
std::int64_t stage_of_thread(std::string_view name) {
  constexpr std::string_view kPrefix = "PP rank ";
  if (name.substr(0, kPrefix.size()) != kPrefix) return -1;
  std::string_view rest = name.substr(kPrefix.size());
  std::int64_t stage = -1;
  parse_integer(rest.substr(0, rest.find_first_not_of("0123456789")), stage);
  return stage;
}

Result<OpTimeline> read_chrome_array(std::string& text, const std::string& file) {
  const std::size_t size = text.size();
  text.append(kPadding, '\0');  // read in blocks
  const char* p = text.data();
  const char* end = text.data() + size;
  std::map<std::pair<std::string_view, std::string_view>, std::int64_t> stage_of;  // (process, thread)
  std::vector<TimelineEvent> events;
  skip_blanks(p, end);
  ++p;  // the bracket
  for (;;) {
    skip_blanks(p, end);
    if (p < end && *p == ',') {
      ++p;
      continue;
    }
    if (p >= end || *p != '{') break;
    ++p;
    TimelineEvent event;
    if (read_timeline_event(p, end, event) != Scan::kDone) return fail("not JSON, or cut off", {file, 0, 0}, {"byte " + std::to_string(p - text.data())});
    if (event.phase == "M" && event.name == "thread_name") {
      each_member(event.args, [&](std::string_view key, std::string_view value) {
        if (key == "name") stage_of[{event.pid, event.tid}] = stage_of_thread(value);
      });
    } else if (event.phase == "X") {
      events.push_back(event);
    }
  }
  Builder builder(file);
  for (const TimelineEvent& event : events) {
    RawRow row;
    row.type = event.name;
    const auto at = stage_of.find({event.pid, event.tid});
    row.stage = at == stage_of.end() ? -1 : at->second;
    if (!parse_integer(event.pid, row.data_rank) || !parse_us_as_ns(event.ts, row.start_ns) || !parse_us_as_ns(event.dur, row.duration_ns)) row.step = -1;
    each_member(event.args, [&row](std::string_view key, std::string_view value) {
      if (key == "step") parse_integer(value, row.step);
      if (key == "seq_id") parse_integer(value, row.sequence);
      if (key == "model_chunk") parse_integer(value, row.chunk);
    });
    builder.add(row);
  }
  return builder.close();
}

}  // namespace

std::string_view name(OpType type) { return type < OpType::kCount ? kNames[static_cast<std::size_t>(type)] : std::string_view("?"); }

Result<OpTimeline> read_op_timeline_text(std::string text, const std::string& file) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return fail("the file is empty", {file, 0, 0}, {"expected a timeline of operations"});
  return text[first] == '[' ? read_chrome_array(text, file) : read_csv(text, file);
}

Result<OpTimeline> read_op_timeline(const std::string& path) {
  TRY_INTO(std::string text, read_whole(path, kMostBytes));
  return read_op_timeline_text(std::move(text), path);
}

}  // namespace chokepoint::trace
