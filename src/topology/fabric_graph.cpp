// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/topology/fabric_graph.hpp>

#include <algorithm>
#include <map>
#include <set>

namespace chokepoint::topology {

namespace {

struct Neighbour {
  int node;
  int link;
};

/// Links by node, as one array with offsets: two passes, no allocation per node.
class Adjacency {
 public:
  explicit Adjacency(const FabricGraph& graph) : offset_(graph.nodes.size() + 1, 0), items_(graph.links.size() * 2) {
    for (const FabricLink& link : graph.links) {
      ++offset_[static_cast<std::size_t>(link.a) + 1];
      ++offset_[static_cast<std::size_t>(link.b) + 1];
    }
    for (std::size_t i = 1; i < offset_.size(); ++i) offset_[i] += offset_[i - 1];
    std::vector<std::size_t> next(offset_.begin(), offset_.end() - 1);
    for (std::size_t i = 0; i < graph.links.size(); ++i) {
      const FabricLink& link = graph.links[i];
      items_[next[static_cast<std::size_t>(link.a)]++] = {link.b, static_cast<int>(i)};
      items_[next[static_cast<std::size_t>(link.b)]++] = {link.a, static_cast<int>(i)};
    }
  }
  const Neighbour* begin(int node) const { return items_.data() + offset_[static_cast<std::size_t>(node)]; }
  const Neighbour* end(int node) const { return items_.data() + offset_[static_cast<std::size_t>(node) + 1]; }

 private:
  std::vector<std::size_t> offset_;
  std::vector<Neighbour> items_;
};

/// Distance of every node from the sources; -1 out of reach. Adapters end a way: they never forward.
std::vector<int> distances(const FabricGraph& graph, const Adjacency& near, const std::vector<int>& sources) {
  std::vector<int> distance(graph.nodes.size(), -1);
  std::vector<int> queue = sources;
  for (const int source : sources) distance[static_cast<std::size_t>(source)] = 0;
  for (std::size_t head = 0; head < queue.size(); ++head) {
    const int at = queue[head];
    const bool source = distance[static_cast<std::size_t>(at)] == 0;
    if (!source && !graph.nodes[static_cast<std::size_t>(at)].is_switch) continue;
    for (const Neighbour* next = near.begin(at); next != near.end(at); ++next) {
      if (distance[static_cast<std::size_t>(next->node)] >= 0) continue;
      distance[static_cast<std::size_t>(next->node)] = distance[static_cast<std::size_t>(at)] + 1;
      queue.push_back(next->node);
    }
  }
  return distance;
}

void find_components(const FabricGraph& graph, const Adjacency& near, FabricShape& shape) {
  shape.component.assign(graph.nodes.size(), -1);
  for (std::size_t start = 0; start < graph.nodes.size(); ++start) {
    if (shape.component[start] >= 0) continue;
    std::vector<int> queue{static_cast<int>(start)};
    shape.component[start] = shape.components;
    for (std::size_t head = 0; head < queue.size(); ++head) {
      for (const Neighbour* next = near.begin(queue[head]); next != near.end(queue[head]); ++next) {
        int& component = shape.component[static_cast<std::size_t>(next->node)];
        if (component >= 0) continue;
        component = shape.components;
        queue.push_back(next->node);
      }
    }
    ++shape.components;
  }
}

LeafShape leaf_of(const FabricGraph& graph, const Adjacency& near, const FabricShape& shape, int node) {
  LeafShape leaf;
  leaf.node = node;
  std::set<std::string> hosts;
  for (const Neighbour* next = near.begin(node); next != near.end(node); ++next) {
    const FabricNode& other = graph.nodes[static_cast<std::size_t>(next->node)];
    const double rate = graph.links[static_cast<std::size_t>(next->link)].bytes_per_s;
    if (!other.is_switch) {
      if (other.in_network) continue;
      ++leaf.adapters;
      leaf.down_bytes_per_s += rate;
      hosts.insert(other.host.empty() ? other.id : other.host);
    } else if (shape.level[static_cast<std::size_t>(next->node)] > 1 || shape.level[static_cast<std::size_t>(next->node)] < 0 || next->node != node) {
      ++leaf.uplinks;
      leaf.up_bytes_per_s += rate;
      leaf.peers.push_back(next->node);
    }
  }
  std::sort(leaf.peers.begin(), leaf.peers.end());
  leaf.hosts = static_cast<int>(hosts.size());
  return leaf;
}

/// Adapters of a host, in id order, on different leaves, and each leaf serves the same position for all hosts.
bool has_rails(const FabricGraph& graph, const Adjacency& near) {
  std::map<std::string, std::vector<std::pair<std::string, int>>> by_host;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const FabricNode& node = graph.nodes[i];
    if (node.is_switch || node.in_network || node.host.empty()) continue;
    for (const Neighbour* next = near.begin(static_cast<int>(i)); next != near.end(static_cast<int>(i)); ++next) {
      by_host[node.host].emplace_back(node.name, next->node);
    }
  }
  std::map<int, std::set<std::size_t>> positions;
  std::size_t several = 0;
  for (auto& entry : by_host) {
    std::sort(entry.second.begin(), entry.second.end());
    if (entry.second.size() > 1) ++several;
    for (std::size_t i = 0; i < entry.second.size(); ++i) positions[entry.second[i].second].insert(i);
  }
  const auto single = [](const auto& entry) { return entry.second.size() == 1; };
  return several > 1 && positions.size() > 1 && std::all_of(positions.begin(), positions.end(), single);
}

}  // namespace

double LeafShape::oversubscription() const {
  if (uplinks == 0) return 0;
  if (down_bytes_per_s > 0 && up_bytes_per_s > 0) return down_bytes_per_s / up_bytes_per_s;
  return static_cast<double>(adapters) / uplinks;
}

FabricShape shape_of(const FabricGraph& graph) {
  FabricShape shape;
  const Adjacency near(graph);
  std::vector<int> adapters;
  std::set<std::string> hosts;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const FabricNode& node = graph.nodes[i];
    if (node.is_switch) {
      ++shape.switches;
    } else if (!node.in_network) {
      adapters.push_back(static_cast<int>(i));
      hosts.insert(node.host.empty() ? node.id : node.host);
    }
  }
  shape.adapters = static_cast<int>(adapters.size());
  shape.hosts = static_cast<int>(hosts.size());
  shape.level = distances(graph, near, adapters);
  find_components(graph, near, shape);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!graph.nodes[i].is_switch) continue;
    shape.levels = std::max(shape.levels, shape.level[i]);
    if (shape.level[i] != 1) continue;
    shape.leaves.push_back(leaf_of(graph, near, shape, static_cast<int>(i)));
    shape.oversubscription = std::max(shape.oversubscription, shape.leaves.back().oversubscription());
    shape.hosts_per_leaf = std::max(shape.hosts_per_leaf, shape.leaves.back().hosts);
  }
  shape.rails = has_rails(graph, near);
  return shape;
}

FabricRoutes routes_of(const FabricGraph& graph, const FabricShape& shape) {
  FabricRoutes routes;
  const Adjacency near(graph);
  constexpr int kManyPaths = 1 << 29;  // the sum of two still fits
  constexpr std::size_t kMaxLeaves = 1 << 13;  // all pairs of leaves; beyond this nothing is counted
  if (shape.leaves.size() > kMaxLeaves) return routes;
  std::vector<int> distance(graph.nodes.size());
  std::vector<int> paths(graph.nodes.size());
  std::vector<int> queue;
  for (const LeafShape& from : shape.leaves) {
    std::fill(distance.begin(), distance.end(), -1);
    std::fill(paths.begin(), paths.end(), 0);
    queue.assign(1, from.node);
    distance[static_cast<std::size_t>(from.node)] = 0;
    paths[static_cast<std::size_t>(from.node)] = 1;
    for (std::size_t head = 0; head < queue.size(); ++head) {
      const auto at = static_cast<std::size_t>(queue[head]);
      for (const Neighbour* next = near.begin(queue[head]); next != near.end(queue[head]); ++next) {
        const auto to = static_cast<std::size_t>(next->node);
        if (!graph.nodes[to].is_switch) continue;
        if (distance[to] < 0) {
          distance[to] = distance[at] + 1;
          queue.push_back(next->node);
        }
        if (distance[to] == distance[at] + 1) paths[to] = std::min(kManyPaths, paths[to] + paths[at]);
      }
    }
    for (const LeafShape& to : shape.leaves) {
      const int hops = distance[static_cast<std::size_t>(to.node)];
      const double pairs = &from == &to ? 0.5 * from.adapters * (from.adapters - 1) : 0.5 * from.adapters * to.adapters;
      if (hops < 0) {
        routes.unreachable_pairs += pairs;
        continue;
      }
      if (routes.pairs_by_switches.size() <= static_cast<std::size_t>(hops) + 1) routes.pairs_by_switches.resize(static_cast<std::size_t>(hops) + 2);
      routes.pairs_by_switches[static_cast<std::size_t>(hops) + 1] += pairs;
      if (&from == &to) continue;
      const int ways = paths[static_cast<std::size_t>(to.node)];
      routes.fewest_paths = routes.fewest_paths == 0 ? ways : std::min(routes.fewest_paths, ways);
      routes.most_paths = std::max(routes.most_paths, ways);
    }
  }
  return routes;
}

std::vector<int> shortest_way(const FabricGraph& graph, int from, int to) {
  const Adjacency near(graph);
  const std::vector<int> distance = distances(graph, near, {to});
  if (distance[static_cast<std::size_t>(from)] < 0) return {};
  std::vector<int> way{from};
  while (way.back() != to) {
    int best = -1;
    for (const Neighbour* next = near.begin(way.back()); next != near.end(way.back()); ++next) {
      const int step = distance[static_cast<std::size_t>(next->node)];
      if (step == distance[static_cast<std::size_t>(way.back())] - 1 && (best < 0 || next->node < best)) best = next->node;
    }
    if (best < 0) return {};
    way.push_back(best);
  }
  return way;
}

Fabric fabric_of(const FabricGraph& graph, const FabricShape& shape) {
  Fabric fabric;
  fabric.kind = shape.switches == 0 ? FabricKind::kNone : shape.rails ? FabricKind::kRailOptimized : shape.levels > 1 || shape.leaves.size() > 1 ? FabricKind::kFatTree : FabricKind::kSingleSwitch;
  fabric.hosts_per_leaf = shape.leaves.size() > 1 ? shape.hosts_per_leaf : 0;
  fabric.oversubscription = std::max(1.0, shape.oversubscription);
  fabric.origin = "discovered: " + std::to_string(graph.links.size()) + " cables";
  return fabric;
}

}  // namespace chokepoint::topology
