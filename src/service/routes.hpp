// SPDX-License-Identifier: Apache-2.0
#pragma once
// What each address answers: the page, its files, the API. No sockets here: a request comes as a value, its reply goes to a
// function, at once or when a process has worked it out.
#include <boost/asio/io_context.hpp>
#include <chokepoint/service/serve.hpp>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "guard.hpp"
#include "pool.hpp"
#include "studies.hpp"
#include "tasks.hpp"

namespace chokepoint::service {

struct HttpRequest {
  std::string method;
  std::string path;   ///< without the query
  std::string if_none_match;
  bool takes_gzip = false;
  std::string body;
};

struct Reply {
  int status = 200;
  std::string type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
};

/// A reply that holds an error document.
Reply error_reply(int status, const std::string& message, const std::string& fix = "");
Reply error_reply(int status, const Error& error);

class Routes {
 public:
  Routes(boost::asio::io_context& io, const ServeOptions& options, const Spawn& spawn, Studies studies);

  Result<bool> warm() { return pool_.warm(); }
  using Send = std::function<void(Reply)>;
  /// Gives a ticket for gone() while a process works on the reply, else 0.
  std::uint64_t handle(HttpRequest request, Send send);
  /// The client has closed its connection: nobody wants this reply any more.
  void gone(std::uint64_t ticket) { pool_.cancel(ticket); }
  /// No request in work, no task running.
  bool idle() const { return pool_.idle() && tasks_.idle(); }

 private:
  std::uint64_t compute(const std::string& operation, HttpRequest request, Send send);
  Reply start_task(const std::string& operation, HttpRequest request);
  Reply page(const HttpRequest& request);
  Reply status() const;
  Reply studies(const HttpRequest& request);
  Reply study(const HttpRequest& request, const std::string& id);
  Reply task(const HttpRequest& request, const std::string& id);

  const ServeOptions& options_;
  Pool pool_;
  Tasks tasks_;
  Studies studies_;
  std::map<std::string, std::string> compressed_;  ///< files of the page, once they were asked for
  std::string catalogue_;  ///< the answer, once it was asked for; it never changes
};

}  // namespace chokepoint::service
