// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/trace/trace.hpp>
#include <chokepoint/trace/trainer_log.hpp>

#include "source.hpp"

namespace chokepoint::trace {

std::string_view name(Format format) {
  switch (format) {
    case Format::kUnknown: return "unknown";
    case Format::kChromeTrace: return "Chrome trace";
    case Format::kOpTimeline: return "operation timeline";
    case Format::kNsightSqlite: return "Nsight Systems SQLite export";
    case Format::kFlightRecorder: return "NCCL flight recorder dump";
    case Format::kExecutionGraph: return "execution graph";
    case Format::kTrainerLog: return "trainer log";
    case Format::kChakra: return "Chakra execution trace";
  }
  return "?";
}

Format recognise(std::string_view head) {
  const auto has = [head](std::string_view part) { return head.find(part) != std::string_view::npos; };
  if (head.substr(0, 15) == "SQLite format 3") return Format::kNsightSqlite;
  if (head.substr(0, 2) == "\x80\x02" || head.substr(0, 2) == "\x80\x04") return Format::kFlightRecorder;
  if (head.substr(0, 7) == "dp_rank" && has("optype")) return Format::kOpTimeline;
  const std::size_t first = head.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (first == std::string_view::npos) return Format::kUnknown;
  if (head[first] == '[' && looks_like_trainer_log(head)) return Format::kTrainerLog;  // "[rank0]: step 10 ..."
  const std::size_t inside = head[first] == '[' ? head.find_first_not_of(" \t\r\n", first + 1) : std::string_view::npos;
  if (inside != std::string_view::npos && head[inside] != '{' && head[inside] != ']') return Format::kUnknown;  // "[2022-03-01 ...": a log's beginning
  if (head[first] == '[') return has("\"model_chunk\"") && has("\"step\"") ? Format::kOpTimeline : Format::kChromeTrace;
  if (head.substr(first, 2) == "{'") return Format::kTrainerLog;  // Python's: the Hugging Face Trainer prints its losses so
  if (head[first] == '{') {
    if (has("\"pg_config\"") && !has("\"traceEvents\"") && (has("\"entries\"") || has("\"pg_status\""))) return Format::kFlightRecorder;
    if (has("\"schema\"") && has("\"nodes\"") && !has("\"traceEvents\"")) return Format::kExecutionGraph;
    return Format::kChromeTrace;
  }
  if (looks_like_trainer_log(head)) return Format::kTrainerLog;
  return looks_like_chakra(head) ? Format::kChakra : Format::kUnknown;
}

Result<Format> recognise_file(const std::string& path) {
  constexpr std::size_t kHeadBytes = 64 * 1024;
  constexpr std::size_t kMostLogBytes = 64 * 1024 * 1024;  // trainers print their settings before the first step
  TRY_INTO(const std::string head, read_head(path, kHeadBytes));
  const Format format = recognise(head);
  if (format != Format::kUnknown || head.size() < kHeadBytes || head.find('\0') != std::string::npos) return format;
  TRY_INTO(const std::string more, read_head(path, kMostLogBytes));
  return looks_like_trainer_log(more) ? Format::kTrainerLog : Format::kUnknown;
}

Result<std::vector<RankTrace>> read_traces(const std::string& path) {
  TRY_INTO(const Format format, recognise_file(path));
  if (format == Format::kNsightSqlite) return read_nsight(path);
  if (format == Format::kChakra) {
    TRY_INTO(RankTrace trace, read_chakra(path));
    std::vector<RankTrace> traces;
    traces.push_back(std::move(trace));
    return traces;
  }
  if (format != Format::kChromeTrace) {
    return fail(format == Format::kUnknown ? std::string("not a format that diagnose knows")
                                           : "found a " + std::string(name(format)) + ", expected a trace with times",
                {path, 0, 0}, {"known: Kineto or Chrome JSON (plain, gzip, zstd), Nsight Systems SQLite exports, Chakra execution traces"});
  }
  return read_chrome_ranks(path);
}

}  // namespace chokepoint::trace
