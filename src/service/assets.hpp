// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files that are compiled into the program: the page's and the examples.
#include <span>
#include <string_view>

namespace chokepoint::service {

struct Asset {
  std::string_view name;
  std::string_view content;
};

/// A file of the page; null for what is not there. Names are compared whole: there are no folders and no paths.
const Asset* find_asset(std::string_view name);
std::string_view type_of_asset(std::string_view name);

}  // namespace chokepoint::service

namespace chokepoint::embedded {
extern const std::span<const chokepoint::service::Asset> web;       ///< by their names in web/
extern const std::span<const chokepoint::service::Asset> examples;  ///< by their names in examples/: "jobs/x.yaml"
}  // namespace chokepoint::embedded
