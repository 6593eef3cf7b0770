// SPDX-License-Identifier: Apache-2.0
// A framework's config of any format, settled on a small job; every file that it names has the same text.
#include <chokepoint/frameworks/frameworks.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace chokepoint;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const frameworks::Open same = [&](const std::string&) -> Result<std::string> { return std::string(text); };
  auto reading = frameworks::read(text, "in", same);
  if (!reading) return 0;
  parallel::Job job;
  job.model = reading->model ? *reading->model : *model::find_model("llama-3-8b");
  job.gpus = 16;
  job.sequence = reading->sequence.value_or(2048);
  const auto strategy = frameworks::settle(*reading, job, false);
  if (!strategy) return 0;
  const auto completed = parallel::completed(job, *strategy);
  if (completed && completed->data < 1) __builtin_trap();
  return 0;
}
