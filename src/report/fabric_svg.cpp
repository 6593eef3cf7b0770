// SPDX-License-Identifier: Apache-2.0
// A fabric as a map: one row for each level of switches, leaves below; a tile is a switch, its colour says how much of its
// bandwidth down its uplinks carry (full: green, 2:1: yellow, 4:1 and worse: red), its border whether a finding names it.
// Cables are drawn as one line for each pair of switches while there are few; in a large fabric tiles are enough and lines
// would be a grey sheet, so each tile has its cables as a number.
#include "markup.hpp"

#include <chokepoint/report/fabric_svg.hpp>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fmt/format.h>
#include <map>

namespace chokepoint::report {

using namespace topology;

namespace {

constexpr double kWidth = 1200;
constexpr double kMargin = 24;
constexpr double kTop = 86;
constexpr double kRowGap = 64;
constexpr double kLargestTile = 120;
constexpr double kSmallestTile = 7;
constexpr std::size_t kMostLines = 1500;

struct Tile {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

class Map {
 public:
  Map(const assemble::Assembly& assembly, const std::vector<findings::Finding>& found) : graph_(*assembly.fabric), shape_(assembly.shape) {
    for (const findings::Finding& finding : found) {
      if (finding.severity == findings::Severity::kInfo) continue;
      words_ += " " + finding.where + " " + finding.what + " ";
    }
    for (std::size_t i = 0; i < shape_.leaves.size(); ++i) leaf_of_[shape_.leaves[i].node] = i;
  }

  std::string draw(const std::string& title) {
    double y = kTop;
    for (int level = shape_.levels; level >= 1; --level) row(level, y);
    cables();
    const double height = y + 30;
    return fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"fabric\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\">\n"
                       "<style>.fabric text{{font-family:'DejaVu Sans',Verdana,sans-serif;font-size:10.5px;fill:#202124}}.fabric .title{{font-size:20px;font-weight:bold}}"
                       ".fabric .cable{{stroke:#80868b;stroke-opacity:.35;fill:none}}.fabric .bad{{stroke:#d93025;stroke-opacity:.9;fill:none}}</style>\n"
                       "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n<text x=\"{2}\" y=\"34\" class=\"title\">{3}</text>\n<text x=\"{2}\" y=\"56\">{4}</text>\n{5}{6}</svg>\n",
                       kWidth, height, kMargin, escaped(title), escaped(subtitle()), lines_, tiles_);
  }

 private:
  const FabricNode& node(int index) const { return graph_.nodes[static_cast<std::size_t>(index)]; }
  std::string label(int index) const { return node(index).name.empty() ? node(index).id : node(index).name; }

  std::string subtitle() const {
    return fmt::format("{} hosts, {} switches in {} level{}, {} cables, {:.3g}:1 at the worst leaf. Tile: bandwidth down over up, green 1:1, yellow 2:1, red 4:1 and more; red border: named by a finding",
                       shape_.hosts, shape_.switches, shape_.levels, shape_.levels == 1 ? "" : "s", graph_.links.size(), shape_.oversubscription);
  }

  /// A whole word of what the findings say.
  bool named(const std::string& name) const {
    for (std::size_t at = words_.find(name); !name.empty() && at != std::string::npos; at = words_.find(name, at + 1)) {
      const auto word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; };
      if (!word(words_[at - 1]) && !word(words_[at + name.size()])) return true;
    }
    return false;
  }

  /// Hue from green over yellow to red as 1:1, 2:1, 4:1.
  static std::string colour(double oversubscription) {
    const double share = std::clamp(std::log2(std::max(oversubscription, 1.0)) / 2, 0.0, 1.0);
    return fmt::format("hsl({:.0f},65%,{:.0f}%)", 120 * (1 - share), 78 - 12 * share);
  }

  void row(int level, double& y) {
    std::vector<int> members;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (graph_.nodes[i].is_switch && shape_.level[i] == level) members.push_back(static_cast<int>(i));
    }
    if (members.empty()) return;
    const double room = kWidth - 2 * kMargin;
    const double tile = std::clamp(room / static_cast<double>(members.size()), kSmallestTile, kLargestTile);
    const auto columns = static_cast<std::size_t>(room / tile);
    const double height = tile > 40 ? 40 : std::max(kSmallestTile, tile);
    tiles_ += fmt::format("<text x=\"{}\" y=\"{:.1f}\">level {}: {} switches{}</text>\n", kMargin, y - 6, level, members.size(), level == 1 ? " (leaves)" : "");
    const double used = tile * static_cast<double>(std::min(columns, members.size()));
    for (std::size_t i = 0; i < members.size(); ++i) {
      const Tile at{kMargin + (room - used) / 2 + tile * static_cast<double>(i % columns), y + (height + 3) * static_cast<double>(i / columns), tile - (tile > 12 ? 6 : 1), height};
      draw_tile(members[i], at);
    }
    y += (height + 3) * static_cast<double>((members.size() + columns - 1) / columns) + kRowGap;
  }

  void draw_tile(int index, const Tile& at) {
    tile_of_[index] = at;
    const auto leaf = leaf_of_.find(index);
    double over = 1;
    std::string hint = label(index);
    if (leaf != leaf_of_.end()) {
      const LeafShape& it = shape_.leaves[leaf->second];
      over = it.oversubscription();
      hint += fmt::format(": {} hosts, {} uplinks, {:.3g}:1", it.hosts, it.uplinks, over);
    }
    tiles_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\" stroke=\"{}\" stroke-width=\"{}\"><title>{}</title></rect>\n", at.x, at.y, at.width, at.height,
                          colour(over), named(label(index)) ? "#d93025" : "#5f6368", named(label(index)) ? 3 : at.width > 12 ? 1 : 0, escaped(hint));
    constexpr double kCharacter = 6.2;
    const auto fits = static_cast<std::size_t>(at.width / kCharacter);
    if (fits < 4) return;
    tiles_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", at.x + at.width / 2, at.y + 16, escaped(label(index).substr(0, fits)));
    if (leaf != leaf_of_.end()) tiles_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{} hosts</text>\n", at.x + at.width / 2, at.y + 31, shape_.leaves[leaf->second].hosts);
  }

  /// One line for each pair of switches, as thick as its cables are many; red where a cable is slower than its like.
  void cables() {
    std::map<std::pair<int, int>, std::pair<int, double>> pairs;  // cables, least rate of one
    double best = 0;
    for (const FabricLink& link : graph_.links) {
      if (!node(link.a).is_switch || !node(link.b).is_switch) continue;
      auto& [count, least] = pairs.emplace(std::minmax(link.a, link.b), std::pair{0, link.bytes_per_s}).first->second;
      ++count;
      least = std::min(least, link.bytes_per_s);
      best = std::max(best, link.bytes_per_s);
    }
    const bool all = pairs.size() <= kMostLines;
    for (const auto& [ends, cable] : pairs) {
      const bool bad = best > 0 && cable.second < 0.95 * best;
      const auto a = tile_of_.find(ends.first);
      const auto b = tile_of_.find(ends.second);
      if ((!all && !bad) || a == tile_of_.end() || b == tile_of_.end()) continue;
      const bool upper = a->second.y < b->second.y;
      const Tile& high = upper ? a->second : b->second;
      const Tile& low = upper ? b->second : a->second;
      lines_ += fmt::format("<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\" class=\"{}\" stroke-width=\"{:.1f}\"/>\n", high.x + high.width / 2, high.y + high.height, low.x + low.width / 2, low.y, bad ? "bad" : "cable",
                            std::min(0.6 + 0.4 * cable.first, 4.0));
    }
  }

  const FabricGraph& graph_;
  const FabricShape& shape_;
  std::string words_;
  std::map<int, std::size_t> leaf_of_;
  std::map<int, Tile> tile_of_;
  std::string lines_;
  std::string tiles_;
};

}  // namespace

std::string fabric_svg(const assemble::Assembly& assembly, const std::vector<findings::Finding>& found) {
  if (!assembly.fabric || assembly.shape.switches == 0) return {};
  return Map(assembly, found).draw(assembly.cluster.name.empty() ? std::string("Fabric") : assembly.cluster.name);
}

}  // namespace chokepoint::report
