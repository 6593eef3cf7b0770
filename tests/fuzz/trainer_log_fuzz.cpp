// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/diagnose/log_trend.hpp>
#include <chokepoint/diagnose/log_watch.hpp>
#include <chokepoint/trace/trainer_log.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto log = chokepoint::trace::read_trainer_text(text, "fuzz")) static_cast<void>(chokepoint::diagnose::find_trend(*log));
  chokepoint::diagnose::LogWatch watch({"fuzz"});
  static_cast<void>(watch.feed(0, text));
  static_cast<void>(watch.state());
  return 0;
}
