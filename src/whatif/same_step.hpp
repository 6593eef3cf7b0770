// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chokepoint/whatif/evaluate.hpp>
#include <string>

namespace chokepoint::whatif {

/// Why a change leaves the step of `base` as it is, in one clause; empty when nothing is known.
std::string why_same(const Scenario& base, const simulate::Prediction& now, const Change& change);

}  // namespace chokepoint::whatif
