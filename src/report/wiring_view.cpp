// SPDX-License-Identifier: Apache-2.0
#include "host_tree.hpp"

#include <chokepoint/base/text.hpp>
#include <chokepoint/base/units.hpp>
#include <chokepoint/report/wiring_view.hpp>

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace chokepoint::report {

using namespace topology;

namespace {

constexpr std::size_t kMatrixCell = 5;
constexpr std::size_t kMaxPairsShown = 24;

const Device& device_at(const Host& host, int index) { return host.devices[static_cast<std::size_t>(index)]; }

std::string line_rate(double bytes_per_s, const Style& style) { return bytes_per_s > 0 ? fmt::format("{:g} Gb/s", bytes_per_s * 8 / 1e9) : style.say("rate unknown"); }

std::string nic_summary(const Host& host, const Style& style) {
  const std::vector<int> nics = compute_nics(host);
  if (nics.empty()) return style.say("no NIC");
  std::set<double> rates;
  for (const int nic : nics) rates.insert(device_at(host, nic).line_bytes_per_s);
  std::string text = style.say(nics.size() == 1 ? "{} NIC" : "{} NICs", {std::to_string(nics.size())});
  if (rates.size() == 1) text += fmt::format(" x {}", line_rate(*rates.begin(), style));
  if (host.nics().size() > nics.size()) text += " " + style.say("(and {} away from the GPUs)", {std::to_string(host.nics().size() - nics.size())});
  return text;
}

class TextDrawing {
 public:
  TextDrawing(const Host& host, const Style& style) : host_(host), style_(style) {}
  void tree(std::string& out);
  void gpu_links(std::string& out);
  void sockets(std::string& out);
  void matrix(std::string& out);

 private:
  void node(std::string& out, const TreeNode& tree, const std::string& indent, bool last);
  std::string label(const TreeNode& tree) const;
  std::string cell(const DeclaredPath& path) const;
  std::string device_name(int device) const;

  const Host& host_;
  const Style& style_;
};

std::string TextDrawing::device_name(int index) const {
  const Device& device = device_at(host_, index);
  std::string text = device.name;
  if (device.kind == DeviceKind::kGpu) text = style_.green(text);
  if (device.kind == DeviceKind::kNic) text = style_.cyan(text);
  if (!device.alias.empty()) text += " " + device.alias;
  return text;
}

std::string TextDrawing::label(const TreeNode& tree) const {
  const Device& device = device_at(host_, tree.device);
  std::string text = device_name(tree.device);
  if (device.kind != DeviceKind::kHostBridge) text = pad_right(text, device.kind == DeviceKind::kPcieSwitch ? 17 : 14);
  if (tree.uplink >= 0) {
    const Link& link = host_.links[static_cast<std::size_t>(tree.uplink)];
    if (link.kind == LinkKind::kPcie) {
      text += "  " + pad_right(link_words(link), 14) + pad_left(format_rate(link.bandwidth.effective()), 10);
    }
  }
  if (device.kind == DeviceKind::kNic) text += "   " + style_.say("port {}", {line_rate(device.line_bytes_per_s, style_)});
  if (device.kind == DeviceKind::kNic && !device.model.empty()) text += "  " + style_.dim(device.model);
  return text;
}

void TextDrawing::node(std::string& out, const TreeNode& tree, const std::string& indent, bool last) {
  out += "  " + indent + (last ? "\u2514\u2500 " : "\u251c\u2500 ") + label(tree) + "\n";
  const std::string deeper = indent + (last ? "   " : "\u2502  ");
  for (std::size_t i = 0; i < tree.children.size(); ++i) node(out, tree.children[i], deeper, i + 1 == tree.children.size());
}

void TextDrawing::tree(std::string& out) {
  for (const TreeNode& root : host_forest(host_)) {
    out += "  " + style_.bold(device_at(host_, root.device).name) + "\n";
    for (std::size_t i = 0; i < root.children.size(); ++i) node(out, root.children[i], "", i + 1 == root.children.size());
  }
}

void TextDrawing::gpu_links(std::string& out) {
  const std::vector<int> switches = host_.of_kind(DeviceKind::kNvSwitch);
  for (const int nvswitch : switches) {
    std::vector<std::string> members;
    const Link* first = nullptr;
    bool equal = true;
    for (const Link& link : host_.links) {
      if (link.to != nvswitch) continue;
      members.push_back(device_at(host_, link.from).name);
      equal = equal && (first == nullptr || first->width == link.width);
      if (first == nullptr) first = &link;
    }
    if (first == nullptr) continue;
    const std::string each = style_.say("{} each", {format_rate(first->bandwidth.effective())});
    out += fmt::format("  {}  {}: {}, {}{}\n", style_.bold("NVSwitch"), short_list(members), link_words(*first), each, equal ? "" : " " + style_.say("(the first; others differ)"));
    if (host_.nvlink_domain_hosts > 1) out += "            " + style_.say("one NVLink domain over {} hosts", {std::to_string(host_.nvlink_domain_hosts)}) + "\n";
  }
  for (const LinkGroup& group : direct_gpu_links(host_)) {
    std::string pairs;
    for (std::size_t i = 0; i < group.pairs.size() && i < kMaxPairsShown; ++i) {
      pairs += fmt::format(" {}-{}", group.pairs[i].first, group.pairs[i].second);
    }
    if (group.pairs.size() > kMaxPairsShown) pairs += " " + style_.say("and {} more", {std::to_string(group.pairs.size() - kMaxPairsShown)});
    const char* kind = group.kind == LinkKind::kXgmi ? "xGMI" : "NVLink";
    const std::string links = style_.say(group.width == 1 ? "{} link" : "{} links", {std::to_string(group.width)}) + (group.width == 1 ? " " : "");
    out += fmt::format("  {}  {} = {}:{}\n", style_.bold(kind), links, format_rate(group.bytes_per_s), pairs);
  }
}

void TextDrawing::sockets(std::string& out) {
  std::set<double> rates;
  bool assumed = false;
  for (const Link& link : host_.links) {
    if (link.kind != LinkKind::kSocket) continue;
    rates.insert(link.bandwidth.effective());
    assumed = assumed || link.bandwidth.origin.compare(0, 8, "assumed:") == 0;
  }
  for (const double rate : rates) {
    out += fmt::format("  {}  {}{}\n", style_.bold(style_.say("Sockets")), style_.say("{} for PCIe traffic between NUMA nodes", {format_rate(rate)}), assumed ? ", " + style_.say("assumed") : "");
  }
}

std::string TextDrawing::cell(const DeclaredPath& path) const {
  const std::string text = pad_right(path_class_name(path.path, path.nvlinks), kMatrixCell);
  switch (path.path) {
    case PathClass::kNvLink: return style_.green(text);
    case PathClass::kPix:
    case PathClass::kPxb: return style_.cyan(text);
    case PathClass::kPhb:
    case PathClass::kNode: return style_.yellow(text);
    case PathClass::kSys: return style_.red(text);
    default: return style_.dim(text);
  }
}

void TextDrawing::matrix(std::string& out) {
  const std::vector<int> gpus = host_.gpus();
  if (gpus.empty()) return;
  const std::size_t space = static_cast<std::size_t>(std::max(60, style_.width)) - 9;
  std::vector<int> columns = gpus;
  if ((gpus.size() + host_.nics().size()) * kMatrixCell <= space) {
    for (const int nic : host_.nics()) columns.push_back(nic);
  } else if (gpus.size() * kMatrixCell > space) {
    out += "  " + style_.say("Paths: too many to print; --json has them") + "\n";
    return;
  }
  out += "  " + pad_right(style_.say("Paths"), 7);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const bool gpu = i < gpus.size();
    out += style_.dim(pad_right(fmt::format("{}{}", gpu ? "G" : "N", gpu ? i : i - gpus.size()), kMatrixCell));
  }
  out += "\n";
  for (const int row : gpus) {
    out += "  " + pad_right(device_at(host_, row).name, 7);
    for (const int column : columns) out += cell(path_between(host_, row, column));
    out += "\n";
  }
}

std::string title(const HostGroup& group, const Style& style) {
  const Host& host = group.host;
  std::string text = host.gpus().empty() ? style.say("GPUs unknown") : fmt::format("{} x {}", host.gpus().size(), host.accelerator.empty() ? style.say("GPU of unknown kind") : host.accelerator);
  text += fmt::format(" \u00b7 {}", nic_summary(host, style));
  if (!host.peer_to_peer) text += " \u00b7 " + style.say("no peer-to-peer over PCIe");
  if (!host.gpudirect_rdma) text += " \u00b7 " + style.say("no GPUDirect RDMA");
  return text;
}

std::string fabric_words(const Cluster& cluster, const Style& style) {
  const Fabric& fabric = cluster.fabric;
  std::string text = style.say("{} hosts", {std::to_string(cluster.host_count())}) + ", " + style.say(name(fabric.kind));
  if (fabric.kind == FabricKind::kNone) return text;
  text += fmt::format(", {}", name(fabric.transport));
  if (fabric.hosts_per_leaf > 0) text += ", " + style.say("{} hosts per leaf", {std::to_string(fabric.hosts_per_leaf)});
  text += ", " + (fabric.oversubscription > 1 ? style.say("{}:1 oversubscribed", {fmt::format("{:g}", fabric.oversubscription)}) : style.say("non-blocking"));
  if (fabric.node_measured_bytes_per_s) text += ", " + style.say("measured {} per host", {format_rate(*fabric.node_measured_bytes_per_s)});
  return text;
}

void add_notes(std::string& out, const Cluster& cluster, const Style& style) {
  std::vector<Note> notes = cluster.notes;
  for (const HostGroup& group : cluster.hosts) notes.insert(notes.end(), group.host.notes.begin(), group.host.notes.end());
  if (notes.empty()) return;
  out += style.bold(style.say("Not known or assumed ({})", {std::to_string(notes.size())})) + "\n";
  for (const Note& note : notes) {
    out += "  - " + style.say(note.text);
    if (note.pos.line > 0) out += style.dim(fmt::format("  ({}:{})", note.pos.file, note.pos.line));
    out += "\n";
  }
}

}  // namespace

std::string wiring_text(const Cluster& cluster, const Style& style, bool quiet) {
  std::string out;
  for (const HostGroup& group : cluster.hosts) {
    out += style.bold(group.host.name.empty() ? cluster.name : group.host.name);
    if (group.count > 1) out += fmt::format(" x {}", group.count);
    out += "  " + title(group, style) + "\n\n";
    TextDrawing drawing(group.host, style);
    drawing.tree(out);
    out += "\n";
    drawing.gpu_links(out);
    drawing.sockets(out);
    out += "\n";
    drawing.matrix(out);
    out += "\n";
  }
  if (cluster.host_count() > 1) out += style.bold(style.say("Fabric")) + "  " + fabric_words(cluster, style) + "\n\n";
  if (!quiet) add_notes(out, cluster, style);
  return out;
}

std::string expected_text(const ExpectedTable& table, const Style& style) {
  std::string out = style.bold("# " + style.say(table.group.hosts() == 1 ? "{}: {} ranks on {} host, {}" : "{}: {} ranks on {} hosts, {}",
                                            {std::string(collective::name(table.op)), std::to_string(table.group.ranks), std::to_string(table.group.hosts()), table.accelerator})) + "\n";
  out += fmt::format("# {:>12} {:>12} {:>6} {:>11} {:>8} {:>8}  {:<14} {:>10}  {}\n", "size", "count", "type", "time", "algbw", "busbw", table.measured_file.empty() ? "algorithm" : "measured reached  algorithm",
                     "floor", "limit");
  out += fmt::format("# {:>12} {:>12} {:>6} {:>11} {:>8} {:>8}  {:<14} {:>10}\n", "(B)", "(elements)", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)");
  constexpr double kBytesPerFloat = 4;
  const bool measured = !table.measured_file.empty();
  if (measured) out += "# " + style.say("measured") + ": " + table.measured_file + "\n";
  for (const ExpectedTable::Row& row : table.rows) {
    const collective::Cost& cost = row.cost;
    const double algorithm_rate = cost.time_s > 0 ? row.bytes / cost.time_s : 0;
    std::string reached;
    if (row.measured_bus_bytes_per_s) {
      const double share = cost.bus_bytes_per_s > 0 ? *row.measured_bus_bytes_per_s / cost.bus_bytes_per_s : 0;
      reached = fmt::format("{:>8.2f} {:>5.0f} %  ", *row.measured_bus_bytes_per_s / 1e9, 100 * share);
    } else if (measured) {
      reached = std::string(18, ' ');
    }
    out += fmt::format("  {:>12.0f} {:>12.0f} {:>6} {:>11.1f} {:>8.2f} {:>8.2f}  {}{:<14} {:>10.1f}  {}\n", row.bytes, row.bytes / kBytesPerFloat, "float",
                       cost.time_s * 1e6, algorithm_rate / 1e9, cost.bus_bytes_per_s / 1e9, reached, fmt::format("{}/{}", cost.algorithm, cost.protocol),
                       cost.floor_s * 1e6, cost.limit == collective::LimitKind::kLatency ? style.say("latency") : style.say(cost.where));
  }
  return out + "\n";
}

}  // namespace chokepoint::report
