// SPDX-License-Identifier: Apache-2.0
// Every group is lowered once: as a ring with a channel for each interface that its members of one host reach, an
// exchange as messages between all pairs, a message between stages by its route. Loads are merged by link, because a
// collective is one coupled flow. A link inside a host that only one kind of transfer passes is left out: the closed
// form knows what its siblings take from each other there, and nothing else can.
#include <chokepoint/engine/fold.hpp>
#include <chokepoint/engine/ways.hpp>
#include <chokepoint/flow/lower.hpp>

#include <algorithm>

namespace chokepoint::engine {

namespace {

bool inside_host(flow::LinkClass kind) {
  return kind == flow::LinkClass::kNvLink || kind == flow::LinkClass::kPcie || kind == flow::LinkClass::kMemory ||
         kind == flow::LinkClass::kSocket;
}

bool interface(flow::LinkClass kind) {
  return kind == flow::LinkClass::kNicOut || kind == flow::LinkClass::kNicIn || kind == flow::LinkClass::kHostOut ||
         kind == flow::LinkClass::kHostIn;
}

void merge(std::vector<Load>& loads, std::size_t begin) {
  const auto first = loads.begin() + static_cast<std::ptrdiff_t>(begin);
  std::stable_sort(first, loads.end(), [](const Load& a, const Load& b) { return a.link < b.link; });
  std::size_t kept = begin;
  for (std::size_t i = begin; i < loads.size(); ++i) {
    if (kept > begin && loads[kept - 1].link == loads[i].link) {
      loads[kept - 1].weight += loads[i].weight;
    } else {
      loads[kept++] = loads[i];
    }
  }
  loads.resize(kept);
}

class Finder {
 public:
  Finder(const flow::Platform& platform, const Layout& layout, const WayOptions& options)
      : platform_(platform), l_(layout), options_(options), capacity_(platform.capacities()) {}

  Result<bool> groups(Meet meet, WayKind& kind) {
    const std::vector<std::uint32_t> first = members_by_group(meet);
    const bool exchange = meet == Meet::kExpert;
    // Where packets look for a free cable, each group sees those that groups before it took.
    flow::Fluid taken(options_.spread == flow::Spread::kAdaptive ? capacity_ : std::vector<double>());
    kind.begin.assign(1, 0);
    for (std::size_t g = 0; g + 1 < first.size(); ++g) {
      const std::span<const int> own(members_.data() + first[g], first[g + 1] - first[g]);
      if (own.size() > 1) {
        flow::LowerOptions how;
        how.channels = exchange ? 1 : channels(own);
        how.coupling = flow::Coupling::kGroup;
        how.seed = options_.seed + (static_cast<std::uint64_t>(meet) << 40) + g;
        if (options_.spread == flow::Spread::kAdaptive) how.fluid = &taken;
        TRY_INTO(const flow::FlowSet flows,
                 flow::lower(platform_, exchange ? flow::Pattern::kAllToAll : flow::Pattern::kAllGather,
                             exchange ? flow::Algorithm::kDirect : flow::Algorithm::kRing, 1, own, how));
        const std::size_t begin = kind.loads.size();
        const double share = exchange ? 1.0 / static_cast<double>(own.size()) : 1.0 / how.channels;
        for (std::size_t f = 0; f < flows.size(); ++f) {
          add(flows.uses(f), share, kind);
          if (how.fluid != nullptr) taken.start(flows.uses(f), 1e30);
        }
        merge(kind.loads, begin);
      }
      kind.begin.push_back(static_cast<std::uint32_t>(kind.loads.size()));
    }
    return true;
  }

  Result<bool> sends(bool forward, WayKind& kind) {
    const int n = l_.ranks();
    const int stage = l_.stage_ranks();
    flow::Fluid taken(options_.spread == flow::Spread::kAdaptive ? capacity_ : std::vector<double>());
    kind.begin.assign(1, 0);
    std::vector<flow::Use> uses;
    for (int r = 0; r < n; ++r) {
      uses.clear();
      flow::RouteChoice choice;
      choice.hash = options_.seed * 0x9E3779B97F4A7C15ull + static_cast<std::uint64_t>(r) * 2 + (forward ? 1 : 0);
      if (options_.spread == flow::Spread::kAdaptive) choice.fluid = &taken;
      TRY_INTO([[maybe_unused]] const bool found, route(r, forward ? (r + stage) % n : (r + n - stage) % n, choice, uses));
      if (choice.fluid != nullptr) taken.start(uses, 1e30);
      const std::size_t begin = kind.loads.size();
      add(uses, 1, kind);
      merge(kind.loads, begin);
      kind.begin.push_back(static_cast<std::uint32_t>(kind.loads.size()));
    }
    return true;
  }

 private:
  Result<bool> route(int from, int to, const flow::RouteChoice& choice, std::vector<flow::Use>& uses) const {
    if (Result<void> routed = platform_.route(from, to, choice, uses); !routed)
      return tl::make_unexpected(std::move(routed).error());
    return true;
  }

  void add(std::span<const flow::Use> uses, double share, WayKind& kind) const {
    for (const flow::Use& use : uses) {
      const double capacity = capacity_[use.link];
      if (capacity > 0 && capacity < flow::kNever) kind.loads.push_back({use.link, use.weight * share / capacity});
    }
  }

  /// Offsets into members_, which then holds the ranks group by group.
  std::vector<std::uint32_t> members_by_group(Meet meet) {
    const int n = l_.ranks();
    std::vector<std::uint32_t> first(static_cast<std::size_t>(n) + 1, 0);
    for (int r = 0; r < n; ++r) ++first[static_cast<std::size_t>(l_.group_of(meet, r)) + 1];
    for (std::size_t g = 1; g < first.size(); ++g) first[g] += first[g - 1];
    std::vector<std::uint32_t> at(first.begin(), first.end() - 1);
    members_.resize(static_cast<std::size_t>(n));
    for (int r = 0; r < n; ++r) members_[at[static_cast<std::size_t>(l_.group_of(meet, r))]++] = r;
    return first;
  }

  /// One ring for each interface that the members of the first host reach, as NCCL lays them.
  int channels(std::span<const int> own) const {
    const int host = platform_.host_of(own.front());
    if (platform_.host_of(own.back()) == host) return 1;
    int inside = 0;
    while (inside < static_cast<int>(own.size()) && platform_.host_of(own[static_cast<std::size_t>(inside)]) == host)
      ++inside;
    return std::clamp(platform_.nics_of(host), 1, inside);
  }

  const flow::Platform& platform_;
  const Layout& l_;
  const WayOptions& options_;
  std::vector<double> capacity_;
  std::vector<int> members_;
};

/// Leaves out links inside hosts that a single kind passes.
void drop_unshared(Ways& ways) {
  std::vector<std::uint16_t> kinds(ways.links, 0);
  for (std::size_t k = 0; k < ways.kinds.size(); ++k) {
    for (const Load& load : ways.kinds[k].loads)
      kinds[load.link] = static_cast<std::uint16_t>(kinds[load.link] | (1u << k));
  }
  std::vector<char> drop(ways.links, 0);
  for (std::uint32_t link = 0; link < ways.links; ++link) {
    const bool one = (kinds[link] & (kinds[link] - 1)) == 0;
    drop[link] = kinds[link] != 0 && one && inside_host(ways.platform->class_of(link)) ? 1 : 0;
  }
  for (WayKind& kind : ways.kinds) {
    if (kind.begin.empty()) continue;
    std::size_t kept = 0;
    std::size_t next = 0;
    for (std::size_t i = 0; i + 1 < kind.begin.size(); ++i) {
      const std::size_t end = kind.begin[i + 1];
      for (; next < end; ++next) {
        if (drop[kind.loads[next].link] == 0) kind.loads[kept++] = kind.loads[next];
      }
      kind.begin[i + 1] = static_cast<std::uint32_t>(kept);
    }
    kind.loads.resize(kept);
  }
}

}  // namespace

int Ways::interface_of(std::uint32_t link) const {
  if (platform == nullptr) return static_cast<int>(link / 2);
  if (!interface(platform->class_of(link))) return -1;
  return platform->host_of_link(link);
}

bool Ways::in_fabric(std::uint32_t link) const {
  if (platform == nullptr) return false;
  const flow::LinkClass kind = platform->class_of(link);
  return !inside_host(kind) && !interface(kind);
}

Result<Ways> find_ways(const topology::Cluster& cluster, const Layout& layout, const std::array<bool, kWayKinds>& used,
                       const WayOptions& options) {
  Ways ways;
  flow::PlatformOptions make;
  make.spread = options.spread;
  make.nic_share = options.nic_share;
  TRY_INTO(flow::Platform platform, flow::Platform::make(cluster, make));
  if (platform.gpus() < layout.ranks()) {
    return fail("the step has " + std::to_string(layout.ranks()) + " ranks, the cluster " +
                std::to_string(platform.gpus()) + " accelerators");
  }
  ways.links = platform.links();
  ways.gpus_per_host = layout.gpus_per_host;
  ways.collides = options.spread != flow::Spread::kSpray;
  Finder finder(platform, layout, options);
  for (int k = 0; k < kWayKinds; ++k) {
    const auto at = static_cast<std::size_t>(k);
    if (!used[at]) continue;
    if (k >= kMeetCount) {
      TRY_INTO([[maybe_unused]] const bool found, finder.sends(k == kWaySendForward, ways.kinds[at]));
    } else if (static_cast<Meet>(k) != Meet::kWorld && static_cast<Meet>(k) != Meet::kNobody) {
      TRY_INTO([[maybe_unused]] const bool found, finder.groups(static_cast<Meet>(k), ways.kinds[at]));
    }
  }
  ways.platform = std::make_shared<const flow::Platform>(std::move(platform));
  drop_unshared(ways);
  return ways;
}

Ways interfaces_only(const Layout& layout, double bytes_per_s) {
  Ways ways;
  ways.links = static_cast<std::uint32_t>(2 * layout.hosts());
  ways.gpus_per_host = layout.gpus_per_host;
  const int n = layout.ranks();
  const auto hop = [&](int from, int to, WayKind& kind) {
    const int a = layout.host_of(from);
    const int b = layout.host_of(to);
    if (a == b) return;
    kind.loads.push_back({static_cast<std::uint32_t>(2 * a), 1 / bytes_per_s});
    kind.loads.push_back({static_cast<std::uint32_t>(2 * b + 1), 1 / bytes_per_s});
  };
  for (const Meet meet : {Meet::kTensor, Meet::kContext, Meet::kExpert, Meet::kData, Meet::kShard, Meet::kReplicate}) {
    std::vector<std::vector<int>> groups(static_cast<std::size_t>(n));
    for (int r = 0; r < n; ++r) groups[static_cast<std::size_t>(layout.group_of(meet, r))].push_back(r);
    WayKind& kind = ways.kinds[static_cast<std::size_t>(meet)];
    kind.begin.assign(1, 0);
    for (const std::vector<int>& group : groups) {
      const std::size_t begin = kind.loads.size();
      for (std::size_t i = 0; i < group.size() && group.size() > 1; ++i) hop(group[i], group[(i + 1) % group.size()], kind);
      merge(kind.loads, begin);
      kind.begin.push_back(static_cast<std::uint32_t>(kind.loads.size()));
    }
  }
  for (const int k : {kWaySendForward, kWaySendBackward}) {
    WayKind& kind = ways.kinds[static_cast<std::size_t>(k)];
    kind.begin.assign(1, 0);
    for (int r = 0; r < n && layout.pipeline > 1; ++r) {
      const int by = k == kWaySendForward ? layout.stage_ranks() : n - layout.stage_ranks();
      hop(r, (r + by) % n, kind);
      kind.begin.push_back(static_cast<std::uint32_t>(kind.loads.size()));
    }
  }
  return ways;
}

}  // namespace chokepoint::engine
