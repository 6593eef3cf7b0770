// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whole small files. Inputs above `kMaxTextFileBytes` are refused, so that a wrong path cannot fill the memory.
#include <chokepoint/base/result.hpp>
#include <string>
#include <string_view>

namespace chokepoint {

inline constexpr std::size_t kMaxTextFileBytes = 256u * 1024u * 1024u;

Result<std::string> read_text_file(const std::string& path);
/// Writes beside the target and renames, so that a reader never sees half a file. "-" is standard output.
Result<bool> write_text_file(const std::string& path, std::string_view text);
/// Directory part of a path, "." when there is none.
std::string directory_of(const std::string& path);
bool file_exists(const std::string& path);

}  // namespace chokepoint
