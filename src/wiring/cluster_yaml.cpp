// SPDX-License-Identifier: Apache-2.0
// A user's cluster file; docs/formats/cluster.md describes it.
#include "parts.hpp"

#include <chokepoint/base/files.hpp>
#include <chokepoint/base/units.hpp>
#include <chokepoint/base/yaml.hpp>
#include <chokepoint/wiring/measured_network.hpp>
#include <chokepoint/wiring/wiring.hpp>

#include <algorithm>
#include <fmt/format.h>

namespace chokepoint::wiring {

using namespace topology;

namespace {

constexpr int kMaxHosts = 1 << 20;

Error located(Error error, const SourcePos& pos) {
  if (error.pos.file.empty()) error.pos = pos;
  return error;
}

std::string resolve(const std::string& path, const std::string& cluster_file) {
  if (!path.empty() && path.front() == '/') return path;
  return directory_of(cluster_file) + "/" + path;
}

/// Two files that describe one host must agree on its GPUs and on every path class that both state.
Result<bool> check_agreement(const Host& first, const std::string& first_file, const Host& second, const std::string& second_file,
                             const SourcePos& pos) {
  const std::vector<int> a = first.gpus();
  const std::vector<int> b = second.gpus();
  const std::vector<std::string> way_out{"both files must come from the same host; give hosts of different kinds an entry each"};
  if (a.size() != b.size()) {
    return fail(fmt::format("{} shows {} GPUs, {} shows {}, for the same host", first_file, a.size(), second_file, b.size()), pos, way_out);
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = i + 1; j < a.size(); ++j) {
      const DeclaredPath one = path_between(first, a[i], a[j]);
      const DeclaredPath two = path_between(second, b[i], b[j]);
      const bool nvlink = one.path == PathClass::kNvLink || two.path == PathClass::kNvLink;
      const bool both = one.path != PathClass::kUnknown && two.path != PathClass::kUnknown;
      // NCCL's XML has no host bridges, so PHB, NODE and SYS are told apart by nvidia-smi only.
      const bool agree = nvlink ? one.path == two.path && one.nvlinks == two.nvlinks
                                : (one.path < PathClass::kPhb) == (two.path < PathClass::kPhb);
      if (both && !agree) {
        return fail(fmt::format("{} joins GPU{} and GPU{} by {}, {} by {}, for the same host", first_file, i, j,
                                path_class_name(one.path, one.nvlinks), second_file, path_class_name(two.path, two.nvlinks)), pos, way_out);
      }
    }
  }
  return true;
}

/// The host of one or several files. The first names the host; classes that a later one declares are added.
Result<Host> read_host_files(const std::vector<std::string>& names, const std::string& cluster_file, const SourcePos& pos) {
  if (names.empty()) return fail("'file' is empty, expected a file name", pos);
  Host host;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string path = resolve(names[i], cluster_file);
    Result<std::string> text = read_text_file(path);
    if (!text) return tl::make_unexpected(located(std::move(text).error(), pos));
    TRY_INTO(Host next, read_host(*text, path));
    if (i == 0) {
      host = std::move(next);
      host.name = names[i];
      continue;
    }
    TRY_INTO([[maybe_unused]] const bool agree, check_agreement(host, names[0], next, names[i], pos));
    if (host.accelerator.empty() && !next.accelerator.empty()) host = std::move(next);
  }
  return host;
}

/// Adds NICs to a host whose files show none, on the root complex of the first socket.
void add_missing_nics(Host& host, const hardware::Nic& nic, int count) {
  std::vector<int> cpus = host.of_kind(DeviceKind::kCpu);
  const int cpu = cpus.empty() ? add_cpu(host, 0) : cpus.front();
  constexpr int kFallbackGeneration = 4;
  int generation = kFallbackGeneration;
  if (const auto accelerator = hardware::find_accelerator(host.accelerator)) generation = accelerator->pcie_generation;
  for (int i = 0; i < count; ++i) {
    Device device{DeviceKind::kNic, fmt::format("NIC{}", i), nic.name, {}, host.devices[static_cast<std::size_t>(cpu)].numa};
    device.line_bytes_per_s = nic.bytes_per_s;
    const int index = host.add_device(std::move(device));
    host.add_duplex(index, add_bridge(host, cpu, generation), LinkKind::kPcie, 16,
                    wiring::pcie(generation, 16, fmt::format("{}PCIe {}.0 x16", kAssumed, generation)));
  }
  host.notes.push_back({fmt::format("the wiring shows no NIC: {} x {} assumed on socket 0", count, nic.name), {}});
}

Result<bool> apply_nic(Host& host, const YamlMap& map) {
  TRY_INTO(const std::optional<std::string> name, map.text("nic"));
  TRY_INTO(const std::optional<int> count, map.integer("nics", 1, 64));
  if (!name) {
    if (count) return fail("'nics' without 'nic': the kind of the NICs is missing", map.position("nics"), {"add e.g. 'nic: connectx-7-400g'"});
    return true;
  }
  Result<hardware::Nic> nic = hardware::find_nic(*name);
  if (!nic) return tl::make_unexpected(located(std::move(nic).error(), map.position("nic")));
  const std::vector<int> nics = host.nics();
  if (nics.empty()) {
    add_missing_nics(host, *nic, count.value_or(1));
    return true;
  }
  if (count && *count != static_cast<int>(nics.size()) && *count != static_cast<int>(compute_nics(host).size())) {
    return fail(fmt::format("'nics' is {}, but the wiring shows {} ({} of them near a GPU)", *count, nics.size(), compute_nics(host).size()),
                map.position("nics"), {"leave 'nics' out: the wiring says how many there are"});
  }
  set_nics(host, *nic);
  return true;
}

Result<Host> read_host_source(const YamlMap& map, const std::string& cluster_file) {
  TRY_INTO(const std::vector<std::string> files, map.texts("file"));
  TRY_INTO(const std::optional<std::string> name, map.text("template"));
  TRY_INTO(const std::optional<std::string> accelerator_name, map.text("accelerator"));
  if (map.has("file") == name.has_value()) {
    return fail("a host needs either 'file' (what its tools printed) or 'template' (a catalogue host)", map.position());
  }
  Host host;
  if (name) {
    Result<hardware::HostTemplate> description = hardware::find_host(*name);
    if (!description) return tl::make_unexpected(located(std::move(description).error(), map.position("template")));
    if (accelerator_name) description->accelerator = *accelerator_name;
    Result<Host> built = build_host(*description);
    if (!built) return tl::make_unexpected(located(std::move(built).error(), map.position("template")));
    return built;
  }
  TRY_INTO(host, read_host_files(files, cluster_file, map.position("file")));
  if (accelerator_name) {
    Result<hardware::Accelerator> accelerator = hardware::find_accelerator(*accelerator_name);
    if (!accelerator) return tl::make_unexpected(located(std::move(accelerator).error(), map.position("accelerator")));
    Result<Host> settled = with_accelerator(std::move(host), *accelerator);
    if (!settled) return tl::make_unexpected(located(std::move(settled).error(), map.position("accelerator")));
    return settled;
  }
  return host;
}

Result<HostGroup> read_group(const YamlMap& map, const std::string& cluster_file) {
  HostGroup group;
  TRY_INTO(group.host, read_host_source(map, cluster_file));
  TRY_INTO(const std::optional<int> count, map.integer("count", 1, kMaxHosts));
  group.count = count.value_or(1);
  TRY_INTO([[maybe_unused]] const bool nic, apply_nic(group.host, map));
  TRY_INTO(const std::optional<bool> peer_to_peer, map.boolean("peer_to_peer"));
  TRY_INTO(const std::optional<bool> gpudirect, map.boolean("gpudirect_rdma"));
  if (peer_to_peer) group.host.peer_to_peer = *peer_to_peer;
  if (gpudirect) group.host.gpudirect_rdma = *gpudirect;
  // First the keys: a misspelt 'accelerator' is the better message than a missing one.
  TRY_INTO([[maybe_unused]] const bool done, map.finish());
  if (group.host.accelerator.empty()) {
    return fail(fmt::format("{} does not say which accelerator it is", group.host.name), map.position("file"), {"add e.g. 'accelerator: a100-pcie-80gb'"});
  }
  return group;
}

/// What `chokepoint measure --network` found: 'file' under 'fabric'.
Result<Fabric> read_fabric_file(const YamlMap& map, const std::string& name, const std::string& cluster_file) {
  const std::string path = resolve(name, cluster_file);
  Result<std::string> text = read_text_file(path);
  if (!text) return tl::make_unexpected(located(std::move(text).error(), map.position("file")));
  TRY_INTO(const MeasuredNetwork network, read_measured_network(*text, path));
  return fabric_of(network);
}

Result<Fabric> read_fabric(const YamlMap& map, const std::string& cluster_file) {
  Fabric fabric;
  fabric.kind = FabricKind::kSingleSwitch;
  fabric.origin = "cluster file";
  TRY_INTO(const std::optional<std::string> name, map.text("template"));
  if (name) {
    Result<hardware::FabricTemplate> description = hardware::find_fabric(*name);
    if (!description) return tl::make_unexpected(located(std::move(description).error(), map.position("template")));
    TRY_INTO(fabric, build_fabric(*description));
  }
  TRY_INTO(const std::optional<std::string> measured_file, map.text("file"));
  if (measured_file) {
    if (name) return fail("'fabric' has both a 'file' and a 'template', expected one of them", map.position("file"));
    TRY_INTO(fabric, read_fabric_file(map, *measured_file, cluster_file));
  }
  TRY_INTO(const std::optional<std::string> kind, map.text("kind"));
  if (kind) {
    Result<FabricKind> parsed = parse_fabric_kind(*kind);
    if (!parsed) return tl::make_unexpected(located(std::move(parsed).error(), map.position("kind")));
    fabric.kind = *parsed;
  }
  TRY_INTO(const std::optional<std::string> transport, map.text("transport"));
  if (transport) {
    Result<Transport> parsed = parse_transport(*transport);
    if (!parsed) return tl::make_unexpected(located(std::move(parsed).error(), map.position("transport")));
    fabric.transport = *parsed;
  } else if (!name && !measured_file) {
    return fail("'fabric' needs a 'transport' (infiniband, roce, tcp, ...) or a 'template'", map.position());
  }
  TRY_INTO(const std::optional<int> leaf, map.integer("hosts_per_leaf", 1, kMaxHosts));
  TRY_INTO(const std::optional<double> oversubscription, map.number("oversubscription", 1, 1000));
  TRY_INTO(const std::optional<double> measured, map.rate("measured"));
  if (measured) fabric.node_measured_bytes_per_s = measured;
  if (leaf) fabric.hosts_per_leaf = *leaf;
  if (oversubscription) fabric.oversubscription = *oversubscription;
  TRY_INTO([[maybe_unused]] const bool done, map.finish());
  return fabric;
}

Result<MeasuredCollectives> read_measured(const YamlMap& map) {
  MeasuredCollectives measured;
  TRY_INTO(measured.all_reduce, map.rate("all_reduce"));
  TRY_INTO(measured.all_gather, map.rate("all_gather"));
  TRY_INTO(measured.reduce_scatter, map.rate("reduce_scatter"));
  TRY_INTO(measured.host_all_reduce, map.rate("host_all_reduce"));
  TRY_INTO(measured.host_all_gather, map.rate("host_all_gather"));
  TRY_INTO(measured.host_reduce_scatter, map.rate("host_reduce_scatter"));
  TRY_INTO([[maybe_unused]] const bool done, map.finish());
  return measured;
}

Result<Prices> read_prices(const YamlMap& map) {
  Prices prices;
  TRY_INTO(prices.accelerator_hour_usd, map.number("accelerator_hour_usd", 0, 1e6));
  TRY_INTO(const std::optional<std::string> date, map.text("date"));
  prices.date = date.value_or("");
  TRY_INTO([[maybe_unused]] const bool done, map.finish());
  return prices;
}

/// A measured rate above what the NICs carry is a slip of units: eight times as much is bits taken for bytes.
Result<bool> check_measured_rate(const Cluster& cluster, const SourcePos& pos) {
  if (!cluster.fabric.node_measured_bytes_per_s) return true;
  const double measured = *cluster.fabric.node_measured_bytes_per_s;
  for (const HostGroup& group : cluster.hosts) {
    double line_rate = 0;
    for (const int nic : compute_nics(group.host)) line_rate += group.host.devices[static_cast<std::size_t>(nic)].line_bytes_per_s;
    constexpr double kRounding = 1.05;
    if (line_rate <= 0 || measured <= kRounding * line_rate) continue;
    return fail(fmt::format("'measured' is {}, {:.1f} times the line rate of the NICs of {}, {} one direction", format_rate(measured),
                            measured / line_rate, group.host.name, format_rate(line_rate)), pos,
                {"b is bits and B bytes: \"400 Gb/s\" is \"50 GB/s\"", "give the rate of one host over all its NICs, one direction"});
  }
  return true;
}

/// What the parts of a cluster must have in common.
Result<bool> check_cluster(Cluster& cluster, bool fabric_given, const YamlMap& map) {
  const Host& first = cluster.hosts.front().host;
  if (first.gpus().empty()) return fail("the first host shows no GPU", map.position("hosts"));
  for (const HostGroup& group : cluster.hosts) {
    if (group.host.accelerator != first.accelerator || group.host.gpus().size() != first.gpus().size()) {
      cluster.notes.push_back({fmt::format("hosts differ: {} has {} x {}, {} has {} x {}; the first kind sets the pace", first.name,
                                           first.gpus().size(), first.accelerator, group.host.name, group.host.gpus().size(), group.host.accelerator),
                               map.position("hosts")});
    }
  }
  if (cluster.host_count() == 1) return true;
  if (!fabric_given) {
    return fail(fmt::format("{} hosts but no 'fabric'", cluster.host_count()), map.position("hosts"),
                {"add e.g. 'fabric: {kind: single-switch, transport: infiniband}'"});
  }
  for (const HostGroup& group : cluster.hosts) {
    const std::vector<int> nics = compute_nics(group.host);
    const bool known = std::any_of(nics.begin(), nics.end(), [&group](int nic) { return group.host.devices[static_cast<std::size_t>(nic)].line_bytes_per_s > 0; });
    if (known || cluster.fabric.node_measured_bytes_per_s) continue;
    return fail(fmt::format("the wiring of {} does not say how fast its NICs are", group.host.name), map.position("hosts"),
                {"add 'nic: NAME' to the host, or 'measured: 45 GB/s' to the fabric"});
  }
  return true;
}

}  // namespace

void set_nics(Host& host, const hardware::Nic& nic) {
  for (const int index : compute_nics(host)) {
    Device& device = host.devices[static_cast<std::size_t>(index)];
    device.model = nic.name;
    device.line_bytes_per_s = nic.bytes_per_s;
  }
  host.notes.erase(std::remove_if(host.notes.begin(), host.notes.end(), [](const Note& note) { return note.text == "rate of the NICs not stated"; }),
                   host.notes.end());
}

Result<Cluster> read_cluster_yaml(std::string_view text, const std::string& file) {
  TRY_INTO(const YamlMap map, YamlMap::parse(text, file));
  Cluster cluster;
  TRY_INTO(const std::optional<std::string> name, map.text("name"));
  cluster.name = name.value_or(file);
  TRY_INTO(const std::vector<YamlMap> hosts, map.maps("hosts"));
  if (hosts.empty()) return fail("'hosts' is missing or empty", map.position(), {"add e.g. 'hosts: [{template: dgx-h100, count: 2}]'"});
  for (const YamlMap& entry : hosts) {
    TRY_INTO(HostGroup group, read_group(entry, file));
    cluster.hosts.push_back(std::move(group));
  }
  TRY_INTO(const std::optional<YamlMap> fabric, map.map("fabric"));
  TRY_INTO(const std::optional<YamlMap> measured, map.map("measured"));
  TRY_INTO(const std::optional<YamlMap> prices, map.map("prices"));
  if (fabric) {
    TRY_INTO(cluster.fabric, read_fabric(*fabric, file));
  }
  if (measured) {
    TRY_INTO(cluster.measured, read_measured(*measured));
  }
  if (prices) {
    TRY_INTO(cluster.prices, read_prices(*prices));
  }
  TRY_INTO([[maybe_unused]] const bool done, map.finish());
  TRY_INTO([[maybe_unused]] const bool sound, check_cluster(cluster, fabric.has_value(), map));
  if (fabric && cluster.fabric.kind == FabricKind::kNone && cluster.host_count() > 1) {
    return fail(fmt::format("fabric kind none cannot join {} hosts", cluster.host_count()), fabric->position("kind"),
                {"name what joins them: single-switch, fat-tree or rail-optimised"});
  }
  if (fabric) { TRY_INTO([[maybe_unused]] const bool possible, check_measured_rate(cluster, fabric->position("measured"))); }
  return cluster;
}

}  // namespace chokepoint::wiring
