// SPDX-License-Identifier: Apache-2.0
#pragma once
// The switches between the hosts as a picture that stays readable with thousands of them.
#include <chokepoint/assemble/assemble.hpp>
#include <chokepoint/findings/findings.hpp>
#include <string>
#include <vector>

namespace chokepoint::report {

/// Coloured by oversubscription, marked where a finding names a switch; empty where no discovered fabric is known.
std::string fabric_svg(const assemble::Assembly& assembly, const std::vector<findings::Finding>& found);

}  // namespace chokepoint::report
