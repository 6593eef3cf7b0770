// SPDX-License-Identifier: Apache-2.0
#pragma once
// A fabric as a listing shows it: every cable is two links, ways are the shortest ones. Adapters never forward.
#include <chokepoint/flow/platform.hpp>
#include <chokepoint/topology/fabric_graph.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace chokepoint::flow {

class GraphFabric {
 public:
  GraphFabric(const topology::FabricGraph& graph, const PlatformOptions& options);

  /// Adapters of one host, by name.
  struct Adapters {
    std::string host;
    std::vector<int> nodes;
  };
  const std::vector<Adapters>& hosts() const { return hosts_; }
  std::uint32_t links() const { return static_cast<std::uint32_t>(2 * cables_.size()); }
  /// Cables without a rate get `line_bytes_per_s`.
  void append_capacities(std::vector<double>& capacities, double line_bytes_per_s) const;
  std::size_t cables_without_rate() const;
  std::string name_of(std::uint32_t link) const;
  const std::string& name_of_node(int node) const { return nodes_[static_cast<std::size_t>(node)].name; }
  /// Appends the links from adapter to adapter; false when there is no way.
  bool route(int from, int to, const RouteChoice& choice, std::uint32_t first, std::vector<Use>& uses) const;

 private:
  struct Node {
    std::string name;
    bool forwards = false;
  };
  struct Cable {
    int a;
    int b;
    double bytes_per_s;
  };
  struct Hop {
    int node;
    std::uint32_t link;  ///< towards `node`
  };
  std::span<const Hop> hops(int node) const {
    const auto at = static_cast<std::size_t>(node);
    return std::span<const Hop>(hops_).subspan(offset_[at], offset_[at + 1] - offset_[at]);
  }
  const std::vector<std::uint16_t>& distances_to(int node) const;
  void nearer(int at, const std::vector<std::uint16_t>& distance, std::vector<Hop>& found) const;
  void spray(int from, int to, const std::vector<std::uint16_t>& distance, std::uint32_t first,
             std::vector<Use>& uses) const;

  Spread spread_;
  double share_;
  std::vector<Node> nodes_;
  std::vector<Cable> cables_;
  std::vector<std::size_t> offset_;
  std::vector<Hop> hops_;
  std::vector<Adapters> hosts_;
  mutable std::map<int, std::vector<std::uint16_t>> distances_;  ///< by destination, found when first asked for
};

}  // namespace chokepoint::flow
