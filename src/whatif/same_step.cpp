// SPDX-License-Identifier: Apache-2.0
// Why a change moves nothing. The changed resource is made ten times worse: a step that then gets longer has more of it
// than it needs, one that does not never goes over it.
#include <array>
#include <chokepoint/base/text.hpp>
#include <cmath>
#include <fmt/format.h>

#include "same_step.hpp"

namespace chokepoint::whatif {

namespace {

constexpr std::array<std::string_view, 16> kScalable = {
    "nic",         "network", "nvlink", "board",   "pcie-uplink", "nic-slot", "host-memory", "socket",
    "latency",     "hbm",     "clock",  "host",    "pcie",        "memory",   "power",       "oversubscription"};

bool scalable(std::string_view key) {
  for (const std::string_view word : kScalable) {
    if (word == key) return true;
  }
  return key.find('.') != std::string_view::npos;
}

bool between_hosts(std::string_view key) {
  return key == "nic" || key == "network" || key == "nic-slot" || key == "nics-per-host" || key == "transport" ||
         key == "fabric" || key == "oversubscription" || key == "hosts-per-leaf" || key == "gpudirect";
}

}  // namespace

std::string why_same(const Scenario& base, const simulate::Prediction& now, const Change& change) {
  constexpr double kFelt = 1e-3;
  if (between_hosts(change.key) && base.job.gpus <= base.job.cluster.gpus_per_host())
    return "the job stays inside one host: nothing of it crosses the network";
  const double exposed = exposed_communication(now);
  if (between_hosts(change.key) && exposed < kFelt) return "hidden: every transfer ends behind the computation beside it";
  if (!scalable(change.key)) return "";
  const bool larger_is_worse = change.key == "latency" || change.key == "oversubscription";
  const std::string factor = larger_is_worse ? "x10" : "x0.1";
  const Result<Scenario> worse = changed(base, {Change{change.key + "=" + factor, change.key, factor}});
  const auto time = worse ? step_time(*worse, now.strategy) : std::nullopt;
  const auto same = step_time(base, now.strategy);
  if (!time || !same) return "";
  const double longer = *time / *same - 1;
  if (longer < kFelt)
    return fmt::format("not on the path: even ten times worse it changes the step by less than {:.1f} %", 100 * kFelt);
  return fmt::format("there is more of it than this job needs: only ten times worse would cost {:+.0f} %", 100 * longer);
}

}  // namespace chokepoint::whatif
