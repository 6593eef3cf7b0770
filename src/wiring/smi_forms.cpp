// SPDX-License-Identifier: Apache-2.0
// nvidia-smi's other forms of what -q says: XML (-q -x) and tables of --query-gpu=... --format=csv.
#include "smi_forms.hpp"

#include "scan.hpp"

#include <chokepoint/base/text.hpp>

#include <algorithm>
#include <fmt/format.h>
#include <pugixml.hpp>

namespace chokepoint::wiring {
namespace {

constexpr std::size_t kMostGpus = 1 << 16;

int number_in(std::string_view value) { return std::clamp(leading_int(value).value_or(0), 0, 1 << 20); }

/// The first of `names` below `node` that is there.
std::string_view child_text(const pugi::xml_node& node, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const pugi::xml_node child = node.child(name)) return trim(child.child_value());
  }
  return {};
}

/// "clocks_event_reason_hw_thermal_slowdown" as -q names it.
std::string reason_name(std::string_view tag) {
  const std::size_t at = tag.find("_reason_");
  std::string words;
  bool begins = true;
  for (const char c : at == std::string_view::npos ? tag : tag.substr(at + 8)) {
    words += c == '_' ? ' ' : begins && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    begins = c == '_';
  }
  if (words.substr(0, 3) == "Hw " || words.substr(0, 3) == "Sw ") words[1] = 'W';
  return words;
}

void slowdowns(SmiGpu& gpu, const pugi::xml_node& reasons) {
  for (const pugi::xml_node& reason : reasons.children()) {
    const std::string name = reason_name(reason.name());
    const bool matters = name.substr(0, 2) == "HW" || name.substr(0, 10) == "SW Thermal" || name == "SW Power Cap";
    if (matters && trim(reason.child_value()) == "Active") gpu.active_slowdowns.push_back(name);
  }
}

SmiGpu gpu_of(const pugi::xml_node& node) {
  SmiGpu gpu;
  gpu.bus_id = pci_address(node.attribute("id").as_string());
  gpu.name = std::string(child_text(node, {"product_name"}));
  gpu.uuid = std::string(child_text(node, {"uuid"}));
  gpu.performance_state = std::string(child_text(node, {"performance_state"}));
  const pugi::xml_node pci = node.child("pci");
  if (gpu.bus_id.empty()) gpu.bus_id = pci_address(child_text(pci, {"pci_bus_id"}));
  if (const auto id = to_hex(child_text(pci, {"pci_device_id"})); id && *id <= 0xffffffffULL) gpu.pci_device = fmt::format("{:04x}:{:04x}", *id & 0xffff, *id >> 16);
  gpu.replays = leading_number(child_text(pci, {"replay_counter"})).value_or(0);
  const pugi::xml_node generation = pci.child("pci_gpu_link_info").child("pcie_gen");
  gpu.generation_max = number_in(child_text(generation, {"max_link_gen"}));
  gpu.generation_current = number_in(child_text(generation, {"current_link_gen"}));
  gpu.generation_device_max = number_in(child_text(generation, {"max_device_link_gen"}));
  gpu.generation_host_max = number_in(child_text(generation, {"max_host_link_gen"}));
  const pugi::xml_node width = pci.child("pci_gpu_link_info").child("link_widths");
  gpu.width_max = number_in(child_text(width, {"max_link_width"}));
  gpu.width_current = number_in(child_text(width, {"current_link_width"}));
  gpu.fabric_state = std::string(child_text(node.child("fabric"), {"state"}));
  gpu.fabric_status = std::string(child_text(node.child("fabric"), {"status"}));
  gpu.utilization = leading_number(child_text(node.child("utilization"), {"gpu_util"}));
  slowdowns(gpu, node.child("clocks_event_reasons"));
  slowdowns(gpu, node.child("clocks_throttle_reasons"));
  return gpu;
}

void cell(SmiGpu& gpu, std::string_view column, std::string_view value) {
  if (column == "pci.bus_id" || column == "gpu_bus_id") gpu.bus_id = pci_address(value);
  if (column == "name" || column == "gpu_name") gpu.name = std::string(value);
  if (column == "uuid" || column == "gpu_uuid") gpu.uuid = std::string(value);
  if (column == "pstate") gpu.performance_state = std::string(value);
  if (column == "pcie.link.gen.max") gpu.generation_max = number_in(value);
  if (column == "pcie.link.gen.current" || column == "pcie.link.gen.gpucurrent") gpu.generation_current = number_in(value);
  if (column == "pcie.link.gen.gpumax") gpu.generation_device_max = number_in(value);
  if (column == "pcie.link.gen.hostmax") gpu.generation_host_max = number_in(value);
  if (column == "pcie.link.width.max") gpu.width_max = number_in(value);
  if (column == "pcie.link.width.current") gpu.width_current = number_in(value);
  if (column == "utilization.gpu") gpu.utilization = leading_number(value);
}

/// "utilization.gpu [%]" without its unit.
std::string_view column_name(std::string_view text) { return trim(text.substr(0, text.find('['))); }

}  // namespace

bool is_smi_table_heading(std::string_view line) {
  return line.find("pcie.link.") != std::string_view::npos && line.find(',') != std::string_view::npos && line.find('=') == std::string_view::npos;
}

Result<SmiQuery> read_smi_xml(std::string_view text, const std::string& file) {
  SmiQuery query;
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_buffer(text.data(), text.size());
  const pugi::xml_node root = document.child("nvidia_smi_log");
  if (!root) return fail(parsed ? "the root element is not <nvidia_smi_log>" : fmt::format("not well-formed XML: {}", lower(parsed.description())), {file, 0, 0});
  query.driver = std::string(child_text(root, {"driver_version"}));
  query.cuda = std::string(child_text(root, {"cuda_version"}));
  query.attached = number_in(child_text(root, {"attached_gpus"}));
  for (const pugi::xml_node& gpu : root.children("gpu")) {
    if (query.gpus.size() < kMostGpus) query.gpus.push_back(gpu_of(gpu));
  }
  if (query.gpus.empty()) return fail("no <gpu> element", {file, 0, 0}, {"save the output of `nvidia-smi -q -x`"});
  if (!parsed) query.notes.push_back({fmt::format("the XML is cut or broken ({}): what came before is used", lower(parsed.description())), {file, 0, 0}});
  return query;
}

Result<SmiQuery> read_smi_table(std::string_view text, const std::string& file) {
  SmiQuery query;
  std::vector<std::string_view> columns;
  int number = 0;
  int odd = 0;
  for (const std::string_view line : split_lines(text)) {
    ++number;
    if (trim(line).empty()) continue;
    const std::vector<std::string_view> words = split(line, ',');
    if (is_smi_table_heading(line)) {
      columns.clear();
      for (const std::string_view word : words) columns.push_back(column_name(word));
      continue;
    }
    if (columns.empty()) continue;
    if (words.size() != columns.size()) {
      ++odd;
      continue;
    }
    if (query.gpus.size() == kMostGpus) break;
    query.gpus.emplace_back();
    query.gpus.back().line = number;
    for (std::size_t i = 0; i < words.size(); ++i) cell(query.gpus.back(), columns[i], trim(words[i]));
  }
  if (query.gpus.empty()) return fail("a heading of nvidia-smi's columns, but no row below it", {file, 0, 0}, {"save the output of `nvidia-smi --query-gpu=... --format=csv`"});
  if (odd > 0) query.notes.push_back({fmt::format("{} lines have another number of cells than the heading", odd), {file, 0, 0}});
  return query;
}

}  // namespace chokepoint::wiring
