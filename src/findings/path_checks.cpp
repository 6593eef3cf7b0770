// SPDX-License-Identifier: Apache-2.0
// How GPUs reach each other and the NICs, by the classes a matrix declares or the graph gives.
#include "collector.hpp"

#include <chokepoint/base/text.hpp>
#include <chokepoint/hardware/catalogue.hpp>

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <set>

namespace chokepoint::findings {

using namespace topology;

namespace {

const Device& device_at(const Host& host, int index) { return host.devices[static_cast<std::size_t>(index)]; }

/// Ethernet controllers that carry no collectives: 1 and 10 Gb/s ports that boards carry, storage adapters.
/// Source: the PCI ID repository, vendors 8086, 14e4, 10df, 10ec.
constexpr std::array<std::string_view, 11> kManagement{"I210", "I350", "X540", "X550", "X710", "X557", "BCM5720", "BCM57416", "BCM5719", "Emulex", "RTL8"};

std::vector<std::string> names_of(const Host& host, const std::vector<int>& indices) {
  std::vector<std::string> names;
  for (const int index : indices) names.push_back(device_at(host, index).name);
  return names;
}

/// What a matrix says; a row it lacks is not replaced by a guess from the graph.
DeclaredPath known_path(const Host& host, int a, int b) {
  if (host.declared.empty()) return path_between(host, a, b);
  for (const DeclaredPath& path : host.declared) {
    if ((path.a == a && path.b == b) || (path.a == b && path.b == a)) return path;
  }
  return {a, b, PathClass::kUnknown, 0};
}

/// NICs that carry collectives, without ports for management: slow ones, and controllers known to be.
std::vector<int> fast_nics(const Host& host) {
  constexpr double kSlow = 10e9 / 8 * 1.01;
  std::vector<int> nics;
  for (const int nic : compute_nics(host)) {
    const Device& device = device_at(host, nic);
    const bool named_slow = std::any_of(kManagement.begin(), kManagement.end(), [&device](std::string_view word) { return device.model.find(word) != std::string::npos; });
    if ((device.line_bytes_per_s <= 0 || device.line_bytes_per_s > kSlow) && !named_slow) nics.push_back(nic);
  }
  return nics;
}

bool has_file_about_nics(const Host& host) {
  // ibstat and fabric files list NICs without saying where they sit: their PCIe links are assumed.
  for (const int nic : host.nics()) {
    for (const Link& link : host.links) {
      if (link.from == nic && link.bandwidth.origin.find("says nothing about the slot") == std::string::npos && link.bandwidth.origin.find("does not look into hosts") == std::string::npos &&
          link.bandwidth.origin.find("does not say where") == std::string::npos) return true;
    }
  }
  return false;
}

/// Hosts whose GPUs hang on the CPU by NVLink-C2C reach every NIC through it: SYS is how nvidia-smi draws that.
bool grace_like(const Host& host) {
  std::set<int> nodes;
  for (const int gpu : host.gpus()) {
    if (device_at(host, gpu).numa) nodes.insert(*device_at(host, gpu).numa);
  }
  return host.accelerator.substr(0, 2) == "gb" || host.accelerator.substr(0, 2) == "gh" || (host.gpus().size() > 1 && nodes.size() == host.gpus().size());
}

void check_nic_distance(Collector& out, const Host& host) {
  const std::vector<int> gpus = host.gpus();
  if (gpus.size() < 2 || fast_nics(host).empty() || !has_file_about_nics(host)) return;
  std::vector<int> far;
  std::vector<int> near;
  std::vector<int> silent;
  for (const int gpu : gpus) {
    PathClass best = PathClass::kUnknown;
    for (const int nic : fast_nics(host)) best = std::min(best, known_path(host, gpu, nic).path);
    (best == PathClass::kUnknown ? silent : best == PathClass::kSys ? far : near).push_back(gpu);
  }
  if (far.empty()) return;
  if (!near.empty()) {
    out.add("gpu-nic-far", host.name,
            fmt::format("{} reach every NIC across the sockets (SYS); the NICs ({}) sit beside {}", short_list(names_of(host, far)), short_list(names_of(host, fast_nics(host))), short_list(names_of(host, near))),
            {{host.name, 0, 0}});
  } else if (silent.empty() && !grace_like(host)) {
    // All far: one socket holds the GPUs and the other the NICs, or the machine hides its tree.
    bool all_pairs_sys = true;
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      for (std::size_t j = i + 1; j < gpus.size(); ++j) all_pairs_sys = all_pairs_sys && known_path(host, gpus[i], gpus[j]).path == PathClass::kSys;
    }
    if (!all_pairs_sys) {
      out.add(Severity::kInfo, "gpu-nic-far", host.name, fmt::format("all {} GPUs reach every NIC across the sockets (SYS); on hosts with Grace CPUs nvidia-smi draws it so by design", gpus.size()), {{host.name, 0, 0}});
    }
  }
}

/// GPUs behind the host bridge of a NIC that sits under the switch of other GPUs: their reads cross the root complex.
void check_nic_bridge(Collector& out, const Host& host) {
  if (host.gpus().size() < 2 || fast_nics(host).empty() || !has_file_about_nics(host)) return;
  std::vector<int> behind;
  std::vector<int> beside;
  for (const int gpu : host.gpus()) {
    PathClass best = PathClass::kUnknown;
    for (const int nic : fast_nics(host)) best = std::min(best, known_path(host, gpu, nic).path);
    if (best == PathClass::kPix || best == PathClass::kPxb) beside.push_back(gpu);
    if (best == PathClass::kPhb) behind.push_back(gpu);
  }
  if (beside.empty() || behind.empty()) return;
  out.add("gpu-nic-bridge", host.name,
          fmt::format("{} reach the NIC through the host bridge, {} through a switch: GPUDirect is refused or slow over the bridge (NCCL_NET_GDR_READ, NCCL_NET_GDR_LEVEL)",
                      short_list(names_of(host, behind)), short_list(names_of(host, beside))),
          {{host.name, 0, 0}});
}

void check_sharing(Collector& out, const Host& host) {
  const std::size_t gpus = host.gpus().size();
  if (gpus < 2 || fast_nics(host).empty() || !has_file_about_nics(host)) return;
  const std::vector<int> nics = fast_nics(host);
  if (nics.size() >= gpus) return;
  bool one_card = nics.size() > 1;
  for (std::size_t i = 0; i < nics.size(); ++i) {
    for (std::size_t j = i + 1; j < nics.size(); ++j) one_card = one_card && known_path(host, nics[i], nics[j]).path == PathClass::kPix;
  }
  const std::size_t cards = one_card ? 1 : nics.size();
  // Two to four GPUs to a NIC is how HPC nodes and cloud machines of several vendors are built.
  const Severity severity = cards == 1 && gpus >= 4 ? Severity::kWarning : Severity::kInfo;
  std::string what = fmt::format("{} GPUs share {} NIC{} ({})", gpus, nics.size(), nics.size() == 1 ? "" : "s", short_list(names_of(host, nics)));
  if (one_card) what += ": ports of one adapter, which share its slot";
  what += cards == 1 ? "; a port's \"4X\" counts lanes, not adapters: the host's limit is the line rate of one" : ": their line rates together are the host's limit";
  out.add(severity, "nic-shared", host.name, std::move(what), {{host.name, 0, 0}});
}

/// Two GPUs at one switch with two NICs, all at the same distance.
void check_ties(Collector& out, const Host& host) {
  if (!has_file_about_nics(host)) return;
  std::map<std::vector<int>, std::vector<int>> by_nics;
  for (const int gpu : host.gpus()) {
    PathClass best = PathClass::kPhb;
    std::vector<int> nearest;
    for (const int nic : host.nics()) {
      const PathClass path = known_path(host, gpu, nic).path;
      if (path < best) nearest.clear();
      best = std::min(best, path);
      if (path == best && path < PathClass::kPhb) nearest.push_back(nic);
    }
    if (nearest.size() > 1) by_nics[nearest].push_back(gpu);
  }
  std::vector<std::string> groups;
  for (const auto& [nics, gpus] : by_nics) {
    if (gpus.size() > 1) groups.push_back(fmt::format("{} and {}", short_list(names_of(host, gpus)), short_list(names_of(host, nics))));
  }
  if (groups.empty()) return;
  out.add("nic-choice-ambiguous", host.name, fmt::format("equally near: {}; behind virtual bridges of one switch two GPUs may pick the same NIC", fmt::join(groups, "; ")), {{host.name, 0, 0}});
}

/// Counts of NVLinks between GPUs that no intact board has.
void check_nvlink_counts(Collector& out, const Host& host) {
  const std::vector<int> gpus = host.gpus();
  std::map<int, int> sums;
  std::set<int> widths;
  std::size_t linked_pairs = 0;
  std::size_t known_pairs = 0;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    for (std::size_t j = i + 1; j < gpus.size(); ++j) {
      const DeclaredPath path = known_path(host, gpus[i], gpus[j]);
      if (path.path == PathClass::kUnknown) continue;
      ++known_pairs;
      if (path.path != PathClass::kNvLink) continue;
      ++linked_pairs;
      widths.insert(path.nvlinks);
      sums[gpus[i]] += path.nvlinks;
      sums[gpus[j]] += path.nvlinks;
    }
  }
  if (linked_pairs == 0 || known_pairs < gpus.size() * (gpus.size() - 1) / 2) return;
  // All-to-all boards (NVSwitch, full meshes) give every pair the same.
  if (linked_pairs == known_pairs && widths.size() > 1 && gpus.size() > 2) {
    std::vector<std::string> odd;
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      for (std::size_t j = i + 1; j < gpus.size(); ++j) {
        const DeclaredPath path = known_path(host, gpus[i], gpus[j]);
        if (path.nvlinks < *widths.rbegin() && odd.size() < 8) odd.push_back(fmt::format("{}-{} NV{}", device_at(host, gpus[i]).name, device_at(host, gpus[j]).name, path.nvlinks));
      }
    }
    const bool full_mesh_board = *widths.rbegin() <= 2;  // DGX-1 class meshes mix one and two links
    if (!full_mesh_board) {
      out.add("nvlink-partial", host.name, fmt::format("most pairs have NV{}, these less: {}", *widths.rbegin(), fmt::join(odd, ", ")), {{host.name, 0, 0}}).effect =
          {EffectKind::kNvLinks, static_cast<double>(*widths.begin()) / *widths.rbegin(), {}};
    }
    return;
  }
  // Bridges join pairs with an even number of links (2 on Turing boards, 4 on GA102 boards, 12 on A100 and H100 NVL).
  for (const int width : widths) {
    if (gpus.size() != 2 || width % 2 == 0 || width < 3) continue;
    out.add("nvlink-partial", host.name, fmt::format("NV{} between {} and {}: bridges carry 2, 4 or 12 links, so part of the bridge is not up", width, device_at(host, gpus[0]).name, device_at(host, gpus[1]).name),
            {{host.name, 0, 0}})
        .effect = {EffectKind::kNvLinks, static_cast<double>(width) / (width + 1), {}};
  }
  // Meshes: every GPU of an intact board has the same sum.
  if (linked_pairs < known_pairs && gpus.size() > 2 && sums.size() == gpus.size()) {
    int most = 0;
    for (const auto& [gpu, sum] : sums) most = std::max(most, sum);
    std::vector<std::string> fewer;
    for (const auto& [gpu, sum] : sums) {
      if (sum < most) fewer.push_back(fmt::format("{} {}", device_at(host, gpu).name, sum));
    }
    // Unequal bridges on a PCIe machine are a purchase, not a fault; meshes have several partners per GPU.
    const bool nvlink = std::none_of(host.links.begin(), host.links.end(), [](const Link& link) { return link.kind == LinkKind::kXgmi; });
    const bool mesh = nvlink && linked_pairs > gpus.size() / 2 && most > *widths.rbegin() && fewer.size() * 4 <= gpus.size();
    if (!fewer.empty() && mesh) out.add("nvlink-partial", host.name, fmt::format("NVLinks per GPU differ: most have {}, {}", most, fmt::join(fewer, ", ")), {{host.name, 0, 0}});
  }
}

void check_absent(Collector& out, const Host& host) {
  if (host.gpus().size() < 2 || host.accelerator.empty() || host.declared.empty()) return;
  const Result<hardware::Accelerator> accelerator = hardware::find_accelerator(host.accelerator);
  if (!accelerator || accelerator->nvlinks == 0 || accelerator->form != "sxm") return;
  const std::vector<int> gpus = host.gpus();
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    for (std::size_t j = i + 1; j < gpus.size(); ++j) {
      const PathClass path = known_path(host, gpus[i], gpus[j]).path;
      if (path == PathClass::kNvLink || path == PathClass::kUnknown) return;
    }
  }
  out.add("nvlink-absent", host.name, fmt::format("{} GPUs {} and no NVLink between any two", gpus.size(), accelerator->name), {{host.name, 0, 0}}).effect = {EffectKind::kNvLinks, 0.05, {}};
}

void check_hidden(Collector& out, const Host& host) {
  const std::vector<int> gpus = host.gpus();
  if (gpus.size() < 2 || host.declared.empty()) return;
  bool shared_node = false;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    for (std::size_t j = i + 1; j < gpus.size(); ++j) {
      if (known_path(host, gpus[i], gpus[j]).path != PathClass::kSys) return;
      const auto& a = device_at(host, gpus[i]).numa;
      shared_node = shared_node || (a && a == device_at(host, gpus[j]).numa);
    }
  }
  if (shared_node) out.add("paths-hidden", host.name, fmt::format("all pairs of {} GPUs are SYS, also those on one NUMA node", gpus.size()), {{host.name, 0, 0}});
}

}  // namespace

void check_paths(Collector& out) {
  std::set<std::string> seen;
  for (const HostGroup& group : out.assembly().cluster.hosts) {
    if (!seen.insert(group.host.name).second) continue;
    check_nic_distance(out, group.host);
    check_nic_bridge(out, group.host);
    check_sharing(out, group.host);
    check_ties(out, group.host);
    check_nvlink_counts(out, group.host);
    check_absent(out, group.host);
    check_hidden(out, group.host);
  }
}

}  // namespace chokepoint::findings
