// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/files.hpp>
#include <chokepoint/base/memory_files.hpp>
#include <chokepoint/base/units.hpp>
#include <chokepoint/diagnose/log_watch.hpp>
#include <chokepoint/report/diagnose_view.hpp>
#include <chokepoint/trace/log_tail.hpp>

#include <chrono>
#include <deque>
#include <iostream>
#include <optional>
#include <thread>

#include "diagnose_inputs.hpp"

namespace chokepoint::commands {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point then) { return std::chrono::duration<double>(Clock::now() - then).count(); }

class Follower {
 public:
  Follower(const std::vector<std::string>& paths, const FollowOptions& options, const CommonOptions& common)
      : options_(options), common_(common), watch_(paths), heard_(paths.size(), Clock::now()), style_(report::terminal_style(common.lang)) {
    for (const std::string& path : paths) tails_.emplace_back(path);
  }

  /// For `duration_s`, with none until somebody stops it; for nothing: one look.
  Result<bool> run(double every_s, std::optional<double> duration_s) {
    const Clock::time_point began = Clock::now();
    for (int looks = 1;; ++looks) {
      TRY_INTO([[maybe_unused]] const bool looked, look());
      const bool last = (options_.looks > 0 && looks >= options_.looks) || (duration_s && seconds_since(began) >= *duration_s);
      if (!options_.prometheus.empty()) {
        TRY_INTO([[maybe_unused]] const bool written, write_text_file(options_.prometheus, report::watch_prometheus(watch_.state(), events_)));
      }
      if (last) return true;
      std::this_thread::sleep_for(std::chrono::duration<double>(every_s));
    }
  }

  std::string summary() const {
    const std::vector<diagnose::WatchedLog> logs = watch_.state();
    if (common_.json) return report::watch_json_line(logs);
    std::string text;
    for (const diagnose::WatchedLog& log : logs) {
      text += log.file + ": ";
      text += log.report ? report::log_text(*log.report, style_, common_.quiet)
                         : style_.say("{} steps so far, too few to say anything", {std::to_string(log.steps)}) + "\n";
    }
    return text;
  }

  bool slower() const {
    for (const diagnose::WatchedLog& log : watch_.state()) {
      constexpr double kSlower = 1.05;  // what a change of level is told from
      if (log.first_level_s > 0 && log.level_s > kSlower * log.first_level_s) return true;
    }
    return false;
  }

 private:
  void tell(diagnose::WatchEvent event) {
    std::cout << (common_.json ? report::event_json_line(event) : report::event_line(event, style_)) << std::flush;
    events_.push_back(std::move(event));
  }

  Result<bool> look() {
    for (std::size_t i = 0; i < tails_.size(); ++i) {
      for (bool more = true; more;) {
        TRY_INTO(const trace::Gained gained, tails_[i].look());
        more = gained.more;
        if (gained.restarted) watch_.restart(i);
        if (!gained.text.empty()) heard_[i] = Clock::now();
        for (diagnose::WatchEvent& event : watch_.feed(i, gained.text)) tell(std::move(event));
      }
      if (auto silence = watch_.silent(i, seconds_since(heard_[i]))) tell(std::move(*silence));
    }
    return true;
  }

  const FollowOptions& options_;
  const CommonOptions& common_;
  diagnose::LogWatch watch_;
  std::deque<trace::LogTail> tails_;
  std::vector<Clock::time_point> heard_;
  std::vector<diagnose::WatchEvent> events_;
  report::Style style_;
};

}  // namespace

void add_follow_options(CLI::App& command, FollowOptions& options) {
  command.add_flag("--follow", options.asked, "the inputs are logs of a running job: tell changes of step time, stragglers, restarts and silence as they happen");
  command.add_option("--every", options.every, "with --follow: time between two looks (2s)");
  command.add_option("--for", options.duration, "with --follow: stop after so long (30s, 10min); 0s looks once");
  command.add_option("--looks", options.looks, "with --follow: stop after so many looks")->check(CLI::Range(1, 1 << 30));
}

int follow_logs(const std::vector<std::string>& paths, const FollowOptions& options, const CommonOptions& common) {
  if (memory_files() != nullptr) return report_error({"a request cannot follow a growing log", {}, {"run 'chokepoint diagnose --follow' where the log is written, or send the log as it is"}});
  if (const auto safe = check_output(options.prometheus, paths); !safe) return report_error(safe.error());
  const Result<double> every = parse_duration(options.every);
  if (!every) return report_error(every.error());
  std::optional<double> duration;
  if (!options.duration.empty()) {
    const Result<double> given = parse_duration(options.duration);
    if (!given) return report_error(given.error());
    duration = *given;
  }
  constexpr double kShortest_s = 0.01;
  constexpr double kLongest_s = 86400;
  Follower follower(paths, options, common);
  if (const auto done = follower.run(std::clamp(*every, kShortest_s, kLongest_s), duration); !done) return report_error(done.error());
  return deliver(common, follower.summary(), follower.slower() ? 1 : 0, paths);
}

}  // namespace chokepoint::commands
