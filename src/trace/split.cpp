// SPDX-License-Identifier: Apache-2.0
#include "split.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <unordered_map>

namespace chokepoint::trace {

namespace {

/// Takes over names one by one, each once.
class NameMap {
 public:
  NameMap(const Names& from, Names& to) : from_(from), to_(to), id_(from.size(), kUnset) {}
  NameId operator()(NameId old) {
    if (id_[old] == kUnset) id_[old] = to_.intern(from_[old]);
    return id_[old];
  }

 private:
  static constexpr NameId kUnset = static_cast<NameId>(-1);
  const Names& from_;
  Names& to_;
  std::vector<NameId> id_;
};

/// One rank's part of the whole, filled event by event.
struct Part {
  Part(const RankTrace& whole, int rank, bool known) : names(whole.names, trace.names), thread_id(whole.threads.size(), kUnset) {
    trace.file = whole.file;
    trace.rank = rank;
    trace.rank_known = known;
    trace.world_size = whole.world_size;
    trace.backend = whole.backend;
    trace.device_name = whole.device_name;
    trace.host = whole.host;
    trace.groups = whole.groups;
    trace.absolute_clock = whole.absolute_clock;
    trace.clock_base_ns = whole.clock_base_ns;
  }

  void take_device(const RankTrace& whole, std::size_t i) {
    const DeviceEvents& from = whole.device;
    DeviceEvents& d = trace.device;
    d.start_ns.push_back(from.start_ns[i]);
    d.end_ns.push_back(from.end_ns[i]);
    d.name.push_back(names(from.name[i]));
    d.correlation.push_back(from.correlation[i]);
    d.stream.push_back(from.stream[i]);
    d.device.push_back(from.device[i]);
    d.work.push_back(from.work[i]);
    d.collective.push_back(from.collective[i] >= 0 ? take_collective(whole.collectives[static_cast<std::size_t>(from.collective[i])]) : -1);
  }

  void take_host(const RankTrace& whole, std::size_t i) {
    const HostEvents& from = whole.host_events;
    HostEvents& h = trace.host_events;
    h.start_ns.push_back(from.start_ns[i]);
    h.end_ns.push_back(from.end_ns[i]);
    h.name.push_back(names(from.name[i]));
    h.correlation.push_back(from.correlation[i]);
    h.kind.push_back(from.kind[i]);
    std::uint32_t& thread = thread_id[from.thread[i]];
    if (thread == kUnset) {
      thread = static_cast<std::uint32_t>(trace.threads.size());
      trace.threads.push_back(names(whole.threads[from.thread[i]]));
    }
    h.thread.push_back(thread);
  }

  /// Arrows that lead to this rank's work.
  void take_flows(const RankTrace& whole) {
    std::vector<std::uint64_t> own = trace.device.correlation;
    std::sort(own.begin(), own.end());
    for (const std::uint64_t flow : whole.flow_starts) {
      if (std::binary_search(own.begin(), own.end(), flow)) trace.flow_starts.push_back(flow);
    }
  }

  RankTrace trace;
  NameMap names;
  std::vector<std::uint32_t> thread_id;

 private:
  static constexpr std::uint32_t kUnset = static_cast<std::uint32_t>(-1);
  std::int32_t take_collective(CollectiveInfo info) {
    for (NameId* name : {&info.op, &info.group, &info.description, &info.ranks, &info.dtype}) *name = names(*name);
    trace.collectives.push_back(info);
    return static_cast<std::int32_t>(trace.collectives.size() - 1);
  }
};

/// Ranks of processes that do not say theirs: each launching process and the one device process it launches onto.
std::vector<int> ranks_by_launches(const RankTrace& whole, const Owners& owners) {
  std::unordered_map<std::uint64_t, std::uint32_t> launched_by;
  const HostEvents& h = whole.host_events;
  for (std::size_t i = 0; i < h.size(); ++i) {
    if (h.kind[i] != HostKind::kCall || h.correlation[i] == 0) continue;
    const std::uint32_t process = owners.thread_process[h.thread[i]];
    const auto [at, fresh] = launched_by.try_emplace(h.correlation[i], process);
    if (!fresh && at->second != process) return {};  // numbers of different processes collide: no telling
  }
  std::map<std::uint32_t, std::uint32_t> host_of;  // by device process
  for (std::size_t i = 0; i < whole.device.size(); ++i) {
    const auto at = launched_by.find(whole.device.correlation[i]);
    if (at == launched_by.end()) continue;
    const auto [entry, fresh] = host_of.try_emplace(owners.device_process[i], at->second);
    if (!fresh && entry->second != at->second) return {};
  }
  std::set<std::uint32_t> hosts;
  for (const auto& [device, host] : host_of) hosts.insert(host);
  if (host_of.size() < 2 || hosts.size() != host_of.size()) return {};
  std::vector<int> ranks(owners.rank_of_process.size(), -1);
  int next = 0;
  for (const auto& [device, host] : host_of) ranks[device] = ranks[host] = next++;
  return ranks;
}

}  // namespace

int rank_in_words(std::string_view text) {
  constexpr std::string_view kWord = "rank";
  for (std::size_t at = 0; at + kWord.size() < text.size(); ++at) {
    bool same = true;
    for (std::size_t k = 0; same && k < kWord.size(); ++k) same = std::tolower(static_cast<unsigned char>(text[at + k])) == kWord[k];
    if (!same) continue;
    std::size_t i = at + kWord.size();
    while (i < text.size() && (text[i] == ' ' || text[i] == ':' || text[i] == '_' || text[i] == '-' || text[i] == '#' || text[i] == '=')) ++i;
    int value = 0;
    std::size_t digits = 0;
    for (; i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])) != 0 && digits < 8; ++i, ++digits) value = value * 10 + (text[i] - '0');
    if (digits > 0) return value;
  }
  return -1;
}

std::vector<RankTrace> split_by_rank(const RankTrace& whole, const Owners& owners) {
  std::vector<int> rank_of = owners.rank_of_process;
  const auto ranks_with_events = [&] {
    std::set<int> ranks;
    for (const std::uint32_t p : owners.device_process) ranks.insert(rank_of[p]);
    if (owners.device_process.empty()) {
      for (const std::uint32_t p : owners.thread_process) ranks.insert(rank_of[p]);
    }
    ranks.erase(-1);
    return ranks;
  };
  std::set<int> ranks = ranks_with_events();
  const bool known = ranks.size() > 1;
  if (ranks.empty()) {
    if (std::vector<int> launching = ranks_by_launches(whole, owners); !launching.empty()) rank_of = std::move(launching);
    ranks = ranks_with_events();
  }
  std::vector<RankTrace> traces;
  if (ranks.size() < 2) return traces;
  std::map<int, Part> parts;
  for (const int rank : ranks) parts.try_emplace(rank, whole, rank, known);
  std::uint64_t of_no_rank = 0;
  const auto part_of = [&](std::uint32_t process) -> Part* {
    const auto at = parts.find(rank_of[process]);
    if (at != parts.end()) return &at->second;
    ++of_no_rank;
    return nullptr;
  };
  for (std::size_t i = 0; i < whole.device.size(); ++i) {
    if (Part* part = part_of(owners.device_process[i])) part->take_device(whole, i);
  }
  for (std::size_t i = 0; i < whole.host_events.size(); ++i) {
    if (Part* part = part_of(owners.thread_process[whole.host_events.thread[i]])) part->take_host(whole, i);
  }
  for (auto& [rank, part] : parts) {
    part.take_flows(whole);
    traces.push_back(std::move(part.trace));
  }
  RankTrace& first = traces.front();
  first.defects = whole.defects;
  first.notes = whole.notes;
  first.bytes_read = whole.bytes_read;
  first.events_seen = whole.events_seen;
  if (of_no_rank > 0) first.notes.push_back(std::to_string(of_no_rank) + " events belong to no rank and are not used");
  return traces;
}

}  // namespace chokepoint::trace
