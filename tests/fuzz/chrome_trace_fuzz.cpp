// SPDX-License-Identifier: Apache-2.0
// A trace that reads is also diagnosed: whatever the columns hold must give a bill that sums.
#include <chokepoint/diagnose/diagnose.hpp>
#include <chokepoint/trace/trace.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace chokepoint;
  auto traces = trace::read_chrome_ranks_text({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!traces) return 0;
  const auto d = diagnose::diagnose(std::move(*traces));
  if (!d) return 0;
  for (const diagnose::RankResult& r : d->ranks) {
    if (r.bill.total_ns() != r.time.span_ns) std::abort();
  }
  return 0;
}
