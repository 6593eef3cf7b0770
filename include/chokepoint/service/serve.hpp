// SPDX-License-Identifier: Apache-2.0
#pragma once
// The HTTP server: the page, the API, saved studies. docs/formats/api.md describes what it answers, and its limits.
#include <atomic>
#include <chokepoint/base/result.hpp>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace chokepoint::service {

struct ServeOptions {
  std::string host = "127.0.0.1";
  int port = 8420;                          ///< 0: any free one
  std::vector<std::string> names;           ///< further names under which browsers may reach it, without the port
  std::string studies;                      ///< SQLite file; empty: the user's data folder
  std::size_t max_upload_bytes = 64u << 20;
  std::size_t max_memory_bytes = std::size_t{4} << 30;  ///< of the process that works on one request
  double timeout_s = 30;                    ///< of a request that the client waits for
  double task_timeout_s = 900;              ///< of a request with "async": true
  double client_timeout_s = 20;             ///< for a client to send a request, or take its answer
  int workers = 0;                          ///< processes for requests; 0: one a core, two at least
  int task_workers = 2;                     ///< processes for tasks
};

/// A process that answers requests on its end of a socket, until the other end closes.
struct Worker {
  int pid = -1;
  int socket = -1;
};
/// Starts one. The server ends and reaps it.
using Spawn = std::function<Result<Worker>()>;

/// What a worker process does: reads requests from `socket`, answers, and returns at its end. Sets the memory limit of its
/// process and makes the process end with its parent.
int work(int socket, std::size_t max_memory_bytes);

/// Serves until SIGINT or SIGTERM, or until `stop` is set (looked at several times a second). `ready` gets the port. False
/// where the program was built without Boost.Beast. A port that is taken, or studies that cannot be opened, are errors.
Result<bool> serve(const ServeOptions& options, const Spawn& spawn, const std::function<void(int port)>& ready,
                   const std::atomic<bool>* stop = nullptr);

/// Whether this build has the server.
bool can_serve();

}  // namespace chokepoint::service
