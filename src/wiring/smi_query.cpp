// SPDX-License-Identifier: Apache-2.0
// nvidia-smi -q: an indented outline. A line's path is the stack of headings above it, so that "Current" under "Link
// Width" and "Current" under "PCIe Generation" are told apart in every driver's order.
#include <chokepoint/wiring/gpu_tools.hpp>

#include "parts.hpp"
#include "scan.hpp"
#include "smi_forms.hpp"

#include <chokepoint/base/text.hpp>
#include <chokepoint/hardware/catalogue.hpp>
#include <chokepoint/wiring/wiring.hpp>

#include <algorithm>
#include <fmt/format.h>

namespace chokepoint::wiring {

using namespace topology;

namespace {

struct Heading {
  std::size_t indent = 0;
  std::string name;
};

bool under(const std::vector<Heading>& stack, std::string_view name) {
  return std::any_of(stack.begin(), stack.end(), [name](const Heading& heading) { return heading.name == name; });
}

int number_of(std::string_view value) { return std::clamp(leading_int(value).value_or(0), 0, 1 << 20); }

void link_value(SmiGpu& gpu, const std::vector<Heading>& stack, std::string_view key, std::string_view value) {
  if (under(stack, "PCIe Generation")) {
    if (key == "Max") gpu.generation_max = number_of(value);
    if (key == "Current") gpu.generation_current = number_of(value);
    if (key == "Device Max") gpu.generation_device_max = number_of(value);
    if (key == "Host Max") gpu.generation_host_max = number_of(value);
  } else if (under(stack, "Link Width")) {
    if (key == "Max") gpu.width_max = number_of(value);
    if (key == "Current") gpu.width_current = number_of(value);
  }
}

void gpu_value(SmiGpu& gpu, const std::vector<Heading>& stack, std::string_view key, std::string_view value) {
  link_value(gpu, stack, key, value);
  if (key == "Product Name") gpu.name = std::string(value);
  if (key == "GPU UUID") gpu.uuid = std::string(value);
  if (key == "Performance State") gpu.performance_state = std::string(value);
  if (key == "Replays Since Reset") gpu.replays = leading_number(value).value_or(0.0);
  if (key == "Device Id" && under(stack, "PCI")) {
    const auto id = to_hex(value);
    if (id && *id <= 0xffffffffULL) gpu.pci_device = fmt::format("{:04x}:{:04x}", *id & 0xffff, *id >> 16);
  }
  if (under(stack, "Fabric")) {
    if (key == "State") gpu.fabric_state = std::string(value);
    if (key == "Status") gpu.fabric_status = std::string(value);
  }
  if (under(stack, "Utilization") && (key == "Gpu" || key == "GPU")) gpu.utilization = leading_number(value);
  const bool reasons = under(stack, "Clocks Event Reasons") || under(stack, "Clocks Throttle Reasons");
  const bool matters = key.substr(0, 2) == "HW" || key.substr(0, 10) == "SW Thermal" || key == "SW Power Cap";
  if (reasons && matters && value == "Active") gpu.active_slowdowns.emplace_back(key);
}

}  // namespace

Result<SmiQuery> read_smi_query(std::string_view text, const std::string& file) {
  if (trim(text).substr(0, 1) == "<") return read_smi_xml(text, file);
  for (const std::string_view line : split_lines(text)) {
    if (is_smi_table_heading(line)) return read_smi_table(text, file);
  }
  SmiQuery query;
  std::vector<Heading> stack;
  int number = 0;
  for (const std::string_view line : split_lines(text)) {
    ++number;
    if (trim(line).empty()) continue;
    const std::size_t indent = indent_of(line);
    std::string_view content = trim(line);
    if (content.substr(0, 4) == "GPU " && !pci_address(content.substr(4)).empty() && contains(content, ":")) {
      query.gpus.emplace_back();
      query.gpus.back().bus_id = pci_address(content.substr(4));
      query.gpus.back().line = number;
      stack.clear();
      continue;
    }
    while (!stack.empty() && stack.back().indent >= indent) stack.pop_back();
    const auto pair = key_value(content);
    if (!pair) {
      if (stack.size() < 16) stack.push_back({indent, std::string(content)});
      continue;
    }
    if (query.gpus.empty()) {
      if (pair->first == "Driver Version") query.driver = std::string(pair->second);
      if (pair->first == "CUDA Version") query.cuda = std::string(pair->second);
      if (pair->first == "Attached GPUs") query.attached = number_of(pair->second);
    } else {
      gpu_value(query.gpus.back(), stack, pair->first, pair->second);
    }
  }
  if (query.gpus.empty()) {
    return fail("no GPU section, expected lines like \"GPU 00000000:06:00.0\"", {file, 0, 0}, {"save the output of `nvidia-smi -q`"});
  }
  if (query.attached > static_cast<int>(query.gpus.size())) {
    query.notes.push_back({fmt::format("cut short: {} GPUs are attached, {} have a section", query.attached, query.gpus.size()), {file, query.gpus.back().line, 0}});
  }
  return query;
}

Host host_of(const SmiQuery& query, const std::string& file) {
  Host host;
  host.notes = query.notes;
  host.notes.push_back({"which switch and socket each GPU hangs on is not in nvidia-smi -q", {file, 0, 0}});
  const int cpu = add_cpu(host, 0);
  int generation = 0;
  for (const SmiGpu& gpu : query.gpus) generation = std::max(generation, gpu.generation_max);
  const int bridge = add_bridge(host, cpu, std::clamp(generation, 3, 6));
  for (std::size_t i = 0; i < query.gpus.size(); ++i) {
    const SmiGpu& gpu = query.gpus[i];
    const int device = host.add_device({DeviceKind::kGpu, fmt::format("GPU{}", i), gpu.name, gpu.bus_id, {}});
    Bandwidth bandwidth = pcie(std::clamp(gpu.generation_max, 1, 6), std::clamp(gpu.width_max, 1, 32), file);
    if (gpu.generation_max == 0 || gpu.width_max == 0) bandwidth = pcie(4, 16, std::string(kAssumed) + "link not stated");
    host.add_duplex(device, bridge, LinkKind::kPcie, std::max(1, gpu.width_max), bandwidth);
  }
  const Result<hardware::Accelerator> accelerator = hardware::find_accelerator(query.gpus.front().name);
  if (accelerator) host.accelerator = accelerator->name;
  return host;
}

}  // namespace chokepoint::wiring
