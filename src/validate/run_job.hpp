// SPDX-License-Identifier: Apache-2.0
#pragma once
// A row of a table of runs as a job and a strategy. Every field that the row leaves empty is filled by a rule that holds
// for all rows alike (docs/validation.md lists them), and each use of a rule is a note.
#include "run_fields.hpp"

#include <chokepoint/base/result.hpp>
#include <chokepoint/parallel/job.hpp>
#include <vector>

namespace chokepoint::validate {

/// The model of the row. Missing sizes come from the catalogue entry of that name, from the parameter count, or from
/// the usual proportions; without any of these it is an error that says what is missing.
Result<model::Model> model_of(const RunFields& row, std::vector<Note>& notes);

struct MappedRun {
  parallel::Job job;
  parallel::Strategy strategy;
  bool recompute_assumed = false;  ///< the row does not say; may be raised until the run fits in memory
  bool batch_assumed = false;      ///< micro-batch and batch are both defaults: only a rate can be compared
  bool micro_batch_assumed = false;  ///< so is the micro-batch of a run that gathers its parameters: as large as fits
};
Result<MappedRun> map_run(const RunFields& row);

// The parts of map_run, in the order in which they need each other.
void fill_software(const RunFields& row, MappedRun& run);
Result<bool> fill_degrees(const RunFields& row, MappedRun& run);
void fill_sharding(const RunFields& row, MappedRun& run);
Result<bool> fill_batch(const RunFields& row, MappedRun& run);
Result<bool> fill_schedule(const RunFields& row, MappedRun& run);
void fill_overlap(const RunFields& row, MappedRun& run);

/// Bytes of weights, gradients and optimizer state of one parameter in mixed-precision training (arXiv 1910.02054, 3.1).
inline constexpr double kStateBytesPerParameter = 16;

}  // namespace chokepoint::validate
