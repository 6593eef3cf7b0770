// SPDX-License-Identifier: Apache-2.0
#pragma once
// One change put into a scenario.
#include <chokepoint/whatif/change.hpp>

namespace chokepoint::whatif {

Result<bool> apply(Scenario& scenario, const Change& change);
/// Words about slow, stalled and unevenly loaded ranks, and what mends them.
bool is_real_word(std::string_view key);
Result<bool> apply_real(Scenario& scenario, const Change& change);
Result<bool> apply_strategy_word(Scenario& scenario, const Change& change);
/// Bandwidths measured on the old wires follow the new ones in proportion.
void carry_measurements(const Scenario& before, Scenario& after);
/// Latencies of all protocols and hops.
void scale_latency(collective::Constants& constants, double factor);
/// Launch and Python times of the host.
void speed_up_host(simulate::Parameters& parameters, double factor);
void scale_arithmetic(Scenario& scenario, double factor);

}  // namespace chokepoint::whatif
