// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files that are not what their name says.
#include <chokepoint/base/result.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace chokepoint::frameworks {

/// What is wrong with a text that recognise() does not know: empty, a web page, a Git LFS pointer, a picture, an archive,
/// a model's config.json, Python source; with what to do about it. No value: none of these.
std::optional<Error> not_settings(std::string_view text, const std::string& file);

}  // namespace chokepoint::frameworks
