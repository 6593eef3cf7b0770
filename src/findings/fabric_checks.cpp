// SPDX-License-Identifier: Apache-2.0
// The fabric between the hosts: cables that run below their like, leaves without all uplinks, rails, islands; and the
// single ports of ibstat and perfquery.
#include "collector.hpp"

#include <chokepoint/base/text.hpp>

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <set>

namespace chokepoint::findings {

using namespace topology;
using namespace wiring;

namespace {

constexpr std::size_t kMaxListed = 8;

/// Most frequent key; ties go to the larger.
template <class Key>
Key most_common(const std::map<Key, int>& counts) {
  Key best{};
  int most = 0;
  for (const auto& [key, count] : counts) {
    if (count >= most) {
      most = count;
      best = key;
    }
  }
  return best;
}

std::string fabric_file(const Collector& out) {
  for (const Document& document : out.assembly().documents) {
    if (std::holds_alternative<FabricListing>(document.content)) return document.file;
  }
  return {};
}

std::string node_name(const FabricGraph& graph, int node) {
  const FabricNode& found = graph.nodes[static_cast<std::size_t>(node)];
  return found.name.empty() ? found.id : found.name;
}

/// A cable is like others of its place: adapter to switch, or switch to switch of the same levels.
void check_rates(Collector& out, const FabricGraph& graph, const FabricShape& shape, const std::string& file) {
  std::map<std::pair<int, int>, std::map<double, int>> rates;
  const auto place = [&](const FabricLink& link) {
    const int a = shape.level[static_cast<std::size_t>(link.a)];
    const int b = shape.level[static_cast<std::size_t>(link.b)];
    return std::make_pair(std::min(a, b), std::max(a, b));
  };
  for (const FabricLink& link : graph.links) {
    const bool in_network = graph.nodes[static_cast<std::size_t>(link.a)].in_network || graph.nodes[static_cast<std::size_t>(link.b)].in_network;
    if (link.bytes_per_s > 0 && !in_network) ++rates[place(link)][link.bytes_per_s];
  }
  std::vector<SourcePos> evidence;
  std::string words;
  int slow = 0;
  double worst = 1;
  bool at_host = false;
  std::string where;
  for (const FabricLink& link : graph.links) {
    if (link.bytes_per_s <= 0) continue;
    const auto like = rates.find(place(link));
    if (like == rates.end()) continue;
    const double usual = most_common(like->second);
    int total = 0;
    for (const auto& [rate, count] : like->second) total += count;
    // Mixed generations are a purchase: only the odd few among many equal cables, or what both ends could do better.
    const bool odd = link.bytes_per_s < usual * 0.99 && like->second.at(link.bytes_per_s) * 4 <= total;
    const bool below_ends = link.possible_bytes_per_s > link.bytes_per_s * 1.01;
    if (!odd && !below_ends) continue;
    ++slow;
    const double share = link.bytes_per_s / std::max(usual, link.possible_bytes_per_s);
    if (share < worst || where.empty()) {
      worst = std::min(worst, share);
      at_host = place(link).first == 0;
      where = node_name(graph, at_host && !graph.nodes[static_cast<std::size_t>(link.b)].is_switch ? link.b : link.a);
    }
    if (evidence.size() >= kMaxListed) continue;
    evidence.push_back({file, link.line, 0});
    words += fmt::format("{}{} port {} - {} port {} at {}x{}", words.empty() ? "" : "; ", node_name(graph, link.a), link.a_port, node_name(graph, link.b), link.b_port, link.width, link.rate);
  }
  if (slow > 0) out.add("fabric-link-degraded", where, fmt::format("{} of {} cables below their like: {}", slow, graph.links.size(), words), std::move(evidence)).effect = {at_host ? EffectKind::kNics : EffectKind::kUplinks, worst, {}};
}

void check_uplinks(Collector& out, const FabricGraph& graph, const FabricShape& shape, const std::string& file) {
  if (shape.leaves.size() < 2) return;
  std::map<int, int> counts;
  for (const LeafShape& leaf : shape.leaves) ++counts[leaf.uplinks];
  const int usual = most_common(counts);
  std::vector<std::string> fewer;
  int missing = 0;
  int worst = usual;
  for (const LeafShape& leaf : shape.leaves) {
    if (leaf.uplinks >= usual || counts[leaf.uplinks] * 4 > static_cast<int>(shape.leaves.size())) continue;
    missing += usual - leaf.uplinks;
    worst = std::min(worst, leaf.uplinks);
    if (fewer.size() < kMaxListed) fewer.push_back(fmt::format("{} {}", node_name(graph, leaf.node), leaf.uplinks));
  }
  if (missing == 0 || counts[usual] < 2) return;
  out.add("uplinks-missing", fewer.front().substr(0, fewer.front().rfind(' ')), fmt::format("{} uplinks missing: most leaves have {}, {}", missing, usual, fmt::join(fewer, ", ")), {{file, 0, 0}}).effect =
      {EffectKind::kUplinks, usual > 0 ? std::max(0.05, static_cast<double>(worst) / usual) : 1, {}};
}

void check_oversubscription(Collector& out, const FabricGraph& graph, const FabricShape& shape, const std::string& file) {
  constexpr double kNoticeable = 1.05;
  if (shape.levels < 2 || shape.oversubscription < kNoticeable) return;
  const LeafShape* worst = nullptr;
  for (const LeafShape& leaf : shape.leaves) {
    if (worst == nullptr || leaf.oversubscription() > worst->oversubscription()) worst = &leaf;
  }
  // Discovery sees what is plugged in: half-empty leaves look better than they are, never worse.
  out.add(shape.oversubscription >= 2 ? Severity::kWarning : Severity::kInfo, "fabric-oversubscribed", node_name(graph, worst->node),
          fmt::format("{:.3g}:1 at {}: {} adapters below, {} cables up", worst->oversubscription(), node_name(graph, worst->node), worst->adapters, worst->uplinks), {{file, 0, 0}})
      .effect = {EffectKind::kUplinks, 1 / worst->oversubscription(), {}};
}

void check_islands(Collector& out, const FabricGraph& graph, const FabricShape& shape, const std::string& file) {
  std::map<int, std::set<std::string>> hosts;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const FabricNode& node = graph.nodes[i];
    if (!node.is_switch && !node.in_network) hosts[shape.component[i]].insert(node.host.empty() ? node.id : node.host);
  }
  if (hosts.size() < 2) return;
  // Planes: every host is on each of them.
  const bool planes = std::all_of(hosts.begin(), hosts.end(), [&](const auto& entry) { return entry.second == hosts.begin()->second; });
  if (planes) return;
  std::string words;
  for (const auto& [component, names] : hosts) {
    if (words.size() < 200) words += fmt::format("{}{}", words.empty() ? "" : ", ", names.size());
  }
  out.add("fabric-islands", file, fmt::format("{} islands of hosts: {}", hosts.size(), words), {{file, 0, 0}});
}

/// Adapters of a host in name order: position k of most hosts goes to the same leaf within one group of hosts.
void check_rails(Collector& out, const FabricGraph& graph, const std::string& file) {
  std::map<std::string, std::vector<std::pair<std::string, int>>> by_host;
  for (const FabricLink& link : graph.links) {
    for (const auto& [adapter, leaf] : {std::make_pair(link.a, link.b), std::make_pair(link.b, link.a)}) {
      const FabricNode& node = graph.nodes[static_cast<std::size_t>(adapter)];
      if (node.is_switch || node.in_network || node.host.empty()) continue;
      by_host[node.host].emplace_back(node.name, leaf);
    }
  }
  // Hosts with the same set of leaves form a group (a rail pod); the usual order of leaves is the group's wiring.
  std::map<std::vector<int>, std::map<std::vector<int>, std::vector<std::string>>> groups;
  for (auto& [host, cards] : by_host) {
    if (cards.size() < 2) continue;
    std::sort(cards.begin(), cards.end());
    std::vector<int> order;
    for (const auto& card : cards) order.push_back(card.second);
    std::vector<int> set = order;
    std::sort(set.begin(), set.end());
    if (std::adjacent_find(set.begin(), set.end()) == set.end()) groups[set][order].push_back(host);
  }
  for (const auto& [set, orders] : groups) {
    std::size_t most = 0;
    std::size_t total = 0;
    for (const auto& [order, hosts] : orders) {
      most = std::max(most, hosts.size());
      total += hosts.size();
    }
    if (orders.size() < 2 || most * 4 < total * 3) continue;
    for (const auto& [order, hosts] : orders) {
      if (hosts.size() == most) continue;
      out.add("rail-miscabled", hosts.front(), fmt::format("{} of {} hosts are cabled to the same {} leaves in another order than the rest: {}", hosts.size(), total, set.size(), short_list(hosts).substr(0, 200)), {{file, 0, 0}});
    }
  }
  // A host with two adapters on one leaf where the others have one on each.
  std::map<std::size_t, int> distinct;
  std::map<std::string, std::size_t> distinct_of;
  for (const auto& [host, cards] : by_host) {
    std::set<int> leaves;
    for (const auto& card : cards) leaves.insert(card.second);
    if (cards.size() < 2) continue;
    ++distinct[leaves.size()];
    distinct_of[host] = leaves.size();
  }
  if (distinct.size() < 2) return;
  const std::size_t usual = most_common(distinct);
  std::vector<std::string> odd;
  for (const auto& [host, count] : distinct_of) {
    if (count < usual) odd.push_back(host);
  }
  if (odd.empty() || odd.size() * 4 > distinct_of.size()) return;
  out.add("rail-miscabled", odd.front(), fmt::format("{} hosts have two adapters on one leaf, the others one on each of {}: {}", odd.size(), usual, short_list(odd).substr(0, 200)), {{file, 0, 0}});
}

void check_slurm(Collector& out, const SlurmTopology& found, const std::string& file) {
  const FabricGraph graph = graph_of(found);
  const FabricShape shape = shape_of(graph);
  if (shape.components > 1 && !found.switches.empty() && found.form == "topology.conf") {
    out.add("no-common-root", file, fmt::format("{} trees without a common root", shape.components), {{file, 0, 0}});
  }
}

void check_counters(Collector& out, const CounterFile& counters, const std::string& file) {
  struct Counter {
    std::string_view name;
    Severity severity;
    std::string_view meaning;
  };
  static constexpr std::array<Counter, 9> kCounters{{{"SymbolErrorCounter", Severity::kWarning, "symbol errors: a bad cable or transceiver"},
                                                     {"SymbolErrors", Severity::kWarning, "symbol errors: a bad cable or transceiver"},
                                                     {"LinkErrorRecoveryCounter", Severity::kWarning, "link error recoveries"},
                                                     {"LinkDownedCounter", Severity::kInfo, "times the link went down"},
                                                     {"PortRcvErrors", Severity::kWarning, "packets received with errors"},
                                                     {"LocalLinkIntegrityErrors", Severity::kWarning, "local link integrity errors"},
                                                     {"ExcessiveBufferOverrunErrors", Severity::kWarning, "buffer overruns"},
                                                     {"PortXmitDiscards", Severity::kWarning, "packets discarded because the port was down or congested"},
                                                     {"VL15Dropped", Severity::kInfo, "management packets dropped"}}};
  for (const PortCounters& port : counters.ports) {
    std::string words;
    std::vector<SourcePos> evidence;
    Severity severity = Severity::kInfo;
    for (const Counter& counter : kCounters) {
      const auto value = port.values.find(std::string(counter.name));
      if (value == port.values.end() || value->second <= 0) continue;
      words += fmt::format("{}{} = {:.0f} ({})", words.empty() ? "" : ", ", counter.name, value->second, counter.meaning);
      severity = std::min(severity, counter.severity);
      evidence.push_back({file, port.lines.at(value->first), 0});
    }
    if (!words.empty()) out.add(severity, "port-errors", port.title.empty() ? file : port.title, std::move(words), std::move(evidence));
  }
}

void check_ibstat(Collector& out, const IbPorts& ports, const std::string& file) {
  std::map<std::string, double> best;
  for (const IbPort& port : ports.ports) {
    if (port.state == "Active") best[port.type] = std::max(best[port.type], port.bytes_per_s);
  }
  int active = 0;
  for (const IbPort& port : ports.ports) active += port.state == "Active" ? 1 : 0;
  for (const IbPort& port : ports.ports) {
    const SourcePos at{file, port.line, 0};
    // An unused port of a machine whose other ports of that type all work is the fault; a lone dark card is a spare.
    if (port.state == "Active") {
      if (port.bytes_per_s < best[port.type] * 0.99) {
        out.add("port-slow", port.adapter, fmt::format("{} at {:g} Gb/s, others of its type at {:g}", port.adapter, port.bytes_per_s * 8 / 1e9, best[port.type] * 8 / 1e9), {at}).effect = {EffectKind::kNics, port.bytes_per_s / best[port.type], {}};
      }
    } else if (best.count(port.type) != 0) {
      out.add("port-down", port.adapter, fmt::format("{} port {} is {} ({}), {} others are active", port.adapter, port.port, port.state, port.physical, active), {at}).effect =
          {EffectKind::kNics, static_cast<double>(active) / (active + 1), {}};
    } else if (active == 0 && !port.state.empty()) {
      out.add("port-down", port.adapter, fmt::format("{} port {} is {} ({})", port.adapter, port.port, port.state, port.physical), {at});
    }
  }
}

}  // namespace

void check_fabric(Collector& out) {
  for (const Document& document : out.assembly().documents) {
    if (const auto* slurm = std::get_if<SlurmTopology>(&document.content)) check_slurm(out, *slurm, document.file);
  }
  const std::string file = fabric_file(out);
  if (file.empty() || !out.assembly().fabric) return;
  const FabricGraph& graph = *out.assembly().fabric;
  const FabricShape& shape = out.assembly().shape;
  check_rates(out, graph, shape, file);
  check_uplinks(out, graph, shape, file);
  check_rails(out, graph, file);
  check_islands(out, graph, shape, file);
  check_oversubscription(out, graph, shape, file);
}

void check_ports(Collector& out) {
  for (const Document& document : out.assembly().documents) {
    if (const auto* counters = std::get_if<CounterFile>(&document.content)) check_counters(out, *counters, document.file);
    if (const auto* ports = std::get_if<IbPorts>(&document.content)) check_ibstat(out, *ports, document.file);
  }
}

}  // namespace chokepoint::findings
