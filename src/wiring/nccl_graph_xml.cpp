// SPDX-License-Identifier: Apache-2.0
// NCCL_GRAPH_DUMP_FILE: <graphs> of <graph> of <channel> of <net> and <gpu>. Numbers may be hexadecimal. A file that is
// cut still gives the channels that are whole.
#include <chokepoint/wiring/host_files.hpp>

#include "scan.hpp"

#include <chokepoint/base/text.hpp>
#include <chokepoint/base/units.hpp>

#include <algorithm>
#include <fmt/format.h>
#include <pugixml.hpp>

namespace chokepoint::wiring {

namespace {

int line_at(std::string_view text, std::ptrdiff_t offset) {
  if (offset < 0 || static_cast<std::size_t>(offset) > text.size()) return 0;
  return 1 + static_cast<int>(std::count(text.begin(), text.begin() + offset, '\n'));
}

int number_of(const pugi::xml_attribute& attribute) {
  const std::string_view text = attribute.as_string();
  if (text.substr(0, 2) == "0x") return static_cast<int>(to_hex(text).value_or(0) & 0x7fffffff);
  return to_int(text).value_or(0);
}

NcclGraph graph_of(const pugi::xml_node& node) {
  NcclGraph graph;
  graph.id = number_of(node.attribute("id"));
  graph.pattern = number_of(node.attribute("pattern"));
  graph.cross_nic = number_of(node.attribute("crossnic"));
  graph.stated_channels = number_of(node.attribute("nchannels"));
  graph.intra_bytes_per_s = gbyte(node.attribute("speedintra").as_double());
  graph.inter_bytes_per_s = gbyte(node.attribute("speedinter").as_double());
  graph.intra_type = node.attribute("typeintra").as_string();
  graph.inter_type = node.attribute("typeinter").as_string();
  for (const pugi::xml_node& channel : node.children("channel")) {
    if (graph.channels.size() >= 1024) break;
    graph.channels.emplace_back();
    for (const pugi::xml_node& step : channel.children()) {
      const int device = number_of(step.attribute("dev"));
      graph.channels.back().steps.push_back(fmt::format("{} {}", step.name(), device));
      if (std::string_view(step.name()) == "gpu") graph.channels.back().gpus.push_back(device);
      if (std::string_view(step.name()) == "net") graph.channels.back().nets.push_back(device);
    }
  }
  return graph;
}

}  // namespace

Result<NcclGraphs> read_nccl_graph_xml(std::string_view text, const std::string& file) {
  NcclGraphs found;
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_buffer(text.data(), text.size());
  const pugi::xml_node root = document.child("graphs");
  if (!root) return fail(parsed ? "the root element is not <graphs>" : fmt::format("not well-formed XML: {}", lower(parsed.description())), {file, line_at(text, parsed.offset), 0});
  if (!parsed) {
    found.truncated = true;
    found.notes.push_back({fmt::format("not well-formed ({}): the file is cut; what is whole before that is used", lower(parsed.description())), {file, line_at(text, parsed.offset), 0}});
  }
  for (const pugi::xml_node& node : root.children("graph")) {
    if (found.graphs.size() >= 64) break;
    found.graphs.push_back(graph_of(node));
    NcclGraph& graph = found.graphs.back();
    graph.line = line_at(text, node.offset_debug());
    if (graph.stated_channels != static_cast<int>(graph.channels.size())) {
      found.notes.push_back({fmt::format("graph {} says {} channels and lists {}", graph.id, graph.stated_channels, graph.channels.size()), {file, graph.line, 0}});
    }
  }
  if (found.graphs.empty()) return fail("<graphs> holds no <graph>", {file, 0, 0});
  return found;
}

}  // namespace chokepoint::wiring
