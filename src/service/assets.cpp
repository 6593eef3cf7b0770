// SPDX-License-Identifier: Apache-2.0
#include "assets.hpp"

namespace chokepoint::service {

const Asset* find_asset(std::string_view name) {
  for (const Asset& asset : embedded::web) {
    if (asset.name == name) return &asset;
  }
  return nullptr;
}

std::string_view type_of_asset(std::string_view name) {
  const std::string_view end = name.substr(name.rfind('.') == std::string_view::npos ? name.size() : name.rfind('.'));
  if (end == ".html") return "text/html; charset=utf-8";
  if (end == ".js" || end == ".mjs") return "text/javascript; charset=utf-8";
  if (end == ".css") return "text/css; charset=utf-8";
  if (end == ".svg") return "image/svg+xml";
  if (end == ".json") return "application/json";
  return "text/plain; charset=utf-8";
}

}  // namespace chokepoint::service
