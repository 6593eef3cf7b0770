// SPDX-License-Identifier: Apache-2.0
#pragma once
// What step times alone say: how even they are, whether and when they changed, whether slow steps come back regularly.
#include <chokepoint/diagnose/diagnose.hpp>
#include <chokepoint/trace/trainer_log.hpp>
#include <string>
#include <vector>

namespace chokepoint::diagnose {

/// Steps that must stand on each side of a change of level.
inline constexpr std::size_t kFewestAtLevel = 8;

struct LogReport {
  std::string file;
  std::string trainer;
  bool seconds_known = true;    ///< else times are relative to the median (the log gives only a rate)
  int steps = 0;
  double mean_s = 0;
  double median_s = 0;
  double p95_s = 0;
  double standard_error_s = 0;  ///< of the mean; 0: fewer than 3 steps
  double fastest_s = 0;         ///< 5th percentile: what the job can do
  std::int64_t change_step = -1;  ///< first step at the new level; -1: no change
  double before_s = 0;
  double after_s = 0;
  int stall_period = 0;         ///< slow steps come back every so many logged steps; 0: not
  double stall_s = 0;           ///< what such a step takes longer
  std::vector<trace::TimerSpread> timers;  ///< widest between ranks first
  std::vector<Cause> causes;    ///< sum to mean - fastest
  std::string choke_point;
  std::vector<Note> notes;
};

Result<LogReport> find_trend(const trace::TrainerLog& log);

}  // namespace chokepoint::diagnose
