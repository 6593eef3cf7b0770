// SPDX-License-Identifier: Apache-2.0
// One host as a picture: a panel per NUMA node with its PCIe tree, GPUs and NICs in a row at the bottom, the NVSwitch or
// the direct GPU links below them, notes under the drawing. Narrow PCIe links are red.
#include "host_tree.hpp"
#include "json_data.hpp"
#include "markup.hpp"

#include <chokepoint/base/units.hpp>
#include <chokepoint/report/wiring_view.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <map>

namespace chokepoint::report {

using namespace topology;

namespace {

constexpr double kLeafWidth = 96;
constexpr double kLeafHeight = 50;
constexpr double kGap = 12;
constexpr double kPadding = 18;
constexpr double kPanelGap = 90;  // room for the label of the link between sockets
constexpr double kTop = 104;
constexpr double kLevel = 84;
constexpr double kSwitchHeight = 28;
constexpr double kMargin = 28;
constexpr double kCharacter = 6.6;  // of the 12 px text
constexpr double kMinWidth = 760;

const Device& device_at(const Host& host, int index) { return host.devices[static_cast<std::size_t>(index)]; }

/// At most `columns` characters, cut with an ellipsis; never inside a UTF-8 sequence.
std::string shorten(const std::string& text, int columns) {
  if (display_width(text) <= columns) return text;
  std::string cut;
  for (const char c : text) {
    const bool starts = (static_cast<unsigned char>(c) & 0xC0u) != 0x80u;
    if (starts && display_width(cut) >= columns - 1) break;
    cut += c;
  }
  return cut + "\u2026";
}

int depth_of(const TreeNode& node) {
  int depth = 0;
  for (const TreeNode& child : node.children) depth = std::max(depth, depth_of(child));
  return depth + 1;
}

struct Point {
  double x = 0;
  double y = 0;
};

class Picture {
 public:
  Picture(const Cluster& cluster, const Words& words) : cluster_(cluster), host_(cluster.hosts.front().host), words_(words) {}
  std::string draw();

 private:
  void panels();
  Point place(const TreeNode& node, double& x, int level);
  void box(Point centre_top, double width, double height, const char* type, const std::string& first, const std::string& second, const std::string& device);
  void text(double x, double y, const char* type, const std::string& words, const char* anchor = "middle");
  void link(Point from, Point to, const Link& link, bool labelled);
  void socket_links();
  void nvswitch();
  void direct_links();
  void notes();

  const Cluster& cluster_;
  const Host& host_;
  const Words& words_;
  std::string links_;  ///< drawn first, under the boxes
  std::string boxes_;
  std::map<int, Point> top_;  ///< upper middle of each drawn device
  std::vector<std::pair<int, std::pair<double, double>>> panel_of_cpu_;
  double width_ = 0;
  double leaf_y_ = 0;
  double bottom_ = 0;
  double widest_pcie_ = 0;
};

void Picture::text(double x, double y, const char* type, const std::string& words, const char* anchor) {
  boxes_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\" text-anchor=\"{}\">{}</text>\n", x, y, type, anchor, escaped(words));
}

void Picture::box(Point at, double width, double height, const char* type, const std::string& first, const std::string& second, const std::string& device) {
  // The name lets a page mark the device that a finding is about.
  boxes_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"5\" class=\"{}\" data-device=\"{}\"/>\n", at.x - width / 2, at.y,
                        width, height, type, escaped(device));
  const int columns = static_cast<int>((width - 6) / kCharacter);
  text(at.x, at.y + (second.empty() ? height / 2 + 4 : 20), "label", shorten(first, columns));
  if (!second.empty()) text(at.x, at.y + 37, "small", shorten(second, columns + 3));
}

void Picture::link(Point from, Point to, const Link& line, bool labelled) {
  const double rate = line.bandwidth.effective();
  const bool narrow = line.kind == LinkKind::kPcie && rate > 0 && rate * 1.5 < widest_pcie_;
  const double middle = from.y + 18;
  links_ += fmt::format("<path d=\"M{:.1f} {:.1f}V{:.1f}H{:.1f}V{:.1f}\" class=\"{}\" stroke-width=\"{:.1f}\"/>\n", from.x, from.y, middle, to.x, to.y,
                        narrow ? "narrow" : "pcie", std::clamp(std::log2(std::max(rate, 1e9) / 1e9) / 1.6, 1.0, 4.0));
  if (labelled) {
    text(to.x + 6, to.y - 20, narrow ? "warn" : "small", link_words(line), "start");
    text(to.x + 6, to.y - 7, narrow ? "warn" : "small", format_rate(rate), "start");
  }
}

/// Lays a subtree out from x rightwards; gives the upper middle of its root.
Point Picture::place(const TreeNode& node, double& x, int level) {
  const Device& device = device_at(host_, node.device);
  const bool leaf = device.kind == DeviceKind::kGpu || device.kind == DeviceKind::kNic;
  if (leaf || node.children.empty()) {
    const Point at{x + kLeafWidth / 2, leaf ? leaf_y_ : kTop + level * kLevel};
    x += kLeafWidth + kGap;
    std::string second;
    if (device.kind == DeviceKind::kNic && device.line_bytes_per_s > 0) second = fmt::format("{:g} Gb/s", device.line_bytes_per_s * 8 / 1e9);
    if (device.kind == DeviceKind::kGpu && node.uplink >= 0) second = link_words(host_.links[static_cast<std::size_t>(node.uplink)]);
    const char* type = device.kind == DeviceKind::kGpu ? "gpu" : device.kind == DeviceKind::kNic ? "nic" : "switch";
    box(at, kLeafWidth, leaf ? kLeafHeight : kSwitchHeight, type, device.alias.empty() ? device.name : device.name + " " + device.alias, second,
        device.name);
    top_[node.device] = at;
    return at;
  }
  const double left = x;
  std::vector<Point> below;
  for (const TreeNode& child : node.children) below.push_back(place(child, x, level + 1));
  const Point at{(below.front().x + below.back().x) / 2, kTop + level * kLevel};
  // Domain 0000 of a bus id says nothing; boxes side by side must not touch.
  std::string title = device.name;
  if (const std::size_t domain = title.find(" 0000:"); domain != std::string::npos) title.erase(domain + 1, 5);
  if (x - left < 2 * kLeafWidth && title.compare(0, 12, "PCIe switch ") == 0) title.replace(0, 12, "sw ");
  const double width = std::min(std::max(104.0, display_width(title) * kCharacter + 16), x - left - kGap);
  box(at, width, kSwitchHeight, device.kind == DeviceKind::kCpu ? "cpu" : "switch", title, "", device.name);
  top_[node.device] = at;
  for (std::size_t i = 0; i < below.size(); ++i) {
    const Link& down = host_.links[static_cast<std::size_t>(node.children[i].uplink)];
    const DeviceKind kind = device_at(host_, node.children[i].device).kind;
    link({at.x, at.y + kSwitchHeight}, below[i], down, kind == DeviceKind::kPcieSwitch);
  }
  return at;
}

void Picture::panels() {
  const std::vector<TreeNode> forest = host_forest(host_);
  int depth = 2;
  for (const TreeNode& root : forest) depth = std::max(depth, depth_of(root));
  leaf_y_ = kTop + (depth - 1) * kLevel;
  double x = kMargin;
  for (const TreeNode& root : forest) {
    const double begin = x;
    x += kPadding;
    place(root, x, 0);
    x += kPadding - kGap;
    links_ = fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"8\" class=\"panel\"/>\n", begin, kTop - 14, x - begin,
                         leaf_y_ + kLeafHeight + 14 - kTop + 14) + links_;
    panel_of_cpu_.push_back({root.device, {begin, x}});
    x += kPanelGap;
  }
  width_ = std::max(kMinWidth, x - kPanelGap + kMargin);
  bottom_ = leaf_y_ + kLeafHeight + 14;
}

/// Between neighbouring panels; with many NUMA nodes each is joined to each, which one label says.
void Picture::socket_links() {
  for (std::size_t i = 0; i + 1 < panel_of_cpu_.size(); ++i) {
    const Point a = top_[panel_of_cpu_[i].first];
    const Point b = top_[panel_of_cpu_[i + 1].first];
    for (const Link& line : host_.links) {
      if (line.kind != LinkKind::kSocket || line.from != panel_of_cpu_[i].first || line.to != panel_of_cpu_[i + 1].first) continue;
      const double y = a.y + kSwitchHeight / 2;
      links_ += fmt::format("<path d=\"M{:.1f} {:.1f}H{:.1f}\" class=\"socket\"/>\n", a.x, y, b.x);
      const double middle = (panel_of_cpu_[i].second.second + panel_of_cpu_[i + 1].second.first) / 2;
      text(middle, y - 8, "small", format_rate(line.bandwidth.effective()));
      const bool assumed = line.bandwidth.origin.compare(0, 8, "assumed:") == 0;
      text(middle, y + 18, "small", words_(assumed ? "assumed" : "sockets"));
      break;
    }
  }
}

void Picture::nvswitch() {
  for (const int device : host_.of_kind(DeviceKind::kNvSwitch)) {
    double left = 1e9;
    double right = 0;
    const Link* first = nullptr;
    const double y = bottom_ + 40;
    for (const Link& line : host_.links) {
      const auto gpu = top_.find(line.from);
      if (line.to != device || gpu == top_.end()) continue;
      if (first == nullptr) first = &line;
      left = std::min(left, gpu->second.x);
      right = std::max(right, gpu->second.x);
      links_ += fmt::format("<path d=\"M{:.1f} {:.1f}V{:.1f}\" class=\"nvlink\" stroke-width=\"4\"/>\n", gpu->second.x, leaf_y_ + kLeafHeight, y);
    }
    if (first == nullptr) continue;
    const double width = std::max(right - left + kLeafWidth, 320.0);
    box({(left + right) / 2, y}, width, 34, "nvswitch",
        words_("NVSwitch: {}, {} per GPU and direction", {link_words(*first), format_rate(first->bandwidth.effective())}), "", device_at(host_, device).name);
    bottom_ = y + 34;
  }
}

void Picture::direct_links() {
  static constexpr std::array<const char*, 4> kColours{"#137333", "#34a853", "#f9ab00", "#9334e6"};
  const std::vector<LinkGroup> groups = direct_gpu_links(host_);
  if (groups.empty()) return;
  const double base = leaf_y_ + kLeafHeight;
  double deepest = base;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const auto& pair : groups[g].pairs) {
      const Point a = top_[pair.first];
      const Point b = top_[pair.second];
      const double drop = 26 + std::abs(a.x - b.x) * 0.16;
      links_ += fmt::format("<path d=\"M{:.1f} {:.1f}C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}\" class=\"gpulink\" fill=\"none\" stroke=\"{}\" stroke-width=\"{:.1f}\"/>\n",
                            a.x, base, a.x, base + drop * 1.33, b.x, base + drop * 1.33, b.x, base, kColours[g % kColours.size()],
                            std::min(1.0 + groups[g].width, 6.0));
      deepest = std::max(deepest, base + drop);
    }
  }
  double y = deepest + 26;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    links_ += fmt::format("<path d=\"M{:.1f} {:.1f}h36\" stroke=\"{}\" stroke-width=\"{:.1f}\"/>\n", kMargin + 4, y - 4, kColours[g % kColours.size()],
                          std::min(1.0 + groups[g].width, 6.0));
    Link line;
    line.kind = groups[g].kind;
    line.width = groups[g].width;
    text(kMargin + 50, y, "label", words_("{}, {} per direction, {} pairs", {link_words(line), format_rate(groups[g].bytes_per_s), std::to_string(groups[g].pairs.size())}),
         "start");
    y += 20;
  }
  bottom_ = std::max(bottom_, y - 14);
}

void Picture::notes() {
  std::vector<std::string> lines;
  for (const Note& note : host_.notes) lines.push_back(words_(note.text));
  for (const Note& note : cluster_.notes) lines.push_back(words_(note.text));
  double y = bottom_ + 34;
  if (!lines.empty()) text(kMargin, y, "label", words_("Not known or assumed ({}); a question mark stands beside assumed links", {std::to_string(lines.size())}), "start");
  for (const std::string& line : lines) {
    y += 18;
    text(kMargin, y, "small", shorten("\u2013 " + line, static_cast<int>((width_ - 2 * kMargin) / 5.8)), "start");
  }
  bottom_ = y + 20;
}

std::string Picture::draw() {
  for (const Link& line : host_.links) {
    if (line.kind == LinkKind::kPcie) widest_pcie_ = std::max(widest_pcie_, line.bandwidth.effective());
  }
  panels();
  socket_links();
  nvswitch();
  direct_links();
  const HostGroup& group = cluster_.hosts.front();
  text(kMargin, 34, "title", host_.name.empty() ? cluster_.name : host_.name, "start");
  std::string subtitle = fmt::format("{} x {}", host_.gpus().size(), host_.accelerator.empty() ? "GPU" : host_.accelerator);
  if (group.count > 1) subtitle += " \u00b7 " + words_("{} such hosts", {std::to_string(group.count)});
  if (cluster_.fabric.kind != FabricKind::kNone) {
    subtitle += fmt::format(" \u00b7 {}, {}, {:g}:1", words_(name(cluster_.fabric.kind)), name(cluster_.fabric.transport), cluster_.fabric.oversubscription);
  }
  if (!host_.peer_to_peer) subtitle += " \u00b7 " + words_("no peer-to-peer over PCIe");
  if (!host_.gpudirect_rdma) subtitle += " \u00b7 " + words_("no GPUDirect RDMA");
  text(kMargin, 58, "label", subtitle, "start");
  notes();
  // The variables are those of a page that shows the picture, in its dark colours too; a file of its own has none.
  return fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"wiring\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\">\n"
                     "<style>.wiring text{{font-family:'DejaVu Sans',Verdana,sans-serif;fill:var(--w-ink,#202124)}}.wiring .title{{font-size:20px;font-weight:bold}}"
                     ".wiring .label{{font-size:12px}}.wiring text.small{{font-size:10.5px;fill:var(--w-dim,#5f6368)}}"
                     ".wiring text.warn{{font-size:10.5px;fill:var(--w-narrow,#c5221f);font-weight:bold}}"
                     ".wiring .back{{fill:var(--w-back,#fff)}}.wiring .panel{{fill:var(--w-panel,#fafbfc);stroke:var(--w-panel-line,#dadce0)}}"
                     ".wiring .gpu{{fill:var(--w-gpu,#e6f4ea);stroke:var(--w-gpu-line,#1e8e3e)}}.wiring .nic{{fill:var(--w-nic,#e8f0fe);stroke:var(--w-nic-line,#1a73e8)}}"
                     ".wiring .switch{{fill:var(--w-switch,#f1f3f4);stroke:var(--w-switch-line,#5f6368)}}.wiring .cpu{{fill:var(--w-cpu,#fef7e0);stroke:var(--w-cpu-line,#b06000)}}"
                     ".wiring .nvswitch{{fill:var(--w-nvswitch,#ceead6);stroke:var(--w-nvswitch-line,#137333)}}"
                     ".wiring .pcie,.wiring .narrow,.wiring .socket,.wiring .nvlink{{fill:none}}.wiring .pcie{{stroke:var(--w-pcie,#80868b)}}.wiring .narrow{{stroke:var(--w-narrow,#d93025)}}"
                     ".wiring .socket{{stroke:var(--w-cpu-line,#b06000);stroke-width:2.5;stroke-dasharray:6 3}}.wiring .nvlink{{stroke:var(--w-nvlink,#34a853)}}</style>\n"
                     "<rect width=\"100%\" height=\"100%\" class=\"back\"/>\n{2}{3}</svg>\n",
                     width_, bottom_, links_, boxes_);
}

}  // namespace

std::string wiring_svg(const Cluster& cluster, const Words& words) {
  return cluster.hosts.empty() ? std::string() : Picture(cluster, words).draw();
}

std::string wiring_svg(const Cluster& cluster) { return wiring_svg(cluster, Words::english()); }

}  // namespace chokepoint::report
