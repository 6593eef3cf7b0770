// SPDX-License-Identifier: Apache-2.0
// NCCL's own log: which network it took and why, GPUDirect, settings, errors.
#include "collector.hpp"

#include <chokepoint/base/text.hpp>

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <set>

namespace chokepoint::findings {

using namespace wiring;

namespace {

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

int line_of(const NcclLog& log, const std::string& key) {
  const auto found = log.first_line.find(key);
  return found == log.first_line.end() ? 0 : found->second;
}

const NcclSetting* setting(const NcclLog& log, std::string_view name) {
  for (const NcclSetting& found : log.settings) {
    if (found.name == name) return &found;
  }
  return nullptr;
}

bool is_on(const NcclSetting* found) { return found != nullptr && !found->value.empty() && found->value != "0"; }

void check_network(Collector& out, const NcclLog& log, const std::string& file) {
  const bool socket_named = std::find(log.networks.begin(), log.networks.end(), "Socket") != log.networks.end();
  int socket_line = line_of(log, "network Socket");
  int socket_connections = 0;
  int other_connections = 0;
  for (const auto& [kind, count] : log.via) {
    if (kind.substr(0, 10) == "NET/Socket") {
      socket_connections += count;
      if (socket_line == 0) socket_line = line_of(log, kind);
    } else if (kind.substr(0, 4) == "NET/") {
      other_connections += count;
    }
  }
  if (!socket_named && socket_connections == 0) return;
  std::string reason;
  std::vector<SourcePos> evidence{{file, socket_line, 0}};
  for (const NcclMessage& message : log.net_lines) {
    if (!has(message.text, "No device found") && !has(message.text, "NET/IB : No") && !has(message.text, "Failed to open")) continue;
    reason = message.text;
    evidence.push_back({file, message.line, 0});
    break;
  }
  if (const NcclSetting* disabled = setting(log, "NCCL_IB_DISABLE"); is_on(disabled)) {
    reason = "NCCL_IB_DISABLE=" + disabled->value;
    evidence.push_back({file, disabled->line, 0});
  } else if (const NcclSetting* chosen = setting(log, "NCCL_NET"); chosen != nullptr && has(lower(chosen->value), "socket")) {
    reason = "NCCL_NET=" + chosen->value;
    evidence.push_back({file, chosen->line, 0});
  }
  std::string what = fmt::format("network Socket{}{}", socket_connections > 0 ? fmt::format(", {} connections via NET/Socket", socket_connections) : std::string(), reason.empty() ? std::string() : ": " + reason);
  if (other_connections > 0) what += fmt::format("; {} connections use another network", other_connections);
  out.add("socket-fallback", log.hosts.empty() ? file : log.hosts.front(), std::move(what), std::move(evidence)).effect = {EffectKind::kSockets, 1, {}};
}

void check_direct(Collector& out, const NcclLog& log, const std::string& file) {
  const int network = log.network_connections();
  int rdma = 0;
  int direct = 0;
  std::string kind;
  for (const auto& [name, count] : log.via) {
    if (name.substr(0, 4) != "NET/" || name.substr(0, 10) == "NET/Socket") continue;
    rdma += count;
    if (has(name, "GDRDMA")) direct += count;
    else kind = name;
  }
  if (network > 0 && rdma > 0 && direct < rdma) {
    std::vector<SourcePos> evidence{{file, line_of(log, kind), 0}};
    for (const NcclMessage& message : log.gdr_lines) {
      if (has(message.text, "isabled") && evidence.size() < 4) evidence.push_back({file, message.line, 0});
    }
    const std::string why = evidence.size() > 1 ? fmt::format("; the log says \"{}\"", log.gdr_lines.front().text) : std::string();
    const Severity severity = direct == 0 ? Severity::kWarning : Severity::kInfo;
    out.add(severity, "gdr-off", log.hosts.empty() ? file : log.hosts.front(), fmt::format("{} of {} connections over the network go without GPUDirect RDMA (\"{}\"){}", rdma - direct, rdma, kind, why), std::move(evidence)).effect =
        {EffectKind::kNoGpuDirect, 1, {}};
  } else if (rdma == 0 && log.gdr_disabled > 0 && log.gdr_enabled == 0) {
    out.add("gdr-off", log.hosts.empty() ? file : log.hosts.front(), log.gdr_lines.empty() ? "GPU Direct RDMA disabled" : log.gdr_lines.front().text, {{file, log.gdr_lines.empty() ? 0 : log.gdr_lines.front().line, 0}}).effect =
        {EffectKind::kNoGpuDirect, 1, {}};
  }
}

void check_cards(Collector& out, const NcclLog& log, const std::string& file) {
  std::map<int, int> per_host;
  for (const auto& [host, count] : log.devices_per_host) ++per_host[count];
  if (per_host.size() > 1) {
    std::string words;
    for (const auto& [host, count] : log.devices_per_host) {
      if (count != per_host.rbegin()->first && words.size() < 200) words += fmt::format("{}{} {}", words.empty() ? "" : ", ", host, count);
    }
    out.add("hca-missing", file, fmt::format("most hosts opened {} ports, these: {}", per_host.rbegin()->first, words), {{file, line_of(log, "devices"), 0}}).effect =
        {EffectKind::kNics, static_cast<double>(per_host.begin()->first) / per_host.rbegin()->first, {}};
  }
  // A host with several ranks and ports whose connections use one card only.
  std::map<std::string, std::set<std::string>> used;
  std::map<std::string, int> connections;
  for (const auto& [key, count] : log.net_devices_used) {
    const std::size_t slash = key.rfind('/');
    used[key.substr(0, slash)].insert(key.substr(slash + 1));
    connections[key.substr(0, slash)] += count;
  }
  std::map<std::string, int> ranks;
  for (const NcclRank& rank : log.ranks) ++ranks[rank.host];
  for (const auto& [host, cards] : used) {
    const auto opened = log.devices_per_host.find(host);
    if (opened == log.devices_per_host.end() || opened->second < 2 || cards.size() > 1 || ranks[host] < 2 || connections[host] < 4) continue;
    out.add("hca-unused", host, fmt::format("{} ports opened, all {} network connections of {} use port {}", opened->second, connections[host], host, *cards.begin()), {{file, line_of(log, "devices"), 0}}).effect =
        {EffectKind::kNics, 1.0 / opened->second, {}};
    return;
  }
}

/// One or two channels, or a buffer below a mebibyte: values people set for tests and forget.
bool is_small(const std::string& name, const std::string& value) {
  const auto number = to_number(value);
  if (!number || *number <= 0) return false;
  if (name == "NCCL_MAX_NCHANNELS" || name == "NCCL_MAX_CTAS") return *number <= 2;
  return name == "NCCL_BUFFSIZE" && *number < 1024 * 1024;
}

void check_settings(Collector& out, const NcclLog& log, const std::string& file) {
  for (const NcclSetting& found : log.settings) {
    const SourcePos at{file, found.line, 0};
    const std::string words = found.name + "=" + found.value;
    const bool on = is_on(&found);
    if (found.name == "NCCL_IB_DISABLE" && on) out.add("setting-disables-network", file, words, {at}).effect = {EffectKind::kSockets, 1, {}};
    if ((found.name == "NCCL_P2P_DISABLE" || found.name == "NCCL_SHM_DISABLE") && on) out.add("setting-disables-p2p", file, words, {at}).effect = {found.name == "NCCL_P2P_DISABLE" ? EffectKind::kNoPeerToPeer : EffectKind::kNone, 1, {}};
    const std::string value = lower(found.value);
    if (found.name == "NCCL_P2P_LEVEL" && (value == "loc" || value == "0")) out.add("setting-disables-p2p", file, words, {at}).effect = {EffectKind::kNoPeerToPeer, 1, {}};
    if (found.name == "NCCL_NET_GDR_LEVEL" && (value == "loc" || value == "0")) out.add("gdr-off", file, words + " keeps GPUDirect RDMA off", {at}).effect = {EffectKind::kNoGpuDirect, 1, {}};
    if (found.name == "NCCL_SOCKET_IFNAME" && (value.substr(0, 6) == "docker" || value == "lo" || value.substr(0, 4) == "=lo")) out.add("setting-restricts", file, words + ": an interface that reaches no other host", {at});
    const bool forced = (found.name == "NCCL_ALGO" || found.name == "NCCL_PROTO") && !value.empty();
    const bool restricts = forced || is_small(found.name, value) || (found.name == "NCCL_NVLS_ENABLE" && value == "0");
    if (restricts) out.add("setting-restricts", file, words, {at});
    if (found.name == "NCCL_IB_HCA" && log.world > 8 && value.find(',') == std::string::npos && value.find_first_of("0123456789") != std::string::npos && value.find(':') == std::string::npos && value.back() != '_') {
      out.add("setting-restricts", file, words + ": one adapter for all GPUs of a host", {at});
    }
  }
}

void check_plugins(Collector& out, const NcclLog& log, const std::string& file) {
  const bool efa_wanted = std::any_of(log.settings.begin(), log.settings.end(), [](const NcclSetting& found) { return found.name.substr(0, 3) == "FI_" || has(found.value, "efa"); });
  const bool socket = std::find(log.networks.begin(), log.networks.end(), "Socket") != log.networks.end();
  for (const std::string& line : log.plugins) {
    if (!has(line, "o plugin found") && !has(line, "Could not find") && !has(line, "Failed to load")) continue;
    if (efa_wanted || socket) out.add("plugin-absent", file, line, {});
    return;
  }
}

struct Signature {
  std::string_view part;
  std::string_view id;
  std::string_view meaning;
};
/// What NCCL's warnings mean. Source: NCCL user guide (troubleshooting), net_ib.cc, and the threads named in catalogue.cpp.
constexpr std::array<Signature, 14> kSignatures{{
    {"status=12", "log-error", "transport retries ran out: on RoCE usually a wrong GID index (NCCL_IB_GID_INDEX) or lossy fabric, on InfiniBand a bad link"},
    {"error 12", "log-error", "transport retries ran out: on RoCE usually a wrong GID index (NCCL_IB_GID_INDEX) or lossy fabric, on InfiniBand a bad link"},
    {"status=5", "log-error", "work request flushed: an earlier error on the same connection is the cause"},
    {"status=11", "log-error", "remote operation error: GPU memory could not be reached through the NIC; ACS, IOMMU or peer memory module"},
    {"status=10", "log-error", "remote access error: GPU memory is not registered where the NIC writes; ACS or relaxed ordering"},
    {"ibv_reg_mr", "log-error", "memory could not be registered: raise the locked-memory limit (ulimit -l unlimited), check the peer memory module"},
    {"ibv_create_qp", "log-error", "a queue pair could not be created: locked-memory limit or adapter resources"},
    {"ibv_modify_qp", "log-error", "a queue pair could not be connected: wrong GID index or different subnets"},
    {"ibv_open_device", "log-error", "an RDMA device could not be opened: device files are not mapped into the container"},
    {"No such device", "log-error", "a device NCCL was told to use is not there"},
    {"peer access", "log-error", "GPUs may not access each other: check nvidia-smi topo -p2p, IOMMU and ACS"},
    {"Mismatched collective", "log-error", "ranks called different collectives"},
    {"Connection refused", "log-error", "a peer did not answer: it died, or the interface is the wrong one (NCCL_SOCKET_IFNAME)"},
    {"/dev/shm", "log-error", "shared memory is too small: give the container more (--shm-size)"},
}};

void check_warnings(Collector& out, const NcclLog& log, const std::string& file) {
  std::set<std::string_view> seen;
  for (const NcclMessage& message : log.warnings) {
    for (const Signature& signature : kSignatures) {
      if (!has(message.text, signature.part) || !seen.insert(signature.meaning).second) continue;
      out.add(signature.id, message.host.empty() ? file : message.host, fmt::format("\"{}\": {}", message.text.substr(0, 160), signature.meaning), {{file, message.line, 0}});
      break;
    }
  }
  if (seen.empty() && !log.warnings.empty()) {
    out.add(Severity::kWarning, "log-error", log.warnings.front().host, fmt::format("{} warnings, first: \"{}\"", log.warnings.size(), log.warnings.front().text.substr(0, 160)), {{file, log.warnings.front().line, 0}});
  }
}

void check_graph_lines(Collector& out, const NcclLog& log, const std::string& file) {
  for (const NcclMessage& message : log.topology_lines) {
    const std::size_t at = message.text.find("PCI[");
    if (at == std::string::npos) continue;
    const auto rate = to_number(message.text.substr(at + 4, message.text.find(']', at) - at - 4));
    if (!rate || *rate > 0.6 || *rate <= 0) continue;
    out.add("virtual-bridge-slow", message.host, fmt::format("NCCL sees a PCIe link of {:g} GB/s: \"{}\"", *rate, message.text), {{file, message.line, 0}}).effect = {EffectKind::kGpuSlot, 0.02, {}};
    return;
  }
}

}  // namespace

void check_logs(Collector& out) {
  for (const Document& document : out.assembly().documents) {
    const auto* log = std::get_if<NcclLog>(&document.content);
    if (log == nullptr) continue;
    check_network(out, *log, document.file);
    check_settings(out, *log, document.file);
    check_direct(out, *log, document.file);
    check_cards(out, *log, document.file);
    check_plugins(out, *log, document.file);
    check_warnings(out, *log, document.file);
    check_graph_lines(out, *log, document.file);
  }
}

}  // namespace chokepoint::findings
