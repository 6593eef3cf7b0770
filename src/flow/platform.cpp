// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/flow/platform.hpp>

#include <algorithm>
#include <optional>

#include "graph_fabric.hpp"
#include "host_kind.hpp"
#include "pick.hpp"
#include "tree_fabric.hpp"

namespace chokepoint::flow {

namespace {
/// 2 GiB of capacities; 131,072 GPUs have about a million links.
constexpr double kMostLinks = 1 << 28;

LinkClass class_of_kind(topology::LinkKind kind) {
  switch (kind) {
    case topology::LinkKind::kNvLink:
    case topology::LinkKind::kXgmi:
      return LinkClass::kNvLink;
    case topology::LinkKind::kPcie:
      return LinkClass::kPcie;
    case topology::LinkKind::kMemory:
      return LinkClass::kMemory;
    case topology::LinkKind::kSocket:
      return LinkClass::kSocket;
  }
  return LinkClass::kPcie;
}

void append(const Way& way, std::uint32_t first, std::vector<Use>& uses) {
  for (const Use& use : way) uses.push_back({first + use.link, use.weight});
}

std::string host_words(const topology::Host& host, int index) {
  const std::string number = "host " + std::to_string(index);
  return host.name.empty() ? number : number + " ('" + host.name + "')";
}
}  // namespace

std::string_view name(LinkClass kind) {
  switch (kind) {
    case LinkClass::kNvLink:
      return "nvlink";
    case LinkClass::kPcie:
      return "pcie";
    case LinkClass::kMemory:
      return "memory";
    case LinkClass::kSocket:
      return "socket";
    case LinkClass::kNicOut:
      return "nic-out";
    case LinkClass::kNicIn:
      return "nic-in";
    case LinkClass::kHostOut:
      return "host-out";
    case LinkClass::kHostIn:
      return "host-in";
    case LinkClass::kLeafUp:
      return "leaf-up";
    case LinkClass::kLeafDown:
      return "leaf-down";
    case LinkClass::kSpineUp:
      return "spine-up";
    case LinkClass::kSpineDown:
      return "spine-down";
    case LinkClass::kCable:
      return "cable";
  }
  return "unknown";
}

struct Platform::State {
  PlatformOptions options;
  std::vector<HostKind> kinds;
  std::vector<Note> notes;
  bool joined = false;     ///< there is a fabric
  double host_egress = 0;  ///< measured; 0: not
  double fastest_line = 0;
  std::optional<TreeFabric> tree;
  std::optional<GraphFabric> graph;
  std::vector<int> graph_host;  ///< host of the listing by host
  int hosts = 0;
  int gpus = 0;
  std::uint32_t fabric_first = 0;  ///< the fabric's first link
  std::uint32_t links = 0;

  /// Where a host or GPU is found.
  struct Place {
    const HostKind* kind;
    int host;   ///< number in the cluster
    int local;  ///< of a GPU in its host
    std::uint32_t first_link;
  };
  const HostKind& kind_of_host(int host) const {
    const auto after = std::upper_bound(kinds.begin(), kinds.end(), host,
                                        [](int h, const HostKind& kind) { return h < kind.first_host; });
    return *(after - 1);
  }
  Place place(int gpu) const {
    auto kind =
        std::upper_bound(kinds.begin(), kinds.end(), gpu, [](int g, const HostKind& k) { return g < k.first_gpu; }) - 1;
    const int inside = gpu - kind->first_gpu;
    const int index = inside / kind->gpu_count();
    return {&*kind, kind->first_host + index, inside % kind->gpu_count(),
            kind->first_link + static_cast<std::uint32_t>(index) * kind->links_per_host()};
  }
  double share_of(topology::LinkKind kind) const {
    return class_of_kind(kind) == LinkClass::kNvLink ? options.nvlink_share : options.pcie_share;
  }

  Result<void> add_kinds(const topology::Cluster& cluster);
  void add_notes();
  Result<void> add_tree(const topology::Fabric& fabric);
  Result<void> add_graph(const topology::FabricGraph& listing);
  Result<void> match_hosts();
  bool same_domain(const Place& a, const Place& b) const;
  Result<void> between_hosts(const Place& a, const Place& b, const RouteChoice& choice, std::vector<Use>& uses) const;
  bool through_fabric(const Place& a, int from_nic, const Place& b, int to_nic, const RouteChoice& choice,
                      std::vector<Use>& uses) const;
};

Result<void> Platform::State::add_kinds(const topology::Cluster& cluster) {
  double wanted = 0;
  host_egress = cluster.fabric.node_measured_bytes_per_s.value_or(0);
  for (const topology::HostGroup& group : cluster.hosts) {
    if (group.count <= 0) continue;
    HostKind kind(group.host, group.count, host_egress > 0);
    if (kind.gpu_count() == 0)
      return fail("host '" + group.host.name + "' has no GPU, so nothing can be sent from or to it");
    wanted +=
        static_cast<double>(group.count) * std::max(1.0, static_cast<double>(kind.links_per_host()) + kind.gpu_count());
    if (wanted > kMostLinks) {
      return fail("the cluster has " + std::to_string(cluster.host_count()) +
                      " hosts or more links than can be simulated (at most " +
                      std::to_string(static_cast<long long>(kMostLinks)) + " links)",
                  {}, {"check the number of hosts"});
    }
    kind.first_host = hosts;
    kind.first_gpu = gpus;
    kind.first_link = links;
    hosts += group.count;
    gpus += group.count * kind.gpu_count();
    links += static_cast<std::uint32_t>(group.count) * kind.links_per_host();
    for (int nic = 0; nic < kind.nic_count(); ++nic)
      fastest_line = std::max(fastest_line, kind.nic(nic).line_bytes_per_s);
    kinds.push_back(std::move(kind));
  }
  if (kinds.empty()) return fail("the cluster has no hosts");
  fabric_first = links;
  add_notes();
  return {};
}

void Platform::State::add_notes() {
  for (const HostKind& kind : kinds) {
    const auto unknown = std::count_if(kind.host().links.begin(), kind.host().links.end(),
                                       [](const topology::Link& link) { return !(link.bandwidth.effective() > 0); });
    const std::string words = host_words(kind.host(), kind.first_host);
    if (unknown > 0)
      notes.push_back({words + ": the bandwidth of " + std::to_string(unknown) +
                           " links is not known; they are taken to hold nothing back",
                       {}});
    int lines = 0;
    for (int nic = 0; nic < kind.nic_count(); ++nic) lines += kind.nic(nic).line_bytes_per_s > 0 ? 0 : 1;
    if (lines > 0)
      notes.push_back({words + ": the line rate of " + std::to_string(lines) +
                           " NICs is not known; they are taken to hold nothing back",
                       {}});
  }
}

Result<void> Platform::State::add_tree(const topology::Fabric& fabric) {
  joined = fabric.kind != topology::FabricKind::kNone;
  if (!joined) return {};
  int nics = 0;
  for (const HostKind& kind : kinds) nics = std::max(nics, kind.nic_count());
  tree.emplace(fabric, options, hosts, nics);
  if (links + tree->links() > kMostLinks) return fail("the fabric has more links than can be simulated");
  for (const HostKind& kind : kinds) {
    for (int i = 0; i < kind.count; ++i) {
      for (int nic = 0; nic < kind.nic_count(); ++nic) {
        const double line = kind.nic(nic).line_bytes_per_s;
        tree->add_line(kind.first_host + i, nic, line > 0 ? line : kNever);
      }
    }
  }
  links += static_cast<std::uint32_t>(tree->links());
  return {};
}

Result<void> Platform::State::add_graph(const topology::FabricGraph& listing) {
  joined = true;
  graph.emplace(listing, options);
  if (links + static_cast<double>(graph->links()) > kMostLinks)
    return fail("the fabric has more links than can be simulated");
  links += graph->links();
  if (const std::size_t count = graph->cables_without_rate(); count > 0) {
    notes.push_back({"the listing gives no rate for " + std::to_string(count) +
                         " cables; they are taken to be as fast as the fastest NIC",
                     {}});
  }
  return match_hosts();
}

/// By name where every host of the cluster stands in the listing under its own name, else in order.
Result<void> Platform::State::match_hosts() {
  const std::vector<GraphFabric::Adapters>& found = graph->hosts();
  if (static_cast<int>(found.size()) < hosts) {
    return fail(
        "the fabric listing shows " + std::to_string(found.size()) + " hosts, the cluster has " + std::to_string(hosts),
        {}, {"give the listing of the whole fabric, or fewer hosts"});
  }
  std::map<std::string, int> by_name;
  for (std::size_t i = 0; i < found.size(); ++i) by_name.emplace(found[i].host, static_cast<int>(i));
  const bool named = std::all_of(kinds.begin(), kinds.end(), [&by_name](const HostKind& kind) {
    return kind.count == 1 && by_name.count(kind.host().name) > 0;
  });
  for (const HostKind& kind : kinds) {
    for (int i = 0; i < kind.count; ++i) {
      const int at = named ? by_name[kind.host().name] : kind.first_host + i;
      const GraphFabric::Adapters& adapters = found[static_cast<std::size_t>(at)];
      if (static_cast<int>(adapters.nodes.size()) < kind.nic_count()) {
        return fail("host '" + adapters.host + "' of the fabric listing has " + std::to_string(adapters.nodes.size()) +
                        " adapters, " + host_words(kind.host(), kind.first_host + i) + " of the cluster has " +
                        std::to_string(kind.nic_count()) + " NICs",
                    {}, {"check that the listing and the host files are of the same machines"});
      }
      graph_host.push_back(at);
    }
  }
  return {};
}

bool Platform::State::same_domain(const Place& a, const Place& b) const {
  const int domain = a.kind->host().nvlink_domain_hosts;
  if (a.kind != b.kind || domain <= 1) return false;
  return (a.host - a.kind->first_host) / domain == (b.host - b.kind->first_host) / domain &&
         !a.kind->up_to_switch(a.local).empty() && !a.kind->down_from_switch(b.local).empty();
}

bool Platform::State::through_fabric(const Place& a, int from_nic, const Place& b, int to_nic,
                                     const RouteChoice& choice, std::vector<Use>& uses) const {
  const Way out = a.kind->gpu_to_nic(a.local, from_nic, options.through_peers);
  const Way& in = b.kind->nic_to_gpu(to_nic, b.local);
  if (out.empty() || in.empty()) return false;
  append(out, a.first_link, uses);
  uses.push_back({a.first_link + a.kind->nic_out(from_nic), 1});
  if (a.kind->measured_egress()) uses.push_back({a.first_link + a.kind->host_out(), 1});
  if (graph) {
    const auto adapter = [this](const Place& place, int nic) {
      return graph->hosts()[static_cast<std::size_t>(graph_host[static_cast<std::size_t>(place.host)])]
          .nodes[static_cast<std::size_t>(nic)];
    };
    if (!graph->route(adapter(a, from_nic), adapter(b, to_nic), choice, fabric_first, uses)) return false;
  } else {
    tree->route(tree->leaf_of(a.host, from_nic), tree->leaf_of(b.host, to_nic), choice, fabric_first, uses);
  }
  if (b.kind->measured_egress()) uses.push_back({b.first_link + b.kind->host_out() + 1, 1});
  uses.push_back({b.first_link + b.kind->nic_in(to_nic), 1});
  append(in, b.first_link, uses);
  return true;
}

Result<void> Platform::State::between_hosts(const Place& a, const Place& b, const RouteChoice& choice,
                                            std::vector<Use>& uses) const {
  const std::string words =
      "no way from " + host_words(a.kind->host(), a.host) + " to " + host_words(b.kind->host(), b.host) + ": ";
  if (!joined) return fail(words + "nothing joins the hosts", {}, {"describe the fabric of the cluster"});
  for (const Place* place : {&a, &b}) {
    if (place->kind->nic_count() == 0)
      return fail(words + host_words(place->kind->host(), place->host) + " has no NIC");
  }
  const auto nic_of = [](const Place& place, int asked) {
    return asked >= 0 && asked < place.kind->nic_count() ? asked : place.kind->nearest_nic(place.local);
  };
  const int to_nic = nic_of(b, choice.to_nic);
  int from_nic = nic_of(a, choice.from_nic);
  const bool on_rails =
      tree && tree->rails() && options.through_peers && choice.from_nic < 0 && to_nic < a.kind->nic_count();
  // With rails a message leaves through the receiver's rail where NVLink reaches it, and so stays off the spines.
  const std::size_t begin = uses.size();
  if (on_rails && from_nic != to_nic) {
    const int peer = a.kind->gpu_next_to(to_nic);
    if (peer >= 0 && a.kind->over_nvlink(a.local, peer)) from_nic = to_nic;
  }
  if (through_fabric(a, from_nic, b, to_nic, choice, uses)) return {};
  uses.resize(begin);
  if (graph && choice.from_nic < 0 && to_nic < a.kind->nic_count() && to_nic != from_nic) {  // another plane
    if (through_fabric(a, to_nic, b, to_nic, choice, uses)) return {};
    uses.resize(begin);
  }
  return fail(
      words + "no cables join NIC '" + a.kind->nic(from_nic).name + "' to NIC '" + b.kind->nic(to_nic).name + "'", {},
      {"they may lie on planes of their own, or a host's NIC hangs on nothing that reaches its GPUs"});
}

Platform::Platform(std::unique_ptr<State> state) : state_(std::move(state)) {}
Platform::~Platform() = default;
Platform::Platform(const Platform& other) : state_(std::make_unique<State>(*other.state_)) {}
Platform& Platform::operator=(const Platform& other) {
  if (this != &other) state_ = std::make_unique<State>(*other.state_);
  return *this;
}
Platform::Platform(Platform&& other) noexcept = default;
Platform& Platform::operator=(Platform&& other) noexcept = default;

Result<Platform> Platform::make(const topology::Cluster& cluster, const PlatformOptions& options) {
  auto state = std::make_unique<State>();
  state->options = options;
  if (auto added = state->add_kinds(cluster); !added) return tl::make_unexpected(std::move(added).error());
  if (auto added = state->add_tree(cluster.fabric); !added) return tl::make_unexpected(std::move(added).error());
  return Platform(std::move(state));
}

Result<Platform> Platform::make(const topology::Cluster& cluster, const topology::FabricGraph& graph,
                                const PlatformOptions& options) {
  auto state = std::make_unique<State>();
  state->options = options;
  if (auto added = state->add_kinds(cluster); !added) return tl::make_unexpected(std::move(added).error());
  if (auto added = state->add_graph(graph); !added) return tl::make_unexpected(std::move(added).error());
  return Platform(std::move(state));
}

int Platform::gpus() const { return state_->gpus; }
int Platform::hosts() const { return state_->hosts; }
int Platform::host_of(int gpu) const { return state_->place(gpu).host; }
int Platform::local_of(int gpu) const { return state_->place(gpu).local; }
int Platform::nics_of(int host) const { return state_->kind_of_host(host).nic_count(); }
int Platform::nearest_nic(int gpu) const {
  const State::Place place = state_->place(gpu);
  return place.kind->nearest_nic(place.local);
}
std::uint32_t Platform::links() const { return state_->links; }
const std::vector<Note>& Platform::notes() const { return state_->notes; }

bool Platform::share_nvlink(int from_gpu, int to_gpu) const {
  const State::Place a = state_->place(from_gpu);
  const State::Place b = state_->place(to_gpu);
  return a.host == b.host ? a.local != b.local && a.kind->over_nvlink(a.local, b.local) : state_->same_domain(a, b);
}

std::vector<double> Platform::capacities() const {
  const State& state = *state_;
  std::vector<double> capacities;
  capacities.reserve(state.links);
  for (const HostKind& kind : state.kinds) {
    std::vector<double> one;
    for (const topology::Link& link : kind.host().links) {
      const double rate = link.bandwidth.effective();
      one.push_back(rate > 0 ? rate * state.share_of(link.kind) : kNever);
    }
    for (int nic = 0; nic < kind.nic_count(); ++nic) {
      const double line = kind.nic(nic).line_bytes_per_s;
      one.insert(one.end(), 2, line > 0 ? line * state.options.nic_share : kNever);
    }
    if (kind.measured_egress()) one.insert(one.end(), 2, state.host_egress * state.options.nic_share);
    for (int i = 0; i < kind.count; ++i) capacities.insert(capacities.end(), one.begin(), one.end());
  }
  if (state.tree) state.tree->append_capacities(capacities);
  if (state.graph) state.graph->append_capacities(capacities, state.fastest_line > 0 ? state.fastest_line : kNever);
  return capacities;
}

LinkClass Platform::class_of(std::uint32_t link) const {
  const State& state = *state_;
  if (link >= state.fabric_first)
    return state.graph ? LinkClass::kCable : state.tree->class_of(link - state.fabric_first);
  const auto after = std::upper_bound(state.kinds.begin(), state.kinds.end(), link,
                                      [](std::uint32_t l, const HostKind& kind) { return l < kind.first_link; });
  const HostKind& kind = *(after - 1);
  const std::uint32_t inside = (link - kind.first_link) % kind.links_per_host();
  if (inside < kind.own_links()) return class_of_kind(kind.host().links[inside].kind);
  const bool out = (inside - kind.own_links()) % 2 == 0;
  if (inside < kind.host_out()) return out ? LinkClass::kNicOut : LinkClass::kNicIn;
  return out ? LinkClass::kHostOut : LinkClass::kHostIn;
}

int Platform::host_of_link(std::uint32_t link) const {
  const State& state = *state_;
  if (link >= state.fabric_first) return -1;
  const auto after = std::upper_bound(state.kinds.begin(), state.kinds.end(), link,
                                      [](std::uint32_t l, const HostKind& kind) { return l < kind.first_link; });
  const HostKind& kind = *(after - 1);
  return kind.first_host + static_cast<int>((link - kind.first_link) / kind.links_per_host());
}

std::string Platform::name_of(std::uint32_t link) const {
  const State& state = *state_;
  if (link >= state.links) return "link " + std::to_string(link);
  if (link >= state.fabric_first)
    return state.graph ? state.graph->name_of(link - state.fabric_first)
                       : state.tree->name_of(link - state.fabric_first);
  const auto after = std::upper_bound(state.kinds.begin(), state.kinds.end(), link,
                                      [](std::uint32_t l, const HostKind& kind) { return l < kind.first_link; });
  const HostKind& kind = *(after - 1);
  const std::uint32_t host =
      static_cast<std::uint32_t>(kind.first_host) + (link - kind.first_link) / kind.links_per_host();
  const std::uint32_t inside = (link - kind.first_link) % kind.links_per_host();
  const std::string words = "host " + std::to_string(host) + ": ";
  if (inside < kind.own_links()) {
    const topology::Link& own = kind.host().links[inside];
    return words + kind.host().devices[static_cast<std::size_t>(own.from)].name + " -> " +
           kind.host().devices[static_cast<std::size_t>(own.to)].name;
  }
  const bool out = (inside - kind.own_links()) % 2 == 0;
  if (inside >= kind.host_out()) return words + (out ? "all NICs -> fabric" : "fabric -> all NICs");
  const std::string& nic = kind.nic(static_cast<int>((inside - kind.own_links()) / 2)).name;
  return words + (out ? nic + " -> fabric" : "fabric -> " + nic);
}

Result<void> Platform::route(int from_gpu, int to_gpu, const RouteChoice& choice, std::vector<Use>& uses) const {
  const State& state = *state_;
  for (const int gpu : {from_gpu, to_gpu}) {
    if (gpu < 0 || gpu >= state.gpus)
      return fail("GPU " + std::to_string(gpu) + " does not exist; the cluster has " + std::to_string(state.gpus));
  }
  if (from_gpu == to_gpu) return {};
  const State::Place a = state.place(from_gpu);
  const State::Place b = state.place(to_gpu);
  if (a.host == b.host) {
    const Way& way = a.kind->gpu_to_gpu(a.local, b.local);
    if (way.empty()) {
      return fail("no way from GPU " + std::to_string(a.local) + " to GPU " + std::to_string(b.local) + " inside " +
                  host_words(a.kind->host(), a.host));
    }
    append(way, a.first_link, uses);
    return {};
  }
  if (state.same_domain(a, b)) {
    append(a.kind->up_to_switch(a.local), a.first_link, uses);
    append(b.kind->down_from_switch(b.local), b.first_link, uses);
    return {};
  }
  return state.between_hosts(a, b, choice, uses);
}

}  // namespace chokepoint::flow
