// SPDX-License-Identifier: Apache-2.0
#include "graph_fabric.hpp"

#include <algorithm>

#include "pick.hpp"

namespace chokepoint::flow {

namespace {
constexpr std::uint16_t kFar = 0xffff;
/// Distances are kept for so many destinations (one 16-bit number for each node of the fabric), then forgotten.
constexpr std::size_t kRemembered = 4096;
}  // namespace

GraphFabric::GraphFabric(const topology::FabricGraph& graph, const PlatformOptions& options)
    : spread_(options.spread), share_(options.fabric_share) {
  std::map<std::string, std::size_t> by_host;
  const auto count = static_cast<int>(graph.nodes.size());
  for (int i = 0; i < count; ++i) {
    const topology::FabricNode& node = graph.nodes[static_cast<std::size_t>(i)];
    nodes_.push_back({node.name.empty() ? node.id : node.name, node.is_switch});
    if (node.is_switch || node.in_network) continue;
    const std::string host = node.host.empty() ? node.id : node.host;
    const auto [entry, fresh] = by_host.try_emplace(host, hosts_.size());
    if (fresh) hosts_.push_back({host, {}});
    hosts_[entry->second].nodes.push_back(i);
  }
  for (Adapters& host : hosts_) {
    std::stable_sort(host.nodes.begin(), host.nodes.end(),
                     [this](int a, int b) { return name_of_node(a) < name_of_node(b); });
  }
  offset_.assign(nodes_.size() + 1, 0);
  for (const topology::FabricLink& link : graph.links) {
    if (link.a < 0 || link.b < 0 || link.a >= count || link.b >= count || link.a == link.b) continue;
    cables_.push_back({link.a, link.b, link.bytes_per_s > 0 ? link.bytes_per_s : 0});
    ++offset_[static_cast<std::size_t>(link.a) + 1];
    ++offset_[static_cast<std::size_t>(link.b) + 1];
  }
  for (std::size_t i = 1; i < offset_.size(); ++i) offset_[i] += offset_[i - 1];
  hops_.resize(offset_.back());
  std::vector<std::size_t> next(offset_.begin(), offset_.end() - 1);
  for (std::size_t i = 0; i < cables_.size(); ++i) {
    const auto link = static_cast<std::uint32_t>(2 * i);
    hops_[next[static_cast<std::size_t>(cables_[i].a)]++] = {cables_[i].b, link};
    hops_[next[static_cast<std::size_t>(cables_[i].b)]++] = {cables_[i].a, link + 1};
  }
}

std::size_t GraphFabric::cables_without_rate() const {
  return static_cast<std::size_t>(
      std::count_if(cables_.begin(), cables_.end(), [](const Cable& cable) { return cable.bytes_per_s == 0; }));
}

void GraphFabric::append_capacities(std::vector<double>& capacities, double line_bytes_per_s) const {
  for (const Cable& cable : cables_) {
    const double rate = (cable.bytes_per_s > 0 ? cable.bytes_per_s : line_bytes_per_s) * share_;
    capacities.insert(capacities.end(), 2, rate);
  }
}

std::string GraphFabric::name_of(std::uint32_t link) const {
  const Cable& cable = cables_[link / 2];
  const bool forth = link % 2 == 0;
  return name_of_node(forth ? cable.a : cable.b) + " -> " + name_of_node(forth ? cable.b : cable.a);
}

/// Cables from every node to this one, breadth first from the end; only switches pass on.
const std::vector<std::uint16_t>& GraphFabric::distances_to(int node) const {
  const auto known = distances_.find(node);
  if (known != distances_.end()) return known->second;
  if (distances_.size() >= kRemembered) distances_.clear();
  std::vector<std::uint16_t>& distance = distances_[node];
  distance.assign(nodes_.size(), kFar);
  distance[static_cast<std::size_t>(node)] = 0;
  std::vector<int> queue{node};
  for (std::size_t front = 0; front < queue.size(); ++front) {
    const int at = queue[front];
    const std::uint16_t here = distance[static_cast<std::size_t>(at)];
    if ((at != node && !nodes_[static_cast<std::size_t>(at)].forwards) || here + 1 >= kFar) continue;
    for (const Hop& hop : hops(at)) {
      std::uint16_t& there = distance[static_cast<std::size_t>(hop.node)];
      if (there != kFar) continue;
      there = static_cast<std::uint16_t>(here + 1);
      queue.push_back(hop.node);
    }
  }
  return distance;
}

/// Hops that are one nearer to the end. Adapters other than the end are never nearer than the switch they hang on.
void GraphFabric::nearer(int at, const std::vector<std::uint16_t>& distance, std::vector<Hop>& found) const {
  found.clear();
  for (const Hop& hop : hops(at)) {
    const std::uint16_t there = distance[static_cast<std::size_t>(hop.node)];
    if (there + 1 != distance[static_cast<std::size_t>(at)]) continue;
    if (there > 0 && !nodes_[static_cast<std::size_t>(hop.node)].forwards) continue;
    found.push_back(hop);
  }
}

bool GraphFabric::route(int from, int to, const RouteChoice& choice, std::uint32_t first,
                        std::vector<Use>& uses) const {
  if (from == to) return true;
  const std::vector<std::uint16_t>& distance = distances_to(to);
  if (distance[static_cast<std::size_t>(from)] == kFar) return false;
  if (spread_ == Spread::kSpray) {
    spray(from, to, distance, first, uses);
    return true;
  }
  const Fluid* fluid = spread_ == Spread::kAdaptive ? choice.fluid : nullptr;
  std::uint64_t hash = choice.hash;
  std::vector<Hop> ways;
  for (int at = from; at != to;) {
    nearer(at, distance, ways);
    hash = mixed(hash + 1);
    const int way = pick(static_cast<int>(ways.size()), hash, fluid, [&](int k) {
      const std::uint32_t link = first + ways[static_cast<std::size_t>(k)].link;
      return std::pair(link, link);
    });
    uses.push_back({first + ways[static_cast<std::size_t>(way)].link, 1});
    at = ways[static_cast<std::size_t>(way)].node;
  }
  return true;
}

/// Every switch splits what reaches it evenly over its nearer hops.
void GraphFabric::spray(int from, int to, const std::vector<std::uint16_t>& distance, std::uint32_t first,
                        std::vector<Use>& uses) const {
  std::vector<std::pair<int, double>> level{{from, 1.0}};
  std::vector<std::pair<int, double>> below;
  std::vector<Hop> ways;
  while (level.front().first != to) {
    below.clear();
    for (const auto& [node, part] : level) {
      nearer(node, distance, ways);
      for (const Hop& hop : ways) {
        const double share = part / static_cast<double>(ways.size());
        uses.push_back({first + hop.link, share});
        below.emplace_back(hop.node, share);
      }
    }
    std::sort(below.begin(), below.end());
    level.clear();
    for (const auto& [node, part] : below) {
      if (!level.empty() && level.back().first == node)
        level.back().second += part;
      else
        level.emplace_back(node, part);
    }
  }
}

}  // namespace chokepoint::flow
