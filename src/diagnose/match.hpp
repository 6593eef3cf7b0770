// SPDX-License-Identifier: Apache-2.0
#pragma once
// The same collective on all its ranks, and the ranks' clocks against each other.
#include <chokepoint/diagnose/diagnose.hpp>
#include <chokepoint/trace/columns.hpp>
#include <vector>

namespace chokepoint::diagnose {

/// Operations of every group in order, over all traces. Groups that no metadata names are inferred from order and from
/// ends that coincide.
std::vector<MatchedCollective> match_collectives(const std::vector<trace::RankTrace>& traces);

/// Whether a device event receives a message, as opposed to sending one or taking part in a collective.
bool receives(const trace::RankTrace& trace, std::size_t event);

/// Shifts the traces' times onto the clock of the first one, from the ends of symmetric collectives; fills offset, drift
/// and residual of `ranks`. Clocks that agree within their noise stay as they are.
void align_clocks(std::vector<trace::RankTrace>& traces, const std::vector<MatchedCollective>& collectives, std::vector<RankResult>& ranks);

/// Starts, ends and late rank from the traces' present times.
void time_collectives(const std::vector<trace::RankTrace>& traces, const std::vector<RankResult>& ranks, std::vector<MatchedCollective>& collectives);

}  // namespace chokepoint::diagnose
