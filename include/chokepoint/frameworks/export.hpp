// SPDX-License-Identifier: Apache-2.0
#pragma once
// A job and its strategy in a framework's own settings, with the launch command and the rank map. What comes out reads
// back (frameworks::read) to the strategy in `expressed`; where that differs from the one asked for, a notice says so.
#include <chokepoint/base/result.hpp>
#include <chokepoint/parallel/job.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::frameworks {

enum class Target { kMegatron, kDeepspeed, kTorchtitan, kAccelerate, kNemo, kHostfile, kRankmap };
Result<Target> parse_target(std::string_view text);
std::string_view name(Target target);

struct File {
  std::string name;
  std::string text;
};

struct Export {
  std::vector<File> files;           ///< the first is the one to start from
  std::vector<std::string> notices;  ///< what the framework cannot say, and what was taken instead
  parallel::Strategy expressed;      ///< what the files read back to
};

/// `strategy` must be completed for the job. Fails when the framework has nothing like it.
Result<Export> export_settings(const parallel::Job& job, const parallel::Strategy& strategy, Target target);

/// A variable for the training processes and why this job needs it.
struct Variable {
  std::string name;
  std::string value;
  std::string reason;
};
/// Only what this job on this wiring needs; nothing out of habit.
std::vector<Variable> environment(const parallel::Job& job, const parallel::Strategy& strategy, Target target);

/// Host names and slots ("host-1 slots=8").
std::string hostfile(const parallel::Job& job);
/// CSV: rank, host, local rank, and the rank's place in each dimension; tensor varies fastest, then context, data,
/// pipeline.
std::string rank_map(const parallel::Job& job, const parallel::Strategy& strategy);

}  // namespace chokepoint::frameworks
