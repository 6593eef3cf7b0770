// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/diagnose/log_watch.hpp>

#include <algorithm>
#include <chokepoint/base/units.hpp>
#include <cstdio>

namespace chokepoint::diagnose {

namespace {

constexpr std::size_t kFirst = 16;         // steps before anything is said: the same that a change of level needs
constexpr std::size_t kRecent = 64;        // steps that the present level is the median of
constexpr int kBlockLines = 32;            // lines between two looks at the trend
constexpr double kStragglerShare = 0.1;    // of the step: a spread between ranks below it is not told
constexpr double kLogBehind = 1.05;        // of the others' median
constexpr double kSilentSteps = 10;        // step times without a line
constexpr double kSilentLeast_s = 60;      // and never sooner: logs are written in blocks

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::string percent(double before, double after) {
  char text[32];
  std::snprintf(text, sizeof text, "%+.1f %%", 100 * (after / before - 1));
  return text;
}

double seconds_of(const trace::LoggedStep& s) { return s.seconds > 0 ? s.seconds : s.rate > 0 ? 1 / s.rate : 0; }

}  // namespace

std::string_view name(WatchEvent::Kind kind) {
  switch (kind) {
    case WatchEvent::Kind::kSlower: return "slower";
    case WatchEvent::Kind::kFaster: return "faster";
    case WatchEvent::Kind::kPeriodicStall: return "periodic-stall";
    case WatchEvent::Kind::kStraggler: return "straggler";
    case WatchEvent::Kind::kRestart: return "restart";
    case WatchEvent::Kind::kSilent: return "silent";
  }
  return "?";
}

LogWatch::LogWatch(std::vector<std::string> files) : watched_(files.size()) {
  for (std::size_t i = 0; i < files.size(); ++i) watched_[i].log.file = std::move(files[i]);
}

double LogWatch::level_of(const Watched& w) {
  std::vector<double> recent;
  const std::size_t n = w.log.steps.size();
  for (std::size_t i = std::max(w.from, n > kRecent ? n - kRecent : 0); i < n; ++i) recent.push_back(seconds_of(w.log.steps[i]));
  return median(std::move(recent));
}

void LogWatch::drop_old(Watched& w) const {
  if (w.log.steps.size() <= 2 * kKept) return;
  const std::size_t dropped = w.log.steps.size() - kKept;
  w.log.steps.erase(w.log.steps.begin(), w.log.steps.begin() + static_cast<std::ptrdiff_t>(dropped));
  w.from = w.from > dropped ? w.from - dropped : 0;
  w.looked_at = w.looked_at > dropped ? w.looked_at - dropped : 0;
}

/// Steps that came; a number that goes back is the job started again, from a checkpoint.
void LogWatch::count_new(Watched& w, std::size_t before, std::vector<WatchEvent>& events) const {
  for (std::size_t i = before; i < w.log.steps.size(); ++i) {
    const std::int64_t step = w.log.steps[i].step;
    if (w.last_step >= 0 && step < w.last_step) {
      events.push_back({WatchEvent::Kind::kRestart, w.log.file, step, 0, 0,
                        "The job went back from step " + std::to_string(w.last_step) + " to step " + std::to_string(step)});
    }
    w.last_step = step;
    ++w.seen;
    w.silence_told = false;
  }
}

void LogWatch::look_for_change(Watched& w, std::vector<WatchEvent>& events) const {
  const std::size_t now = w.log.steps.size();
  if (now - w.from < kFirst || now == w.looked_at) return;
  w.looked_at = now;
  trace::TrainerLog level;
  level.file = w.log.file;
  level.trainer = w.log.trainer;
  level.steps.assign(w.log.steps.begin() + static_cast<std::ptrdiff_t>(w.from), w.log.steps.end());
  const Result<LogReport> r = find_trend(level);
  if (!r) return;
  // A change is told once a step more than it needs has come: before, where it began is not settled.
  const auto changed = std::find_if(level.steps.begin(), level.steps.end(), [&r](const trace::LoggedStep& s) { return s.step == r->change_step; });
  const auto after = static_cast<std::size_t>(level.steps.end() - changed);
  const bool settled = r->change_step >= 0 && after > kFewestAtLevel;
  if (w.first_level_s == 0 && (settled || r->change_step < 0)) w.first_level_s = settled ? r->before_s : level_of(w);
  if (settled) {
    const bool slower = r->after_s > r->before_s;
    const std::string levels = r->seconds_known ? ": " + format_duration(r->before_s) + " -> " + format_duration(r->after_s) : std::string();
    events.push_back({slower ? WatchEvent::Kind::kSlower : WatchEvent::Kind::kFaster, w.log.file, r->change_step, r->before_s, r->after_s,
                      "Steps take " + percent(r->before_s, r->after_s) + " from step " + std::to_string(r->change_step) + " on" + levels});
    w.from = now - after;
    w.stall_told = false;
  }
  if (r->stall_period > 0 && !w.stall_told) {
    w.stall_told = true;
    events.push_back({WatchEvent::Kind::kPeriodicStall, w.log.file, w.last_step, r->median_s, r->median_s + r->stall_s,
                      "Every " + std::to_string(r->stall_period) + "th logged step is slow, by " + format_duration(r->stall_s)});
  }
}

/// Timers with the fastest and the slowest rank (Megatron-LM), each told once.
void LogWatch::look_at_timers(Watched& w, std::vector<WatchEvent>& events) const {
  const double level = level_of(w);
  for (const trace::TimerSpread& t : w.log.timers) {
    constexpr int kEnough = 4;
    if (level <= 0 || t.count < kEnough || t.most_s - t.least_s < kStragglerShare * level) continue;
    if (std::find(w.told_timers.begin(), w.told_timers.end(), t.name) != w.told_timers.end()) continue;
    w.told_timers.push_back(t.name);
    events.push_back({WatchEvent::Kind::kStraggler, w.log.file, w.last_step, t.least_s, t.most_s,
                      t.name + ": the slowest rank takes " + format_duration(t.most_s) + ", the fastest " + format_duration(t.least_s)});
  }
}

/// Logs of several ranks: the one whose steps take longer than the others'.
void LogWatch::look_at_logs(std::vector<WatchEvent>& events) {
  if (watched_.size() < 3) return;
  std::vector<double> levels;
  for (const Watched& w : watched_) {
    if (w.log.steps.size() < kFirst) return;
    levels.push_back(level_of(w));
  }
  const double typical = median(levels);
  const auto slowest = std::max_element(levels.begin(), levels.end());
  const int which = *slowest > kLogBehind * typical ? static_cast<int>(slowest - levels.begin()) : -1;
  if (which == slow_log_) return;
  slow_log_ = which;
  if (which < 0) return;
  const Watched& w = watched_[static_cast<std::size_t>(which)];
  events.push_back({WatchEvent::Kind::kStraggler, w.log.file, w.last_step, typical, *slowest,
                    "Its steps take " + format_duration(*slowest) + ", those of the other logs " + format_duration(typical)});
}

std::vector<WatchEvent> LogWatch::feed(std::size_t log, std::string_view lines) {
  std::vector<WatchEvent> events;
  if (log >= watched_.size()) return events;
  Watched& w = watched_[log];
  // In blocks, so that a log given at once tells the same changes as one that grew.
  while (!lines.empty()) {
    std::size_t end = 0;
    for (int n = 0; n < kBlockLines && end < lines.size(); ++n) {
      const std::size_t line = lines.find('\n', end);
      end = line == std::string_view::npos ? lines.size() : line + 1;
    }
    const std::size_t before = w.log.steps.size();
    trace::read_trainer_lines(lines.substr(0, end), w.log, w.lines);
    lines.remove_prefix(end);
    count_new(w, std::min(before, w.log.steps.size()), events);
    look_for_change(w, events);
    look_at_timers(w, events);
    look_at_logs(events);
    drop_old(w);
  }
  return events;
}

void LogWatch::restart(std::size_t log) {
  if (log < watched_.size()) watched_[log].lines = 0;
}

std::optional<WatchEvent> LogWatch::silent(std::size_t log, double seconds) {
  if (log >= watched_.size()) return std::nullopt;
  Watched& w = watched_[log];
  const bool timed = !w.log.steps.empty() && w.log.steps.back().seconds > 0;
  const double patience = std::max(kSilentLeast_s, timed ? kSilentSteps * level_of(w) : 0.0);
  if (w.silence_told || w.last_step < 0 || seconds < patience) return std::nullopt;
  w.silence_told = true;
  return WatchEvent{WatchEvent::Kind::kSilent, w.log.file, w.last_step, 0, seconds,
                    "Nothing since step " + std::to_string(w.last_step) + " for " + format_duration(seconds) + ": does it hang? See its flight recorder dumps"};
}

std::vector<WatchedLog> LogWatch::state() const {
  std::vector<WatchedLog> all;
  for (const Watched& w : watched_) {
    WatchedLog one;
    one.file = w.log.file;
    one.steps = w.seen;
    one.last_step = w.last_step;
    one.first_level_s = w.first_level_s;
    one.level_s = level_of(w);
    if (Result<LogReport> r = find_trend(w.log)) one.report = std::move(*r);
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace chokepoint::diagnose
