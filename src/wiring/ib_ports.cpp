// SPDX-License-Identifier: Apache-2.0
// Single ends of a fabric: ibstat, perfquery, lists of GUIDs.
#include <chokepoint/wiring/fabric_files.hpp>

#include "parts.hpp"
#include "scan.hpp"

#include <chokepoint/base/text.hpp>
#include <chokepoint/base/units.hpp>

#include <algorithm>
#include <fmt/format.h>

namespace chokepoint::wiring {

using namespace topology;

namespace {
constexpr std::size_t kMaxPorts = 1 << 16;
}

Result<IbPorts> read_ibstat(std::string_view text, const std::string& file) {
  IbPorts found;
  IbPort adapter;
  bool inside = false;
  int number = 0;
  for (const std::string_view line : split_lines(text)) {
    ++number;
    const std::string_view content = trim(line);
    if (content.substr(0, 4) == "CA '") {
      adapter = IbPort{};
      adapter.adapter = std::string(between(content, "'", "'").value_or(""));
      inside = true;
      continue;
    }
    const std::size_t colon = content.find(':');
    if (!inside || colon == std::string_view::npos) continue;
    const std::string_view key = content.substr(0, colon);
    const std::string_view value = trim(content.substr(colon + 1));
    if (key == "CA type") adapter.type = std::string(value);
    if (key == "Node GUID") adapter.guid = std::string(value);
    if (key.substr(0, 5) == "Port " && is_digits(key.substr(5)) && found.ports.size() < kMaxPorts) {
      adapter.port = to_int(key.substr(5)).value_or(0);
      found.ports.push_back(adapter);
      found.ports.back().line = number;
    }
    if (found.ports.empty() || found.ports.back().adapter != adapter.adapter) continue;
    IbPort& port = found.ports.back();
    if (key == "State") port.state = std::string(value);
    if (key == "Physical state") port.physical = std::string(value);
    if (key == "Rate") port.bytes_per_s = gbit(std::clamp(leading_number(value).value_or(0.0), 0.0, 1e5));
    if (key == "Link layer") port.link_layer = std::string(value);
  }
  if (!inside) return fail("no adapter listed", {file, 0, 0}, {"save the output of `ibstat`"});
  if (found.ports.empty()) found.notes.push_back({"cut short: adapters without ports", {file, 0, 0}});
  return found;
}

Host host_of(const IbPorts& ports, const std::string& file) {
  Host host;
  host.notes = ports.notes;
  host.notes.push_back({"ibstat lists the adapters only: no GPUs, no PCIe tree", {file, 0, 0}});
  const int cpu = add_cpu(host, 0);
  const int bridge = add_bridge(host, cpu, 4);
  for (const IbPort& port : ports.ports) {
    Device nic{DeviceKind::kNic, port.port > 1 ? fmt::format("{}:{}", port.adapter, port.port) : port.adapter, port.type, {}, {}};
    nic.line_bytes_per_s = port.state == "Active" || port.state == "Initializing" || port.state == "Armed" ? port.bytes_per_s : 0;
    const int device = host.add_device(std::move(nic));
    host.add_duplex(device, bridge, LinkKind::kPcie, 16, pcie(4, 16, std::string(kAssumed) + "ibstat says nothing about the slot"));
  }
  return host;
}

Result<CounterFile> read_perfquery(std::string_view text, const std::string& file) {
  CounterFile found;
  int number = 0;
  for (const std::string_view line : split_lines(text)) {
    ++number;
    const std::string_view content = trim(line);
    if (content.substr(0, 1) == "#" && contains_ignoring_case(content, "counters")) {
      if (found.ports.size() < kMaxPorts) found.ports.push_back({std::string(trim(content.substr(1))), {}, {}});
      continue;
    }
    const std::size_t dots = content.find(":..");
    if (dots == std::string_view::npos) continue;
    if (found.ports.empty()) found.ports.emplace_back();
    std::string_view value = content.substr(dots + 1);
    while (!value.empty() && value.front() == '.') value.remove_prefix(1);
    const std::string key(content.substr(0, dots));
    const auto decimal = to_number(value);
    const auto hexadecimal = to_hex(value);
    if (!decimal && !hexadecimal) continue;
    found.ports.back().values[key] = decimal ? *decimal : static_cast<double>(*hexadecimal);
    found.ports.back().lines[key] = number;
  }
  if (found.ports.empty()) return fail("no port counters", {file, 0, 0}, {"save the output of `perfquery -x`"});
  return found;
}

Result<GuidList> read_guid_list(std::string_view text, const std::string& file) {
  GuidList found;
  int number = 0;
  int unread = 0;
  for (const std::string_view line : split_lines(text)) {
    ++number;
    const std::string_view content = trim(line);
    if (content.empty()) continue;
    if (content.substr(0, 12) == "VM_hostname ") {
      if (found.hosts.size() < kMaxPorts) found.hosts.push_back({std::string(trim(content.substr(12))), {}});
    } else if (!found.hosts.empty() && to_hex(content) && content.size() >= 12) {
      found.hosts.back().second.emplace_back(content);
    } else {
      ++unread;
    }
  }
  if (found.hosts.empty()) return fail("no line \"VM_hostname ...\"", {file, 0, 0});
  if (unread > 0) found.notes.push_back({fmt::format("{} lines are neither a host nor a GUID", unread), {file, 0, 0}});
  return found;
}

}  // namespace chokepoint::wiring
