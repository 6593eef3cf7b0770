// SPDX-License-Identifier: Apache-2.0
// Host -> NCCL topology XML. Source of the form: NCCL's graph/xml.cc (elements and attributes it reads).
#include <chokepoint/assemble/export.hpp>
#include <chokepoint/hardware/catalogue.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <set>

namespace chokepoint::assemble {

using namespace topology;

namespace {

constexpr int kMaxDepth = 32;

/// Compute capability by architecture, which tells NCCL the NVLink rate. Source: CUDA programming guide.
int compute_capability(const std::string& accelerator) {
  const Result<hardware::Accelerator> found = hardware::find_accelerator(accelerator);
  if (!found) return 80;
  switch (found->architecture) {
    case hardware::Architecture::kVolta: return 70;
    case hardware::Architecture::kTuring: return 75;
    case hardware::Architecture::kAda: return 89;
    case hardware::Architecture::kHopper: return 90;
    case hardware::Architecture::kBlackwell: return 100;
    default: return 80;
  }
}

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') out += "&amp;";
    else if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '"') out += "&quot;";
    else if (static_cast<unsigned char>(c) >= 0x20) out += c;
  }
  return out;
}

class Writer {
 public:
  explicit Writer(const Host& host) : host_(host) {}
  std::string write();

 private:
  const Device& device(int index) const { return host_.devices[static_cast<std::size_t>(index)]; }
  std::string address(int index) const;
  std::string slot(int index, int parent) const;
  void element(int index, int parent, int depth);
  void gpu(int index, const std::string& indent);
  void nic(int index, const std::string& indent);
  void line(const std::string& text) { out_ += text + "\n"; }

  const Host& host_;
  std::string out_;
  std::set<int> written_;
  int gpus_ = 0;
  int nics_ = 0;
};

std::string Writer::address(int index) const {
  if (!device(index).bus_id.empty()) return device(index).bus_id;
  return fmt::format("{:04x}:{:02x}:{:02x}.0", 0xf00 + index / 256, index % 256, 0);
}

/// link_speed and link_width of the link above; what it trained at where that is known.
std::string Writer::slot(int index, int parent) const {
  for (const Link& link : host_.links) {
    if (link.from != index || link.to != parent || link.kind != LinkKind::kPcie) continue;
    const int width = std::clamp(link.width, 1, 32);
    const double rate = link.bandwidth.negotiated_bytes_per_s.value_or(link.bandwidth.specified_bytes_per_s.value_or(0));
    static constexpr std::array<std::string_view, 6> kSpeeds{"2.5 GT/s PCIe", "5.0 GT/s PCIe", "8.0 GT/s PCIe", "16.0 GT/s PCIe", "32.0 GT/s PCIe", "64.0 GT/s PCIe"};
    std::size_t best = 3;
    double distance = 1e300;
    for (int generation = 1; generation <= 6; ++generation) {
      const double lane = hardware::pcie_bytes_per_s(generation, width).value_or(0);
      if (std::abs(std::log(std::max(lane, 1.0) / std::max(rate, 1.0))) >= distance) continue;
      distance = std::abs(std::log(std::max(lane, 1.0) / std::max(rate, 1.0)));
      best = static_cast<std::size_t>(generation - 1);
    }
    return fmt::format("link_speed=\"{}\" link_width=\"{}\"", kSpeeds[best], width);
  }
  return "link_speed=\"\" link_width=\"0\"";
}

void Writer::gpu(int index, const std::string& indent) {
  line(fmt::format("{}<gpu dev=\"{}\" sm=\"{}\" rank=\"{}\" gdr=\"{}\">", indent, gpus_, compute_capability(host_.accelerator), gpus_, host_.gpudirect_rdma ? 1 : 0));
  ++gpus_;
  for (const Link& link : host_.links) {
    if (link.from != index || (link.kind != LinkKind::kNvLink && link.kind != LinkKind::kXgmi)) continue;
    const bool fabric = device(link.to).kind == DeviceKind::kNvSwitch;
    const bool peer = device(link.to).kind == DeviceKind::kGpu;
    if (!fabric && !peer) continue;
    line(fmt::format("{}  <{} target=\"{}\" count=\"{}\" tclass=\"{}\"/>", indent, link.kind == LinkKind::kXgmi ? "xgmi" : "nvlink", address(link.to), std::max(1, link.width), fabric ? "0x068000" : "0x030200"));
  }
  line(indent + "</gpu>");
}

void Writer::nic(int index, const std::string& indent) {
  line(indent + "<nic>");
  const double megabit = device(index).line_bytes_per_s > 0 ? device(index).line_bytes_per_s * 8 / 1e6 : 0;
  const std::string& name = device(index).alias.empty() ? device(index).name : device(index).alias;
  line(fmt::format("{}  <net name=\"{}\" dev=\"{}\" speed=\"{:.0f}\" port=\"1\" guid=\"0x{:x}\" maxconn=\"131072\" gdr=\"{}\"/>", indent, escape(name), nics_, megabit, nics_ + 1, host_.gpudirect_rdma ? 1 : 0));
  ++nics_;
  line(indent + "</nic>");
}

void Writer::element(int index, int parent, int depth) {
  if (depth > kMaxDepth || !written_.insert(index).second) return;
  const std::string indent(static_cast<std::size_t>(depth) * 2, ' ');
  const DeviceKind kind = device(index).kind;
  const std::string_view type = kind == DeviceKind::kGpu ? "0x030200" : kind == DeviceKind::kNic ? "0x020700" : "0x060400";
  line(fmt::format("{}<pci busid=\"{}\" class=\"{}\" {}>", indent, address(index), type, slot(index, parent)));
  if (kind == DeviceKind::kGpu) gpu(index, indent + "  ");
  if (kind == DeviceKind::kNic) nic(index, indent + "  ");
  if (kind == DeviceKind::kPcieSwitch) {
    for (const Link& link : host_.links) {
      const DeviceKind below = device(link.to).kind;
      if (link.from == index && link.kind == LinkKind::kPcie && link.to != parent && (below == DeviceKind::kGpu || below == DeviceKind::kNic || below == DeviceKind::kPcieSwitch)) element(link.to, index, depth + 1);
    }
  }
  line(indent + "</pci>");
}

std::string Writer::write() {
  line("<system version=\"1\">");
  for (const int cpu : host_.of_kind(DeviceKind::kCpu)) {
    line(fmt::format("  <cpu numaid=\"{}\" affinity=\"\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"143\">", device(cpu).numa.value_or(-1)));
    // Devices hang on the host bridges of a node, or on the node itself where no bridge is drawn.
    std::vector<int> tops{cpu};
    for (const Link& link : host_.links) {
      if (link.from == cpu && device(link.to).kind == DeviceKind::kHostBridge) tops.push_back(link.to);
    }
    for (const int top : tops) {
      for (const Link& link : host_.links) {
        const DeviceKind below = device(link.to).kind;
        if (link.from == top && link.kind == LinkKind::kPcie && (below == DeviceKind::kGpu || below == DeviceKind::kNic || below == DeviceKind::kPcieSwitch)) element(link.to, top, 2);
      }
    }
    line("  </cpu>");
  }
  line("</system>");
  return std::move(out_);
}

}  // namespace

std::string to_nccl_xml(const Host& host) { return Writer(host).write(); }

}  // namespace chokepoint::assemble
