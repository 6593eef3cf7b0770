// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/diagnose/hang.hpp>
#include <chokepoint/trace/flight_recorder.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace chokepoint;
  auto dump = trace::read_flight_text({reinterpret_cast<const char*>(data), size}, "dump_0");
  if (dump) static_cast<void>(diagnose::find_hang({std::move(*dump)}));
  return 0;
}
