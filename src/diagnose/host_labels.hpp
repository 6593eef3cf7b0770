// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the host was in when it launched device work, and while the device had nothing to do.
#include <chokepoint/diagnose/diagnose.hpp>
#include <chokepoint/trace/columns.hpp>
#include <vector>

namespace chokepoint::diagnose {

enum class LaunchedFrom : std::uint8_t { kElsewhere, kRecompute, kOptimizer };

/// Per host event (only those of calls matter): the ranges around it.
std::vector<LaunchedFrom> launch_labels(const trace::RankTrace& trace);

/// Ranges of the host that explain an idle device better than "launching", as disjoint sets.
struct HostRanges {
  Intervals data_loader;
  Intervals checkpoint;
  Intervals synchronise;
};
HostRanges host_ranges(const trace::RankTrace& trace);

}  // namespace chokepoint::diagnose
