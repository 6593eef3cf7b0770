// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chokepoint/diagnose/diagnose.hpp>
#include <string>

namespace chokepoint::diagnose {

/// "WHAT: without it a step takes T instead of T0 (-N %)".
std::string choke_sentence(const Cause& cause, double measured_s);

}  // namespace chokepoint::diagnose
