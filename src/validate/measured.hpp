// SPDX-License-Identifier: Apache-2.0
#pragma once
// The measured step time of a row, from whichever figure it has.
#include "run_fields.hpp"

#include <chokepoint/base/result.hpp>
#include <chokepoint/parallel/job.hpp>
#include <optional>
#include <string>

namespace chokepoint::validate {

enum class Figure { kSeconds, kTokens, kFlops, kMfu, kHfu };
std::string_view name(Figure figure);

struct Measured {
  double step_time_s = 0;
  Figure figure = Figure::kSeconds;
};

/// Seconds first, then tokens/s, then FLOP/s by the convention the notes state, then shares of peak. An error when the
/// row has none of them, or when they cannot be true: above the peak of the accelerator, or against each other.
Result<Measured> measured_step(const RunFields& row, const parallel::Job& job, const parallel::Strategy& strategy);

/// Which of the predicted figures a measured peak compares with.
enum class MemoryKind { kReserved, kAllocated, kDevice };
struct MeasuredMemory {
  double bytes = 0;
  MemoryKind kind = MemoryKind::kReserved;
  std::optional<double> rank_parameters;  ///< of the rank that printed it, when the notes say so
};
/// Nothing when the row has no peak or prints the size of the device ("full").
std::optional<MeasuredMemory> measured_memory(const RunFields& row, const parallel::Job& job);

}  // namespace chokepoint::validate
