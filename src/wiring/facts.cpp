// SPDX-License-Identifier: Apache-2.0
// What a person would take from each kind of file, under stable names (docs/formats/wiring.md).
#include "scan.hpp"

#include <chokepoint/base/text.hpp>
#include <chokepoint/wiring/document.hpp>

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace chokepoint::wiring {

using namespace topology;

namespace {

class Facts {
 public:
  void number(std::string name, double value) { list_.push_back({std::move(name), {}, value}); }
  void text(std::string name, std::string value) {
    if (!value.empty()) list_.push_back({std::move(name), std::move(value), std::nullopt});
  }
  void list(std::string name, const std::vector<std::string>& values) { text(std::move(name), fmt::format("{}", fmt::join(values, ", "))); }
  template <class Key>
  void counts(const std::string& prefix, const std::map<Key, int>& values) {
    for (const auto& [key, count] : values) number(fmt::format("{}.{}", prefix, key), count);
  }
  std::vector<Fact> take() { return std::move(list_); }

  void operator()(const std::vector<HostGroup>& groups);
  void operator()(const Host& host);
  void operator()(const Cluster& cluster);
  void operator()(const PeerMatrix& value);
  void operator()(const NvLinkStatus& value);
  void operator()(const SmiQuery& value);
  void operator()(const NcclGraphs& value);
  void operator()(const NcclLog& value);
  void operator()(const HwlocTopology& value);
  void operator()(const PciListing& value);
  void operator()(const FabricListing& value);
  void operator()(const IbPorts& value);
  void operator()(const CounterFile& value);
  void operator()(const GuidList& value);
  void operator()(const SlurmTopology& value);
  void operator()(const RocmTopology& value);
  void operator()(const MeasuredTable& value);
  void operator()(const PairTables& value);
  void operator()(const TrainingLog& value);
  void operator()(const MeasuredNetwork& value);

 private:
  std::vector<Fact> list_;
};

void Facts::operator()(const Host& host) {
  number("cpus", static_cast<double>(host.of_kind(DeviceKind::kCpu).size()));
  number("gpus", static_cast<double>(host.gpus().size()));
  number("nics", static_cast<double>(host.nics().size()));
  number("pcie_switches", static_cast<double>(host.of_kind(DeviceKind::kPcieSwitch).size()));
  std::map<std::string, int> links;
  std::map<std::string, int> rates;
  for (const Link& link : host.links) {
    const bool gpu = host.devices[static_cast<std::size_t>(link.from)].kind == DeviceKind::kGpu;
    if (gpu && (link.kind == LinkKind::kNvLink || link.kind == LinkKind::kXgmi)) links[std::string(topology::name(link.kind))] += link.width;
  }
  for (const int nic : host.nics()) {
    const double rate = host.devices[static_cast<std::size_t>(nic)].line_bytes_per_s;
    if (rate > 0) ++rates[fmt::format("{:.0f}", rate * 8 / 1e6)];
  }
  counts("gpu_link_ends", links);
  counts("nic_megabit_per_s", rates);
  text("accelerator", host.accelerator);
  number("gpudirect_rdma", host.gpudirect_rdma ? 1 : 0);
}

void Facts::operator()(const std::vector<HostGroup>& groups) {
  number("matrices", static_cast<double>(groups.size()));
  if (groups.empty()) return;
  const Host& host = groups.front().host;
  (*this)(host);
  std::map<std::string, int> pairs;
  const std::vector<int> gpus = host.gpus();
  for (const DeclaredPath& path : host.declared) {
    const auto gpu = [&host](int device) { return host.devices[static_cast<std::size_t>(device)].kind == DeviceKind::kGpu; };
    if (gpu(path.a) && gpu(path.b)) ++pairs[path_class_name(path.path, path.nvlinks)];
  }
  counts("gpu_pairs", pairs);
}

void Facts::operator()(const Cluster& cluster) {
  number("hosts", cluster.host_count());
  number("gpus", cluster.gpu_count());
}

void Facts::operator()(const PeerMatrix& value) {
  number("gpus", static_cast<double>(value.devices.size()));
  counts("gpu_pairs", value.pairs());
}

void Facts::operator()(const NvLinkStatus& value) {
  int up = 0;
  int inactive = 0;
  double errors = 0;
  std::set<double> rates;
  for (const NvLinkGpu& gpu : value.gpus) {
    up += gpu.up();
    inactive += gpu.inactive();
    for (const NvLinkState& link : gpu.links) {
      if (link.bytes_per_s) rates.insert(*link.bytes_per_s);
    }
    for (const auto& [name, count] : gpu.errors) errors += count;
  }
  number("gpus", static_cast<double>(value.gpus.size()));
  number("links_up", up);
  number("links_inactive", inactive);
  if (rates.size() == 1) number("link_bytes_per_s", *rates.begin());
  for (const NvLinkGpu& gpu : value.gpus) {
    if (gpu.elided) number(fmt::format("gpu{}.links_by_highest_number", gpu.index), gpu.stated_links());
    if (gpu.inactive() > 0) number(fmt::format("gpu{}.inactive", gpu.index), gpu.inactive());
  }
  if (value.counters) number("errors", errors);
  if (!value.gpus.empty()) text("accelerator", value.gpus.front().name);
}

void Facts::operator()(const SmiQuery& value) {
  number("gpus", static_cast<double>(value.gpus.size()));
  std::map<std::string, int> links;
  std::map<std::string, int> states;
  for (const SmiGpu& gpu : value.gpus) {
    ++links[fmt::format("gen{}x{}_of_gen{}x{}", gpu.generation_current, gpu.width_current, gpu.generation_max, gpu.width_max)];
    if (!gpu.performance_state.empty()) ++states[gpu.performance_state];
  }
  counts("links", links);
  counts("performance_state", states);
  text("driver", value.driver);
  text("cuda", value.cuda);
  text("accelerator", value.gpus.front().name);
}

void Facts::operator()(const NcclGraphs& value) {
  number("graphs", static_cast<double>(value.graphs.size()));
  number("truncated", value.truncated ? 1 : 0);
  for (const NcclGraph& graph : value.graphs) {
    const std::string prefix = fmt::format("graph{}.", graph.id);
    number(prefix + "channels", static_cast<double>(graph.channels.size()));
    number(prefix + "intra_bytes_per_s", graph.intra_bytes_per_s);
    number(prefix + "inter_bytes_per_s", graph.inter_bytes_per_s);
    text(prefix + "intra_type", graph.intra_type);
    text(prefix + "inter_type", graph.inter_type);
    if (!graph.channels.empty()) text(prefix + "first_channel", fmt::format("{}", fmt::join(graph.channels.front().steps, " - ")));
  }
}

void Facts::operator()(const NcclLog& value) {
  list("versions", value.versions);
  list("networks", value.networks);
  number("hosts", static_cast<double>(value.hosts.size()));
  number("ranks", value.world);
  number("communicators", value.communicators);
  number("ring_channels", value.ring_channels);
  number("trees", value.trees);
  number("warnings", static_cast<double>(value.warnings.size()));
  counts("via", value.via);
  counts("coll_channels_lines", value.collective_channels);
  number("network_connections", value.network_connections());
  number("gpudirect_connections", value.gdr_connections());
  std::vector<std::string> devices;
  for (const NcclNetDevice& device : value.devices) devices.push_back(fmt::format("{}:{}{}{}", device.name, device.port, device.layer.empty() ? "" : "/", device.layer));
  list("net_devices", devices);
  list("bootstrap", value.bootstrap_interfaces);
  list("plugins", value.plugins);
  std::vector<std::string> settings;
  for (const NcclSetting& setting : value.settings) settings.push_back(setting.name + "=" + setting.value);
  list("settings", settings);
  number("tuner_choices", static_cast<double>(value.tuner.size()));
}

void Facts::operator()(const HwlocTopology& value) {
  for (const char* type : {"Package", "NUMANode", "Core", "PU", "PCIDev", "Bridge", "OSDev"}) {
    const auto found = value.counts.find(type);
    number(std::string("objects.") + type, found == value.counts.end() ? 0 : found->second);
  }
  counts("os_devices", value.os_devices);
  std::vector<std::string> distances;
  for (const HwlocDistances& matrix : value.distances) distances.push_back(matrix.name);
  list("distances", distances);
  text("product", value.product);
  const Host host = host_of(value, {});
  number("gpus", static_cast<double>(host.gpus().size()));
  number("nics", static_cast<double>(host.nics().size()));
}

void Facts::operator()(const PciListing& value) {
  int states = 0;
  int slower = 0;
  int narrower = 0;
  int redirect = 0;
  for (const PciFunction& function : value.functions) {
    states += function.state ? 1 : 0;
    slower += function.state && function.state->speed_downgraded ? 1 : 0;
    narrower += function.state && function.state->width_downgraded ? 1 : 0;
    redirect += function.access && function.access->request_redirect ? 1 : 0;
  }
  number("functions", static_cast<double>(value.functions.size()));
  number("gpus", value.count(PciRole::kGpu));
  number("nics", value.count(PciRole::kNic));
  number("nvswitches", value.count(PciRole::kNvSwitch));
  number("bridges", value.count(PciRole::kBridge));
  number("link_states", states);
  number("speed_downgraded", slower);
  number("width_downgraded", narrower);
  number("acs_request_redirect", redirect);
}

void shape_facts(Facts& facts, const FabricGraph& graph) {
  const FabricShape shape = shape_of(graph);
  facts.number("switches", shape.switches);
  facts.number("adapters", shape.adapters);
  facts.number("hosts", shape.hosts);
  facts.number("cables", static_cast<double>(graph.links.size()));
  facts.number("levels", shape.levels);
  facts.number("leaves", static_cast<double>(shape.leaves.size()));
  facts.number("islands", shape.components);
}

void Facts::operator()(const FabricListing& value) {
  switch (value.form) {
    case FabricForm::kNetDiscover: text("form", "ibnetdiscover"); break;
    case FabricForm::kNetDiscoverPorts: text("form", "ibnetdiscover -p"); break;
    case FabricForm::kLinkInfo: text("form", "iblinkinfo"); break;
    case FabricForm::kSimulator: text("form", "ibsim"); break;
  }
  shape_facts(*this, value.graph);
  number("open_ports", value.open_ports);
  number("switch_blocks", value.switch_blocks);
  number("adapter_blocks", value.adapter_blocks);
  std::map<std::string, int> ports;
  std::map<std::string, int> rates;
  for (const FabricNode& node : value.graph.nodes) {
    if (node.is_switch && node.ports > 0) ++ports[std::to_string(node.ports)];
  }
  for (const FabricLink& link : value.graph.links) {
    if (!link.rate.empty()) ++rates[fmt::format("{}x{}", link.width, link.rate)];
  }
  counts("ports_per_switch", ports);
  counts("cables", rates);
}

void Facts::operator()(const IbPorts& value) {
  text("form", value.tool);
  int active = 0;
  std::map<std::string, int> rates;
  for (const IbPort& port : value.ports) {
    active += port.state == "Active" ? 1 : 0;
    ++rates[fmt::format("{:.0f}", port.bytes_per_s * 8 / 1e9)];
  }
  number("ports", static_cast<double>(value.ports.size()));
  number("ports_active", active);
  counts("ports_gigabit_per_s", rates);
  std::map<std::string, int> packets;
  std::size_t gids = 0;
  for (const IbPort& port : value.ports) {
    if (port.mtu > 0 && port.state == "Active") ++packets[std::to_string(port.mtu)];
    gids += port.gids.size();
  }
  counts("active_ports_mtu", packets);
  if (gids > 0) number("gids", static_cast<double>(gids));
}

void Facts::operator()(const CounterFile& value) {
  text("form", "perfquery");
  number("ports", static_cast<double>(value.ports.size()));
  if (value.ports.size() != 1) return;
  for (const auto& [name, count] : value.ports.front().values) {
    if (count > 0 && !contains(name, "Select")) number("counter." + name, count);
  }
}

void Facts::operator()(const GuidList& value) {
  text("form", "guid list");
  std::size_t guids = 0;
  for (const auto& host : value.hosts) guids += host.second.size();
  number("hosts", static_cast<double>(value.hosts.size()));
  number("guids", static_cast<double>(guids));
}

void Facts::operator()(const SlurmTopology& value) {
  text("form", value.form);
  number("switches", static_cast<double>(value.switches.size()));
  number("switches_with_nodes", value.with_nodes());
  number(value.rings ? "rings" : "blocks", static_cast<double>(value.blocks.size()));
  number("nodes", value.node_count());
  const FabricShape shape = shape_of(graph_of(value));
  number("levels", shape.levels);
  number("islands", shape.components);
}

void Facts::operator()(const RocmTopology& value) {
  number("gpus", value.gpus);
  counts("links", value.link_pairs());
  std::map<std::string, int> hops;
  std::map<std::string, int> weights;
  for (std::size_t i = 0; i < value.hops.size(); ++i) {
    for (std::size_t j = i + 1; j < value.hops[i].size(); ++j) ++hops[std::to_string(value.hops[i][j])];
  }
  for (std::size_t i = 0; i < value.weights.size(); ++i) {
    for (std::size_t j = i + 1; j < value.weights[i].size(); ++j) ++weights[std::to_string(value.weights[i][j])];
  }
  counts("hops", hops);
  counts("weights", weights);
  std::vector<std::string> numa;
  for (const auto& [gpu, node] : value.numa) numa.push_back(std::to_string(node));
  list("numa_by_gpu", numa);
  if (!value.names.empty()) text("accelerator", value.names.front());
}

void Facts::operator()(const MeasuredTable& value) {
  text("benchmark", std::string(wiring::name(value.kind)));
  text("op", value.op);
  number("rows", static_cast<double>(value.rows.size()));
  number("devices", static_cast<double>(value.devices.size()));
  number("ranks_listed", value.stated_ranks());
  number("hosts", static_cast<double>(value.hosts().size()));
  if (value.bidirectional) number("bidirectional", 1);
  const TableRow* largest = value.largest();
  if (largest == nullptr) return;
  const auto smallest = std::min_element(value.rows.begin(), value.rows.end(), [](const TableRow& a, const TableRow& b) { return a.bytes < b.bytes; });
  number("smallest_bytes", smallest->bytes);
  number("largest_bytes", largest->bytes);
  if (largest->time_s > 0) number("largest_time_s", largest->time_s);
  number("largest_algorithm_bytes_per_s", largest->algorithm_bytes_per_s);
  number("largest_bus_bytes_per_s", largest->bus_bytes_per_s);
  number("peak_bus_bytes_per_s", value.peak_bus_bytes_per_s());
  if (value.average_bus_bytes_per_s) number("average_bus_bytes_per_s", *value.average_bus_bytes_per_s);
  if (value.implied_ranks() > 0) number("ranks_by_ratio", value.implied_ranks());
}

void Facts::operator()(const PairTables& value) {
  number("matrices", static_cast<double>(value.matrices.size()));
  number("size_tables", static_cast<double>(value.copies.size()));
  number("devices", static_cast<double>(value.devices.size()));
  number("pairs_without_access", static_cast<double>(value.no_access.size()));
  for (std::size_t i = 0; i < value.matrices.size(); ++i) {
    const PairMatrix& matrix = value.matrices[i];
    const std::string prefix = fmt::format("matrix{}.", i);
    text(prefix + "title", matrix.title);
    number(prefix + "rows", static_cast<double>(matrix.rows.size()));
    number(prefix + "columns", static_cast<double>(matrix.columns.size()));
    const char* unit = matrix.unit == PairUnit::kSeconds ? "_s" : matrix.unit == PairUnit::kAccess ? "" : "_bytes_per_s";
    if (matrix.lowest()) number(prefix + "lowest" + unit, *matrix.lowest());
    if (matrix.highest()) number(prefix + "highest" + unit, *matrix.highest());
  }
  for (const MeasuredTable& table : value.copies) {
    number("copy.rows", static_cast<double>(table.rows.size()));
    number("copy.peak_bytes_per_s", table.peak_bus_bytes_per_s());
  }
  for (const auto& [name, sum] : value.sums) number("sum." + name + "_bytes_per_s", sum);
}

void Facts::operator()(const TrainingLog& value) {
  number("iterations", value.iterations);
  number("shortest_s", value.shortest_s);
  number("median_s", value.median_s);
  number("longest_s", value.longest_s);
  if (value.world_size > 0) number("world_size", value.world_size);
}

void Facts::operator()(const MeasuredNetwork& value) {
  number("hosts", static_cast<double>(value.hosts.size()));
  number("pairs", static_cast<double>(value.pairs.size()));
  number("groups", static_cast<double>(value.groups.size()));
  number("slow", static_cast<double>(value.slow.size()));
}

}  // namespace

std::vector<Fact> facts_of(const Document& document) {
  Facts facts;
  std::visit(facts, document.content);
  return facts.take();
}

}  // namespace chokepoint::wiring
