// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/diagnose/device_time.hpp>

#include <algorithm>

namespace chokepoint::diagnose {

using trace::Work;

namespace {

bool selected(const trace::RankTrace& trace, std::size_t i, Selection selection) {
  if (selection == Selection::kLaunched) return trace.device.launch[i] >= 0;
  if (selection == Selection::kFlow) {
    return std::binary_search(trace.flow_starts.begin(), trace.flow_starts.end(), trace.device.correlation[i]);
  }
  return true;
}

}  // namespace

DeviceUnions device_unions(const trace::RankTrace& trace, Selection selection, std::optional<Interval> window) {
  const trace::DeviceEvents& d = trace.device;
  std::vector<Interval> parts[4];
  std::optional<Interval> hull;
  for (std::size_t i = 0; i < d.size(); ++i) {
    if (!selected(trace, i, selection)) continue;
    Interval part{d.start_ns[i], d.end_ns[i]};
    if (window) part = {std::max(part.begin_ns, window->begin_ns), std::min(part.end_ns, window->end_ns)};
    if (!window) {
      if (!hull) hull = part;
      hull = Interval{std::min(hull->begin_ns, part.begin_ns), std::max(hull->end_ns, part.end_ns)};
    }
    if (part.begin_ns < part.end_ns) parts[static_cast<std::size_t>(d.work[i])].push_back(part);
  }
  DeviceUnions unions;
  unions.window = window ? *window : hull.value_or(Interval{});
  unions.compute = united(std::move(parts[static_cast<std::size_t>(Work::kCompute)]));
  unions.communication = united(std::move(parts[static_cast<std::size_t>(Work::kCommunication)]));
  unions.copy = united(std::move(parts[static_cast<std::size_t>(Work::kCopy)]));
  unions.set = united(std::move(parts[static_cast<std::size_t>(Work::kSet)]));
  return unions;
}

DeviceTime device_time(const DeviceUnions& u) {
  const Intervals memory = united(u.copy, u.set);
  const Intervals compute_and_set = united(u.compute, u.set);
  const Intervals working = united(u.compute, memory);
  const Intervals exposed = without(u.communication, u.compute);
  DeviceTime t;
  t.start_ns = u.window.begin_ns;
  t.span_ns = u.window.end_ns - u.window.begin_ns;
  t.compute_ns = length(u.compute);
  t.communication_ns = length(u.communication);
  t.memory_ns = length(memory);
  t.busy_ns = length(united(working, u.communication));
  t.exposed_communication_ns = length(exposed);
  t.overlap_ns = t.communication_ns - t.exposed_communication_ns;
  t.exposed_strict_ns = length(without(exposed, memory));
  t.exposed_memory_ns = length(without(without(memory, u.compute), u.communication));
  t.exposed_copy_ns = length(without(without(u.copy, compute_and_set), u.communication));
  t.compute_and_set_ns = length(compute_and_set);
  return t;
}

}  // namespace chokepoint::diagnose
