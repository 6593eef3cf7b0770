// SPDX-License-Identifier: Apache-2.0
#pragma once
// Time of one operation of one size over a path: every algorithm and protocol that NCCL could take has a curve
// latency + bytes / bandwidth; the fastest is taken, as its tuner does.
#include "paths.hpp"

namespace chokepoint::collective {

/// Bus bandwidths towards infinite size, which do not change between calls.
void set_peaks(Path& path, const Context& context);
Cost time_of(Op op, double bytes, const Path& path, const Context& context);
/// all_to_all of which only `network_share` of what leaves an island passes its NICs; the rest is copied inside the target.
Cost exchange_time(double bytes, double network_share, const Path& path, const Context& context);

}  // namespace chokepoint::collective
