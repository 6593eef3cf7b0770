// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chokepoint/trace/columns.hpp>

namespace chokepoint::diagnose {

/// Where a trace holds no device work (CPU training over gloo), the host's threads are the device: its innermost framework
/// operators compute, its communication ranges communicate. Returns whether that was needed and possible.
bool use_host_as_device(trace::RankTrace& trace);

}  // namespace chokepoint::diagnose
