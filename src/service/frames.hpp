// SPDX-License-Identifier: Apache-2.0
#pragma once
// What goes between the server and its processes, both of one build on one machine: a header, then the bytes it counts.
#include <cstddef>
#include <cstdint>

namespace chokepoint::service {

struct RequestFrame {
  std::uint64_t operation_size = 0;
  std::uint64_t body_size = 0;
};

/// Comes any number of times with kProgress, then once with the answer's code.
struct AnswerFrame {
  std::int64_t code = 0;
  std::uint64_t size = 0;  ///< of the answer; with kProgress, the share in thousandths
};

inline constexpr std::int64_t kProgress = -1;

inline constexpr std::uint64_t kLargestAnswer_bytes = std::uint64_t{512} << 20;

}  // namespace chokepoint::service
