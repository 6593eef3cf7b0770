// SPDX-License-Identifier: Apache-2.0
#pragma once
// A statement about training jobs that the program must agree with: some runs, and claims about figures of those runs.
// The format is described in README.md beside this file.
#include <chokepoint/base/result.hpp>
#include <chokepoint/job/read_job.hpp>
#include <optional>
#include <string>
#include <vector>

namespace chokepoint::statements {

/// A job under one strategy, or one collective on a cluster.
struct Run {
  std::string name;
  std::string job_text;          ///< of a job file; may be empty
  std::string job_file;          ///< anchors relative paths and names the job in messages
  job::Options options;
  bool best = false;             ///< the strategy that plan puts first
  std::string collective;        ///< "all_reduce" ...; empty for a job
  double collective_bytes = 0;
  int stride = 1;                ///< distance in GPUs between members of a collective's group inside a host
};

enum class ClaimKind { kRatio, kDifference, kValue, kAscending, kFits, kMisfits, kImplied, kRanksAs };

struct Claim {
  ClaimKind kind = ClaimKind::kValue;
  std::vector<std::string> runs;
  std::string of = "step_time";  ///< which figure
  double low = -1e300;
  double high = 1e300;
  std::vector<double> measured;  ///< kImplied: step time; kRanksAs: one figure for each run, in the order of `runs`
};

struct Statement {
  std::string id;
  std::string says;
  std::string source;            ///< address of the thread or page; empty for the project's own statements
  std::string assumed;           ///< what the source does not say and had to be filled in
  bool expected = true;          ///< false: known to be answered wrongly
  std::string reason;            ///< why, when not expected
  std::vector<Run> runs;
  std::vector<Claim> claims;
};

Result<std::vector<Statement>> read_statements(const std::string& path);

struct Verdict {
  bool holds = false;
  std::string detail;            ///< the figures, or what could not be worked out
};

Verdict check(const Statement& statement);

}  // namespace chokepoint::statements
