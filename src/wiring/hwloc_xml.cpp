// SPDX-License-Identifier: Apache-2.0
// hwloc's XML, versions 1 to 3, read with pugixml: the library of the supported distributions refuses the newest version
// of its own format (docs/decisions). Objects nest as the machine does: packages hold NUMA nodes, caches, cores, and
// bridges with what hangs below them.
#include <chokepoint/wiring/host_files.hpp>

#include "scan.hpp"

#include <chokepoint/base/text.hpp>
#include <chokepoint/base/units.hpp>

#include <algorithm>
#include <fmt/format.h>
#include <pugixml.hpp>

namespace chokepoint::wiring {

namespace {

constexpr int kMaxDepth = 128;
constexpr int kMaxNuma = 63;
constexpr std::size_t kMaxObjects = 1 << 17;

/// Where an object sits.
struct Place {
  int numa = -1;
  int pci = -1;
  std::vector<std::string> bridges;
};

class Reader {
 public:
  Reader(std::string_view text, const std::string& file) : text_(text), file_(file) {}
  Result<HwlocTopology> read();

 private:
  bool walk(const pugi::xml_node& node, Place place, int depth);
  void add_pci(const pugi::xml_node& node, Place& place);
  void read_distances(const pugi::xml_node& node);

  std::string_view text_;
  std::string file_;
  HwlocTopology found_;
  std::map<std::string, std::string> object_names_;  ///< gp_index -> name
  std::size_t objects_ = 0;
  std::ptrdiff_t counted_to_ = 0;
  int counted_line_ = 1;
};

/// "Socket" and "Node" of version 1 under today's names.
std::string type_name(std::string_view type) {
  if (type == "Socket") return "Package";
  if (type == "Node") return "NUMANode";
  return std::string(type);
}

/// Lowest bit of "0x00000001" or "0x1,0x0"; -1 without one.
int lowest_node(std::string_view set) {
  const std::vector<std::string_view> words = split(set, ',');
  for (std::size_t i = words.size(); i-- > 0;) {
    const auto bits = words[i].empty() ? std::nullopt : to_hex(words[i]);
    if (!bits || *bits == 0) continue;
    int bit = 0;
    while (((*bits >> bit) & 1) == 0) ++bit;
    return static_cast<int>(words.size() - 1 - i) * 32 + bit;
  }
  return -1;
}

/// "enp23s0f0" -> "enpNsNfN".
std::string without_numbers(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) out += c;
    else if (out.empty() || out.back() != 'N') out += 'N';
  }
  return out;
}

void Reader::add_pci(const pugi::xml_node& node, Place& place) {
  HwlocPci device;
  device.bus_id = pci_address(node.attribute("pci_busid").as_string());
  const std::vector<std::string_view> type = split_blanks(node.attribute("pci_type").as_string());
  if (!type.empty()) device.class_id = static_cast<int>(to_hex(type[0]).value_or(0) & 0xffff);
  if (type.size() > 1) device.ids = std::string(between(type[1], "[", "]").value_or(""));
  device.link_bytes_per_s = gbyte(std::clamp(node.attribute("pci_link_speed").as_double(), 0.0, 1e6));
  for (const pugi::xml_node& info : node.children("info")) {
    if (std::string_view(info.attribute("name").as_string()) == "PCIDevice") device.name = info.attribute("value").as_string();
  }
  if (device.name.empty()) device.name = node.attribute("name").as_string();
  device.virtual_function = contains(device.name, "Virtual Function");
  device.numa = place.numa;
  device.bridges = place.bridges;
  const std::ptrdiff_t offset = node.offset_debug();
  if (offset > counted_to_ && static_cast<std::size_t>(offset) <= text_.size()) {
    counted_line_ += static_cast<int>(std::count(text_.begin() + counted_to_, text_.begin() + offset, '\n'));
    counted_to_ = offset;
  }
  device.line = counted_line_;
  place.pci = static_cast<int>(found_.pci_devices.size());
  found_.pci_devices.push_back(std::move(device));
}

bool Reader::walk(const pugi::xml_node& node, Place place, int depth) {
  if (depth > kMaxDepth || ++objects_ > kMaxObjects) return false;
  const std::string type = type_name(node.attribute("type").as_string());
  ++found_.counts[type];
  std::string name = fmt::format("{} {}", type, node.attribute("os_index").as_string());
  if (const pugi::xml_attribute set = node.attribute("nodeset"); set && lowest_node(set.as_string()) >= 0) place.numa = std::min(lowest_node(set.as_string()), kMaxNuma);
  if (type == "Bridge") {
    const std::string bus = pci_address(node.attribute("pci_busid").as_string());
    place.bridges.push_back(bus.empty() ? std::string("root ") + node.attribute("bridge_pci").as_string() : bus);
    name = place.bridges.back();
  } else if (type == "PCIDev") {
    add_pci(node, place);
    name = found_.pci_devices.back().bus_id;
  } else if (type == "OSDev") {
    name = node.attribute("name").as_string();
    ++found_.os_devices[without_numbers(name)];
    found_.devices.push_back({name, place.pci});
  } else if (type == "Machine") {
    for (const pugi::xml_node& info : node.children("info")) {
      if (std::string_view(info.attribute("name").as_string()) == "DMIProductName") found_.product = info.attribute("value").as_string();
    }
  }
  if (const pugi::xml_attribute index = node.attribute("gp_index")) object_names_[index.as_string()] = name;
  for (const pugi::xml_node& child : node.children("object")) {
    if (!walk(child, place, depth + 1)) return false;
  }
  return true;
}

void Reader::read_distances(const pugi::xml_node& node) {
  HwlocDistances distances;
  distances.name = node.attribute("name").as_string();
  const std::string type = node.attribute("type").as_string();
  const bool by_gp = std::string_view(node.attribute("indexing").as_string()) == "gp" || type.empty();
  for (const pugi::xml_node& list : node.children("indexes")) {
    for (const std::string_view word : split_blanks(list.child_value())) {
      const std::size_t colon = word.find(':');
      const std::string key(colon == std::string_view::npos ? word : word.substr(colon + 1));
      const auto known = object_names_.find(key);
      distances.objects.push_back(by_gp && known != object_names_.end() ? known->second : type + " " + std::string(word));
    }
  }
  for (const pugi::xml_node& list : node.children("u64values")) {
    for (const std::string_view word : split_blanks(list.child_value())) distances.values.push_back(to_number(word).value_or(0.0));
  }
  if (distances.values.size() != distances.objects.size() * distances.objects.size()) {
    found_.notes.push_back({fmt::format("distances {} hold {} values for {} objects; left out", distances.name, distances.values.size(), distances.objects.size()), {file_, 0, 0}});
    return;
  }
  found_.distances.push_back(std::move(distances));
}

Result<HwlocTopology> Reader::read() {
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_buffer(text_.data(), text_.size());
  const pugi::xml_node root = document.child("topology");
  if (!parsed) {
    const int line = 1 + static_cast<int>(std::count(text_.begin(), text_.begin() + std::clamp<std::ptrdiff_t>(parsed.offset, 0, static_cast<std::ptrdiff_t>(text_.size())), '\n'));
    return fail(fmt::format("not well-formed XML: {}", lower(parsed.description())), {file_, line, 0}, {"the file may be cut short; `lstopo --of xml FILE` writes it whole"});
  }
  if (!root) return fail(fmt::format("the root element is <{}>, expected <topology>", document.document_element().name()), {file_, 1, 0});
  found_.version = root.attribute("version").as_string("1");
  for (const pugi::xml_node& object : root.children("object")) {
    if (!walk(object, {}, 0)) return fail("nested deeper or larger than any machine", {file_, 0, 0});
  }
  if (found_.counts.empty()) return fail("<topology> holds no <object>", {file_, 1, 0});
  for (const char* kind : {"distances2", "distances2hetero"}) {
    for (const pugi::xml_node& node : root.children(kind)) read_distances(node);
  }
  return std::move(found_);
}

}  // namespace

Result<HwlocTopology> read_hwloc_xml(std::string_view text, const std::string& file) { return Reader(text, file).read(); }

}  // namespace chokepoint::wiring
