// SPDX-License-Identifier: Apache-2.0
// Schema: docs/formats/json.md. Names are stable; quantities are SI with the unit as suffix.
#include <chokepoint/report/wiring_view.hpp>

#include <nlohmann/json.hpp>

namespace chokepoint::report {

using namespace topology;

namespace {

using Json = nlohmann::ordered_json;

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
    rows.push_back({{"bytes", row.bytes},
                    {"time_s", cost.time_s},
                    {"algorithm_bytes_per_s", cost.time_s > 0 ? row.bytes / cost.time_s : 0},
                    {"bus_bytes_per_s", cost.bus_bytes_per_s},
                    {"latency_s", cost.latency_s},
                    {"floor_s", cost.floor_s},
                    {"algorithm", std::string(cost.algorithm)},
                    {"protocol", std::string(cost.protocol)},
                    {"limit", std::string(collective::name(cost.limit))},
                    {"where", std::string(cost.where)}});
  }
  return {{"op", std::string(collective::name(table.op))}, {"ranks", table.group.ranks}, {"ranks_per_host", table.group.ranks_per_host}, {"rows", rows}};
}

}  // namespace

std::string wiring_json(const Cluster& cluster, const std::vector<ExpectedTable>& expected) {
  Json hosts = Json::array();
  for (const HostGroup& group : cluster.hosts) hosts.push_back(host_json(group));
  const Fabric& fabric = cluster.fabric;
  Json out = {{"schema", "chokepoint.wiring/1"},
              {"name", cluster.name},
              {"hosts", hosts},
              {"fabric",
               {{"kind", std::string(name(fabric.kind))},
                {"transport", fabric.kind == FabricKind::kNone ? Json(nullptr) : Json(std::string(name(fabric.transport)))},
                {"hosts", cluster.host_count()},
                {"hosts_per_leaf", fabric.hosts_per_leaf},
                {"oversubscription", fabric.oversubscription},
                {"host_measured_bytes_per_s", optional_json(fabric.node_measured_bytes_per_s)},
                {"origin", fabric.origin}}},
              {"findings", Json::array()},
              {"notes", notes_json(cluster.notes)}};
  if (!expected.empty()) {
    Json tables = Json::array();
    for (const ExpectedTable& table : expected) tables.push_back(table_json(table));
    out["expected"] = tables;
  }
  // Names come from user files and may hold anything: replace what is not UTF-8.
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace chokepoint::report
