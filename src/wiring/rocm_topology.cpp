// SPDX-License-Identifier: Apache-2.0
// rocm-smi --showtopo: titled squares (weight, hops, link type) and lists (NUMA). A square's title decides what it is.
// amd-smi topology: squares over PCI addresses, titled "LINK TYPE TABLE:".
#include <chokepoint/wiring/gpu_tools.hpp>

#include "parts.hpp"
#include "scan.hpp"
#include "tool_json.hpp"

#include <chokepoint/base/text.hpp>
#include <chokepoint/base/units.hpp>
#include <chokepoint/hardware/catalogue.hpp>
#include <chokepoint/wiring/wiring.hpp>

#include <algorithm>
#include <fmt/format.h>

namespace chokepoint::wiring {

using namespace topology;

namespace {

constexpr int kMaxGpus = 256;
enum class Part { kNone, kWeight, kHops, kLinks, kNuma, kTable };

Part part_of(std::string_view title, Part now) {
  if (contains(title, "WEIGHT TABLE")) return Part::kWeight;
  if (contains(title, "HOPS TABLE")) return Part::kHops;
  if (contains(title, "LINK TYPE TABLE")) return Part::kLinks;
  if (contains(title, " TABLE:")) return Part::kNone;
  if (contains_ignoring_case(title, "weight between")) return Part::kWeight;
  if (contains_ignoring_case(title, "hops between")) return Part::kHops;
  if (contains_ignoring_case(title, "link type between")) return Part::kLinks;
  if (contains_ignoring_case(title, "numa node")) return Part::kNuma;
  if (contains_ignoring_case(title, "concise info")) return Part::kTable;
  return now;
}

/// "GPU3", "GPU[3]", "GPU 3": the number, and where the text goes on.
std::optional<int> gpu_number(std::string_view& text) {
  if (text.substr(0, 3) != "GPU") return std::nullopt;
  std::string_view rest = text.substr(3);
  if (!rest.empty() && (rest.front() == '[' || rest.front() == ' ')) rest.remove_prefix(1);
  const auto number = leading_int(rest);
  if (!number || *number >= kMaxGpus || rest.empty() || !is_digits(rest.substr(0, 1))) return std::nullopt;
  text = rest.substr(rest.find_first_not_of("0123456789") == std::string_view::npos ? rest.size() : rest.find_first_not_of("0123456789"));
  return number;
}

template <class Value>
void put(std::vector<std::vector<Value>>& square, int row, std::vector<Value> cells) {
  if (static_cast<int>(square.size()) <= row) square.resize(static_cast<std::size_t>(row) + 1);
  square[static_cast<std::size_t>(row)] = std::move(cells);
}

class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}
  Result<RocmTopology> read(std::string_view text);

 private:
  void row(int gpu, std::string_view rest);
  bool address_line(const std::vector<std::string_view>& words, std::string_view content);
  void table_line(std::string_view content);

  std::string file_;
  RocmTopology found_;
  Part part_ = Part::kNone;
};

void Reader::row(int gpu, std::string_view rest) {
  if (contains(rest, "Numa Node") || contains(rest, "NUMA Node")) {
    const std::size_t colon = rest.rfind(':');
    const auto node = leading_int(rest.substr(colon + 1));
    if (node && *node < kMaxGpus) found_.numa[gpu] = *node;
    found_.gpus = std::max(found_.gpus, gpu + 1);
    return;
  }
  if (contains(rest, ":")) {
    if (contains_ignoring_case(rest, "card series") || contains_ignoring_case(rest, "card model")) {
      found_.names.resize(std::max(found_.names.size(), static_cast<std::size_t>(gpu) + 1));
      found_.names[static_cast<std::size_t>(gpu)] = std::string(trim(rest.substr(rest.rfind(':') + 1)));
    }
    found_.gpus = std::max(found_.gpus, gpu + 1);
    return;
  }
  const std::vector<std::string_view> words = split_blanks(rest);
  if (words.empty() || words.size() > kMaxGpus || words.front().substr(0, 3) == "GPU") return;
  found_.gpus = std::max(found_.gpus, gpu + 1);
  std::vector<int> numbers;
  std::vector<std::string> texts;
  for (const std::string_view word : words) {
    numbers.push_back(to_int(word).value_or(-1));
    texts.emplace_back(word);
  }
  if (part_ == Part::kWeight) put(found_.weights, gpu, std::move(numbers));
  else if (part_ == Part::kHops) put(found_.hops, gpu, std::move(numbers));
  else if (part_ == Part::kLinks) put(found_.links, gpu, std::move(texts));
}

/// amd-smi: a heading of PCI addresses, and rows that begin with one.
bool Reader::address_line(const std::vector<std::string_view>& words, std::string_view content) {
  if (words.empty() || pci_address(words.front()).empty() || !contains(words.front(), ":")) return false;
  const bool heading = words.size() > 1 ? !pci_address(words[1]).empty() && contains(words[1], ":") : found_.bus_ids.empty();
  if (heading) {
    found_.bus_ids.clear();
    for (const std::string_view word : words) {
      if (found_.bus_ids.size() < static_cast<std::size_t>(kMaxGpus)) found_.bus_ids.push_back(pci_address(word));
    }
    return true;
  }
  const auto at = std::find(found_.bus_ids.begin(), found_.bus_ids.end(), pci_address(words.front()));
  if (at != found_.bus_ids.end()) row(static_cast<int>(at - found_.bus_ids.begin()), content.substr(words.front().size()));
  return true;
}

/// "0  [0x0c34 : 0x02]  34.0°C ..." and, one line below, the card's name.
void Reader::table_line(std::string_view content) {
  const std::vector<std::string_view> words = split_blanks(content);
  if (words.empty()) return;
  if (is_digits(words.front()) && words.size() > 3) {
    const int gpu = to_int(words.front()).value_or(kMaxGpus);
    if (gpu < kMaxGpus) found_.gpus = std::max(found_.gpus, gpu + 1);
  } else if (found_.gpus > 0 && !contains(content, "%") && !contains(content, "=") && static_cast<int>(found_.names.size()) < found_.gpus) {
    found_.names.emplace_back(content);
  }
}

Result<RocmTopology> Reader::read(std::string_view text) {
  for (const std::string_view line : split_lines(text)) {
    std::string_view content = trim(line);
    if (content.substr(0, 2) == "==" || contains(content, "====") || contains(content, " TABLE:")) {
      part_ = part_of(content, part_);
      continue;
    }
    if (address_line(split_blanks(content), content)) continue;
    std::string_view rest = content;
    const auto gpu = gpu_number(rest);
    if (gpu) row(*gpu, rest);
    else if (part_ == Part::kTable) table_line(content);
  }
  if (found_.gpus == 0) return fail("no GPU listed", {file_, 0, 0}, {"save the output of `rocm-smi --showtopo`"});
  if (found_.links.empty()) found_.notes.push_back({"no link types in the file; the links between the GPUs stay unknown", {file_, 0, 0}});
  return std::move(found_);
}

}  // namespace

std::map<std::string, int> RocmTopology::link_pairs() const {
  std::map<std::string, int> counts;
  for (std::size_t i = 0; i < links.size(); ++i) {
    for (std::size_t j = i + 1; j < links[i].size(); ++j) ++counts[links[i][j]];
  }
  return counts;
}

Result<RocmTopology> read_rocm_topology(std::string_view text, const std::string& file) {
  return json_format(text) == Format::kRocmTopology ? read_rocm_json(text, file) : Reader(file).read(text);
}

Host host_of(const RocmTopology& found, const std::string& file) {
  Host host;
  host.notes = found.notes;
  std::map<int, int> bridges;
  std::vector<int> cpus;
  std::vector<int> gpus;
  for (int i = 0; i < found.gpus; ++i) {
    const auto node = found.numa.find(i);
    const int numa = node == found.numa.end() ? 0 : node->second;
    if (bridges.count(numa) == 0) {
      cpus.push_back(add_cpu(host, numa));
      bridges[numa] = add_bridge(host, cpus.back(), 4);
    }
    const std::string model = static_cast<std::size_t>(i) < found.names.size() ? found.names[static_cast<std::size_t>(i)] : std::string();
    const std::string address = static_cast<std::size_t>(i) < found.bus_ids.size() ? found.bus_ids[static_cast<std::size_t>(i)] : std::string();
    gpus.push_back(host.add_device({DeviceKind::kGpu, fmt::format("GPU{}", i), model, address, node == found.numa.end() ? std::nullopt : std::optional<int>(numa)}));
    host.add_duplex(gpus.back(), bridges[numa], LinkKind::kPcie, 16, pcie(4, 16, std::string(kAssumed) + "PCIe generation not stated"));
  }
  join_sockets(host, cpus, socket_bytes_per_s(4), std::string(kAssumed) + "sockets");
  // rocm-smi says that a pair is linked, not by how many links; MI200-class rate of one link until the accelerator is named.
  constexpr double kLinkBytesPerS = 50e9;
  for (std::size_t i = 0; i < found.links.size() && i < gpus.size(); ++i) {
    for (std::size_t j = i + 1; j < found.links[i].size() && j < gpus.size(); ++j) {
      if (found.links[i][j] == "XGMI") host.add_duplex(gpus[i], gpus[j], LinkKind::kXgmi, 1, specified(kLinkBytesPerS, std::string(kAssumed) + "one Infinity Fabric link"));
    }
  }
  if (!found.names.empty()) {
    const Result<hardware::Accelerator> accelerator = hardware::find_accelerator(found.names.front());
    if (accelerator) host.accelerator = accelerator->name;
  }
  host.notes.push_back({"NICs and PCIe switches are not in rocm-smi's output", {file, 0, 0}});
  return host;
}

}  // namespace chokepoint::wiring
