// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/diagnose/regression.hpp>
#include <chokepoint/report/diagnose_read.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto saved = chokepoint::report::read_saved_diagnosis({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!saved) return 0;
  if (const auto* d = std::get_if<chokepoint::diagnose::Diagnosis>(&*saved)) static_cast<void>(chokepoint::diagnose::compare(*d, *d));
  if (const auto* log = std::get_if<chokepoint::diagnose::LogReport>(&*saved)) static_cast<void>(chokepoint::diagnose::compare(*log, *log));
  return 0;
}
