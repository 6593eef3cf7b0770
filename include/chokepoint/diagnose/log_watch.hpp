// SPDX-License-Identifier: Apache-2.0
#pragma once
// Logs of a job that still runs, as they grow: says when the step time changes its level, when slow steps come back
// regularly, when one rank falls behind, when the job starts again or falls silent.
//
//   LogWatch watch({"rank0.log", "rank1.log"});
//   for (const WatchEvent& e : watch.feed(0, "new lines\n")) std::puts(e.what.c_str());
//
// Memory is bounded: the last kKept steps of each log. Knows no files and no clock.
#include <chokepoint/diagnose/log_trend.hpp>
#include <chokepoint/trace/trainer_log.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::diagnose {

struct WatchEvent {
  enum class Kind { kSlower, kFaster, kPeriodicStall, kStraggler, kRestart, kSilent };
  Kind kind = Kind::kSlower;
  std::string file;
  std::int64_t step = -1;  ///< -1: none
  double before_s = 0;     ///< of a change: levels; of a straggler: the others (or the fastest rank) and the slow one
  double after_s = 0;
  std::string what;        ///< one sentence
};
std::string_view name(WatchEvent::Kind kind);

/// One log's state now.
struct WatchedLog {
  std::string file;
  std::int64_t steps = 0;        ///< seen so far
  std::int64_t last_step = -1;   ///< its number; -1: none yet
  double first_level_s = 0;      ///< median of the first level
  double level_s = 0;            ///< median since the last change, of the recent steps
  std::optional<LogReport> report;  ///< of the steps kept; none before there are enough
};

class LogWatch {
 public:
  static constexpr std::size_t kKept = 4096;  ///< steps
  explicit LogWatch(std::vector<std::string> files);

  /// More whole lines of a log.
  std::vector<WatchEvent> feed(std::size_t log, std::string_view lines);
  /// The log was cut or replaced: what comes next begins anew (what was learnt of the job stays).
  void restart(std::size_t log);
  /// Nothing came for so long; an event once, when that is far beyond the step time.
  std::optional<WatchEvent> silent(std::size_t log, double seconds);
  std::vector<WatchedLog> state() const;

 private:
  struct Watched {
    trace::TrainerLog log;
    int lines = 0;
    std::int64_t seen = 0;
    std::int64_t last_step = -1;
    std::size_t from = 0;          ///< first kept step of the present level
    std::size_t looked_at = 0;     ///< kept steps when the trend was last looked at
    double first_level_s = 0;
    bool stall_told = false;
    bool silence_told = false;
    std::vector<std::string> told_timers;
  };

  static double level_of(const Watched& w);
  void drop_old(Watched& w) const;
  void count_new(Watched& w, std::size_t before, std::vector<WatchEvent>& events) const;
  void look_for_change(Watched& w, std::vector<WatchEvent>& events) const;
  void look_at_timers(Watched& w, std::vector<WatchEvent>& events) const;
  void look_at_logs(std::vector<WatchEvent>& events);

  std::vector<Watched> watched_;
  int slow_log_ = -1;
};

}  // namespace chokepoint::diagnose
