// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/measure/compute_probe.hpp>

namespace chokepoint::embedded {
extern const std::string_view compute_probe_script;
}

namespace chokepoint::measure {

std::string_view compute_script() { return embedded::compute_probe_script; }

}  // namespace chokepoint::measure
