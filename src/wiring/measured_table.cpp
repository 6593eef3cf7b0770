// SPDX-License-Identifier: Apache-2.0
// What holds for tables of every benchmark.
#include <chokepoint/wiring/tables.hpp>

#include "parts.hpp"

#include <chokepoint/base/text.hpp>
#include <chokepoint/hardware/catalogue.hpp>
#include <chokepoint/wiring/wiring.hpp>

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <set>

namespace chokepoint::wiring {

using namespace topology;

std::string_view name(TableKind kind) {
  switch (kind) {
    case TableKind::kNcclTests: return "nccl-tests";
    case TableKind::kOsu: return "osu";
    case TableKind::kPerftest: return "perftest";
    case TableKind::kDeepSpeed: return "deepspeed-comms";
    case TableKind::kCopy: return "copy";
  }
  return "table";
}

const TableRow* MeasuredTable::largest() const {
  const TableRow* best = nullptr;
  for (const TableRow& row : rows) {
    if (best == nullptr || row.bytes > best->bytes) best = &row;
  }
  return best;
}

double MeasuredTable::peak_bus_bytes_per_s() const {
  double peak = 0;
  for (const TableRow& row : rows) peak = std::max(peak, row.bus_bytes_per_s);
  return peak;
}

/// nccl-tests: all_reduce 2(n-1)/n; all_gather, reduce_scatter, all_to_all (n-1)/n. Source: its doc/PERFORMANCE.md.
int MeasuredTable::implied_ranks() const {
  const TableRow* row = largest();
  if (row == nullptr || row->algorithm_bytes_per_s < 1e9 || row->bus_bytes_per_s <= 0) return 0;
  const double ratio = row->bus_bytes_per_s / row->algorithm_bytes_per_s;
  const double missing = op == "all_reduce" ? 1 - ratio / 2 : (op == "all_gather" || op == "reduce_scatter" || op == "all_to_all") ? 1 - ratio : 0;
  // Two printed decimals: beyond this the count is not to be read from the ratio.
  const double resolution = 0.02e9 / row->algorithm_bytes_per_s;
  if (missing <= 2 * resolution) return 0;
  return static_cast<int>(std::lround(1 / missing));
}

std::vector<std::string> MeasuredTable::hosts() const {
  std::vector<std::string> found;
  std::set<std::string_view> seen;
  for (const TableDevice& device : devices) {
    if (seen.insert(device.host).second) found.push_back(device.host);
  }
  return found;
}

int MeasuredTable::stated_ranks() const {
  int highest = -1;
  for (const TableDevice& device : devices) highest = std::max(highest, device.rank);
  return highest + 1;
}

std::vector<HostGroup> hosts_of(const MeasuredTable& table, const std::string& file) {
  std::vector<HostGroup> groups;
  std::map<std::string_view, std::vector<const TableDevice*>> by_host;
  for (const TableDevice& device : table.devices) by_host[device.host].push_back(&device);
  for (const std::string& name : table.hosts()) {
    Host host;
    host.name = name;
    const int cpu = add_cpu(host, 0);
    const int bridge = add_bridge(host, cpu, 4);
    for (const TableDevice* device : by_host[name]) {
      const int gpu = host.add_device({DeviceKind::kGpu, fmt::format("GPU{}", device->device), device->name, device->bus_id, {}});
      host.add_duplex(gpu, bridge, LinkKind::kPcie, 16, pcie(4, 16, std::string(kAssumed) + "a benchmark's device list has no links"));
      const Result<hardware::Accelerator> accelerator = hardware::find_accelerator(device->name);
      if (accelerator) host.accelerator = accelerator->name;
    }
    groups.push_back({std::move(host), 1});
  }
  if (!groups.empty()) groups.front().host.notes.push_back({"only the devices are known from the benchmark's list, not how they are joined", {file, 0, 0}});
  return groups;
}

}  // namespace chokepoint::wiring
