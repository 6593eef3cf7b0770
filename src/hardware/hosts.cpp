// SPDX-License-Identifier: Apache-2.0
// NICs, host templates and fabrics.
#include "embedded.hpp"

#include <chokepoint/base/lazy_entries.hpp>
#include <array>
#include <chokepoint/hardware/catalogue.hpp>

namespace chokepoint::hardware {

namespace {

constexpr std::array<std::string_view, 6> kInterconnectNames = {"none",      "nvswitch",    "bridge-pairs", "hybrid-cube-mesh",
                                                                "full-mesh", "mi250x-mesh"};

Result<GpuInterconnect> parse_interconnect(const std::string& text, const SourcePos& pos) {
  for (std::size_t i = 0; i < kInterconnectNames.size(); ++i) {
    if (text == kInterconnectNames[i]) return static_cast<GpuInterconnect>(i);
  }
  return fail("unknown interconnect '" + text + "'", pos);
}

Result<Nic> read_nic(std::size_t index) {
  TRY_INTO(const YamlMap entry, embedded::nics.parse(index));
  Nic nic;
  TRY_INTO(nic.name, entry.required_text("name"));
  TRY_INTO(nic.aliases, entry.texts("aliases"));
  TRY_INTO(nic.transport, entry.required_text("transport"));
  TRY_INTO(nic.bytes_per_s, entry.required_rate("rate"));
  TRY_INTO(const std::optional<int> ports, entry.integer("ports", 1, 8));
  nic.ports = ports.value_or(1);
  TRY_INTO(nic.source, entry.required_text("source"));
  TRY_INTO([[maybe_unused]] const bool ok, entry.finish());
  return nic;
}

/// An optional whole number that stays as it is when absent.
Result<bool> read_int(const YamlMap& entry, const std::string& key, int low, int high, int& value) {
  TRY_INTO(const std::optional<int> found, entry.integer(key, low, high));
  value = found.value_or(value);
  return true;
}

Result<HostTemplate> read_host(std::size_t index) {
  TRY_INTO(const YamlMap entry, embedded::hosts.parse(index));
  HostTemplate host;
  TRY_INTO(host.name, entry.required_text("name"));
  TRY_INTO(host.aliases, entry.texts("aliases"));
  TRY_INTO(host.accelerator, entry.required_text("accelerator"));
  TRY_INTO(host.gpus, entry.required_int("gpus", 1, 64));
  TRY_INTO(const std::string interconnect, entry.required_text("interconnect"));
  TRY_INTO(host.interconnect, parse_interconnect(interconnect, entry.position("interconnect")));
  struct Field {
    const char* key;
    int* value;
  };
  const std::array<Field, 8> fields = {{{"links_per_pair", &host.links_per_pair},
                                        {"sockets", &host.sockets},
                                        {"gpus_per_pcie_switch", &host.gpus_per_pcie_switch},
                                        {"nics_per_pcie_switch", &host.nics_per_pcie_switch},
                                        {"nics_on_root", &host.nics_on_root},
                                        {"nics_on_first_root", &host.nics_on_first_root},
                                        {"nvlink_domain_hosts", &host.nvlink_domain_hosts},
                                        {"pcie_generation", &host.pcie_generation}}};
  for (const Field& field : fields) {
    TRY_INTO([[maybe_unused]] const bool ok, read_int(entry, field.key, 0, 1024, *field.value));
  }
  TRY_INTO(const std::optional<std::string> nic, entry.text("nic"));
  host.nic = nic.value_or("");
  TRY_INTO(const std::optional<std::string> fabric, entry.text("fabric"));
  host.default_fabric = fabric.value_or("");
  TRY_INTO(const std::optional<bool> direct, entry.boolean("gpudirect_rdma"));
  host.gpudirect_rdma = direct.value_or(true);
  TRY_INTO(host.source, entry.required_text("source"));
  TRY_INTO([[maybe_unused]] const bool ok, entry.finish());
  return host;
}

Result<FabricTemplate> read_fabric(std::size_t index) {
  TRY_INTO(const YamlMap entry, embedded::fabrics.parse(index));
  FabricTemplate fabric;
  TRY_INTO(fabric.name, entry.required_text("name"));
  TRY_INTO(fabric.aliases, entry.texts("aliases"));
  TRY_INTO(fabric.kind, entry.required_text("kind"));
  TRY_INTO(fabric.transport, entry.required_text("transport"));
  TRY_INTO([[maybe_unused]] const bool leaf, read_int(entry, "hosts_per_leaf", 1, 4096, fabric.hosts_per_leaf));
  TRY_INTO(const std::optional<double> ratio, entry.number("oversubscription", 1, 64));
  fabric.oversubscription = ratio.value_or(1);
  TRY_INTO(fabric.source, entry.required_text("source"));
  TRY_INTO([[maybe_unused]] const bool ok, entry.finish());
  return fabric;
}

template <class T>
T or_abort(Result<T> entry) {
  if (!entry) broken_catalogue(entry.error());
  return *std::move(entry);
}

Nic nic_or_abort(std::size_t index) { return or_abort(read_nic(index)); }
HostTemplate host_or_abort(std::size_t index) { return or_abort(read_host(index)); }
FabricTemplate fabric_or_abort(std::size_t index) { return or_abort(read_fabric(index)); }

template <class T>
std::vector<T> all_of(const CatalogueText& text, Result<T> (*read)(std::size_t)) {
  std::vector<T> all;
  for (std::size_t i = 0; i < text.size(); ++i) all.push_back(or_abort(read(i)));
  return all;
}

}  // namespace

std::string_view name(GpuInterconnect interconnect) { return kInterconnectNames[static_cast<std::size_t>(interconnect)]; }

int HostTemplate::nic_count() const {
  if (nic.empty()) return 0;
  const int per_socket = (gpus + sockets - 1) / sockets;
  int switches = 0;
  for (int left = gpus; left > 0 && gpus_per_pcie_switch > 0; left -= per_socket) {
    const int here = left < per_socket ? left : per_socket;
    switches += (here + gpus_per_pcie_switch - 1) / gpus_per_pcie_switch;
  }
  return switches * nics_per_pcie_switch + sockets * nics_on_root + nics_on_first_root;
}

Result<Nic> find_nic(std::string_view name) {
  static LazyEntries<Nic> entries(embedded::nics.size(), nic_or_abort);
  if (const auto index = embedded::nics.find(name)) return entries.at(*index);
  return embedded::nics.unknown("NIC", name, "clusters");
}

Result<HostTemplate> find_host(std::string_view name) {
  static LazyEntries<HostTemplate> entries(embedded::hosts.size(), host_or_abort);
  if (const auto index = embedded::hosts.find(name)) return entries.at(*index);
  return embedded::hosts.unknown("host", name, "clusters");
}

Result<FabricTemplate> find_fabric(std::string_view name) {
  static LazyEntries<FabricTemplate> entries(embedded::fabrics.size(), fabric_or_abort);
  if (const auto index = embedded::fabrics.find(name)) return entries.at(*index);
  return embedded::fabrics.unknown("fabric", name, "clusters");
}

const std::vector<Nic>& nics() {
  static const std::vector<Nic> kAll = all_of<Nic>(embedded::nics, read_nic);
  return kAll;
}

const std::vector<HostTemplate>& host_templates() {
  static const std::vector<HostTemplate> kAll = all_of<HostTemplate>(embedded::hosts, read_host);
  return kAll;
}

const std::vector<FabricTemplate>& fabrics() {
  static const std::vector<FabricTemplate> kAll = all_of<FabricTemplate>(embedded::fabrics, read_fabric);
  return kAll;
}

}  // namespace chokepoint::hardware
