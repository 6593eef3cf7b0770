// SPDX-License-Identifier: Apache-2.0
#pragma once
// Why a job is slower than it was: two diagnoses of the same job side by side.
//
//   const Regression r = compare(before, now);
//   r.slower            // beyond the tolerance and beyond the scatter of the steps
//   r.what, r.op, r.rank
//
// A step is its ideal time plus the costs of its causes, so the change of a step is the sum of their changes, exactly.
#include <chokepoint/diagnose/diagnose.hpp>
#include <chokepoint/diagnose/log_trend.hpp>
#include <chokepoint/diagnose/straggler.hpp>
#include <string>
#include <vector>

namespace chokepoint::diagnose {

/// One figure before and now, seconds per step.
struct Change {
  std::string id;    ///< cause, bill class, operation or rank
  double before_s = 0;
  double after_s = 0;
  double delta_s() const { return after_s - before_s; }
};

struct Regression {
  double before_s = 0;             ///< per step
  double after_s = 0;
  double noise_s = 0;              ///< standard error of the difference; 0: unknown (fewer than 3 steps)
  double tolerance = 0;            ///< share of `before_s` that is let pass
  bool slower = false;             ///< by more than the tolerance and twice the noise
  bool faster = false;             ///< likewise
  std::vector<Change> causes;      ///< "ideal" and the causes of both; their deltas sum to after - before; largest growth first
  std::vector<Change> classes;     ///< of the bill, mean over ranks, "... wait" apart; largest growth first
  std::vector<Change> operations;  ///< kernels and transfers that grew, of the rank below; largest growth first
  std::vector<Change> ranks;       ///< each rank's own time (nothing waited for), largest growth first
  std::string cause;               ///< that grew most; empty where nothing grew
  std::string op;                  ///< operation that grew most within it; empty: none stands out
  int rank = -1;                   ///< that it grew on; -1: on all alike, or unknown
  std::string what;                ///< one sentence with numbers
  std::vector<Note> notes;
};

inline constexpr double kUsualTolerance = 0.05;

Regression compare(const Diagnosis& before, const Diagnosis& now, double tolerance = kUsualTolerance);
Regression compare(const LogReport& before, const LogReport& now, double tolerance = kUsualTolerance);
Regression compare(const StragglerReport& before, const StragglerReport& now, double tolerance = kUsualTolerance);

}  // namespace chokepoint::diagnose
