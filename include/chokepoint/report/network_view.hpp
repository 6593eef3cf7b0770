// SPDX-License-Identifier: Apache-2.0
#pragma once
// A measured network for people: what is slow first, then hosts, shared ways, messages, collectives, what stays unknown.
#include <chokepoint/measure/network_probe.hpp>
#include <chokepoint/report/style.hpp>
#include <string>

namespace chokepoint::report {

/// `comparison` may be null: nothing to compare with.
std::string network_text(const topology::MeasuredNetwork& network, const measure::Comparison* comparison, const Style& style, bool quiet);

}  // namespace chokepoint::report
