// SPDX-License-Identifier: Apache-2.0
// Nsight Systems' SQLite export. One file may hold several processes and devices; each pair of them becomes a trace. Tables
// are absent when they would be empty, and older versions lack columns.
#include <chokepoint/trace/trace.hpp>

#include <algorithm>
#include <map>
#include <utility>

#include "finish.hpp"
#include "sqlite.hpp"

namespace chokepoint::trace {

namespace {

constexpr std::int64_t kProcessMask = ~std::int64_t{0xFFFFFF};  // the low 24 bits of a global thread id are the thread
constexpr std::int64_t kMostPlausible_ns = 7ll * 24 * 3600 * 1000000000ll;
constexpr std::int64_t kLatest_ns = 4'500'000'000'000'000'000ll;

class NsightReader {
 public:
  NsightReader(SqliteFile file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}

  Result<std::vector<RankTrace>> read() {
    if (!file_.has_table("CUPTI_ACTIVITY_KIND_KERNEL")) {
      return fail("no table CUPTI_ACTIVITY_KIND_KERNEL: the profile holds no GPU work", {path_, 0, 0}, {"profile with nsys profile --trace=cuda,nvtx"});
    }
    const std::pair<const char*, Work> tables[] = {
        {"CUPTI_ACTIVITY_KIND_KERNEL", Work::kCompute}, {"CUPTI_ACTIVITY_KIND_MEMCPY", Work::kCopy}, {"CUPTI_ACTIVITY_KIND_MEMSET", Work::kSet}};
    for (const auto& [table, work] : tables) {
      if (!file_.has_table(table)) continue;
      TRY_INTO([[maybe_unused]] const bool done, read_device(table, work));
    }
    if (traces_.empty()) return fail("the profile holds no GPU work", {path_, 0, 0});
    TRY_INTO([[maybe_unused]] const bool calls, read_calls());
    TRY_INTO([[maybe_unused]] const bool ranges, read_ranges());
    return close();
  }

 private:
  /// Text of a name column, or an empty one.
  std::string joined_name(const std::string& table, const std::string& column) const {
    if (!file_.has_column(table, column) || !file_.has_table("StringIds")) return "NULL";
    return "(SELECT value FROM StringIds WHERE id = t.\"" + column + "\")";
  }

  bool take_time(RankTrace& trace, std::int64_t start, std::int64_t end) const {
    if (start < 0 || start > kLatest_ns || end > kLatest_ns) {
      trace.defects.add(Defect::kBadTime);
    } else if (end < start) {
      trace.defects.add(Defect::kNegativeDuration);
    } else if (end - start > kMostPlausible_ns) {
      trace.defects.add(Defect::kImplausibleDuration);
    } else {
      return true;
    }
    return false;
  }

  Result<bool> read_device(const std::string& table, Work work) {
    const std::string name = work == Work::kCompute ? joined_name(table, file_.has_column(table, "demangledName") ? "demangledName" : "shortName") : "NULL";
    TRY_INTO(const std::unique_ptr<SqliteRows> rows,
             file_.query("SELECT start, \"end\", " + file_.column_or_null(table, "deviceId") + ", " + file_.column_or_null(table, "streamId") + ", " +
                         file_.column_or_null(table, "correlationId") + ", " + file_.column_or_null(table, "globalPid") + ", " + name + " FROM " + table +
                         " t ORDER BY start, rowid"));
    while (rows->next()) {
      const std::int64_t process = rows->integer(5) & kProcessMask;
      RankTrace& trace = traces_[{process, rows->integer(2)}];
      ++trace.events_seen;
      const std::int64_t start = rows->integer(0);
      const std::int64_t end = rows->integer(1);
      if (rows->is_null(0) || rows->is_null(1)) {
        trace.defects.add(Defect::kBadTime);
        continue;
      }
      if (!take_time(trace, start, end)) continue;
      DeviceEvents& d = trace.device;
      d.start_ns.push_back(start);
      d.end_ns.push_back(end);
      const std::string_view text = work == Work::kCopy ? std::string_view("Memcpy") : work == Work::kSet ? std::string_view("Memset") : rows->text(6);
      d.name.push_back(trace.names.intern(text));
      d.device.push_back(static_cast<std::int32_t>(rows->integer(2)));
      d.stream.push_back(static_cast<std::int32_t>(rows->integer(3)));
      d.correlation.push_back(static_cast<std::uint64_t>(std::max<std::int64_t>(rows->integer(4), 0)));
      d.collective.push_back(-1);
      d.work.push_back(work == Work::kCompute ? classify_kernel(text) : work);
    }
    if (rows->failed()) return fail("the file is damaged: table " + table + " cannot be read to its end", {path_, 0, 0}, {"export it again"});
    return true;
  }

  /// A process's host events go to each of its devices.
  template <class Use>
  void each_trace_of(std::int64_t global_thread, Use use) {
    for (auto& [key, trace] : traces_) {
      if (key.first == 0 || key.first == (global_thread & kProcessMask)) use(trace);
    }
  }

  void add_host(RankTrace& trace, std::int64_t start, std::int64_t end, std::string_view name, std::int64_t thread, std::int64_t correlation, HostKind kind) {
    ++trace.events_seen;
    if (!take_time(trace, start, end)) return;
    HostEvents& h = trace.host_events;
    h.start_ns.push_back(start);
    h.end_ns.push_back(end);
    h.name.push_back(trace.names.intern(name));
    const NameId id = trace.names.intern(std::to_string(thread));
    const auto at = std::find(trace.threads.begin(), trace.threads.end(), id);
    h.thread.push_back(static_cast<std::uint32_t>(at - trace.threads.begin()));
    if (at == trace.threads.end()) trace.threads.push_back(id);
    h.correlation.push_back(static_cast<std::uint64_t>(std::max<std::int64_t>(correlation, 0)));
    h.kind.push_back(kind);
  }

  Result<bool> read_calls() {
    const std::string table = "CUPTI_ACTIVITY_KIND_RUNTIME";
    if (!file_.has_table(table)) return true;
    TRY_INTO(const std::unique_ptr<SqliteRows> rows,
             file_.query("SELECT start, \"end\", " + file_.column_or_null(table, "globalTid") + ", " + file_.column_or_null(table, "correlationId") + ", " +
                         joined_name(table, "nameId") + " FROM " + table + " t ORDER BY start, rowid"));
    while (rows->next()) {
      each_trace_of(rows->integer(2), [&](RankTrace& trace) {
        add_host(trace, rows->integer(0), rows->integer(1), rows->text(4), rows->integer(2), rows->integer(3), HostKind::kCall);
      });
    }
    if (rows->failed()) return fail("the file is damaged: table " + table + " cannot be read to its end", {path_, 0, 0}, {"export it again"});
    return true;
  }

  Result<bool> read_ranges() {
    const std::string table = "NVTX_EVENTS";
    if (!file_.has_table(table) || !file_.has_column(table, "end")) return true;
    const std::string text = file_.has_column(table, "textId") ? "COALESCE(" + file_.column_or_null(table, "text") + ", " + joined_name(table, "textId") + ")"
                                                               : file_.column_or_null(table, "text");
    TRY_INTO(const std::unique_ptr<SqliteRows> rows, file_.query("SELECT start, \"end\", " + file_.column_or_null(table, "globalTid") + ", " + text +
                                                                 " FROM " + table + " t WHERE \"end\" IS NOT NULL ORDER BY start, rowid"));
    while (rows->next()) {
      each_trace_of(rows->integer(2), [&](RankTrace& trace) {
        add_host(trace, rows->integer(0), rows->integer(1), rows->text(3), rows->integer(2), 0, HostKind::kAnnotation);
      });
    }
    return !rows->failed() ? Result<bool>(true) : fail("the file is damaged: table " + table + " cannot be read to its end", {path_, 0, 0}, {"export it again"});
  }

  std::int64_t session_start() const {
    if (!file_.has_table("TARGET_INFO_SESSION_START_TIME")) return 0;
    const auto rows = file_.query("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME");
    if (!rows || !(*rows)->next()) return 0;
    const std::int64_t start = (*rows)->integer(0);
    return start > 0 && start < kLatest_ns ? start : 0;
  }

  std::vector<RankTrace> close() {
    const std::int64_t base = session_start();
    std::vector<RankTrace> traces;
    for (auto& [key, trace] : traces_) {
      trace.file = path_;
      trace.rank = static_cast<int>(traces.size());
      trace.clock_base_ns = base;
      trace.absolute_clock = base > 0;
      if (traces_.size() > 1) trace.notes.push_back("device " + std::to_string(key.second) + " of one profile; its place there is taken as the rank");
      finish(trace, base, traces_.size() == 1);
      traces.push_back(std::move(trace));
    }
    return traces;
  }

  SqliteFile file_;
  std::string path_;
  std::map<std::pair<std::int64_t, std::int64_t>, RankTrace> traces_;  // by process and device
};

}  // namespace

Result<std::vector<RankTrace>> read_nsight(const std::string& path) {
  TRY_INTO(SqliteFile file, SqliteFile::open(path));
  return NsightReader(std::move(file), path).read();
}

}  // namespace chokepoint::trace
