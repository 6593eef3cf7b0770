// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whole small files, on disk or in memory (memory_files.hpp). Inputs above `kMaxTextFileBytes` are refused, so that a wrong path cannot fill the memory.
#include <chokepoint/base/result.hpp>
#include <span>
#include <string>
#include <string_view>

namespace chokepoint {

inline constexpr std::size_t kMaxTextFileBytes = 256u * 1024u * 1024u;

/// The failure to find a file; inside a request it lists the files that this one has.
tl::unexpected<Error> no_such_file(const std::string& path);
/// "-" is standard input; pipes and devices are read to their end.
Result<std::string> read_text_file(const std::string& path);
/// Writes beside the target and renames, so that a reader never sees half a file. "-" is standard output.
Result<bool> write_text_file(const std::string& path, std::string_view text);
/// Directory part of a path, "." when there is none.
std::string directory_of(const std::string& path);
/// Something that can be read as a file: a file, a pipe or a device, not a directory.
bool file_exists(const std::string& path);
/// Error when writing `output` would replace one of the files that are read ("" and "-" never do).
Result<bool> check_output(const std::string& output, std::span<const std::string> inputs);

}  // namespace chokepoint
