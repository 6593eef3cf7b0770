// SPDX-License-Identifier: Apache-2.0
// How schedulers write a fabric down: Slurm's topology.conf and topology.yaml, topograph's models. Only the tree is in
// them: who is below whom, no number of cables.
#include <chokepoint/wiring/fabric_files.hpp>

#include "scan.hpp"

#include <chokepoint/base/text.hpp>
#include <chokepoint/base/yaml.hpp>

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

namespace chokepoint::wiring {

using namespace topology;

namespace {

constexpr std::size_t kMaxNames = 1 << 20;

Result<std::vector<std::string>> names(std::string_view text, const SourcePos& pos) {
  auto found = expand_host_list(text, kMaxNames);
  if (!found) return fail(fmt::format("'{}' is no list of names", text.substr(0, 80)), pos, {"expected names like node[01-16] or a,b,c"});
  return std::move(*found);
}

Result<SlurmTopology> read_conf(std::string_view text, const std::string& file) {
  SlurmTopology found;
  found.form = "topology.conf";
  int number = 0;
  std::string joined;
  for (const std::string_view raw : split_lines(text)) {
    ++number;
    std::string_view line = trim(raw.substr(0, raw.find('#')));
    if (!line.empty() && line.back() == '\\') {  // a line that goes on
      joined += std::string(line.substr(0, line.size() - 1)) + " ";
      continue;
    }
    joined += line;
    const std::string whole = std::exchange(joined, {});
    const std::vector<std::string_view> words = split_blanks(whole);
    if (words.empty()) continue;
    SlurmSwitch item;
    item.line = number;
    bool block = false;
    const SourcePos pos{file, number, 0};
    for (const std::string_view word : words) {
      const std::size_t equals = word.find('=');
      if (equals == std::string_view::npos) return fail(fmt::format("'{}' is no setting", word), pos, {"expected SwitchName=... Switches=... or Nodes=..."});
      const std::string key = lower(word.substr(0, equals));
      const std::string_view value = word.substr(equals + 1);
      if (key == "switchname") item.name = std::string(value);
      else if (key == "blockname") {
        item.name = std::string(value);
        block = true;
      } else if (key == "switches") {
        TRY_INTO(item.switches, names(value, pos));
      } else if (key == "nodes") {
        TRY_INTO(item.nodes, names(value, pos));
      } else if (key == "linkspeed") {
        item.link_speed = leading_number(value).value_or(0.0);
      } else if (key == "blocksizes") {
        continue;
      } else {
        return fail(fmt::format("unknown setting '{}'", word.substr(0, equals)), pos, {"expected SwitchName, BlockName, Switches, Nodes, LinkSpeed or BlockSizes"});
      }
    }
    if (!item.name.empty()) (block ? found.blocks : found.switches).push_back(std::move(item));
    if (found.switches.size() + found.blocks.size() > kMaxNames) return fail("too many switches", pos);
  }
  if (found.switches.empty() && found.blocks.empty()) return fail("no SwitchName or BlockName", {file, 0, 0});
  return found;
}

/// One entry of topology.yaml's lists.
Result<SlurmSwitch> yaml_entry(const YamlMap& map, const char* name_key) {
  SlurmSwitch item;
  item.line = map.position().line;
  TRY_INTO(item.name, map.required_text(name_key));
  TRY_INTO(const auto children, map.text("children"));
  TRY_INTO(const auto nodes, map.text("nodes"));
  if (children) {
    TRY_INTO(item.switches, names(*children, map.position("children")));
  }
  if (nodes) {
    TRY_INTO(item.nodes, names(*nodes, map.position("nodes")));
  }
  return item;
}

Result<SlurmTopology> read_yaml(std::string_view text, const std::string& file) {
  SlurmTopology found;
  found.form = "topology.yaml";
  // The document is a list; as the value of a key it becomes a mapping. Lines count one less. A mark that opens the
  // document ("---") gives way to the key.
  std::string list(text);
  const std::size_t mark = list.find("---");
  const bool opens = mark != std::string::npos && (mark == 0 || list[mark - 1] == '\n') && list.substr(0, mark).find("- topology") == std::string::npos;
  if (opens) list.replace(mark, 3, "   ");
  TRY_INTO(const YamlMap root, YamlMap::parse("topologies:\n" + list, file));
  TRY_INTO(const std::vector<YamlMap> topologies, root.maps("topologies"));
  for (const YamlMap& topology : topologies) {
    struct Section {
      const char* key;
      const char* list;
      const char* name;
      bool tree;
    };
    for (const Section& section : {Section{"tree", "switches", "switch", true}, Section{"block", "blocks", "block", false}, Section{"ring", "rings", "ring", false}}) {
      if (!topology.has(section.key)) continue;
      TRY_INTO(const std::optional<YamlMap> body, topology.map(section.key));
      if (!body) continue;
      TRY_INTO(const std::vector<YamlMap> entries, body->maps(section.list));
      for (const YamlMap& entry : entries) {
        TRY_INTO(SlurmSwitch item, yaml_entry(entry, section.name));
        if (item.line > 0) --item.line;
        (section.tree ? found.switches : found.blocks).push_back(std::move(item));
      }
      found.rings = found.rings || std::string_view(section.key) == "ring";
    }
  }
  if (found.switches.empty() && found.blocks.empty()) found.notes.push_back({"a flat topology: no switches listed", {file, 0, 0}});
  return found;
}

Result<SlurmTopology> read_topograph(std::string_view text, const std::string& file) {
  SlurmTopology found;
  found.form = "topograph";
  TRY_INTO(const YamlMap root, YamlMap::parse(text, file));
  std::map<std::string, std::size_t> at;
  if (root.has("switches")) {
    TRY_INTO(const std::optional<YamlMap> switches, root.map("switches"));
    for (const std::string& name : switches ? switches->keys() : std::vector<std::string>{}) {
      SlurmSwitch item;
      item.name = name;
      item.line = switches->position(name).line;
      TRY_INTO(const std::optional<YamlMap> body, switches->map(name));
      if (body && body->has("switches")) {
        TRY_INTO(item.switches, body->texts("switches"));
      }
      at.emplace(name, found.switches.size());
      found.switches.push_back(std::move(item));
    }
  }
  TRY_INTO(const std::vector<YamlMap> blocks, root.maps("blocks"));
  for (const YamlMap& block : blocks) {
    SlurmSwitch item;
    item.line = block.position().line;
    TRY_INTO(const auto name, block.text("switch"));
    item.name = name.value_or("");
    if (block.has("nodes")) {
      TRY_INTO(const std::vector<std::string> lists, block.texts("nodes"));
      for (const std::string& list : lists) {
        TRY_INTO(const std::vector<std::string> more, names(list, block.position("nodes")));
        if (item.nodes.size() + more.size() > kMaxNames) return fail("too many nodes", block.position("nodes"));
        item.nodes.insert(item.nodes.end(), more.begin(), more.end());
      }
    }
    if (block.has("annotations")) {
      TRY_INTO(const auto annotations, block.map("annotations"));
      for (const std::string& key : annotations ? annotations->keys() : std::vector<std::string>{}) {
        if (!contains(key, "domain")) continue;
        TRY_INTO(const auto domain, annotations->text(key));
        item.domain = domain.value_or("");
      }
    }
    const auto known = at.find(item.name);
    if (known != at.end()) found.switches[known->second].nodes = item.nodes;
    else found.switches.push_back(item);
    found.blocks.push_back(std::move(item));
  }
  if (found.switches.empty()) return fail("neither switches nor blocks", {file, 0, 0});
  return found;
}

}  // namespace

int SlurmTopology::with_nodes() const {
  return static_cast<int>(std::count_if(switches.begin(), switches.end(), [](const SlurmSwitch& item) { return !item.nodes.empty(); }));
}

int SlurmTopology::node_count() const {
  std::set<std::string> seen;
  for (const auto* list : {&switches, &blocks}) {
    for (const SlurmSwitch& item : *list) seen.insert(item.nodes.begin(), item.nodes.end());
  }
  return static_cast<int>(seen.size());
}

Result<SlurmTopology> read_slurm_topology(std::string_view text, const std::string& file) {
  bool listed = false;
  bool mapped = false;
  bool assigned = false;
  for (const std::string_view line : split_lines(text)) {
    if (starts_with_ignoring_case(trim(line), "switchname=") || starts_with_ignoring_case(trim(line), "blockname=")) assigned = true;
    if (line.substr(0, 11) == "- topology:") listed = true;
    if (line.substr(0, 9) == "switches:" || line.substr(0, 7) == "blocks:") mapped = true;
  }
  if (assigned) return read_conf(text, file);
  if (listed) return read_yaml(text, file);
  if (mapped) return read_topograph(text, file);
  return fail("neither topology.conf, topology.yaml nor a topograph model", {file, 0, 0});
}

FabricGraph graph_of(const SlurmTopology& found) {
  FabricGraph graph;
  std::map<std::string, int> switches;
  std::map<std::string, int> nodes;
  const auto add = [&graph](std::map<std::string, int>& index, const std::string& name, bool is_switch) {
    const auto [known, fresh] = index.emplace(name, static_cast<int>(graph.nodes.size()));
    if (fresh) graph.nodes.push_back({name, name, is_switch, false, is_switch ? std::string() : name, 0});
    return known->second;
  };
  for (const SlurmSwitch& item : found.switches) {
    const int at = add(switches, item.name, true);
    for (const std::string& child : item.switches) {
      const int below = add(switches, child, true);
      if (below != at) graph.links.push_back({below, at, 0, 0, 0, {}, 0, 0, item.line});
    }
    for (const std::string& node : item.nodes) graph.links.push_back({add(nodes, node, false), at, 0, 0, 0, {}, 0, 0, item.line});
  }
  if (found.switches.empty()) {
    for (const SlurmSwitch& item : found.blocks) {
      const int at = add(switches, item.name, true);
      for (const std::string& node : item.nodes) graph.links.push_back({add(nodes, node, false), at, 0, 0, 0, {}, 0, 0, item.line});
    }
  }
  return graph;
}

}  // namespace chokepoint::wiring
