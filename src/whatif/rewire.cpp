// SPDX-License-Identifier: Apache-2.0
#include "rewire.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace chokepoint::whatif {

using namespace topology;

namespace {

const Device& device_at(const Host& host, int index) { return host.devices[static_cast<std::size_t>(index)]; }

bool is_gpu_link(LinkKind kind) { return kind == LinkKind::kNvLink || kind == LinkKind::kXgmi; }

Bandwidth specified(double bytes_per_s, std::string origin) {
  Bandwidth bandwidth;
  bandwidth.specified_bytes_per_s = bytes_per_s;
  bandwidth.origin = std::move(origin);
  return bandwidth;
}

bool is_named(const Device& device, const std::string& name) {
  return device.name == name || device.alias == name || (!device.bus_id.empty() && device.bus_id == name);
}

/// Cards keep the slot they sit in; anything else is a module and comes with its board.
bool is_card(const hardware::Accelerator& part) { return part.form == "pcie" || part.form == "nvl"; }

bool has_nvswitch(const Host& host) { return !host.of_kind(DeviceKind::kNvSwitch).empty(); }

}  // namespace

std::string_view name(LinkClass link_class) {
  constexpr std::array<std::string_view, kLinkClassCount> kNames{"nvlink",   "pcie",        "pcie-uplink",
                                                                 "nic-slot", "host-memory", "socket"};
  return kNames[static_cast<std::size_t>(link_class)];
}

std::optional<LinkClass> class_of(const Host& host, const Link& link) {
  switch (link.kind) {
    case LinkKind::kNvLink:
    case LinkKind::kXgmi:
      return LinkClass::kGpuLinks;
    case LinkKind::kMemory:
      return LinkClass::kHostMemory;
    case LinkKind::kSocket:
      return LinkClass::kSockets;
    case LinkKind::kPcie:
      break;
  }
  for (const int end : {link.from, link.to}) {
    if (device_at(host, end).kind == DeviceKind::kGpu) return LinkClass::kGpuSlots;
    if (device_at(host, end).kind == DeviceKind::kNic) return LinkClass::kNicSlots;
  }
  return LinkClass::kSwitchUplinks;
}

void scale(Bandwidth& bandwidth, double factor) {
  for (std::optional<double>* value :
       {&bandwidth.specified_bytes_per_s, &bandwidth.negotiated_bytes_per_s, &bandwidth.measured_bytes_per_s}) {
    if (*value) **value *= factor;
  }
}

bool scale_class(Cluster& cluster, LinkClass link_class, double factor) {
  bool found = false;
  for (HostGroup& group : cluster.hosts) {
    for (Link& link : group.host.links) {
      if (class_of(group.host, link) != link_class) continue;
      scale(link.bandwidth, factor);
      found = true;
    }
  }
  return found;
}

int scale_device(Cluster& cluster, const std::string& device, LinkClass link_class, double factor) {
  const std::size_t slash = device.find('/');
  const std::string host_name = slash == std::string::npos ? "" : device.substr(0, slash);
  const std::string own = slash == std::string::npos ? device : device.substr(slash + 1);
  int touched = 0;
  for (HostGroup& group : cluster.hosts) {
    if (!host_name.empty() && group.host.name != host_name) continue;
    for (Link& link : group.host.links) {
      const bool at = is_named(device_at(group.host, link.from), own) || is_named(device_at(group.host, link.to), own);
      if (!at || class_of(group.host, link) != link_class) continue;
      scale(link.bandwidth, factor);
      ++touched;
    }
  }
  return touched;
}

void scale_board(Cluster& cluster, double factor) {
  for (const LinkClass part : {LinkClass::kGpuSlots, LinkClass::kSwitchUplinks, LinkClass::kNicSlots,
                               LinkClass::kHostMemory, LinkClass::kSockets}) {
    scale_class(cluster, part, factor);
  }
}

void scale_nics(Cluster& cluster, double factor) {
  for (HostGroup& group : cluster.hosts) {
    for (const int nic : compute_nics(group.host))
      group.host.devices[static_cast<std::size_t>(nic)].line_bytes_per_s *= factor;
  }
}

double nic_bytes_per_s(const Host& host) {
  double rate = 0;
  for (const int nic : compute_nics(host)) rate = std::max(rate, device_at(host, nic).line_bytes_per_s);
  return rate;
}

double gpu_link_bytes_per_s(const Host& host) {
  const std::vector<int> gpus = host.gpus();
  if (gpus.empty()) return 0;
  double sum = 0;
  for (const Link& link : host.links) {
    if (link.from == gpus.front() && is_gpu_link(link.kind)) sum += link.bandwidth.effective();
  }
  return sum;
}

Result<bool> set_pcie(Cluster& cluster, int generation) {
  TRY_INTO([[maybe_unused]] const double lane, hardware::pcie_bytes_per_s(generation, 1));
  for (HostGroup& group : cluster.hosts) {
    for (Link& link : group.host.links) {
      if (link.kind == LinkKind::kPcie) {
        TRY_INTO(const double rate, hardware::pcie_bytes_per_s(generation, link.width));
        link.bandwidth = specified(rate, fmt::format("what if: PCIe {}.0", generation));
      } else if (link.kind == LinkKind::kMemory) {
        const double memory = hardware::socket_memory_bytes_per_s(generation);
        if (memory > link.bandwidth.effective())
          link.bandwidth = specified(memory, fmt::format("what if: memory of a PCIe {}.0 host", generation));
      }
    }
  }
  return true;
}

Host without_devices(const Host& host, const std::vector<int>& gone) {
  Host out = host;
  std::vector<int> renumbered(host.devices.size(), -1);
  out.devices.clear();
  for (std::size_t i = 0; i < host.devices.size(); ++i) {
    if (std::find(gone.begin(), gone.end(), static_cast<int>(i)) != gone.end()) continue;
    renumbered[i] = static_cast<int>(out.devices.size());
    out.devices.push_back(host.devices[i]);
  }
  const auto stays = [&](int& a, int& b) {
    a = renumbered[static_cast<std::size_t>(a)];
    b = renumbered[static_cast<std::size_t>(b)];
    return a >= 0 && b >= 0;
  };
  out.links.clear();
  for (Link link : host.links) {
    if (stays(link.from, link.to)) out.links.push_back(std::move(link));
  }
  out.declared.clear();
  for (DeclaredPath path : host.declared) {
    if (stays(path.a, path.b)) out.declared.push_back(path);
  }
  return out;
}

namespace {

/// A second NIC like `nic`, joined where it is joined and related to the others as it is.
void clone_nic(Host& host, int nic) {
  Device copy = device_at(host, nic);
  copy.name = fmt::format("NIC{}", host.nics().size());
  copy.alias.clear();
  copy.bus_id.clear();
  const int added = host.add_device(std::move(copy));
  const std::size_t links = host.links.size();
  for (std::size_t i = 0; i < links; ++i) {
    Link link = host.links[i];
    if (link.from != nic && link.to != nic) continue;
    if (link.from == nic)
      link.from = added;
    else
      link.to = added;
    host.links.push_back(std::move(link));
  }
  const std::size_t paths = host.declared.size();
  for (std::size_t i = 0; i < paths; ++i) {
    DeclaredPath path = host.declared[i];
    if (path.a != nic && path.b != nic) continue;
    if (path.a == nic)
      path.a = added;
    else
      path.b = added;
    host.declared.push_back(path);
  }
}

}  // namespace

Result<bool> set_nic_count(Cluster& cluster, int count) {
  for (HostGroup& group : cluster.hosts) {
    Host& host = group.host;
    const std::vector<int> nics = compute_nics(host);
    if (nics.empty()) {
      return fail(fmt::format("host '{}' has no NIC to multiply", host.name), {},
                  {"name its NIC in the cluster file: 'nic: connectx-7-400g'"});
    }
    const int now = static_cast<int>(nics.size());
    for (int i = now; i < count; ++i) clone_nic(host, nics[static_cast<std::size_t>(i % now)]);
    if (count >= now) continue;
    // Those kept are spread as evenly over the host as before.
    std::vector<int> gone = nics;
    for (int i = 0; i < count; ++i) {
      const int kept = nics[static_cast<std::size_t>(i * now / count)];
      gone.erase(std::find(gone.begin(), gone.end(), kept));
    }
    host = without_devices(host, gone);
  }
  return true;
}

Result<bool> set_bridges(Cluster& cluster, const hardware::Accelerator& accelerator, bool fitted) {
  if (fitted && accelerator.nvlinks == 0) {
    return fail(fmt::format("{} takes no NVLink bridge", accelerator.name), {},
                {"its data sheet lists no NVLinks; a change of accelerator= may"});
  }
  for (HostGroup& group : cluster.hosts) {
    Host& host = group.host;
    if (has_nvswitch(host)) {
      return fail(fmt::format("host '{}' joins its GPUs by a switch; bridges belong to PCIe boards", host.name), {},
                  {"change nvlink= instead"});
    }
    std::erase_if(host.links, [](const Link& link) { return is_gpu_link(link.kind); });
    std::erase_if(host.declared, [&](const DeclaredPath& path) { return path.path == PathClass::kNvLink; });
    const std::vector<int> gpus = host.gpus();
    if (fitted && gpus.size() < 2) return fail(fmt::format("host '{}' has one GPU, nothing to bridge", host.name));
    for (std::size_t i = 0; fitted && i + 1 < gpus.size(); i += 2) {
      const int a = gpus[i];
      const int b = gpus[i + 1];
      std::erase_if(host.declared, [&](const DeclaredPath& path) {
        return (path.a == a && path.b == b) || (path.a == b && path.b == a);
      });
      const LinkKind kind = accelerator.vendor == "AMD" ? LinkKind::kXgmi : LinkKind::kNvLink;
      host.add_duplex(
          a, b, kind, accelerator.nvlinks,
          specified(accelerator.nvlinks * accelerator.nvlink_bytes_per_s, "catalogue: " + accelerator.name));
    }
  }
  return true;
}

namespace {

void relink_gpus(Host& host, const hardware::Accelerator& part) {
  for (Link& link : host.links) {
    if (!is_gpu_link(link.kind)) continue;
    const bool to_switch = device_at(host, link.to).kind == DeviceKind::kNvSwitch ||
                           device_at(host, link.from).kind == DeviceKind::kNvSwitch;
    link.width = to_switch ? part.nvlinks : std::min(link.width, part.nvlinks);
    link.bandwidth = specified(link.width * part.nvlink_bytes_per_s, "catalogue: " + part.name);
  }
}

Result<bool> reslot_gpus(Host& host, const hardware::Accelerator& old_part, const hardware::Accelerator& part) {
  TRY_INTO(const double own, hardware::pcie_bytes_per_s(part.pcie_generation, part.pcie_lanes));
  TRY_INTO(const double before, hardware::pcie_bytes_per_s(old_part.pcie_generation, old_part.pcie_lanes));
  // A module brings its board; a card keeps the slot, which may hold it back.
  const bool board = !is_card(part);
  for (Link& link : host.links) {
    const auto link_class = class_of(host, link);
    if (link_class == LinkClass::kGpuSlots) {
      const double slot = link.bandwidth.effective();
      const bool slot_limits = slot < 0.99 * before;
      link.width = part.pcie_lanes;
      link.bandwidth = specified(board || !slot_limits ? own : std::min(own, slot), "catalogue: " + part.name);
    } else if (board && (link_class == LinkClass::kSwitchUplinks || link_class == LinkClass::kNicSlots) &&
               own > before) {
      scale(link.bandwidth, own / before);
    }
  }
  return true;
}

}  // namespace

namespace {

void unlink_gpus(Host& host) {
  std::erase_if(host.links, [](const Link& link) { return is_gpu_link(link.kind); });
  std::erase_if(host.declared, [](const DeclaredPath& path) { return path.path == PathClass::kNvLink; });
  host = without_devices(host, host.of_kind(DeviceKind::kNvSwitch));
}

/// GPU links as the boards of such modules have them: eight and more hang on a switch, fewer (and other vendors') are
/// meshed.
void link_modules(Host& host, const hardware::Accelerator& part) {
  const std::vector<int> gpus = host.gpus();
  if (gpus.size() < 2 || part.nvlinks == 0) return;
  const LinkKind kind = part.vendor == "AMD" ? LinkKind::kXgmi : LinkKind::kNvLink;
  const auto join = [&](int a, int b, int links) {
    host.add_duplex(a, b, kind, links, specified(links * part.nvlink_bytes_per_s, "catalogue: " + part.name));
  };
  constexpr std::size_t kSwitched = 8;
  if (part.vendor == "NVIDIA" && gpus.size() >= kSwitched) {
    const int nvswitch = host.add_device({DeviceKind::kNvSwitch, "NVSwitch", {}, {}, {}});
    for (const int gpu : gpus) join(gpu, nvswitch, part.nvlinks);
    return;
  }
  const int links = std::max(1, part.nvlinks / (static_cast<int>(gpus.size()) - 1));
  for (std::size_t a = 0; a < gpus.size(); ++a) {
    for (std::size_t b = a + 1; b < gpus.size(); ++b) join(gpus[a], gpus[b], links);
  }
}

void change_form(Host& host, const hardware::Accelerator& old_part, const hardware::Accelerator& part,
                 std::vector<Note>& notes) {
  if (is_card(part) && !is_card(old_part)) {
    unlink_gpus(host);
    notes.push_back({fmt::format("{} is a card: no links between the GPUs (bridges=on fits them)", part.name), {}});
  } else if (is_card(old_part) && !is_card(part)) {
    unlink_gpus(host);
    link_modules(host, part);
    notes.push_back({fmt::format("{} is a module: {}", part.name,
                                 has_nvswitch(host) ? "its board joins the GPUs by a switch"
                                                    : "its board joins every pair of GPUs"),
                     {}});
  } else if (part.nvlinks == 0) {
    if (gpu_link_bytes_per_s(host) > 0)
      notes.push_back({fmt::format("{} has no GPU links: its traffic goes over PCIe", part.name), {}});
    unlink_gpus(host);
  } else {
    relink_gpus(host, part);
  }
}

}  // namespace

Result<bool> set_accelerator(Cluster& cluster, const hardware::Accelerator& part, std::vector<Note>& notes) {
  for (HostGroup& group : cluster.hosts) {
    Host& host = group.host;
    TRY_INTO(const hardware::Accelerator old_part, hardware::find_accelerator(host.accelerator));
    change_form(host, old_part, part, notes);
    TRY_INTO([[maybe_unused]] const bool slots, reslot_gpus(host, old_part, part));
    host.accelerator = part.name;
    if (host.peer_to_peer != part.pcie_peer_to_peer) host.gpudirect_rdma = part.pcie_peer_to_peer;
    host.peer_to_peer = part.pcie_peer_to_peer;
    for (const int gpu : host.gpus()) host.devices[static_cast<std::size_t>(gpu)].model = part.name;
  }
  return true;
}

int mend_links(Cluster& cluster) {
  int mended = 0;
  for (HostGroup& group : cluster.hosts) {
    for (Link& link : group.host.links) {
      Bandwidth& b = link.bandwidth;
      // A link measures a little below its specification even in health: a tenth is PCIe's own headers.
      if (!b.specified_bytes_per_s || b.effective() >= 0.85 * *b.specified_bytes_per_s) continue;
      b.negotiated_bytes_per_s = std::nullopt;
      b.measured_bytes_per_s = std::nullopt;
      ++mended;
    }
  }
  return mended;
}

}  // namespace chokepoint::whatif
