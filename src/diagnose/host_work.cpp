// SPDX-License-Identifier: Apache-2.0
#include "host_work.hpp"

#include <algorithm>
#include <chokepoint/diagnose/intervals.hpp>
#include <chokepoint/trace/trace.hpp>

#include "host_labels.hpp"

namespace chokepoint::diagnose {

using trace::HostKind;
using trace::RankTrace;
using trace::Work;

namespace {

/// Operators that do work themselves, as opposed to ranges around them (optimizer steps, modules, autograd's dispatch).
bool is_work(std::string_view name) {
  return name.substr(0, 6) == "aten::" || name.substr(0, 7) == "torch::" || name.substr(0, 8) == "mkldnn::" || name.substr(0, 8) == "onednn::";
}

}  // namespace

bool use_host_as_device(RankTrace& trace) {
  if (trace.device.size() > 0) return false;
  const trace::HostEvents& h = trace.host_events;
  const Intervals loading = host_ranges(trace).data_loader;
  const auto in_loader = [&loading](std::int64_t at) {
    const auto range = std::partition_point(loading.begin(), loading.end(), [at](const Interval& r) { return r.end_ns <= at; });
    return range != loading.end() && range->begin_ns <= at;
  };
  std::vector<std::int64_t> busy_until(trace.threads.size(), 0);  // of the outermost operator of each thread
  trace::DeviceEvents& d = trace.device;
  for (std::size_t i = 0; i < h.size(); ++i) {
    if (h.kind[i] == HostKind::kCall) continue;
    const std::string_view name = trace.names[h.name[i]];
    const bool communicates = trace::classify_kernel(name) == Work::kCommunication && name.substr(0, 6) != "c10d::";  // c10d:: only issues
    if (!communicates) {
      if (!is_work(name) || h.start_ns[i] < busy_until[h.thread[i]] || in_loader(h.start_ns[i])) continue;
      busy_until[h.thread[i]] = h.end_ns[i];
    }
    d.start_ns.push_back(h.start_ns[i]);
    d.end_ns.push_back(h.end_ns[i]);
    d.name.push_back(h.name[i]);
    d.correlation.push_back(0);
    d.launch.push_back(static_cast<std::int32_t>(i));  // a gap before it is the host's
    d.collective.push_back(-1);
    d.stream.push_back(communicates ? -1 : static_cast<std::int32_t>(h.thread[i]));
    d.device.push_back(-1);
    d.work.push_back(communicates ? Work::kCommunication : Work::kCompute);
  }
  return d.size() > 0;
}

}  // namespace chokepoint::diagnose
