// SPDX-License-Identifier: Apache-2.0
// nvidia-smi nvlink -s and -e: "GPU n: name (UUID: ...)" and lines "Link i: ..." below it.
#include <chokepoint/wiring/gpu_tools.hpp>

#include "parts.hpp"
#include "scan.hpp"

#include <chokepoint/base/text.hpp>
#include <chokepoint/base/units.hpp>
#include <chokepoint/hardware/catalogue.hpp>

#include <algorithm>
#include <fmt/format.h>

namespace chokepoint::wiring {

using namespace topology;

namespace {

constexpr int kMaxLinks = 128;

void link_line(NvLinkStatus& status, std::string_view content, int number) {
  NvLinkGpu& gpu = status.gpus.back();
  const auto index = leading_int(content.substr(5));
  const auto value = after(content, ":");
  if (!index || !value || *index >= kMaxLinks) return;
  const std::string_view rest = trim(*value);
  if (contains_ignoring_case(rest, "error") || contains_ignoring_case(rest, "count")) {
    const std::size_t colon = rest.rfind(':');
    if (colon == std::string_view::npos) return;
    status.counters = true;
    gpu.errors[std::string(trim(rest.substr(0, colon)))] += leading_number(rest.substr(colon + 1)).value_or(0.0);
    return;
  }
  NvLinkState state{*index, std::nullopt, {}, number};
  if (!contains_ignoring_case(rest, "inactive")) {
    const auto rate = leading_number(rest);
    if (!rate || !contains(rest, "B/s")) return;
    state.bytes_per_s = contains(rest, "MB/s") ? *rate * 1e6 : gbyte(*rate);
    if (const auto far = after(rest, "B/s to ")) state.far = *far == "NVSwitch" ? std::string(*far) : pci_address(*far);
  }
  const bool twice = std::any_of(gpu.links.begin(), gpu.links.end(), [&state](const NvLinkState& known) { return known.link == state.link; });
  if (!twice) gpu.links.push_back(state);
}

}  // namespace

int NvLinkGpu::up() const {
  return static_cast<int>(std::count_if(links.begin(), links.end(), [](const NvLinkState& link) { return link.bytes_per_s.value_or(0) > 0; }));
}
int NvLinkGpu::inactive() const { return static_cast<int>(links.size()) - up(); }
int NvLinkGpu::stated_links() const {
  int highest = -1;
  for (const NvLinkState& link : links) highest = std::max(highest, link.link);
  return highest + 1;
}

Result<NvLinkStatus> read_nvlink_status(std::string_view text, const std::string& file) {
  NvLinkStatus status;
  int number = 0;
  for (const std::string_view line : split_lines(text)) {
    ++number;
    const std::string_view content = trim(line);
    const auto colon = content.find(':');
    // "GPU 0: name"; without the blank it is an address of `nvidia-smi -q`, which may stand in the same file.
    const bool named = colon != std::string_view::npos && (colon + 1 == content.size() || content[colon + 1] == ' ');
    if (content.substr(0, 4) == "GPU " && named && is_digits(trim(content.substr(4, colon - 4)))) {
      NvLinkGpu gpu;
      gpu.index = to_int(content.substr(4, colon - 4)).value_or(0);
      const std::string_view rest = content.substr(colon + 1);
      gpu.name = std::string(trim(rest.substr(0, rest.find('('))));
      gpu.uuid = std::string(between(rest, "UUID: ", ")").value_or(""));
      gpu.line = number;
      status.gpus.push_back(std::move(gpu));
    } else if (!status.gpus.empty() && content.substr(0, 5) == "Link ") {
      link_line(status, content, number);
    } else if (!status.gpus.empty() && (content.substr(0, 5) == "[...]" || content == "..." || content == "[…]" || content == "…")) {
      status.gpus.back().elided = true;
    }
  }
  for (const NvLinkGpu& gpu : status.gpus) {
    if (gpu.elided) status.notes.push_back({fmt::format("GPU {}: links between those shown were left out of the paste; {} links by the highest number", gpu.index, gpu.stated_links()), {file, gpu.line, 0}});
  }
  if (status.gpus.empty()) status.notes.push_back({"no GPU listed: no NVLink on this host, or an empty file", {file, 0, 0}});
  return status;
}

Host host_of(const NvLinkStatus& status, const std::string& file) {
  Host host;
  host.notes = status.notes;
  if (status.gpus.empty()) return host;
  const int cpu = add_cpu(host, 0);
  const int bridge = add_bridge(host, cpu, 4);
  int fabric = -1;
  for (const NvLinkGpu& gpu : status.gpus) {
    const int device = host.add_device({DeviceKind::kGpu, fmt::format("GPU{}", gpu.index), gpu.name, {}, {}});
    host.add_duplex(device, bridge, LinkKind::kPcie, 16, pcie(4, 16, std::string(kAssumed) + "PCIe is not in this file"));
    const int count = gpu.elided ? gpu.stated_links() : gpu.up();
    double rate = 0;
    for (const NvLinkState& link : gpu.links) rate = std::max(rate, link.bytes_per_s.value_or(0.0));
    if (count == 0 || rate <= 0) continue;
    if (fabric < 0) fabric = host.add_device({DeviceKind::kNvSwitch, "NVLink", {}, {}, {}});
    Bandwidth bandwidth = specified(std::max(1, gpu.stated_links()) * rate, file);
    bandwidth.negotiated_bytes_per_s = count * rate;
    host.add_duplex(device, fabric, LinkKind::kNvLink, count, bandwidth);
  }
  host.notes.push_back({"nvlink -s does not say where each link leads; drawn to one switch", {file, 0, 0}});
  const Result<hardware::Accelerator> accelerator = hardware::find_accelerator(status.gpus.front().name);
  if (accelerator) host.accelerator = accelerator->name;
  return host;
}

}  // namespace chokepoint::wiring
