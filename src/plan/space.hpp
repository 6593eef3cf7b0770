// SPDX-License-Identifier: Apache-2.0
#pragma once
// The legal space of a job, level by level: degrees, what data-parallel ranks share, kernels (micro-batch and what else
// decides the time of a layer), and what is laid over them (schedule, chunks, recomputation, synchronisation). Each level
// lists complete values of `Strategy` with the fields below it at their defaults, so that walker and bounds agree on what
// there is.
#include <chokepoint/plan/plan.hpp>
#include <map>
#include <string>
#include <vector>

namespace chokepoint::plan {

/// The user's frozen words as a test on strategies.
class Frozen {
 public:
  static Result<Frozen> read(const std::string& words);
  bool has(std::string_view key) const;
  /// Whether the strategy has what the words say, in those of its fields that `keys` names.
  bool allows(const parallel::Strategy& strategy, std::initializer_list<std::string_view> keys) const;
  const parallel::Strategy& values() const { return values_; }

 private:
  std::vector<std::string> keys_;
  parallel::Strategy values_;
};

class Space {
 public:
  static Result<Space> of(const parallel::Job& job, const Options& options);

  /// Degrees and data degree; sequence parallelism wherever there is tensor parallelism.
  std::vector<parallel::Strategy> degrees() const;
  /// Whether the batch divides over the data-parallel ranks.
  bool batch_divides(const parallel::Strategy& degrees) const;
  /// Ways to share optimizer state, gradients and parameters, and what goes to host memory.
  std::vector<parallel::Strategy> shardings(const parallel::Strategy& degrees) const;
  /// Micro-batches with their accumulation, sequence parallelism, overlapped tensor parallelism.
  std::vector<parallel::Strategy> kernels(const parallel::Strategy& sharded) const;
  /// Number of schedules; cheap, for counting.
  long schedule_count(const parallel::Strategy& kernel) const;
  /// Schedules with their chunks.
  std::vector<parallel::Strategy> schedules(const parallel::Strategy& kernel) const;
  std::vector<parallel::Recompute> recomputes() const;
  /// Whether gradients may also wait for the last micro-step.
  bool may_wait(const parallel::Strategy& kernel) const;

 private:
  Space(const parallel::Job& job, const Options& options, Frozen frozen);
  bool anything() const { return options_.constraints.any_framework; }
  void state_sharings(const parallel::Strategy& degrees, std::vector<parallel::Strategy>& out) const;
  void unit_sharings(const parallel::Strategy& degrees, std::vector<parallel::Strategy>& out) const;
  void deepspeed_sharings(const parallel::Strategy& degrees, std::vector<parallel::Strategy>& out) const;

  const parallel::Job& job_;
  const Options& options_;
  Frozen frozen_;
  std::vector<int> micro_batches_;  ///< divisors of the batch
  mutable std::map<int, long> counted_;  ///< schedules, by pipeline degree and whether micro-batches fill it evenly
};

}  // namespace chokepoint::plan
