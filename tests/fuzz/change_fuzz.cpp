// SPDX-License-Identifier: Apache-2.0
// Lines of changes: any text is a change or an error with a message, and put into a job it gives a job or an error.
#include <chokepoint/base/text.hpp>
#include <chokepoint/job/read_job.hpp>
#include <chokepoint/whatif/change.hpp>

#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace chokepoint;
  static const whatif::Scenario kScenario = [] {
    job::Options options;
    options.model = "tinyllama-1.1b";
    options.cluster = "pcie-a100-8-bridged";
    options.gpus = 16;
    options.batch = 64;
    options.sequence = 2048;
    options.strategy = "fsdp microbatch=1";
    const auto file = job::read_job("", "", options);
    if (!file) std::abort();
    whatif::Scenario scenario;
    scenario.job = file->job;
    scenario.strategy = whatif::portable(*file->strategy);
    return scenario;
  }();
  std::vector<whatif::Change> changes;
  for (const std::string_view line : split_lines({reinterpret_cast<const char*>(data), size})) {
    const auto change = whatif::parse_change(line);
    if (!change && change.error().message.empty()) std::abort();
    if (change && changes.size() < 4) changes.push_back(*change);
  }
  const auto result = whatif::changed(kScenario, changes);
  if (!result && result.error().message.empty()) std::abort();
  return 0;
}
