// SPDX-License-Identifier: Apache-2.0
// What PCIe links and NVLinks trained at. Speed falls when a device rests and comes back with work; width does not: so
// width alone is evidence at rest, speed only under load.
#include "collector.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <set>

namespace chokepoint::findings {

using namespace wiring;

namespace {

constexpr double kRestingTransfersPerS = 2.5e9;  ///< PCIe 1.0, where links go to rest

bool has_word(const std::string& text, std::string_view word) { return text.find(word) != std::string::npos; }

double lanes_left(int current, int most) { return most > 0 ? std::clamp(static_cast<double>(current) / most, 0.01, 1.0) : 1; }

void check_smi(Collector& out, const SmiQuery& query, const std::string& file) {
  std::map<std::pair<int, int>, int> kinds;
  for (const SmiGpu& gpu : query.gpus) {
    const SourcePos at{file, gpu.line, 0};
    if (gpu.generation_max > 0 && gpu.width_max > 0) ++kinds[{gpu.generation_max, gpu.width_current > 0 ? gpu.width_current : gpu.width_max}];
    if (gpu.width_current > 0 && gpu.width_current < gpu.width_max) {
      out.add("pcie-link-narrow", gpu.bus_id, fmt::format("{} at {}: x{} of x{}", gpu.name, gpu.bus_id, gpu.width_current, gpu.width_max), {at}).effect =
          {EffectKind::kGpuSlot, lanes_left(gpu.width_current, gpu.width_max), gpu.bus_id};
    }
    const bool at_work = (gpu.performance_state == "P0" || gpu.performance_state == "P1") && gpu.utilization.value_or(0) > 0;
    if (at_work && gpu.generation_current > 0 && gpu.generation_current < gpu.generation_max) {
      out.add("pcie-link-slow", gpu.bus_id, fmt::format("{} at {}: generation {} of {} while at work ({:g} %)", gpu.name, gpu.bus_id, gpu.generation_current, gpu.generation_max, *gpu.utilization), {at}).effect =
          {EffectKind::kGpuSlot, std::pow(0.5, gpu.generation_max - gpu.generation_current), gpu.bus_id};
    }
    if (gpu.generation_host_max > 0 && gpu.generation_host_max < gpu.generation_device_max) {
      out.add("pcie-slot-older", gpu.bus_id, fmt::format("{} at {}: the slot is generation {}, the card {}", gpu.name, gpu.bus_id, gpu.generation_host_max, gpu.generation_device_max), {at});
    }
    if (!gpu.fabric_state.empty() && gpu.fabric_state != "N/A" && gpu.fabric_state != "Completed") {
      out.add("fabric-state", gpu.bus_id, fmt::format("{} at {}: fabric {} ({})", gpu.name, gpu.bus_id, gpu.fabric_state, gpu.fabric_status), {at}).effect = {EffectKind::kNvLinks, 0.05, {}};
    } else if (gpu.fabric_state == "Completed" && !gpu.fabric_status.empty() && gpu.fabric_status != "Success" && gpu.fabric_status != "N/A") {
      out.add("fabric-state", gpu.bus_id, fmt::format("{} at {}: fabric completed with {}", gpu.name, gpu.bus_id, gpu.fabric_status), {at});
    }
    for (const std::string& reason : gpu.active_slowdowns) {
      if (has_word(reason, "Thermal") || has_word(reason, "Power Brake") || reason == "HW Slowdown") out.add("clocks-slowed", gpu.bus_id, fmt::format("{} at {}: {} is active", gpu.name, gpu.bus_id, reason), {at});
    }
  }
  if (kinds.size() < 2) return;
  std::string words;
  for (const auto& [kind, count] : kinds) words += fmt::format("{}{} x gen{} x{}", words.empty() ? "" : ", ", count, kind.first, kind.second);
  out.add("pcie-unequal", file, words, {{file, query.gpus.front().line, 0}});
}

/// Ports with a GPU or NIC somewhere below; the state of an empty slot says nothing.
std::vector<bool> leads_to_device(const PciListing& listing) {
  std::vector<bool> leads(listing.functions.size(), false);
  for (std::size_t i = 0; i < listing.functions.size(); ++i) {
    const PciRole role = listing.functions[i].role;
    if (role != PciRole::kGpu && role != PciRole::kNic && role != PciRole::kNvSwitch) continue;
    int at = static_cast<int>(i);
    for (int depth = 0; at >= 0 && depth < 64 && !leads[static_cast<std::size_t>(at)]; ++depth) {
      leads[static_cast<std::size_t>(at)] = true;
      at = listing.functions[static_cast<std::size_t>(at)].parent;
    }
  }
  return leads;
}

void check_pci_links(Collector& out, const PciListing& listing, const std::string& file) {
  const std::vector<bool> leads = leads_to_device(listing);
  std::map<int, int> widths;
  for (std::size_t i = 0; i < listing.functions.size(); ++i) {
    const PciFunction& function = listing.functions[i];
    if (!function.state || !leads[i]) continue;
    const PciLinkState& state = *function.state;
    const int most = function.capability ? function.capability->width : state.width;
    if (function.role == PciRole::kGpu && most > 0) ++widths[state.width];
    // A switch or root port may offer more lanes than the card below has: only the card's own end tells.
    const bool endpoint = function.role != PciRole::kBridge;
    const bool narrow = state.width_downgraded || (function.capability && state.width > 0 && state.width < function.capability->width);
    const bool upstream = function.port_type == "Upstream Port";
    if (narrow && (endpoint || upstream)) {
      out.add("pcie-link-narrow", function.bus_id, fmt::format("{} at {}: x{} of x{}", function.text, function.bus_id, state.width, most), {{file, state.line, 0}}).effect =
          {EffectKind::kGpuSlot, lanes_left(state.width, most), function.bus_id};
    }
    const bool slower = state.speed_downgraded || (function.capability && state.transfers_per_s < function.capability->transfers_per_s * 0.99);
    const bool resting = state.transfers_per_s <= kRestingTransfersPerS && function.role != PciRole::kNic;
    if (slower && !resting && !narrow && (endpoint || upstream) && function.capability) {
      out.add("pcie-link-slow", function.bus_id, fmt::format("{} at {}: {:g} of {:g} GT/s", function.text, function.bus_id, state.transfers_per_s / 1e9, function.capability->transfers_per_s / 1e9), {{file, state.line, 0}})
          .effect = {EffectKind::kGpuSlot, state.transfers_per_s / function.capability->transfers_per_s, function.bus_id};
    }
  }
  if (widths.size() > 1) {
    std::string words;
    for (const auto& [width, count] : widths) words += fmt::format("{}{} x x{}", words.empty() ? "" : ", ", count, width);
    out.add("pcie-unequal", file, "GPUs by link width: " + words, {{file, 0, 0}});
  }
}

void check_access_control(Collector& out, const PciListing& listing, const std::string& file) {
  const std::vector<bool> leads = leads_to_device(listing);
  bool any_leads = false;
  for (std::size_t i = 0; i < listing.functions.size(); ++i) any_leads = any_leads || (leads[i] && listing.functions[i].role == PciRole::kBridge);
  std::vector<SourcePos> evidence;
  int roots = 0;
  int downstream = 0;
  int total = 0;
  std::string first;
  for (std::size_t i = 0; i < listing.functions.size(); ++i) {
    const PciFunction& function = listing.functions[i];
    if (!function.access || !function.access->request_redirect) continue;
    // A listing of ports alone does not say what is below them: then every port counts.
    if (any_leads && !leads[i]) continue;
    ++total;
    if (function.port_type == "Root Port") ++roots;
    if (function.port_type == "Downstream Port") ++downstream;
    if (first.empty()) first = function.bus_id;
    if (evidence.size() < 8) evidence.push_back({file, function.access->line, 0});
  }
  if (total == 0) return;
  out.add("acs-redirect", first,
          fmt::format("ReqRedir+ on {} ports above GPUs or NICs ({} root ports, {} switch downstream ports): copies between GPUs go up to the CPU and back; both kinds have to be cleared", total, roots, downstream), std::move(evidence))
      .effect = {EffectKind::kNoPeerToPeer, 1, {}};
}

void check_switch_types(Collector& out, const PciListing& listing, const std::string& file) {
  std::set<std::string> upstream;
  int line = 0;
  for (const PciFunction& function : listing.functions) {
    if (!has_word(function.text, "PEX890")) continue;
    if (function.port_type.empty() || function.port_type == "Upstream Port") upstream.insert(function.bus_id);
    if (line == 0) line = function.line;
  }
  if (line == 0 || listing.count(PciRole::kGpu) < 3) return;
  out.add("switch-write-collapse", file, fmt::format("{} upstream ports of Broadcom PEX890xx switches: two sources below one switch that write to two other switches were measured at 2.7 GB/s (reads kept 51)", upstream.size()), {{file, line, 0}});
}

/// H100 NVL and H200 NVL bridges carry 12 of 18 links; PCIe boards without a bridge have none up.
bool inactive_by_design(const NvLinkStatus& status, const NvLinkGpu& gpu) {
  const bool pcie_board = has_word(gpu.name, "PCI") || has_word(gpu.name, "NVL") || has_word(gpu.name, "RTX") || has_word(gpu.name, "A40") || has_word(gpu.name, "A30") || has_word(gpu.name, "L40");
  if (gpu.up() == 0) return pcie_board;
  if (!pcie_board) return false;
  if (has_word(gpu.name, "NVL") && gpu.up() == 12) return true;
  const bool alike = std::all_of(status.gpus.begin(), status.gpus.end(), [&gpu](const NvLinkGpu& other) { return other.up() == gpu.up(); });
  return alike && status.gpus.size() > 1 && gpu.up() % 2 == 0;
}

void check_nvlink(Collector& out, const NvLinkStatus& status, const std::string& file) {
  for (const NvLinkGpu& gpu : status.gpus) {
    const std::string where = fmt::format("GPU{}", gpu.index);
    double errors = 0;
    std::string words;
    for (const auto& [name, count] : gpu.errors) {
      errors += count;
      if (count > 0) words += fmt::format("{}{} {:g}", words.empty() ? "" : ", ", name, count);
    }
    if (errors > 0) out.add("nvlink-errors", where, words, {{file, gpu.line, 0}});
    if (gpu.links.empty() || gpu.inactive() == 0 || inactive_by_design(status, gpu)) continue;
    std::vector<SourcePos> evidence;
    std::string which;
    for (const NvLinkState& link : gpu.links) {
      if (link.bytes_per_s.value_or(0) > 0) continue;
      which += fmt::format("{}{}", which.empty() ? "" : ", ", link.link);
      if (evidence.size() < 8) evidence.push_back({file, link.line, 0});
    }
    const int all = gpu.up() + gpu.inactive();
    out.add(gpu.up() == 0 ? "nvlink-absent" : "nvlink-inactive", where, fmt::format("{} ({}): links {} inactive, {} of {} up", where, gpu.name, which, gpu.up(), all), std::move(evidence)).effect =
        {EffectKind::kNvLinks, std::max(0.02, static_cast<double>(gpu.up()) / all), {}};
  }
}

void check_peers(Collector& out, const PeerMatrix& matrix, const std::string& file) {
  const std::map<std::string, int> pairs = matrix.pairs();
  int denied = 0;
  for (const auto& [word, count] : pairs) denied += word == "OK" || word == "X" ? 0 : count;
  if (denied == 0) return;
  const auto ok = pairs.find("OK");
  if (ok == pairs.end()) {
    out.add("p2p-off", file, fmt::format("none of {} pairs of GPUs has peer access", denied), {{file, matrix.line, 0}}).effect = {EffectKind::kNoPeerToPeer, 1, {}};
  } else {
    out.add("p2p-islands", file, fmt::format("{} pairs have peer access, {} have not", ok->second, denied), {{file, matrix.line, 0}}).effect = {EffectKind::kNoPeerToPeer, 1, {}};
  }
}

}  // namespace

void check_links(Collector& out) {
  for (const Document& document : out.assembly().documents) {
    if (const auto* query = std::get_if<SmiQuery>(&document.content)) check_smi(out, *query, document.file);
    if (const auto* status = std::get_if<NvLinkStatus>(&document.content)) check_nvlink(out, *status, document.file);
    if (const auto* matrix = std::get_if<PeerMatrix>(&document.content)) check_peers(out, *matrix, document.file);
    if (const auto* listing = std::get_if<PciListing>(&document.content)) {
      check_access_control(out, *listing, document.file);
      check_pci_links(out, *listing, document.file);
      check_switch_types(out, *listing, document.file);
    }
  }
}

}  // namespace chokepoint::findings
