// SPDX-License-Identifier: Apache-2.0
#pragma once
// Several ranks in one file (merged traces, our own timelines) as one trace for each.
#include <chokepoint/trace/columns.hpp>
#include <cstdint>
#include <string_view>
#include <vector>

namespace chokepoint::trace {

/// Which process each event belongs to, and which rank a process says it is.
struct Owners {
  std::vector<std::uint32_t> device_process;  ///< by device event
  std::vector<std::uint32_t> thread_process;  ///< by thread
  std::vector<int> rank_of_process;           ///< -1: does not say
};

/// N of "rank 3", "rank3", "Rank: 3" in a process's name; -1 without one.
int rank_in_words(std::string_view text);

/// One trace for each rank, by rank; empty where the file is one rank's. Times are those of `whole`, not yet finished. Where
/// no process says its rank, processes that each launch onto a device process of their own are ranks in order.
std::vector<RankTrace> split_by_rank(const RankTrace& whole, const Owners& owners);

}  // namespace chokepoint::trace
