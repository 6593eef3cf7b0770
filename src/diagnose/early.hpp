// SPDX-License-Identifier: Apache-2.0
#pragma once
// Gradient accumulation without no_sync().
#include <chokepoint/diagnose/diagnose.hpp>
#include <chokepoint/trace/columns.hpp>
#include <vector>

namespace chokepoint::diagnose {

/// Sets `early` of the reductions that one at the end of the step would replace.
void mark_early_reductions(const std::vector<trace::RankTrace>& traces, std::vector<MatchedCollective>& collectives);

}  // namespace chokepoint::diagnose
