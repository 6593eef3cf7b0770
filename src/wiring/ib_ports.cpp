// SPDX-License-Identifier: Apache-2.0
// Single ends of a fabric: ibstat, ibv_devinfo, ibstatus, perfquery, lists of GUIDs.
#include <chokepoint/wiring/fabric_files.hpp>

#include "parts.hpp"
#include "scan.hpp"

#include <chokepoint/base/text.hpp>
#include <chokepoint/base/units.hpp>

#include <algorithm>
#include <cmath>
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

namespace {

/// "PORT_ACTIVE (4)" and "4: ACTIVE" as ibstat writes it: "Active".
std::string state_word(std::string_view value) {
  if (const std::size_t colon = value.find(": "); colon != std::string_view::npos) value.remove_prefix(colon + 2);
  if (value.substr(0, 5) == "PORT_") value.remove_prefix(5);
  std::string word = lower(trim(value.substr(0, value.find('('))));
  if (word == "init") word = "initializing";
  if (!word.empty()) word[0] = static_cast<char>(word[0] - 'a' + 'A');
  return word;
}
/// "LINK_UP (5)" and "5: LinkUp".
std::string physical_word(std::string_view value) {
  if (const std::size_t colon = value.find(": "); colon != std::string_view::npos) return std::string(trim(value.substr(colon + 2)));
  const std::string word = lower(trim(value.substr(0, value.find('('))));
  return word == "link_up" ? "LinkUp" : word == "disabled" ? "Disabled" : word == "polling" ? "Polling" : word;
}
/// "4X (2)": lanes.
int lanes_of(std::string_view value) { return std::clamp(leading_int(value).value_or(0), 0, 12); }

/// One reading of either tool's lines.
class DeviceReader {
 public:
  explicit DeviceReader(const std::string& file) : file_(file) {}
  Result<IbPorts> read(std::string_view text);

 private:
  bool heading(std::string_view content, int number);
  void adapter_value(std::string_view key, std::string_view value);
  void port_value(std::string_view key, std::string_view value);
  void add_port(int port, int number);

  std::string file_;
  IbPorts found_;
  IbPort adapter_;
  bool any_ = false;
  bool in_port_ = false;
  int width_ = 0;
};

void DeviceReader::add_port(int port, int number) {
  if (found_.ports.size() >= kMaxPorts) return;
  found_.ports.push_back(adapter_);
  found_.ports.back().port = port;
  found_.ports.back().line = number;
  in_port_ = true;
  width_ = 0;
}

/// "hca_id: mlx5_0", "port: 1", "Infiniband device 'mlx5_0' port 1 status:".
bool DeviceReader::heading(std::string_view content, int number) {
  if (content.substr(0, 7) == "hca_id:") {
    found_.tool = "ibv_devinfo";
    adapter_ = IbPort{};
    adapter_.adapter = std::string(trim(content.substr(7)));
    in_port_ = false;
    return any_ = true;
  }
  if (content.substr(0, 19) == "Infiniband device '") {
    found_.tool = "ibstatus";
    adapter_ = IbPort{};
    adapter_.adapter = std::string(between(content, "'", "'").value_or(""));
    add_port(leading_int(after(content, "' port ").value_or("")).value_or(1), number);
    return any_ = true;
  }
  if (!any_ || content.substr(0, 5) != "port:") return false;
  add_port(leading_int(content.substr(5)).value_or(0), number);
  return true;
}

void DeviceReader::adapter_value(std::string_view key, std::string_view value) {
  if (key == "fw_ver") adapter_.firmware = std::string(value);
  if (key == "node_guid") adapter_.guid = std::string(value);
  // ibstat names the type after the part: 4129 is MT4129.
  if (key == "vendor_part_id") adapter_.type = "MT" + std::string(value);
}

void DeviceReader::port_value(std::string_view key, std::string_view value) {
  IbPort& port = found_.ports.back();
  if (key == "state") port.state = state_word(value);
  if (key == "phys_state" || key == "phys state") port.physical = physical_word(value);
  if (key == "link_layer") port.link_layer = std::string(value);
  if (key == "max_mtu") port.mtu_max = std::clamp(leading_int(value).value_or(0), 0, 1 << 20);
  if (key == "active_mtu") port.mtu = std::clamp(leading_int(value).value_or(0), 0, 1 << 20);
  if (key == "active_width") width_ = lanes_of(value);
  if (key == "active_speed") port.bytes_per_s = gbit(width_ * std::clamp(leading_number(value).value_or(0.0), 0.0, 1e4));
  if (key == "rate") port.bytes_per_s = gbit(std::clamp(leading_number(value).value_or(0.0), 0.0, 1e5));
  const bool gid = key.substr(0, 4) == "GID[" && port.gids.size() < 256;
  if (gid) port.gids.push_back(fmt::format("{}: {}", leading_int(key.substr(4)).value_or(0), value));
}

Result<IbPorts> DeviceReader::read(std::string_view text) {
  int number = 0;
  for (const std::string_view line : split_lines(text)) {
    ++number;
    const std::string_view content = trim(line);
    if (heading(content, number) || !any_) continue;
    const std::size_t colon = content.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view key = trim(content.substr(0, colon));
    const std::string_view value = trim(content.substr(colon + 1));
    if (in_port_) port_value(key, value);
    else adapter_value(key, value);
  }
  if (!any_) return fail("no adapter listed", {file_, 0, 0}, {"save the output of `ibv_devinfo -v` or `ibstatus`"});
  if (found_.ports.empty()) found_.notes.push_back({"cut short: adapters without ports", {file_, 0, 0}});
  const bool silent = std::any_of(found_.ports.begin(), found_.ports.end(), [](const IbPort& port) { return port.state == "Active" && port.bytes_per_s <= 0; });
  if (silent) found_.notes.push_back({"rates of the ports are not said; `ibv_devinfo -v` or `ibstat` has them", {file_, 0, 0}});
  return std::move(found_);
}

}  // namespace

Result<IbPorts> read_ib_devices(std::string_view text, const std::string& file) { return DeviceReader(file).read(text); }

Host host_of(const IbPorts& ports, const std::string& file) {
  Host host;
  host.notes = ports.notes;
  host.notes.push_back({"a list of adapters: no GPUs, no PCIe tree", {file, 0, 0}});
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

std::vector<std::string> add_ports(IbPorts& ports, const IbPorts& more) {
  std::vector<std::string> differences;
  for (const IbPort& other : more.ports) {
    const auto port = std::find_if(ports.ports.begin(), ports.ports.end(), [&other](const IbPort& own) { return own.adapter == other.adapter && own.port == other.port; });
    if (port == ports.ports.end()) {
      if (ports.ports.size() < kMaxPorts) ports.ports.push_back(other);
      continue;
    }
    port->mtu = other.mtu;
    port->mtu_max = other.mtu_max;
    port->gids = other.gids;
    if (!other.firmware.empty()) port->firmware = other.firmware;
    if (port->bytes_per_s <= 0) port->bytes_per_s = other.bytes_per_s;
    const bool rates = other.bytes_per_s > 0 && port->bytes_per_s > 0 && std::abs(other.bytes_per_s - port->bytes_per_s) > 0.05 * port->bytes_per_s;
    if (rates) differences.push_back(fmt::format("{} port {}: {:g} Gb/s here, {:g} Gb/s by {}", port->adapter, port->port, port->bytes_per_s * 8 / 1e9, other.bytes_per_s * 8 / 1e9, more.tool));
    const bool states = !other.state.empty() && !port->state.empty() && other.state != port->state;
    if (states) differences.push_back(fmt::format("{} port {}: {} here, {} by {}", port->adapter, port->port, port->state, other.state, more.tool));
  }
  return differences;
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
