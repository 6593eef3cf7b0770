// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a search may know of memory before it lays out a strategy.
#include <chokepoint/parallel/job.hpp>

namespace chokepoint::parallel {

/// What the stages' states alone need (parameters, gradients, optimizer): below the need of every micro-batch, schedule
/// and recomputation of these degrees and this sharding.
double state_bytes(const Job& job, const Strategy& strategy);
/// Of the device, less context and communicators; micro-batch, schedule and recomputation do not matter.
double memory_capacity(const Job& job, const Strategy& strategy);

}  // namespace chokepoint::parallel
