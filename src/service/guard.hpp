// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which requests are answered at all. A page of another site can make a browser send requests here (and, by DNS rebinding,
// read the answers): the names in Host and Origin are what tells them from our own page's.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::service {

/// The parts of a request that say where it comes from; empty: not sent.
struct Provenance {
  std::string_view method;
  std::string_view path;
  std::string_view host;
  std::string_view origin;
  std::string_view fetch_site;    ///< Sec-Fetch-Site
  std::string_view content_type;
  bool has_body = false;
  std::size_t hosts = 1;          ///< Host headers; what stands before this server may have obeyed another one than it
};

struct Refusal {
  int status = 403;
  std::string message;
  std::string fix;
};

/// `names`: hosts that this server goes by, beside localhost and the loopback addresses.
std::optional<Refusal> refused(const Provenance& request, const std::vector<std::string>& names);

}  // namespace chokepoint::service
