// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/diagnose/straggler.hpp>
#include <chokepoint/trace/op_timeline.hpp>
#include <cstddef>
#include <cstdint>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto timeline = chokepoint::trace::read_op_timeline_text(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
  if (timeline) static_cast<void>(chokepoint::diagnose::find_stragglers(*timeline));
  return 0;
}
