// SPDX-License-Identifier: Apache-2.0
// Device work belongs to the step in which the host launched it: the device runs behind the host, by 30 ms and more, so
// that its work inside the host's marker may belong to the step before.
#include "steps.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>

namespace chokepoint::diagnose {

using trace::RankTrace;

namespace {

struct Mark {
  std::string name;
  Interval host;
};

std::vector<Mark> marks_with_prefix(const RankTrace& trace, std::string_view prefix) {
  std::vector<Mark> marks;
  const trace::HostEvents& h = trace.host_events;
  for (std::size_t i = 0; i < h.size(); ++i) {
    if (h.kind[i] == trace::HostKind::kCall) continue;
    const std::string_view name = trace.names[h.name[i]];
    if (name.substr(0, prefix.size()) != prefix) continue;
    if (!marks.empty() && h.start_ns[i] < marks.back().host.end_ns) continue;  // a marker twice: overlapping annotations
    marks.push_back({std::string(name), {h.start_ns[i], h.end_ns[i]}});
  }
  return marks;
}

/// First device work launched in each mark; windows last until the next mark's first work.
std::vector<StepWindow> windows_of(const RankTrace& trace, const std::vector<Mark>& marks) {
  const trace::DeviceEvents& d = trace.device;
  std::vector<std::optional<Interval>> hull(marks.size());
  for (std::size_t i = 0; i < d.size(); ++i) {
    if (d.launch[i] < 0) continue;
    const std::int64_t launched = trace.host_events.start_ns[static_cast<std::size_t>(d.launch[i])];
    const auto after = std::upper_bound(marks.begin(), marks.end(), launched, [](std::int64_t t, const Mark& m) { return t < m.host.begin_ns; });
    if (after == marks.begin()) continue;
    const auto k = static_cast<std::size_t>(after - marks.begin()) - 1;
    if (launched >= marks[k].host.end_ns) continue;
    std::optional<Interval>& h = hull[k];
    if (!h) h = Interval{d.start_ns[i], d.end_ns[i]};
    h = Interval{std::min(h->begin_ns, d.start_ns[i]), std::max(h->end_ns, d.end_ns[i])};
  }
  std::vector<StepWindow> windows;
  for (std::size_t k = 0; k < marks.size(); ++k) {
    if (!hull[k]) continue;
    if (!windows.empty()) windows.back().window.end_ns = std::max(windows.back().window.begin_ns, hull[k]->begin_ns);
    windows.push_back({marks[k].name, *hull[k]});
  }
  return windows;
}

/// Marks that end with each optimizer step: the step lasts from the end of the one before.
std::vector<Mark> between_optimizer_steps(const RankTrace& trace) {
  const std::vector<Mark> ends = marks_with_prefix(trace, "Optimizer.step#");
  std::vector<Mark> marks;
  for (std::size_t k = 1; k < ends.size(); ++k) {
    marks.push_back({"step " + std::to_string(k), {ends[k - 1].host.end_ns, ends[k].host.end_ns}});
  }
  return marks;
}

/// The kernel whose occurrences are most evenly spread marks the steps: few per trace, same amount of work between any two.
std::vector<StepWindow> repeating(const RankTrace& trace) {
  const trace::DeviceEvents& d = trace.device;
  std::map<trace::NameId, std::vector<std::size_t>> places;
  for (std::size_t i = 0; i < d.size(); ++i) {
    std::vector<std::size_t>& at = places[d.name[i]];
    constexpr std::size_t kMostSteps = 1000;
    if (at.size() <= kMostSteps) at.push_back(i);
  }
  const std::vector<std::size_t>* best = nullptr;
  for (const auto& [name, at] : places) {
    constexpr std::size_t kFewestSteps = 3;
    if (at.size() < kFewestSteps || at.size() > 1000) continue;
    const std::size_t gap = at[1] - at[0];
    bool even = gap > 1;
    for (std::size_t k = 2; even && k < at.size(); ++k) even = at[k] - at[k - 1] == gap;
    // All of the trace must be made of such steps, with at most one cut at each end.
    if (!even || at.front() >= gap || d.size() - at.back() > gap) continue;
    if (best == nullptr || at.size() < best->size() || (at.size() == best->size() && at.front() < best->front())) best = &at;
  }
  std::vector<StepWindow> windows;
  if (best == nullptr) return windows;
  for (std::size_t k = 0; k + 1 < best->size(); ++k) {
    windows.push_back({"period " + std::to_string(k), {d.start_ns[(*best)[k]], d.start_ns[(*best)[k + 1]]}});
  }
  return windows;
}

}  // namespace

std::vector<StepWindow> find_steps(const RankTrace& trace, std::string& how) {
  how = "profiler steps";
  std::vector<StepWindow> windows = windows_of(trace, marks_with_prefix(trace, "ProfilerStep"));
  if (!windows.empty()) return windows;
  how = "optimizer steps";
  windows = windows_of(trace, between_optimizer_steps(trace));
  if (!windows.empty()) return windows;
  how = "repeating device work";
  windows = repeating(trace);
  if (windows.empty()) how.clear();
  return windows;
}

}  // namespace chokepoint::diagnose
