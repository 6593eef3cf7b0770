// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chokepoint/diagnose/diagnose.hpp>
#include <chokepoint/trace/columns.hpp>
#include <vector>

#include "bill.hpp"

namespace chokepoint::diagnose {

/// Fills measured, ideal, causes and choke point from a replay of the common window of all ranks.
void find_causes(const std::vector<trace::RankTrace>& traces, const std::vector<CommunicationView>& views, Diagnosis& diagnosis);

}  // namespace chokepoint::diagnose
