// SPDX-License-Identifier: Apache-2.0
#include "finish.hpp"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>

namespace chokepoint::trace {

namespace {

template <class T>
void reorder(std::vector<T>& column, const std::vector<std::uint32_t>& order) {
  std::vector<T> sorted;
  sorted.reserve(column.size());
  for (const std::uint32_t i : order) sorted.push_back(column[i]);
  column = std::move(sorted);
}

/// Order by start; among equal starts the longer one first, so that an enclosing range stands before what it holds.
std::vector<std::uint32_t> order_by_start(const std::vector<std::int64_t>& start, const std::vector<std::int64_t>& end) {
  const auto before = [&](std::size_t a, std::size_t b) { return start[a] != start[b] ? start[a] < start[b] : end[a] > end[b]; };
  bool sorted = true;
  for (std::size_t i = 1; sorted && i < start.size(); ++i) sorted = !before(i, i - 1);
  if (sorted) return {};
  std::vector<std::uint32_t> order(start.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), before);
  return order;
}

void reorder_device(DeviceEvents& d, const std::vector<std::uint32_t>& order) {
  reorder(d.start_ns, order);
  reorder(d.end_ns, order);
  reorder(d.name, order);
  reorder(d.correlation, order);
  reorder(d.stream, order);
  reorder(d.device, order);
  reorder(d.collective, order);
  reorder(d.work, order);
}

void reorder_host(HostEvents& h, const std::vector<std::uint32_t>& order) {
  reorder(h.start_ns, order);
  reorder(h.end_ns, order);
  reorder(h.name, order);
  reorder(h.thread, order);
  reorder(h.correlation, order);
  reorder(h.kind, order);
}

/// Events whose start lies within 30 days of the middle one: a broken time must not define the span. Empty: all of them.
std::vector<std::uint32_t> plausible(const std::vector<std::int64_t>& start) {
  constexpr std::int64_t kFar_ns = 30ll * 24 * 3600 * 1'000'000'000;
  if (start.empty()) return {};
  const auto [least, most] = std::minmax_element(start.begin(), start.end());
  if (*most - *least <= kFar_ns) return {};
  std::vector<std::int64_t> copy = start;
  const auto middle = copy.begin() + static_cast<std::ptrdiff_t>(copy.size() / 2);
  std::nth_element(copy.begin(), middle, copy.end());
  std::vector<std::uint32_t> kept;
  for (std::size_t i = 0; i < start.size(); ++i) {
    const std::int64_t apart = start[i] - *middle;
    if (apart <= kFar_ns && apart >= -kFar_ns) kept.push_back(static_cast<std::uint32_t>(i));
  }
  return kept;
}

/// Columns grow by doubling: of many ranks the unused halves would be most of the memory.
void release_unused(RankTrace& trace) {
  DeviceEvents& d = trace.device;
  HostEvents& h = trace.host_events;
  for (auto* column : {&d.start_ns, &d.end_ns, &h.start_ns, &h.end_ns}) column->shrink_to_fit();
  for (auto* column : {&d.correlation, &h.correlation, &trace.flow_starts}) column->shrink_to_fit();
  for (auto* column : {&d.stream, &d.device, &d.launch, &d.collective}) column->shrink_to_fit();
  for (auto* column : {&d.name, &h.name, &h.thread}) column->shrink_to_fit();
  d.work.shrink_to_fit();
  h.kind.shrink_to_fit();
}

void drop_far_events(RankTrace& trace) {
  const auto count_lost = [&trace](std::size_t before, std::size_t after) {
    for (std::size_t i = after; i < before; ++i) trace.defects.add(Defect::kBadTime);
  };
  if (const std::vector<std::uint32_t> kept = plausible(trace.device.start_ns); !kept.empty()) {
    count_lost(trace.device.size(), kept.size());
    reorder_device(trace.device, kept);
  }
  if (const std::vector<std::uint32_t> kept = plausible(trace.host_events.start_ns); !kept.empty()) {
    count_lost(trace.host_events.size(), kept.size());
    reorder_host(trace.host_events, kept);
  }
}

void join_launches(RankTrace& trace) {
  std::vector<std::pair<std::uint64_t, std::int32_t>> calls;
  const HostEvents& h = trace.host_events;
  for (std::size_t i = 0; i < h.size(); ++i) {
    if (h.kind[i] == HostKind::kCall && h.correlation[i] != 0) calls.emplace_back(h.correlation[i], static_cast<std::int32_t>(i));
  }
  std::sort(calls.begin(), calls.end());
  DeviceEvents& d = trace.device;
  d.launch.assign(d.size(), -1);
  for (std::size_t i = 0; i < d.size(); ++i) {
    if (d.correlation[i] == 0) continue;
    const auto at = std::lower_bound(calls.begin(), calls.end(), std::pair{d.correlation[i], std::int32_t{-1}});
    if (at == calls.end() || at->first != d.correlation[i]) {
      if (!calls.empty()) trace.defects.add(Defect::kOrphan);
      continue;
    }
    d.launch[i] = at->second;
    if (h.start_ns[static_cast<std::size_t>(at->second)] > d.start_ns[i]) trace.defects.add(Defect::kLaunchAfterStart);
  }
}

void count_overlaps(RankTrace& trace) {
  const DeviceEvents& d = trace.device;
  std::vector<std::pair<std::int64_t, std::int64_t>> last;  // (device and stream, latest end)
  for (std::size_t i = 0; i < d.size(); ++i) {
    const std::int64_t key = (std::int64_t{d.device[i]} << 32) + d.stream[i];
    auto at = std::find_if(last.begin(), last.end(), [key](const auto& entry) { return entry.first == key; });
    if (at == last.end()) {
      last.emplace_back(key, d.end_ns[i]);
      continue;
    }
    if (d.start_ns[i] < at->second) trace.defects.add(Defect::kOverlapOnStream);
    at->second = std::max(at->second, d.end_ns[i]);
  }
}

}  // namespace

void finish(RankTrace& trace, std::int64_t base_ns, bool rank_from_file) {
  for (auto* column : {&trace.device.start_ns, &trace.device.end_ns, &trace.host_events.start_ns, &trace.host_events.end_ns}) {
    for (std::int64_t& time : *column) time += base_ns;
  }
  drop_far_events(trace);
  if (const auto order = order_by_start(trace.device.start_ns, trace.device.end_ns); !order.empty()) reorder_device(trace.device, order);
  if (const auto order = order_by_start(trace.host_events.start_ns, trace.host_events.end_ns); !order.empty()) reorder_host(trace.host_events, order);
  std::sort(trace.flow_starts.begin(), trace.flow_starts.end());
  join_launches(trace);
  count_overlaps(trace);
  release_unused(trace);
  if (!trace.rank_known && rank_from_file) {
    const int named = rank_from_name(trace.file);
    trace.rank = std::max(0, named);
    trace.notes.push_back(named >= 0 ? "rank taken from the file name" : "the file does not say its rank");
    trace.rank_known = named >= 0;
  }
}

int rank_from_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  std::string_view file = slash == std::string_view::npos ? path : path.substr(slash + 1);
  for (const std::string_view word : {std::string_view("rank"), std::string_view("worker")}) {
    for (std::size_t at = file.find(word); at != std::string_view::npos; at = file.find(word, at + 1)) {
      std::size_t i = at + word.size();
      if (i < file.size() && (file[i] == '-' || file[i] == '_')) ++i;
      int value = 0;
      std::size_t digits = 0;
      for (; i < file.size() && std::isdigit(static_cast<unsigned char>(file[i])) != 0 && digits < 8; ++i, ++digits) value = value * 10 + (file[i] - '0');
      if (digits > 0) return value;
    }
  }
  return -1;
}

}  // namespace chokepoint::trace
