// SPDX-License-Identifier: Apache-2.0
// In place of the server, where Boost.Beast was not found when this was built.
#include <chokepoint/service/serve.hpp>

namespace chokepoint::service {

bool can_serve() { return false; }

Result<bool> serve(const ServeOptions&, const Spawn&, const std::function<void(int)>&, const std::atomic<bool>*) {
  return fail("this chokepoint was built without its server", {}, {"install libboost-dev and build again; scripts/setup run does it"});
}

}  // namespace chokepoint::service
