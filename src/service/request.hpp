// SPDX-License-Identifier: Apache-2.0
#pragma once
// A request's JSON as the words of a command and the files it may read.
#include <chokepoint/base/memory_files.hpp>
#include <chokepoint/base/result.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::service {

struct Request {
  std::vector<std::string> words;
  MemoryFiles files{Disk::kClosed};
};

/// `operation` is one of the commands.
Result<Request> read_request(std::string_view operation, std::string_view text, Disk disk);

/// What is not base64 gives nothing.
std::optional<std::string> from_base64(std::string_view text);
std::string to_base64(std::string_view bytes);

}  // namespace chokepoint::service
