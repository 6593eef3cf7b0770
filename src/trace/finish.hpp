// SPDX-License-Identifier: Apache-2.0
#pragma once
// What every reader does once all events are in the columns.
#include <chokepoint/trace/columns.hpp>
#include <string_view>

namespace chokepoint::trace {

/// Adds `base_ns` to all times, sorts by start, joins device work with its launches and counts what looks odd.
/// A rank that the file does not say is taken from its name unless `rank_from_file` is off (several ranks in one file).
void finish(RankTrace& trace, std::int64_t base_ns, bool rank_from_file = true);
/// N of "rank3", "rank-3", "rank_3", "worker3" in a file name, -1 without one.
int rank_from_name(std::string_view path);

}  // namespace chokepoint::trace
