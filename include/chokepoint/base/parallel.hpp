// SPDX-License-Identifier: Apache-2.0
#pragma once
// Loops whose rounds do not depend on each other, over all cores.
#include <cstddef>
#include <functional>

namespace chokepoint {

/// Calls body(0) ... body(count - 1), each once, in no fixed order and from several threads. A body writes only what
/// belongs to its index, so that the result does not depend on the number of threads. It must not throw.
void parallel_for(std::size_t count, const std::function<void(std::size_t)>& body);

}  // namespace chokepoint
