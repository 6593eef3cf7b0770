// SPDX-License-Identifier: Apache-2.0
#pragma once
// Routes inside one host, where many are asked for: what all of them need is worked out once.
#include <chokepoint/topology/topology.hpp>
#include <memory>

namespace chokepoint::topology {

/// The same routes as route(host, from, to). The host must outlive it and stay as it is.
class Router {
 public:
  explicit Router(const Host& host);
  ~Router();
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  Route route(int from, int to);

 private:
  struct Tables;
  std::unique_ptr<Tables> tables_;
};

}  // namespace chokepoint::topology
