// SPDX-License-Identifier: Apache-2.0
// Schema: docs/formats/json.md. Names are stable; quantities are SI with the unit as suffix.
#include <chokepoint/report/wiring_view.hpp>

#include <nlohmann/json.hpp>

#include "json_data.hpp"

namespace chokepoint::report {

using namespace topology;

using Json = nlohmann::ordered_json;

namespace {

const Device& device_at(const Host& host, int index) { return host.devices[static_cast<std::size_t>(index)]; }

Json optional_json(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json devices_json(const Host& host, const std::vector<int>& indices) {
  Json out = Json::array();
  for (const int index : indices) {
    const Device& device = device_at(host, index);
    Json item = {{"name", device.name}, {"kind", std::string(name(device.kind))}};
    if (!device.model.empty()) item["model"] = device.model;
    if (!device.alias.empty()) item["alias"] = device.alias;
    if (!device.bus_id.empty()) item["bus_id"] = device.bus_id;
    if (device.numa) item["numa"] = *device.numa;
    if (device.kind == DeviceKind::kNic) item["line_bytes_per_s"] = device.line_bytes_per_s > 0 ? Json(device.line_bytes_per_s) : Json(nullptr);
    out.push_back(std::move(item));
  }
  return out;
}

Json links_json(const Host& host) {
  Json out = Json::array();
  for (const Link& link : host.links) {
    out.push_back({{"from", device_at(host, link.from).name},
                   {"to", device_at(host, link.to).name},
                   {"kind", std::string(name(link.kind))},
                   {"width", link.width},
                   {"specified_bytes_per_s", optional_json(link.bandwidth.specified_bytes_per_s)},
                   {"negotiated_bytes_per_s", optional_json(link.bandwidth.negotiated_bytes_per_s)},
                   {"measured_bytes_per_s", optional_json(link.bandwidth.measured_bytes_per_s)},
                   {"origin", link.bandwidth.origin}});
  }
  return out;
}

Json path_json(const Host& host, int a, int b, const char* a_key, const char* b_key) {
  const DeclaredPath path = path_between(host, a, b);
  const double rate = route(host, a, b).bytes_per_s;
  return {{a_key, device_at(host, a).name}, {b_key, device_at(host, b).name}, {"path", path_class_name(path.path, path.nvlinks)},
          {"nvlinks", path.nvlinks}, {"bytes_per_s", rate > 0 ? Json(rate) : Json(nullptr)}};
}

Json notes_json(const std::vector<Note>& notes) {
  Json out = Json::array();
  for (const Note& note : notes) out.push_back({{"text", note.text}, {"file", note.pos.file}, {"line", note.pos.line}});
  return out;
}

Json host_json(const HostGroup& group) {
  const Host& host = group.host;
  std::vector<int> switches;
  for (const DeviceKind kind : {DeviceKind::kNvSwitch, DeviceKind::kPcieSwitch, DeviceKind::kHostBridge, DeviceKind::kCpu}) {
    const std::vector<int> found = host.of_kind(kind);
    switches.insert(switches.end(), found.begin(), found.end());
  }
  const std::vector<int> gpus = host.gpus();
  Json pairs = Json::array();
  Json affinity = Json::array();
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    for (std::size_t j = i + 1; j < gpus.size(); ++j) pairs.push_back(path_json(host, gpus[i], gpus[j], "a", "b"));
    for (const int nic : host.nics()) affinity.push_back(path_json(host, gpus[i], nic, "gpu", "nic"));
  }
  Json compute = Json::array();
  for (const int nic : compute_nics(host)) compute.push_back(device_at(host, nic).name);
  return {{"name", host.name},
          {"count", group.count},
          {"accelerator", host.accelerator.empty() ? Json(nullptr) : Json(host.accelerator)},
          {"peer_to_peer", host.peer_to_peer},
          {"gpudirect_rdma", host.gpudirect_rdma},
          {"nvlink_domain_hosts", host.nvlink_domain_hosts},
          {"gpus", devices_json(host, gpus)},
          {"nics", devices_json(host, host.nics())},
          {"compute_nics", compute},
          {"switches", devices_json(host, switches)},
          {"links", links_json(host)},
          {"gpu_pairs", pairs},
          {"gpu_nic", affinity},
          {"notes", notes_json(host.notes)}};
}

Json table_json(const ExpectedTable& table) {
  Json rows = Json::array();
  for (const ExpectedTable::Row& row : table.rows) {
    const collective::Cost& cost = row.cost;
    Json item = {{"bytes", row.bytes},
                    {"time_s", cost.time_s},
                    {"algorithm_bytes_per_s", cost.time_s > 0 ? row.bytes / cost.time_s : 0},
                    {"bus_bytes_per_s", cost.bus_bytes_per_s},
                    {"latency_s", cost.latency_s},
                    {"floor_s", cost.floor_s},
                    {"algorithm", std::string(cost.algorithm)},
                    {"protocol", std::string(cost.protocol)},
                    {"limit", std::string(collective::name(cost.limit))},
                    {"where", std::string(cost.where)}};
    if (row.measured_bus_bytes_per_s) {
      item["measured_bus_bytes_per_s"] = *row.measured_bus_bytes_per_s;
      item["measured_time_s"] = optional_json(row.measured_time_s);
      item["reached"] = cost.bus_bytes_per_s > 0 ? Json(*row.measured_bus_bytes_per_s / cost.bus_bytes_per_s) : Json(nullptr);
    }
    rows.push_back(std::move(item));
  }
  Json out = {{"op", std::string(collective::name(table.op))}, {"ranks", table.group.ranks}, {"ranks_per_host", table.group.ranks_per_host}, {"rows", rows}};
  if (!table.measured_file.empty()) out["measured_file"] = table.measured_file;
  return out;
}

Json position_json(const SourcePos& pos) { return {{"file", pos.file}, {"line", pos.line}}; }

Json finding_json(const findings::Finding& finding) {
  Json evidence = Json::array();
  for (const SourcePos& pos : finding.evidence) evidence.push_back(position_json(pos));
  Json cost = nullptr;
  if (finding.cost) {
    cost = {{"step_time_s", finding.cost->step_time_s}, {"step_time_if_mended_s", finding.cost->step_time_if_mended_s}, {"lost_s", finding.cost->lost_s()}};
  }
  return {{"id", finding.id}, {"severity", std::string(findings::name(finding.severity))}, {"where", finding.where}, {"what", finding.what}, {"cost", cost},
          {"fix", finding.fix}, {"verify", finding.verify}, {"source", finding.source}, {"evidence", evidence}};
}

Json files_json(const assemble::Assembly& assembly) {
  Json out = Json::array();
  for (const wiring::Document& document : assembly.documents) {
    Json facts = Json::object();
    for (const wiring::Fact& fact : wiring::facts_of(document)) facts[fact.name] = fact.number ? Json(*fact.number) : Json(fact.text);
    out.push_back({{"file", document.file}, {"kind", std::string(wiring::name(document.format))}, {"facts", facts}, {"notes", notes_json(document.notes)}});
  }
  return out;
}

/// Switches and cables of a discovered fabric; leaf by leaf, and how far adapters are from each other.
Json discovered_json(const FabricGraph& graph, const FabricShape& shape) {
  constexpr std::size_t kMaxCables = 20000;
  const FabricRoutes routes = routes_of(graph, shape);
  const auto label = [&graph](int node) {
    const FabricNode& found = graph.nodes[static_cast<std::size_t>(node)];
    return found.name.empty() ? found.id : found.name;
  };
  Json leaves = Json::array();
  for (const LeafShape& leaf : shape.leaves) {
    leaves.push_back({{"name", label(leaf.node)}, {"adapters", leaf.adapters}, {"hosts", leaf.hosts}, {"uplinks", leaf.uplinks}, {"oversubscription", leaf.oversubscription()}});
  }
  Json out = {{"switches", shape.switches}, {"adapters", shape.adapters}, {"hosts", shape.hosts}, {"cables", graph.links.size()}, {"levels", shape.levels}, {"islands", shape.components},
              {"rails", shape.rails}, {"leaves", leaves}, {"adapter_pairs_by_switches", routes.pairs_by_switches}, {"unreachable_pairs", routes.unreachable_pairs},
              {"fewest_equal_paths", routes.fewest_paths}, {"most_equal_paths", routes.most_paths}};
  if (graph.links.size() > kMaxCables) return out;
  Json cables = Json::array();
  for (const FabricLink& link : graph.links) {
    cables.push_back({{"from", label(link.a)}, {"from_port", link.a_port}, {"to", label(link.b)}, {"to_port", link.b_port}, {"width", link.width}, {"rate", link.rate},
                      {"bytes_per_s", link.bytes_per_s > 0 ? Json(link.bytes_per_s) : Json(nullptr)}});
  }
  out["links"] = cables;
  return out;
}

Json cluster_json(const Cluster& cluster) {
  Json hosts = Json::array();
  for (const HostGroup& group : cluster.hosts) hosts.push_back(host_json(group));
  const Fabric& fabric = cluster.fabric;
  return {{"schema", "chokepoint.wiring/1"},
          {"name", cluster.name},
          {"hosts", hosts},
          {"fabric",
           {{"kind", std::string(name(fabric.kind))},
            {"transport", fabric.kind == FabricKind::kNone && fabric.origin.empty() ? Json(nullptr) : Json(std::string(name(fabric.transport)))},
            {"hosts", cluster.host_count()},
            {"hosts_per_leaf", fabric.hosts_per_leaf},
            {"oversubscription", fabric.oversubscription},
            {"host_measured_bytes_per_s", optional_json(fabric.node_measured_bytes_per_s)},
            {"origin", fabric.origin}}},
          {"findings", Json::array()},
          {"notes", notes_json(cluster.notes)}};
}

// Names come from user files and may hold anything: replace what is not UTF-8.
std::string dumped(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

void add_expected(Json& out, const std::vector<ExpectedTable>& expected) {
  if (expected.empty()) return;
  Json tables = Json::array();
  for (const ExpectedTable& table : expected) tables.push_back(table_json(table));
  out["expected"] = tables;
}

}  // namespace

std::string wiring_json(const Cluster& cluster, const std::vector<ExpectedTable>& expected) {
  Json out = cluster_json(cluster);
  add_expected(out, expected);
  return dumped(out);
}

Json wiring_data(const WiringReport& report) {
  const assemble::Assembly& assembly = report.assembly;
  Json out = cluster_json(assembly.cluster);
  if (assembly.fabric) out["fabric"]["discovered"] = discovered_json(*assembly.fabric, assembly.shape);
  for (const findings::Finding& finding : report.findings) out["findings"].push_back(finding_json(finding));
  out["cost_of"] = report.job.empty() ? Json(nullptr) : Json({{"job", report.job}, {"cluster", report.own_cluster ? "files" : "job"}});
  out["files"] = files_json(assembly);
  Json contradictions = Json::array();
  for (const assemble::Contradiction& found : assembly.contradictions) contradictions.push_back({{"what", found.what}, {"first", position_json(found.first)}, {"second", position_json(found.second)}});
  out["contradictions"] = contradictions;
  out["matched"] = assembly.matched;
  out["unknown"] = assembly.unknown;
  const topology::MeasuredCollectives& measured = assembly.cluster.measured;
  out["measured"] = {{"all_reduce_bytes_per_s", optional_json(measured.all_reduce)}, {"all_gather_bytes_per_s", optional_json(measured.all_gather)},
                     {"reduce_scatter_bytes_per_s", optional_json(measured.reduce_scatter)}, {"host_all_reduce_bytes_per_s", optional_json(measured.host_all_reduce)},
                     {"host_all_gather_bytes_per_s", optional_json(measured.host_all_gather)}, {"host_reduce_scatter_bytes_per_s", optional_json(measured.host_reduce_scatter)}};
  Json unreadable = Json::array();
  for (const Error& error : report.unreadable) unreadable.push_back({{"file", error.pos.file}, {"line", error.pos.line}, {"message", error.message}});
  out["unreadable"] = unreadable;
  add_expected(out, report.expected);
  return out;
}

std::string wiring_json(const WiringReport& report) { return dumped(wiring_data(report)); }

}  // namespace chokepoint::report
