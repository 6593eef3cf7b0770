// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/assemble/export.hpp>

#include <chokepoint/base/files.hpp>
#include <chokepoint/base/units.hpp>

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace chokepoint::assemble {

using namespace topology;

namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + "\"";
}

/// Shortest text that names the same rate: "400 Gb/s".
std::string rate_text(double bytes_per_s) { return fmt::format("{:g} GB/s", bytes_per_s / 1e9); }

std::string base_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

}  // namespace

YamlExport to_yaml(const Cluster& cluster, std::string_view stem) {
  YamlExport out;
  std::string& text = out.cluster;
  text = fmt::format("name: {}\nhosts:\n", quoted(cluster.name));
  for (std::size_t i = 0; i < cluster.hosts.size(); ++i) {
    const HostGroup& group = cluster.hosts[i];
    const std::string file = fmt::format("{}-host{}.xml", base_name(stem), i);
    out.host_files.emplace_back(file, to_nccl_xml(group.host));
    text += fmt::format("  - file: {}  # {}\n    count: {}\n", file, group.host.name.substr(0, 100), group.count);
    if (!group.host.accelerator.empty()) text += fmt::format("    accelerator: {}\n", group.host.accelerator);
    if (!group.host.peer_to_peer) text += "    peer_to_peer: false\n";
    if (!group.host.gpudirect_rdma) text += "    gpudirect_rdma: false\n";
  }
  const Fabric& fabric = cluster.fabric;
  if (fabric.kind != FabricKind::kNone) {
    text += fmt::format("fabric:\n  kind: {}\n  transport: {}\n", topology::name(fabric.kind), topology::name(fabric.transport));
    if (fabric.hosts_per_leaf > 0) text += fmt::format("  hosts_per_leaf: {}\n", fabric.hosts_per_leaf);
    if (fabric.oversubscription > 1) text += fmt::format("  oversubscription: {:.4g}\n", fabric.oversubscription);
    if (fabric.node_measured_bytes_per_s) text += fmt::format("  measured: \"{}\"\n", rate_text(*fabric.node_measured_bytes_per_s));
  }
  std::string measured;
  const auto add = [&measured](const char* key, const std::optional<double>& value) {
    if (value) measured += fmt::format("  {}: \"{}\"\n", key, rate_text(*value));
  };
  add("all_reduce", cluster.measured.all_reduce);
  add("all_gather", cluster.measured.all_gather);
  add("reduce_scatter", cluster.measured.reduce_scatter);
  add("host_all_reduce", cluster.measured.host_all_reduce);
  add("host_all_gather", cluster.measured.host_all_gather);
  add("host_reduce_scatter", cluster.measured.host_reduce_scatter);
  if (!measured.empty()) text += "measured:\n" + measured;
  return out;
}

namespace {

std::string dot_name(const FabricNode& node, std::size_t index) { return fmt::format("f{} [label={}{}]", index, quoted(node.name.empty() ? node.id : node.name), node.is_switch ? ", shape=box" : ""); }

void dot_host(std::string& out, const HostGroup& group, std::size_t number) {
  out += fmt::format("  subgraph cluster_{} {{\n    label={};\n", number, quoted(group.count > 1 ? fmt::format("{} x {}", group.host.name, group.count) : group.host.name));
  for (std::size_t i = 0; i < group.host.devices.size(); ++i) {
    const Device& device = group.host.devices[i];
    const char* shape = device.kind == DeviceKind::kGpu ? "box" : device.kind == DeviceKind::kNic ? "cds" : "ellipse";
    out += fmt::format("    h{}d{} [label={}, shape={}];\n", number, i, quoted(device.name), shape);
  }
  for (const Link& link : group.host.links) {
    if (link.from > link.to) continue;  // both directions are one line
    const double rate = link.bandwidth.effective();
    out += fmt::format("    h{}d{} -- h{}d{} [label={}];\n", number, link.from, number, link.to, quoted(rate > 0 ? fmt::format("{} {}", topology::name(link.kind), format_rate(rate)) : std::string(topology::name(link.kind))));
  }
  out += "  }\n";
}

}  // namespace

std::string to_dot(const Assembly& assembly) {
  constexpr std::size_t kMaxNodes = 5000;  // beyond this no layout finishes
  std::string out = "graph wiring {\n  node [fontsize=10];\n";
  for (std::size_t i = 0; i < assembly.cluster.hosts.size(); ++i) dot_host(out, assembly.cluster.hosts[i], i);
  if (assembly.fabric && assembly.fabric->nodes.size() <= kMaxNodes) {
    for (std::size_t i = 0; i < assembly.fabric->nodes.size(); ++i) out += "  " + dot_name(assembly.fabric->nodes[i], i) + ";\n";
    for (const FabricLink& link : assembly.fabric->links) {
      out += fmt::format("  f{} -- f{}{};\n", link.a, link.b, link.rate.empty() ? std::string() : fmt::format(" [label={}]", quoted(fmt::format("{}x{}", link.width, link.rate))));
    }
  }
  return out + "}\n";
}

namespace {

/// Slurm takes letters, digits, '-', '_' and '.' in names.
std::string slurm_name(std::string_view text) {
  std::string out;
  for (const char c : text) out += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.' ? c : '_';
  return out;
}

std::string joined(const std::set<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ",") + name;
  return out;
}

std::string slurm_of_graph(const FabricGraph& graph, const FabricShape& shape) {
  std::vector<std::set<std::string>> nodes(graph.nodes.size());
  std::vector<std::set<std::string>> switches(graph.nodes.size());
  const auto label = [&graph](int node) {
    const FabricNode& found = graph.nodes[static_cast<std::size_t>(node)];
    return slurm_name(!found.is_switch && !found.host.empty() ? found.host : found.name.empty() ? found.id : found.name);
  };
  for (const FabricLink& link : graph.links) {
    for (const auto& [low, high] : {std::make_pair(link.a, link.b), std::make_pair(link.b, link.a)}) {
      const auto above = static_cast<std::size_t>(high);
      const FabricNode& below = graph.nodes[static_cast<std::size_t>(low)];
      if (!graph.nodes[above].is_switch || below.in_network) continue;
      if (!below.is_switch) nodes[above].insert(label(low));
      else if (shape.level[static_cast<std::size_t>(low)] >= 0 && shape.level[static_cast<std::size_t>(low)] < shape.level[above]) switches[above].insert(label(low));
    }
  }
  std::string out;
  for (int level = 1; level <= shape.levels; ++level) {
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      if (!graph.nodes[i].is_switch || shape.level[i] != level) continue;
      if (nodes[i].empty() && switches[i].empty()) continue;
      out += "SwitchName=" + label(static_cast<int>(i));
      if (!nodes[i].empty()) out += " Nodes=" + joined(nodes[i]);
      if (!switches[i].empty()) out += " Switches=" + joined(switches[i]);
      out += "\n";
    }
  }
  return out;
}

}  // namespace

Result<std::string> to_slurm(const Assembly& assembly) {
  if (assembly.fabric && assembly.shape.switches > 0) return slurm_of_graph(*assembly.fabric, assembly.shape);
  const Cluster& cluster = assembly.cluster;
  const int hosts = cluster.host_count();
  if (hosts < 1 || cluster.fabric.kind == FabricKind::kNone) return fail("nothing says what joins the hosts, so there is no tree to export", {}, {"add --fabric NAME or the output of ibnetdiscover"});
  const int per_leaf = cluster.fabric.hosts_per_leaf > 0 ? cluster.fabric.hosts_per_leaf : hosts;
  std::string out;
  int leaf = 0;
  for (int first = 0; first < hosts; first += per_leaf, ++leaf) out += fmt::format("SwitchName=leaf{} Nodes=host[{}-{}]\n", leaf, first, std::min(hosts, first + per_leaf) - 1);
  if (leaf > 1) out += fmt::format("SwitchName=spine Switches=leaf[0-{}]\n", leaf - 1);
  return out;
}

}  // namespace chokepoint::assemble
