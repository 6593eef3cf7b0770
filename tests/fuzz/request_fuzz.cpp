// SPDX-License-Identifier: Apache-2.0
// A request to the service: the first byte chooses the operation, the rest is its JSON. Answers are JSON whatever comes in,
// an error's code goes with an error, and nothing outside of the request is read.
#include <array>
#include <chokepoint/service/answer.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace chokepoint;
  if (size == 0) return 0;
  static constexpr std::array<std::string_view, 6> kOperations{"predict", "wiring", "diagnose", "export", "models", "validate"};
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const service::Answer answered = service::answer(kOperations[data[0] % kOperations.size()], text);
  const bool failed = answered.code == 2 || answered.code == 3;
  if (answered.code == 3 || failed != answered.error.has_value()) __builtin_trap();
  if (answered.json.empty() || answered.json.find('{') == std::string::npos) __builtin_trap();
  return 0;
}
