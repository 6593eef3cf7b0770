// SPDX-License-Identifier: Apache-2.0
// Names by the files' own structure first (hosts, switches, files), then by shape: addresses and identifiers. A word is
// replaced as a whole only, so that "node1" never changes "node10".
#include <chokepoint/assemble/export.hpp>

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <regex>
#include <set>

namespace chokepoint::assemble {

using namespace wiring;

namespace {

bool is_word_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.' || c == '/' || c == ':'; }

/// Words of tools, not of owners.
bool is_generic(std::string_view name) {
  static const std::set<std::string, std::less<>> kWords{"localhost", "NVLink", "NVSwitch", "GPU", "NIC", "Mellanox", "Technologies", "Node", "Aggregation", "Switch", "Quantum", "Infiniscale-IV", "SwitchX"};
  return name.size() < 2 || kWords.count(name) != 0;
}

}  // namespace

Anonymiser::Anonymiser(const Assembly& assembly) {
  const auto give = [this](std::string_view name, std::string alias) {
    if (!is_generic(name)) names_.emplace(std::string(name), std::move(alias));
  };
  int files = 0;
  int hosts = 0;
  int switches = 0;
  for (const Document& document : assembly.documents) {
    const std::size_t before = names_.size();
    give(document.file, fmt::format("input{}", files));
    if (names_.size() > before) ++files;
    const auto host = [&](const std::string& name) {
      const std::size_t known = names_.size();
      give(name, fmt::format("host{}", hosts));
      if (names_.size() > known) ++hosts;
    };
    host(document.host_name);
    if (const auto* log = std::get_if<NcclLog>(&document.content)) for (const std::string& name : log->hosts) host(name);
    if (const auto* table = std::get_if<MeasuredTable>(&document.content)) for (const std::string& name : table->hosts()) host(name);
    if (const auto* log = std::get_if<TrainingLog>(&document.content)) for (const std::string& name : log->hosts) host(name);
    if (const auto* list = std::get_if<GuidList>(&document.content)) for (const auto& entry : list->hosts) host(entry.first);
  }
  if (!assembly.fabric) return;
  for (const topology::FabricNode& node : assembly.fabric->nodes) {
    const std::size_t known = names_.size();
    if (node.is_switch) {
      give(node.name, fmt::format("switch{}", switches));
      give(node.id, fmt::format("switch{}", switches));
      if (names_.size() > known) ++switches;
    } else {
      give(node.host, fmt::format("host{}", hosts));
      if (node.host.empty()) give(node.name, fmt::format("host{}", hosts));
      give(node.id, fmt::format("guid-of-host{}", hosts));
      if (names_.size() > known) ++hosts;
    }
  }
}

std::string Anonymiser::alias(std::string_view word) const {
  const auto known = names_.find(word);
  return known == names_.end() ? std::string(word) : known->second;
}

std::string Anonymiser::apply(std::string_view text) const {
  // Names with blanks (switch descriptions) first, as they stand; single words word by word.
  std::string out(text);
  for (const auto& [name, alias] : names_) {
    if (name.find(' ') == std::string::npos) continue;
    for (std::size_t at = out.find(name); at != std::string::npos; at = out.find(name, at + alias.size())) out.replace(at, name.size(), alias);
  }
  std::string words;
  for (std::size_t i = 0; i < out.size();) {
    std::size_t end = i;
    while (end < out.size() && is_word_character(out[end])) ++end;
    if (end == i) {
      words += out[i++];
      continue;
    }
    std::string_view word = std::string_view(out).substr(i, end - i);
    i = end;
    std::string after;
    while (!word.empty() && names_.find(word) == names_.end() && (word.back() == ':' || word.back() == '.')) {
      after.insert(after.begin(), word.back());
      word.remove_suffix(1);
    }
    // "file:line" of a note: the file part is the name.
    const std::size_t colon = word.rfind(':');
    if (names_.find(word) == names_.end() && colon != std::string_view::npos && names_.find(word.substr(0, colon)) != names_.end()) {
      words += alias(word.substr(0, colon));
      words += word.substr(colon);
    } else {
      words += alias(word);
    }
    words += after;
  }
  static const std::regex kUuid("GPU-[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}");
  static const std::regex kAddress("\\b[0-9]{1,3}(\\.[0-9]{1,3}){3}\\b");
  static const std::regex kMac("\\b[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5,19}\\b");
  static const std::regex kGuid("0x[0-9a-fA-F]{15,16}\\b");
  words = std::regex_replace(words, kUuid, "GPU-uuid");
  words = std::regex_replace(words, kMac, "mac");
  words = std::regex_replace(words, kAddress, "ip");
  return std::regex_replace(words, kGuid, "guid");
}

void Anonymiser::apply(Assembly& assembly) const {
  assembly.cluster.name = apply(assembly.cluster.name);
  assembly.cluster.fabric.origin = apply(assembly.cluster.fabric.origin);
  for (topology::HostGroup& group : assembly.cluster.hosts) {
    group.host.name = apply(group.host.name);
    for (topology::Device& device : group.host.devices) {
      device.name = apply(device.name);
      device.model = apply(device.model);
    }
    for (topology::Link& link : group.host.links) link.bandwidth.origin = apply(link.bandwidth.origin);
  }
  if (!assembly.fabric) return;
  for (topology::FabricNode& node : assembly.fabric->nodes) {
    node.name = node.is_switch || node.host.empty() ? apply(node.name) : apply(node.host) + node.name.substr(std::min(node.name.size(), node.name.find(' ')));
    node.host = apply(node.host);
    node.id = apply(node.id);
  }
}

}  // namespace chokepoint::assemble
