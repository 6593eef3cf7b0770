// SPDX-License-Identifier: Apache-2.0
// A Chrome trace is read in one pass through a window of some MiB: the top level is walked by hand, every event becomes
// text fields (chrome_event), and what an analysis needs becomes rows of the columns. What follows traceEvents (rank, clock
// base) may stand at the very end, so times are shifted once all is read.
#include <chokepoint/trace/trace.hpp>

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "chrome_event.hpp"
#include "finish.hpp"
#include "source.hpp"
#include "split.hpp"

namespace chokepoint::trace {

namespace {

constexpr std::size_t kWindowBytes = 2u << 20;
constexpr std::size_t kMostEventBytes = 64u << 20;
constexpr std::int64_t kMostPlausible_ns = 7ll * 24 * 3600 * 1000000000ll;  // public survey of broken CUPTI times (HTA PR 325)
constexpr std::int64_t kLatestBase_ns = 4'500'000'000'000'000'000ll;        // the year 2112
constexpr std::int64_t kAbsoluteFrom_ns = 1'000'000'000'000'000'000ll;      // September 2001; relative clocks stay below

/// The part of the file that is in memory.
class Window {
 public:
  explicit Window(ByteSource& source) : source_(source), buffer_(kWindowBytes + kPadding) {}

  const char* p = nullptr;    ///< next character
  const char* end = nullptr;

  /// Keeps [p, end) and reads more behind it. False at the end of the file, or when one value outgrew the limit.
  bool more() {
    const std::size_t kept = static_cast<std::size_t>(end - p);
    const std::size_t capacity = buffer_.size() - kPadding;
    if (kept > capacity / 2) {
      if (capacity >= kMostEventBytes) return false;
      std::vector<char> bigger(2 * capacity + kPadding);
      std::memcpy(bigger.data(), p, kept);
      buffer_ = std::move(bigger);
    } else if (kept > 0) {
      std::memmove(buffer_.data(), p, kept);
    }
    const std::size_t got = source_.read(buffer_.data() + kept, buffer_.size() - kPadding - kept);
    taken_ += got;
    p = buffer_.data();
    end = p + kept + got;
    std::memset(buffer_.data() + kept + got, 0, kPadding);
    return got > 0;
  }
  bool full() const { return static_cast<std::size_t>(end - p) >= kMostEventBytes / 2; }
  /// Offset of `at` in the (uncompressed) file.
  std::uint64_t offset(const char* at) const { return taken_ - static_cast<std::uint64_t>(end - at); }
  std::uint64_t taken() const { return taken_; }
  bool damaged() const { return source_.damaged(); }

 private:
  ByteSource& source_;
  std::vector<char> buffer_;
  std::uint64_t taken_ = 0;
};

class ChromeReader {
 public:
  /// `split`: several ranks in the file become several traces; else all of it is one.
  ChromeReader(ByteSource& source, const std::string& file, bool split) : window_(source), split_(split) { trace_.file = file; }

  /// At least one trace.
  Result<std::vector<RankTrace>> read() {
    if (!to_content()) return fail("the file is empty", {trace_.file, 0, 0}, {"expected a Chrome trace (JSON)"});
    if (*window_.p == '[') {
      ++window_.p;
      read_events();
    } else if (*window_.p == '{') {
      ++window_.p;
      read_top_level();
    } else {
      return fail("not a Chrome trace: it begins with neither '{' nor '['", {trace_.file, 1, 1});
    }
    if (window_.damaged()) trace_.defects.add(Defect::kDamagedStream, window_.taken());
    trace_.bytes_read = window_.taken();
    return close();
  }

 private:
  /// To the next character that is not blank (a byte order mark counts as blank); false at the end.
  bool to_content() {
    for (;;) {
      while (window_.p < window_.end && (static_cast<unsigned char>(*window_.p) <= ' ' || is_mark(*window_.p))) ++window_.p;
      if (window_.p < window_.end) return true;
      if (!window_.more()) return false;
    }
  }
  bool is_mark(char c) const { return trace_.events_seen == 0 && !in_events_ && (c == '\xEF' || c == '\xBB' || c == '\xBF'); }

  void read_top_level() {
    for (;;) {
      std::string_view key;
      bool at_end = false;
      const char* at = window_.p;
      const Scan scan = read_key(at, window_.end, key, at_end);
      if (scan == Scan::kMore && window_.more()) continue;
      if (scan != Scan::kDone) return cut(scan);
      if (at_end) {
        window_.p = at;
        return;
      }
      const std::string name(key);
      window_.p = at;
      if (!to_content()) return cut(Scan::kMore);
      if (name == "traceEvents" && *window_.p == '[') {
        ++window_.p;
        if (!read_events()) return;
        continue;
      }
      if (!read_member(name)) return;
    }
  }

  void cut(Scan scan) { trace_.defects.add(scan == Scan::kBad ? Defect::kSyntax : Defect::kCutOff, window_.offset(window_.p)); }

  /// Value of a member of the top-level object.
  bool read_member(const std::string& key) {
    for (;;) {
      Value value;
      const char* at = window_.p;
      const Scan scan = read_value(at, window_.end, value);
      if (scan == Scan::kMore && window_.more()) continue;
      if (scan != Scan::kDone) {
        cut(scan);
        return false;
      }
      keep_member(key, value);
      window_.p = at;
      return true;
    }
  }

  void keep_member(const std::string& key, const Value& value) {
    if (key == "baseTimeNanoseconds") {
      if (!parse_integer(value.text, base_ns_) || base_ns_ < 0 || base_ns_ > kLatestBase_ns) base_ns_ = 0;
      has_base_ = base_ns_ > 0;
    } else if (key == "distributedInfo") {
      keep_distributed(value.text);
    } else if (key == "deviceProperties") {
      const auto json = nlohmann::json::parse(value.text, nullptr, false);
      if (json.is_array() && !json.empty() && json[0].is_object() && json[0].contains("name") && json[0]["name"].is_string()) {
        trace_.device_name = json[0]["name"].get<std::string>();
      }
    } else if (key == "hostname" || key == "host_name") {
      trace_.host = std::string(value.text);
    }
  }

  void keep_distributed(std::string_view text) {
    const auto json = nlohmann::json::parse(text, nullptr, false);
    if (!json.is_object()) return;
    const auto integer = [&json](const char* key) -> std::int64_t {
      const auto at = json.find(key);
      return at != json.end() && at->is_number_integer() ? at->get<std::int64_t>() : -1;
    };
    if (const std::int64_t rank = integer("rank"); rank >= 0 && rank < (1 << 30)) {
      trace_.rank = static_cast<int>(rank);
      trace_.rank_known = true;
    }
    if (const std::int64_t size = integer("world_size"); size > 0 && size < (1 << 30)) trace_.world_size = static_cast<int>(size);
    if (const auto at = json.find("backend"); at != json.end() && at->is_string()) trace_.backend = at->get<std::string>();
    if (const auto at = json.find("pg_config"); at != json.end() && at->is_array()) {
      for (const auto& group : *at) keep_group(group);
    }
  }

  void keep_group(const nlohmann::json& group) {
    if (!group.is_object()) return;
    GroupInfo info;
    const auto text = [&group](const char* key) {
      const auto at = group.find(key);
      return at != group.end() && at->is_string() ? at->get<std::string>() : std::string();
    };
    info.name = text("pg_name");
    info.description = text("pg_desc");
    if (const auto at = group.find("ranks"); at != group.end() && at->is_array()) {
      for (const auto& rank : *at) {
        if (rank.is_number_integer()) info.ranks.push_back(rank.get<int>());
      }
    }
    trace_.groups.push_back(std::move(info));
  }

  /// All events up to the array's end; false when the file is cut before it.
  bool read_events() {
    in_events_ = true;
    for (;;) {
      skip_blanks(window_.p, window_.end);
      if (window_.p >= window_.end) {
        if (window_.more()) continue;
        if (!window_.damaged()) trace_.defects.add(Defect::kCutOff, window_.taken());
        return false;
      }
      const char c = *window_.p;
      if (c == ']') {
        ++window_.p;
        return true;
      }
      if (c == ',') {
        ++window_.p;
      } else if (c != '{') {
        trace_.defects.add(Defect::kSyntax, window_.offset(window_.p));
        if (!to_next_event()) return false;
      } else if (!take_event()) {
        return false;
      }
    }
  }

  /// One event; false when the file ends in it.
  bool take_event() {
    for (;;) {
      ChromeEvent event;
      const char* at = window_.p + 1;
      const Scan scan = read_event(at, window_.end, event);
      if (scan == Scan::kDone) {
        ++trace_.events_seen;
        if (!event.skipped) store(event);
        window_.p = at;
        return true;
      }
      if (scan == Scan::kMore && !window_.full() && window_.more()) continue;
      if (scan == Scan::kMore && !window_.full()) {
        trace_.defects.add(Defect::kCutOff, window_.offset(window_.p));
        window_.p = window_.end;
        return false;
      }
      trace_.defects.add(scan == Scan::kBad ? Defect::kSyntax : Defect::kTooLong, window_.offset(window_.p));
      ++window_.p;
      return to_next_event();
    }
  }

  /// After something that is not JSON: to the next `{"ph"`, `{"name"` or `{"cat"` with any blanks between.
  bool to_next_event() {
    for (;;) {
      const char* open = static_cast<const char*>(std::memchr(window_.p, '{', static_cast<std::size_t>(window_.end - window_.p)));
      if (open == nullptr) {
        window_.p = window_.end;
        if (!window_.more()) return false;
        continue;
      }
      window_.p = open;
      const char* at = open + 1;
      skip_blanks(at, window_.end);
      if (window_.end - at < 8) {
        if (window_.more()) continue;
        return false;
      }
      if (std::memcmp(at, "\"ph\"", 4) == 0 || std::memcmp(at, "\"name\"", 6) == 0 || std::memcmp(at, "\"cat\"", 5) == 0) return true;
      ++window_.p;
    }
  }

  void store(const ChromeEvent& event) {
    if (event.phase == 'M') return keep_process_name(event);
    if (event.category == Category::kFlow) {
      std::int64_t id = 0;
      if (event.phase == 's' && parse_integer(event.id, id)) trace_.flow_starts.push_back(static_cast<std::uint64_t>(id));
      return;
    }
    if (event.category == Category::kUnknown) {
      ++unknown_[std::string(event.category_text.substr(0, 60))];
      return;
    }
    if (event.phase == 'B' || event.phase == 'E') return store_half(event);
    if (event.phase != 'X') return;
    std::int64_t start = 0;
    std::int64_t duration = 0;
    const std::uint64_t byte = window_.offset(window_.p);
    if (!parse_us_as_ns(event.ts, start) || !parse_us_as_ns(event.dur, duration)) return trace_.defects.add(Defect::kBadTime, byte);
    if (duration < 0) return trace_.defects.add(Defect::kNegativeDuration, byte);
    if (duration > kMostPlausible_ns) return trace_.defects.add(Defect::kImplausibleDuration, byte);
    store_span(event, start, start + duration);
  }

  void store_span(const ChromeEvent& event, std::int64_t start, std::int64_t end) {
    Category category = event.category;
    if (category == Category::kNone) category = event.pid == "CUDA functions" ? Category::kDevice : Category::kOperator;
    if (category == Category::kDevice || category == Category::kDeviceCopy || category == Category::kDeviceSet) {
      if (start == 0) return trace_.defects.add(Defect::kTimeBeforeBase, window_.offset(window_.p));
      store_device(event, category, start, end);
    } else {
      store_host(event, category, start, end);
    }
  }

  void store_device(const ChromeEvent& event, Category category, std::int64_t start, std::int64_t end) {
    EventArgs args;
    read_args(event.args, args);
    DeviceEvents& d = trace_.device;
    d.start_ns.push_back(start);
    d.end_ns.push_back(end);
    d.name.push_back(trace_.names.intern(event.name));
    d.correlation.push_back(static_cast<std::uint64_t>(std::max<std::int64_t>(args.correlation, 0)));
    std::int64_t number = 0;
    if (!args.has_stream && parse_integer(digits_of(event.tid), number)) args.stream = number;
    if (args.device < 0 && parse_integer(event.pid, number)) args.device = number;
    d.stream.push_back(static_cast<std::int32_t>(args.stream));
    d.device.push_back(static_cast<std::int32_t>(args.device));
    d.work.push_back(category == Category::kDeviceCopy  ? Work::kCopy
                     : category == Category::kDeviceSet ? Work::kSet
                     : args.has_collective              ? Work::kCommunication
                                                        : work_of(d.name.back()));
    d.collective.push_back(args.has_collective ? keep_collective(args) : -1);
    owners_.device_process.push_back(process_of(event.pid));
  }

  /// "rank 3 (stage 1)", "host of rank 3".
  void keep_process_name(const ChromeEvent& event) {
    const auto json = nlohmann::json::parse(event.args, nullptr, false);
    if (!json.is_object() || !json.contains("name") || !json["name"].is_string()) return;
    const int rank = rank_in_words(json["name"].get<std::string>());
    if (rank >= 0) owners_.rank_of_process[process_of(event.pid)] = rank;
  }

  std::uint32_t process_of(std::string_view pid) {
    if (pid == last_pid_ && !owners_.rank_of_process.empty()) return last_process_;
    last_pid_.assign(pid);
    const auto [at, fresh] = processes_.try_emplace(last_pid_, static_cast<std::uint32_t>(owners_.rank_of_process.size()));
    if (fresh) owners_.rank_of_process.push_back(rank_in_words(pid));
    return last_process_ = at->second;
  }

  static std::string_view digits_of(std::string_view text) {
    const std::size_t digit = text.find_first_of("0123456789");
    return digit == std::string_view::npos ? std::string_view() : text.substr(digit);
  }

  /// Kernels repeat: each name is looked at once.
  Work work_of(NameId id) {
    if (work_by_name_.size() <= id) work_by_name_.resize(id + 1, kNotSeen);
    if (work_by_name_[id] == kNotSeen) work_by_name_[id] = static_cast<std::uint8_t>(classify_kernel(trace_.names[id]));
    return static_cast<Work>(work_by_name_[id]);
  }

  std::int32_t keep_collective(const EventArgs& args) {
    Names& names = trace_.names;
    CollectiveInfo info;
    info.op = names.intern(args.op);
    info.group = names.intern(args.group);
    info.description = names.intern(args.description);
    info.ranks = names.intern(args.ranks);
    info.dtype = names.intern(args.dtype);
    info.in_elements = args.in_elements;
    info.out_elements = args.out_elements;
    info.group_size = args.group_size;
    info.sequence = args.sequence;
    info.peer = args.peer;
    trace_.collectives.push_back(info);
    return static_cast<std::int32_t>(trace_.collectives.size() - 1);
  }

  void store_host(const ChromeEvent& event, Category category, std::int64_t start, std::int64_t end) {
    HostEvents& h = trace_.host_events;
    h.start_ns.push_back(start);
    h.end_ns.push_back(end);
    h.name.push_back(trace_.names.intern(event.name));
    h.thread.push_back(thread_of(event));
    std::int64_t correlation = 0;
    if (category == Category::kCall) {
      EventArgs args;
      read_args(event.args, args);
      correlation = std::max<std::int64_t>(args.correlation, 0);
    }
    h.correlation.push_back(static_cast<std::uint64_t>(correlation));
    h.kind.push_back(category == Category::kCall         ? HostKind::kCall
                     : category == Category::kAnnotation ? HostKind::kAnnotation
                                                         : HostKind::kOperator);
  }

  std::uint32_t thread_of(const ChromeEvent& event) {
    thread_key_.assign(event.pid);
    thread_key_ += '/';
    thread_key_ += event.tid;
    if (thread_key_ == last_thread_key_) return last_thread_;
    const NameId id = trace_.names.intern(thread_key_);
    const auto [at, fresh] = thread_index_.try_emplace(id, static_cast<std::uint32_t>(trace_.threads.size()));
    if (fresh) {
      trace_.threads.push_back(id);
      owners_.thread_process.push_back(process_of(event.pid));
    }
    last_thread_key_ = thread_key_;
    last_thread_ = at->second;
    return last_thread_;
  }

  struct Open {
    std::int64_t start = 0;
    std::string name;
    std::string category;
    std::string args;
  };

  /// Begin/end pairs nest within their thread.
  void store_half(const ChromeEvent& event) {
    std::int64_t time = 0;
    const std::uint64_t byte = window_.offset(window_.p);
    if (!parse_us_as_ns(event.ts, time)) return trace_.defects.add(Defect::kBadTime, byte);
    std::vector<Open>& stack = open_[thread_of(event)];
    if (event.phase == 'B') {
      stack.push_back({time, std::string(event.name), std::string(event.category_text), std::string(event.args)});
      return;
    }
    if (stack.empty()) return trace_.defects.add(Defect::kUnmatchedEnd, byte);
    Open open = std::move(stack.back());
    stack.pop_back();
    if (time < open.start) return trace_.defects.add(Defect::kNegativeDuration, byte);
    ChromeEvent whole = event;
    whole.name = open.name;
    whole.category_text = open.category;
    whole.category = category_of(open.category);
    open.args.append(kPadding, '\0');  // read in blocks
    whole.args = std::string_view(open.args).substr(0, open.args.size() - kPadding);
    store_span(whole, open.start, time);
  }

  Result<std::vector<RankTrace>> close() {
    for (const auto& [thread, stack] : open_) {
      for (std::size_t i = 0; i < stack.size(); ++i) trace_.defects.add(Defect::kUnmatchedEnd, window_.taken());
    }
    for (const auto& [category, count] : unknown_) {
      trace_.notes.push_back(std::to_string(count) + " events of the unknown category '" + category + "' are not used");
    }
    if (trace_.events_seen == 0) {
      if (!in_events_) return fail("not a trace: the JSON holds no traceEvents", {trace_.file, 0, 0});
      return fail("the trace holds no events", {trace_.file, 0, 0});
    }
    const std::int64_t first = !trace_.device.start_ns.empty()        ? trace_.device.start_ns.front()
                               : !trace_.host_events.start_ns.empty() ? trace_.host_events.start_ns.front()
                                                                      : 0;
    trace_.absolute_clock = has_base_ || first > kAbsoluteFrom_ns;
    trace_.clock_base_ns = base_ns_;
    std::vector<RankTrace> traces;
    if (split_) traces = split_by_rank(trace_, owners_);
    for (RankTrace& trace : traces) finish(trace, base_ns_, false);
    if (!traces.empty()) return traces;
    finish(trace_, base_ns_);
    traces.push_back(std::move(trace_));
    return traces;
  }

  static constexpr std::uint8_t kNotSeen = 255;
  Window window_;
  bool split_;
  RankTrace trace_;
  Owners owners_;
  std::map<std::string, std::uint32_t> processes_;
  std::string last_pid_;
  std::uint32_t last_process_ = 0;
  bool in_events_ = false;
  bool has_base_ = false;
  std::int64_t base_ns_ = 0;
  std::vector<std::uint8_t> work_by_name_;
  std::map<std::string, std::uint64_t> unknown_;
  std::map<std::uint32_t, std::vector<Open>> open_;
  std::map<NameId, std::uint32_t> thread_index_;
  std::string thread_key_;
  std::string last_thread_key_ = "?";
  std::uint32_t last_thread_ = 0;
};

}  // namespace

namespace {

Result<RankTrace> whole(Result<std::vector<RankTrace>> traces) {
  if (!traces) return tl::make_unexpected(std::move(traces).error());
  return std::move(traces->front());
}

}  // namespace

Result<RankTrace> read_chrome_trace(const std::string& path) {
  TRY_INTO(const std::unique_ptr<ByteSource> source, open_source(path));
  return whole(ChromeReader(*source, path, false).read());
}

Result<RankTrace> read_chrome_text(std::string_view text, const std::string& file) {
  const std::unique_ptr<ByteSource> source = memory_source(text);
  return whole(ChromeReader(*source, file, false).read());
}

Result<std::vector<RankTrace>> read_chrome_ranks(const std::string& path) {
  TRY_INTO(const std::unique_ptr<ByteSource> source, open_source(path));
  return ChromeReader(*source, path, true).read();
}

Result<std::vector<RankTrace>> read_chrome_ranks_text(std::string_view text, const std::string& file) {
  const std::unique_ptr<ByteSource> source = memory_source(text);
  return ChromeReader(*source, file, true).read();
}

}  // namespace chokepoint::trace
