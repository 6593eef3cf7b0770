// SPDX-License-Identifier: Apache-2.0
// Cables of an InfiniBand fabric. Every cable is listed from both ends; both listings become one link. Names are
// mapped to indices once, so that ten thousand hosts cost a few hash look-ups per line.
#include <chokepoint/wiring/fabric_files.hpp>

#include "scan.hpp"

#include <chokepoint/base/text.hpp>
#include <chokepoint/base/units.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <unordered_map>

namespace chokepoint::wiring {

using namespace topology;

namespace {

constexpr std::size_t kMaxNodes = 1 << 21;

struct LaneRate {
  std::string_view name;
  double signal_gbit;   ///< as iblinkinfo prints it
  double data_gbit;     ///< after encoding
};
/// Source: InfiniBand Architecture Specification, volume 2: 8b/10b up to QDR, 64b/66b from FDR10 on.
constexpr std::array<LaneRate, 9> kLanes{{{"SDR", 2.5, 2}, {"DDR", 5, 4}, {"QDR", 10, 8}, {"FDR10", 10.3125, 10}, {"FDR", 14.0625, 13.64},
                                          {"EDR", 25.78125, 25}, {"HDR", 53.125, 50}, {"NDR", 106.25, 100}, {"XDR", 212.5, 200}}};

/// "node1 mlx5_0", "node1 HCA-1", "node1" -> "node1"; empty when the text names a card, not a host.
std::string host_of_description(std::string_view name) {
  const std::vector<std::string_view> words = split_blanks(name);
  if (words.empty()) return {};
  if (words.size() == 1) return std::string(words[0]);
  const std::string last = lower(words.back());
  for (const std::string_view card : {"mlx4_", "mlx5_", "hca-", "hfi1_", "ibp", "ib", "ionic_", "bnxt_re"}) {
    if (last.substr(0, card.size()) == card) return std::string(words[0]);
  }
  return {};
}

struct End {
  char type = 0;            ///< 'S' switch, 'H' adapter
  std::string_view id;
  std::string_view name;
  int port = 0;
};

class Builder {
 public:
  explicit Builder(const std::string& file) : file_(file) {}

  int node(const End& end) {
    std::string key(1, end.type);
    key += end.id;
    const auto [known, fresh] = index_.emplace(std::move(key), static_cast<int>(found.graph.nodes.size()));
    if (fresh) {
      FabricNode made;
      made.id = std::string(end.id);
      made.is_switch = end.type == 'S';
      found.graph.nodes.push_back(std::move(made));
    }
    FabricNode& node = found.graph.nodes[static_cast<std::size_t>(known->second)];
    const std::string_view name = trim(end.name);
    if (node.name.empty() && !name.empty()) {
      node.name = std::string(name);
      if (!node.is_switch) {
        node.in_network = contains(name, "Aggregation Node");
        if (!node.in_network) node.host = host_of_description(name);
      }
    }
    return known->second;
  }

  void link(int a, int a_port, int b, int b_port, int width, std::string_view rate, double possible, int line) {
    if (a == b && a_port == b_port) return;
    const bool swap = std::make_pair(b, b_port) < std::make_pair(a, a_port);
    FabricLink made{swap ? b : a, swap ? a : b, swap ? b_port : a_port, swap ? a_port : b_port, width, std::string(rate), 0, possible, line};
    made.bytes_per_s = width * infiniband_lane_bytes_per_s(rate);
    if (made.bytes_per_s > 0) found.graph.rates_known = true;
    const std::uint64_t key = (static_cast<std::uint64_t>(static_cast<std::uint32_t>(made.a)) << 32) | (static_cast<std::uint32_t>(made.a_port) & 0xffff);
    const auto [known, fresh] = link_at_.emplace(key, found.graph.links.size());
    if (fresh) {
      found.graph.links.push_back(std::move(made));
      return;
    }
    FabricLink& old = found.graph.links[known->second];
    if (old.b != made.b || old.b_port != made.b_port) ++contradictions_;
    if (old.bytes_per_s == 0 && made.bytes_per_s > 0) old = std::move(made);
  }

  Result<FabricListing> finish() {
    if (found.graph.nodes.empty()) return fail("no switch, adapter or cable", {file_, 0, 0}, {"save the output of `ibnetdiscover`, `ibnetdiscover -p` or `iblinkinfo`"});
    if (contradictions_ > 0) found.notes.push_back({fmt::format("{} ports are listed with two different far ends; the first is kept", contradictions_), {file_, 0, 0}});
    if (unread > 0) found.notes.push_back({fmt::format("{} lines could not be read (first: line {})", unread, first_unread), {file_, first_unread, 0}});
    if (!found.graph.rates_known && !found.graph.links.empty()) found.notes.push_back({"no link rates in the file; all cables are taken as equal", {file_, 0, 0}});
    int nameless = 0;
    for (const FabricNode& node : found.graph.nodes) nameless += !node.is_switch && !node.in_network && node.host.empty() ? 1 : 0;
    if (nameless > 0) found.notes.push_back({fmt::format("{} adapters do not say which host they sit in; each counts as one host", nameless), {file_, 0, 0}});
    return std::move(found);
  }

  void skip(int line) {
    if (unread++ == 0) first_unread = line;
  }
  bool full() const { return found.graph.nodes.size() > kMaxNodes; }

  FabricListing found;
  int unread = 0;
  int first_unread = 0;

 private:
  std::string file_;
  std::unordered_map<std::string, int> index_;
  std::unordered_map<std::uint64_t, std::size_t> link_at_;
  int contradictions_ = 0;
};

/// "4xHDR" or "4x HDR".
std::pair<int, std::string_view> width_and_rate(std::string_view text) {
  text = trim(text);
  const auto width = leading_int(text);
  const std::size_t x = text.find('x');
  if (!width || *width > 64 || x == std::string_view::npos || x > 2) return {0, {}};
  const std::vector<std::string_view> words = split_blanks(text.substr(x + 1));
  return {*width, words.empty() ? std::string_view() : words.front()};
}

std::string_view quoted(std::string_view text) { return between(text, "\"", "\"").value_or(std::string_view()); }

/// Blocks "Switch 36 "S-..." # "name"" with lines "[1] "H-..."[1](guid) # "peer" lid 4 4xHDR" below; ibsim's net files
/// have the same shape without prefixes and remarks.
class BlockReader {
 public:
  explicit BlockReader(Builder& builder) : builder_(builder) {}
  bool line(std::string_view text, int number) {
    const std::string_view content = trim(text);
    if (content.empty() || content[0] == '#' || contains(content.substr(0, 18), "guid=") || contains(content.substr(0, 10), "id=")) return true;
    if (content[0] == '[') return port(content, number);
    const std::vector<std::string_view> words = split_blanks(content.substr(0, content.find('"')));
    if (words.empty()) return false;
    const std::string type = lower(words[0]);
    if (type != "switch" && type != "ca" && type != "hca" && type != "rt") return false;
    const bool is_switch = type == "switch" || type == "rt";
    const std::string_view remark = after(content, "#").value_or(std::string_view());
    End end{is_switch ? 'S' : 'H', bare(quoted(content)), quoted(remark), 0};
    if (remark.empty()) end.name = quoted(content);
    if (end.id.empty()) return false;
    now_ = builder_.node(end);
    FabricNode& node = builder_.found.graph.nodes[static_cast<std::size_t>(now_)];
    if (words.size() > 1) node.ports = leading_int(words[1]).value_or(0);
    ++(is_switch ? builder_.found.switch_blocks : builder_.found.adapter_blocks);
    is_simulator_ = is_simulator_ || remark.empty();
    return true;
  }
  bool simulator() const { return is_simulator_; }

 private:
  /// "S-0002c9.." -> "0002c9..".
  static std::string_view bare(std::string_view id) { return id.size() > 2 && id[1] == '-' ? id.substr(2) : id; }

  bool port(std::string_view content, int number) {
    const std::size_t close = content.find(']');
    const auto own = leading_int(content.substr(1));
    if (now_ < 0 || close == std::string_view::npos || !own) return false;
    const std::size_t quote = content.find('"', close);
    if (quote == std::string_view::npos) {
      ++builder_.found.open_ports;
      return true;
    }
    const std::string_view id = quoted(content.substr(quote));
    const std::string_view rest = content.substr(std::min(content.size(), quote + id.size() + 2));
    const auto far = rest.substr(0, 1) == "[" ? leading_int(rest.substr(1)) : std::nullopt;
    if (id.empty() || !far) return false;
    const bool is_switch = id.size() > 1 && id[1] == '-' ? id[0] == 'S' : known_switch(id);
    const std::string_view remark = after(rest, "#").value_or(std::string_view());
    const int other = builder_.node({is_switch ? 'S' : 'H', bare(id), quoted(remark), *far});
    std::pair<int, std::string_view> rate;
    const std::vector<std::string_view> words = split_blanks(remark);
    if (!words.empty()) rate = width_and_rate(words.back());
    builder_.link(now_, *own, other, *far, rate.first, rate.second, 0, number);
    return true;
  }
  /// ibsim names carry no type: what was or will be a Switch block. The convention of its examples decides early uses.
  bool known_switch(std::string_view id) const {
    const std::string text = lower(id);
    if (switches_->count(std::string(id)) != 0) return true;
    return switches_->empty() && text.substr(0, 2) == "sw";
  }

 public:
  void declare(const std::unordered_map<std::string, int>* switches) { switches_ = switches; }

 private:
  Builder& builder_;
  int now_ = -1;
  bool is_simulator_ = false;
  const std::unordered_map<std::string, int>* switches_ = nullptr;
};

/// "CA    78  1 0x946d.. 4x HDR - SW    51 81 0x946d.. ( 'name' - 'name' )".
bool ports_line(Builder& builder, std::string_view content, int number) {
  const std::vector<std::string_view> words = split_blanks(content);
  if (words.size() < 6 || words[3].substr(0, 2) != "0x") return false;
  const auto type_of = [](std::string_view word) { return word == "SW" || word == "RT" ? 'S' : 'H'; };
  End near{type_of(words[0]), words[3], {}, leading_int(words[2]).value_or(0)};
  const std::string printed = std::string(words[4]) + " " + std::string(words[5]);  // outlives the view into it
  const std::pair<int, std::string_view> rate = width_and_rate(printed);
  const bool far = words.size() >= 11 && words[6] == "-" && words[10].substr(0, 2) == "0x";
  const std::size_t first_quote = content.find('\'');
  if (!far) {
    const std::size_t name_at = first_quote != std::string_view::npos ? first_quote + 1 : content.find(words[5]) + words[5].size();
    std::string_view name = trim(content.substr(name_at));
    if (!name.empty() && name.back() == '\'') name.remove_suffix(1);
    near.name = name;
    builder.node(near);
    ++builder.found.open_ports;
    return true;
  }
  End other{type_of(words[7]), words[10], {}, leading_int(words[9]).value_or(0)};
  if (const auto names = between(content, "( ", " )")) {
    const std::size_t middle = names->find("' - '");
    const std::size_t plain = names->find(" - ");
    if (middle != std::string_view::npos) {
      near.name = trim(names->substr(1, middle - 1));
      other.name = trim(names->substr(middle + 5));
      if (!other.name.empty() && other.name.back() == '\'') other.name.remove_suffix(1);
    } else if (plain != std::string_view::npos) {
      near.name = names->substr(0, plain);
      other.name = names->substr(plain + 3);
    }
  }
  const int a = builder.node(near);
  const int b = builder.node(other);
  builder.link(a, near.port, b, other.port, rate.first, rate.second, 0, number);
  return true;
}

/// Nearest lane rate by the number iblinkinfo prints, "" when none is near.
std::string_view lane_name(double signal_gbit) {
  for (const LaneRate& lane : kLanes) {
    if (std::abs(lane.signal_gbit - signal_gbit) < 0.01 * lane.signal_gbit) return lane.name;
  }
  return {};
}

/// "16  1[  ] ==( 4X  53.125 Gbps Active/  LinkUp)==>  4  1[  ] "node1 HCA-1" ( Could be ...)".
class LinkInfoReader {
 public:
  explicit LinkInfoReader(Builder& builder) : builder_(builder) {}
  bool line(std::string_view text, int number) {
    const std::string_view content = trim(text);
    const std::size_t arrow = content.find("==(");
    if (arrow == std::string_view::npos) return heading(content);
    const std::size_t end = content.find(")==>", arrow);
    if (end == std::string_view::npos) return false;
    std::string_view left = content.substr(0, arrow);
    const std::string_view middle = content.substr(arrow + 3, end - arrow - 3);
    std::string_view right = content.substr(end + 4);
    const int own_port = port_before_bracket(left);
    if (left.substr(0, 2) == "0x") {  // the one-line form, or the port GUID of an adapter
      const std::string_view guid = split_blanks(left).front();
      const std::string_view name = quoted(left);
      if (!name.empty()) now_ = End{0, guid, name, 0};
      else now_.id = guid;
    }
    if (contains(middle, "Down") || now_.id.empty()) {
      ++builder_.found.open_ports;
      return true;
    }
    std::string_view far_guid;
    const std::vector<std::string_view> words = split_blanks(right);
    if (!words.empty() && words[0].substr(0, 2) == "0x") far_guid = words[0];
    pending_.push_back({std::string(now_.id), std::string(now_.name), own_port, now_.type, std::string(far_guid), std::string(trim(quoted(right))), port_before_bracket(right), {}, 0, number});
    Pending& item = pending_.back();
    item.width = leading_int(middle).value_or(0);
    const std::vector<std::string_view> parts = split_blanks(middle);
    if (parts.size() > 1) item.rate = std::string(lane_name(to_number(parts[1]).value_or(0.0)));
    const double possible_lane = lane_data(after(right, "Could be ").value_or(std::string_view()), "Gbps");
    const int possible_width = possible_lanes(right);
    const double lane = infiniband_lane_bytes_per_s(item.rate);
    if (possible_lane > 0 || possible_width > 0) item.possible = (possible_width > 0 ? possible_width : item.width) * (possible_lane > 0 ? possible_lane : lane);
    return true;
  }

  /// The far end is known by its name; GUIDs stand at its own block.
  void finish() {
    std::unordered_map<std::string, std::pair<std::string, char>> by_name;
    for (const Pending& item : pending_) by_name.emplace(item.name + "\n" + std::to_string(item.port), std::make_pair(item.guid, item.type));
    for (const Pending& item : pending_) {
      std::string far_guid = item.far_guid;
      char far_type = 0;
      const auto known = by_name.find(item.far_name + "\n" + std::to_string(item.far_port));
      if (known != by_name.end()) {
        if (far_guid.empty()) far_guid = known->second.first;
        far_type = known->second.second;
      }
      if (far_guid.empty()) far_guid = item.far_name;
      const int a = builder_.node({type(item.type, item.guid), item.guid, item.name, item.port});
      const int b = builder_.node({type(far_type, far_guid), far_guid, item.far_name, item.far_port});
      builder_.link(a, item.port, b, item.far_port, item.width, item.rate, item.possible, item.line);
    }
  }
  void count_types() {
    for (const Pending& item : pending_) ++uses_[item.guid];
  }

 private:
  struct Pending {
    std::string guid;
    std::string name;
    int port;
    char type;
    std::string far_guid;
    std::string far_name;
    int far_port;
    std::string rate;
    int width;
    int line;
    double possible = 0;
  };

  /// The one-line form has no types: who has one cable only is an adapter.
  char type(char said, const std::string& guid) const {
    if (said != 0) return said;
    const auto found = uses_.find(guid);
    return found != uses_.end() && found->second > 1 ? 'S' : 'H';
  }
  bool heading(std::string_view content) {
    const bool is_switch = content.substr(0, 7) == "Switch:";
    if (!is_switch && content.substr(0, 3) != "CA:") return content.empty();
    std::string_view rest = trim(content.substr(is_switch ? 7 : 3));
    if (!rest.empty() && rest.back() == ':') rest.remove_suffix(1);
    now_ = End{is_switch ? 'S' : 'H', {}, {}, 0};
    if (rest.substr(0, 2) == "0x") {
      now_.id = rest.substr(0, rest.find(' '));
      rest = trim(rest.substr(now_.id.size()));
    }
    now_.name = rest;
    ++(is_switch ? builder_.found.switch_blocks : builder_.found.adapter_blocks);
    return true;
  }
  static int port_before_bracket(std::string_view text) {
    const std::size_t bracket = text.find('[');
    const std::vector<std::string_view> words = split_blanks(text.substr(0, bracket));
    return words.empty() ? 0 : leading_int(words.back()).value_or(0);
  }
  static double lane_data(std::string_view text, std::string_view unit) {
    for (std::string_view rest = text; !rest.empty();) {
      const std::vector<std::string_view> words = split_blanks(rest);
      if (words.size() > 1 && words[1].substr(0, unit.size()) == unit) return infiniband_lane_bytes_per_s(lane_name(to_number(words[0]).value_or(0.0)));
      rest = after(rest, "Could be ").value_or(std::string_view());
    }
    return 0;
  }
  static int possible_lanes(std::string_view text) {
    for (auto rest = after(text, "Could be "); rest; rest = after(*rest, "Could be ")) {
      const auto number = leading_int(*rest);
      const std::size_t digits = rest->find_first_not_of("0123456789");
      if (number && digits != std::string_view::npos && (*rest)[digits] == 'X') return std::min(*number, 64);
    }
    return 0;
  }

  Builder& builder_;
  End now_;
  std::vector<Pending> pending_;
  std::unordered_map<std::string, int> uses_;
};

}  // namespace

double infiniband_lane_bytes_per_s(std::string_view rate) {
  for (const LaneRate& lane : kLanes) {
    if (lane.name == rate) return gbit(lane.data_gbit);
  }
  return 0;
}

Result<FabricListing> read_fabric(std::string_view text, const std::string& file) {
  Builder builder(file);
  BlockReader blocks(builder);
  LinkInfoReader links(builder);
  std::unordered_map<std::string, int> switches;  // ibsim's switch names, wherever their blocks stand
  for (const std::string_view line : split_lines(text)) {
    if (starts_with_ignoring_case(trim(line), "switch") && !quoted(line).empty()) switches.emplace(std::string(quoted(line)), 1);
  }
  blocks.declare(&switches);
  int number = 0;
  for (const std::string_view line : split_lines(text)) {
    ++number;
    if (builder.full()) return fail("more than two million nodes", {file, number, 0});
    const std::string_view content = trim(line);
    const std::string_view type = content.substr(0, content.find_first_of(" \t"));
    bool read = true;
    if (type == "CA" || type == "SW" || type == "RT") {
      builder.found.form = FabricForm::kNetDiscoverPorts;
      read = ports_line(builder, content, number);
    } else if (contains(content, "==(") || type == "CA:" || type == "Switch:") {
      builder.found.form = FabricForm::kLinkInfo;
      read = links.line(content, number);
    } else {
      read = blocks.line(content, number);
    }
    if (!read && !content.empty()) builder.skip(number);
  }
  links.count_types();
  links.finish();
  if (builder.found.form == FabricForm::kNetDiscover && blocks.simulator()) builder.found.form = FabricForm::kSimulator;
  return builder.finish();
}

}  // namespace chokepoint::wiring
