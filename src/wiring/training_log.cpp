// SPDX-License-Identifier: Apache-2.0
// Megatron-LM's and Megatron-DeepSpeed's iteration lines: how long, how many.
#include <chokepoint/wiring/host_files.hpp>

#include "scan.hpp"

#include <chokepoint/base/text.hpp>

#include <algorithm>

namespace chokepoint::wiring {

Result<TrainingLog> read_training_log(std::string_view text, const std::string& file) {
  TrainingLog log;
  std::vector<double> times;
  for (const std::string_view line : split_lines(text)) {
    if (const auto world = after(line, "using world size:")) log.world_size = std::max(log.world_size, leading_int(*world).value_or(0));
    auto value = after(line, "elapsed time per iteration (ms):");
    const bool milliseconds = value.has_value();
    if (!value) value = after(line, "elapsed time per iteration (s):");
    const auto time = value ? leading_number(*value) : std::nullopt;
    if (!time || *time <= 0) continue;
    log.milliseconds = milliseconds;
    times.push_back(milliseconds ? *time / 1e3 : *time);
    const std::vector<std::string_view> words = split_blanks(line.substr(0, line.find("iteration")));
    if (!words.empty() && words.back().size() > 1 && words.back().back() == ':') {
      std::string host(words.back().substr(0, words.back().size() - 1));
      if (log.hosts.size() < 1024 && std::find(log.hosts.begin(), log.hosts.end(), host) == log.hosts.end()) log.hosts.push_back(std::move(host));
    }
  }
  if (times.empty()) return fail("no iteration line", {file, 0, 0}, {"expected lines \"iteration N/M | ... elapsed time per iteration (ms): ...\""});
  log.iterations = static_cast<int>(times.size());
  std::sort(times.begin(), times.end());
  log.shortest_s = times.front();
  log.longest_s = times.back();
  log.median_s = times[times.size() / 2];
  log.notes.push_back({"a training log says how long steps took, not how the hosts are wired; `chokepoint diagnose` reads it", {file, 0, 0}});
  return log;
}

}  // namespace chokepoint::wiring
