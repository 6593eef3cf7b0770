// SPDX-License-Identifier: Apache-2.0
#include "guard.hpp"

#include <algorithm>
#include <chokepoint/base/text.hpp>

namespace chokepoint::service {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

/// "localhost:8420" -> "localhost", "[::1]:8420" -> "[::1]".
std::string_view without_port(std::string_view host) {
  const std::size_t bracket = host.rfind(']');
  const std::size_t colon = host.rfind(':');
  return colon == std::string_view::npos || (bracket != std::string_view::npos && colon < bracket) ? host : host.substr(0, colon);
}

bool known_name(std::string_view host, const std::vector<std::string>& names) {
  const std::string name = lower(without_port(host));
  if (name == "localhost" || name == "127.0.0.1" || name == "[::1]") return true;
  return std::any_of(names.begin(), names.end(), [&](const std::string& own) { return lower(own) == name; });
}

/// A page of this server: the authority of its origin is the one that the request was sent to.
bool same_origin(std::string_view origin, std::string_view host) {
  const std::string from = lower(origin);
  const std::string to = lower(host);
  return from == "http://" + to || from == "https://" + to;
}

bool is_json(std::string_view content_type) {
  const std::string type = lower(trim(content_type.substr(0, content_type.find(';'))));
  return type == "application/json";
}

}  // namespace

std::optional<Refusal> refused(const Provenance& request, const std::vector<std::string>& names) {
  if (request.hosts > 1) return Refusal{400, "the request has several Host headers", ""};
  if (request.host.empty()) return Refusal{400, "the request has no Host header", ""};
  if (!known_name(request.host, names)) {
    return Refusal{403, "this server does not go by the name '" + std::string(request.host.substr(0, 200)) + "'",
                   "open it as localhost, or start it with --name HOST"};
  }
  if (!request.origin.empty() && !same_origin(request.origin, request.host)) return Refusal{403, "requests of other sites' pages are not answered", ""};
  const bool api = request.path.substr(0, 5) == "/api/";
  if (api && !request.fetch_site.empty() && request.fetch_site != "same-origin" && request.fetch_site != "none") {
    return Refusal{403, "requests of other sites' pages are not answered", ""};
  }
  // Other sites' forms can send every other type without asking first.
  const bool writes = request.method == "POST" || request.method == "PUT";
  if (writes && !is_json(request.content_type)) return Refusal{415, "the body is not marked as JSON, expected Content-Type: application/json", ""};
  if (!writes && request.has_body) return Refusal{400, "a " + std::string(request.method.substr(0, 20)) + " request takes no body", ""};
  return std::nullopt;
}

}  // namespace chokepoint::service
