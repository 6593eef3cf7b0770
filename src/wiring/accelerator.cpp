// SPDX-License-Identifier: Apache-2.0
// Knowing the accelerator settles what a path matrix leaves open: NVLink rate, PCIe generation, peer-to-peer.
#include "matrix.hpp"
#include "parts.hpp"

#include <chokepoint/wiring/wiring.hpp>

#include <algorithm>
#include <fmt/format.h>

namespace chokepoint::wiring {

using namespace topology;

namespace {

int most_links_of_a_gpu(const Host& host) {
  int most = 0;
  for (const int gpu : host.gpus()) {
    int sum = 0;
    for (const Link& link : host.links) {
      const bool gpu_link = link.kind == LinkKind::kNvLink || link.kind == LinkKind::kXgmi;
      if (gpu_link && link.from == gpu) sum += link.width;
    }
    most = std::max(most, sum);
  }
  return most;
}

int widest_declared(const Host& host) {
  int widest = 0;
  for (const DeclaredPath& path : host.declared) widest = std::max(widest, path.nvlinks);
  return widest;
}

Result<bool> settle_nvlinks(Host& host, const hardware::Accelerator& accelerator, const std::string& origin) {
  const int declared = widest_declared(host);
  if (accelerator.nvlinks < declared) {
    return fail(fmt::format("the wiring has NV{} between GPUs, but {} has {} NVLinks", declared, accelerator.name, accelerator.nvlinks), {},
                {"name the accelerator that is in this host; `chokepoint accelerators` lists them"});
  }
  if (declared > 0) {
    join_declared_nvlinks(host, accelerator.nvlinks, accelerator.nvlink_bytes_per_s, gpu_link_kind(accelerator), origin);
    return true;
  }
  if (const int links = most_links_of_a_gpu(host); links > accelerator.nvlinks) {
    return fail(fmt::format("a GPU of this host has {} links to others, but {} has {}", links, accelerator.name, accelerator.nvlinks), {},
                {"name the accelerator that is in this host; `chokepoint accelerators` lists them"});
  }
  for (Link& link : host.links) {
    const bool gpu_link = link.kind == LinkKind::kNvLink || link.kind == LinkKind::kXgmi;
    if (gpu_link && is_assumed(link.bandwidth)) link.bandwidth = specified(link.width * accelerator.nvlink_bytes_per_s, origin);
  }
  return true;
}

/// PCIe links that nobody described run at the accelerator's generation; the sockets of such a host follow.
void settle_pcie(Host& host, const hardware::Accelerator& accelerator, const std::string& origin) {
  const int generation = accelerator.pcie_generation;
  bool changed = false;
  for (Link& link : host.links) {
    if (!is_assumed(link.bandwidth)) continue;
    if (link.kind == LinkKind::kPcie) {
      const bool at_gpu = host.devices[static_cast<std::size_t>(link.from)].kind == DeviceKind::kGpu ||
                          host.devices[static_cast<std::size_t>(link.to)].kind == DeviceKind::kGpu;
      if (at_gpu) link.width = accelerator.pcie_lanes;
      link.bandwidth = pcie(generation, link.width, origin);
      changed = true;
    } else if (link.kind == LinkKind::kSocket) {
      link.bandwidth = specified(socket_bytes_per_s(generation), fmt::format("{}sockets of a PCIe {}.0 host", kAssumed, generation));
    } else if (link.kind == LinkKind::kMemory) {
      link.bandwidth = specified(hardware::socket_memory_bytes_per_s(generation), fmt::format("{}memory of a PCIe {}.0 host", kAssumed, generation));
    }
  }
  if (changed) {
    host.notes.push_back({fmt::format("PCIe {}.0 x{} taken from the data sheet of {}; the slots may have trained at less", generation,
                                      accelerator.pcie_lanes, accelerator.name), {}});
  }
}

void drop_notes(Host& host, std::string_view beginning) {
  host.notes.erase(std::remove_if(host.notes.begin(), host.notes.end(),
                                  [beginning](const Note& note) { return note.text.compare(0, beginning.size(), beginning) == 0; }),
                   host.notes.end());
}

}  // namespace

Result<Host> with_accelerator(Host host, const hardware::Accelerator& accelerator) {
  if (!host.accelerator.empty() && host.accelerator != accelerator.name) {
    return fail(fmt::format("the wiring says its GPUs are {}, but {} is named as the accelerator", host.accelerator, accelerator.name), {},
                {"leave the accelerator out, or name the one in the file"});
  }
  const std::string origin = "catalogue: " + accelerator.name;
  TRY_INTO([[maybe_unused]] const bool settled, settle_nvlinks(host, accelerator, origin));
  drop_notes(host, "PCIe generation not stated");
  drop_notes(host, "NVLink generation not stated");
  settle_pcie(host, accelerator, origin);
  host.accelerator = accelerator.name;
  for (Device& device : host.devices) {
    if (device.kind == DeviceKind::kGpu) device.model = accelerator.name;
  }
  if (!accelerator.pcie_peer_to_peer && host.peer_to_peer) {
    host.peer_to_peer = false;
    host.gpudirect_rdma = false;
    host.notes.push_back({fmt::format("{} copies to no peer over PCIe: such copies go through host memory", accelerator.name), {}});
  }
  return host;
}

}  // namespace chokepoint::wiring
