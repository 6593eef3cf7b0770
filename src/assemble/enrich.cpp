// SPDX-License-Identifier: Apache-2.0
#include "enrich.hpp"

#include <chokepoint/hardware/catalogue.hpp>

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>

namespace chokepoint::assemble {

using namespace topology;
using namespace wiring;

namespace {

Device& device_at(Host& host, int index) { return host.devices[static_cast<std::size_t>(index)]; }

bool is_assumed(const Bandwidth& bandwidth) { return bandwidth.origin.substr(0, 8) == "assumed:"; }

class Enricher {
 public:
  Enricher(Host& host, const Document& document, Assembly& assembly) : host_(host), document_(document), assembly_(assembly) {
    for (const std::string& address : gpu_addresses(host)) addresses_known_ = addresses_known_ || !address.empty();
  }

  void operator()(const SmiQuery& query);
  void operator()(const NvLinkStatus& status);
  void operator()(const PeerMatrix& matrix);
  void operator()(const PciListing& listing);
  void operator()(const PairTables& tables);
  void operator()(const IbPorts& ports);
  void operator()(const RocmTopology& found);
  void operator()(const HwlocTopology& found) { compare_counts(host_of(found, document_.file)); }
  void operator()(const Host& other) { compare_counts(other); }
  void operator()(const std::vector<HostGroup>& groups);
  template <class Other>
  void operator()(const Other&) {}

 private:
  void contradict(std::string what, int line) { assembly_.contradictions.push_back({std::move(what), {host_.name, 0, 0}, {document_.file, line, 0}}); }
  /// By address where both know it, else by position.
  int gpu(const std::string& address, std::size_t position) const;
  void name_accelerator(const std::string& words, int line);
  void set_slot(int device, double specified, double negotiated, int width);
  void compare_counts(const Host& other);
  bool direct_links_unknown() const;
  void draw_nvlinks(const NvLinkStatus& status);

  Host& host_;
  const Document& document_;
  Assembly& assembly_;
  bool addresses_known_ = false;  ///< before this document added its own
};

int Enricher::gpu(const std::string& address, std::size_t position) const {
  const std::vector<int> gpus = host_.gpus();
  if (!address.empty() && addresses_known_) {
    for (const int index : gpus) {
      if (host_.devices[static_cast<std::size_t>(index)].bus_id == address) return index;
    }
    return -1;
  }
  return position < gpus.size() ? gpus[position] : -1;
}

void Enricher::name_accelerator(const std::string& words, int line) {
  const Result<hardware::Accelerator> accelerator = hardware::find_accelerator(words);
  if (!accelerator) return;
  if (host_.accelerator.empty()) {
    Result<Host> named = with_accelerator(host_, *accelerator);
    if (named) host_ = std::move(*named);
    else contradict(named.error().message, line);
  } else if (host_.accelerator != accelerator->name) {
    const Result<hardware::Accelerator> before = hardware::find_accelerator(host_.accelerator);
    if (before && before->families != accelerator->families) contradict(fmt::format("the GPUs are {} here and {} there", host_.accelerator, accelerator->name), line);
  }
}

/// What a slot can do and what it trained at, on both directions of a device's PCIe link.
void Enricher::set_slot(int device, double specified, double negotiated, int width) {
  for (Link& link : host_.links) {
    if (link.kind != LinkKind::kPcie || (link.from != device && link.to != device)) continue;
    const Device& other = host_.devices[static_cast<std::size_t>(link.from == device ? link.to : link.from)];
    if (other.kind != DeviceKind::kPcieSwitch && other.kind != DeviceKind::kHostBridge && other.kind != DeviceKind::kCpu) continue;
    if (specified > 0) link.bandwidth.specified_bytes_per_s = specified;
    if (negotiated > 0) link.bandwidth.negotiated_bytes_per_s = negotiated;
    if (width > 0) link.width = width;
    link.bandwidth.origin = document_.file;
  }
}

void Enricher::compare_counts(const Host& other) {
  if (!other.gpus().empty() && !host_.gpus().empty() && other.gpus().size() != host_.gpus().size()) {
    contradict(fmt::format("{} GPUs here, {} there", host_.gpus().size(), other.gpus().size()), 0);
  }
}

void Enricher::operator()(const std::vector<HostGroup>& groups) {
  if (groups.empty()) return;
  const Host& other = groups.front().host;
  compare_counts(other);
  const std::vector<int> a = host_.gpus();
  const std::vector<int> b = other.gpus();
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    device_at(host_, a[i]).numa = device_at(host_, a[i]).numa ? device_at(host_, a[i]).numa : other.devices[static_cast<std::size_t>(b[i])].numa;
    for (std::size_t j = i + 1; j < std::min(a.size(), b.size()); ++j) {
      const DeclaredPath one = path_between(host_, a[i], a[j]);
      const DeclaredPath two = path_between(other, b[i], b[j]);
      const bool nvlink = (one.path == PathClass::kNvLink) != (two.path == PathClass::kNvLink) && one.path != PathClass::kUnknown && two.path != PathClass::kUnknown;
      if (nvlink) contradict(fmt::format("GPU{} and GPU{} are joined by {} here and by {} there", i, j, path_class_name(one.path, one.nvlinks), path_class_name(two.path, two.nvlinks)), 0);
    }
  }
}

void Enricher::operator()(const SmiQuery& query) {
  if (query.gpus.size() != host_.gpus().size()) contradict(fmt::format("{} GPUs here, {} there", host_.gpus().size(), query.gpus.size()), 0);
  for (std::size_t i = 0; i < query.gpus.size(); ++i) {
    const SmiGpu& found = query.gpus[i];
    const int device = gpu(found.bus_id, i);
    if (device < 0) {
      contradict(fmt::format("no GPU at {} here", found.bus_id), found.line);
      continue;
    }
    device_at(host_, device).bus_id = found.bus_id;
    name_accelerator(found.name, found.line);
    if (found.generation_max == 0 || found.width_max == 0) continue;
    const bool resting = found.generation_current <= 1 || found.performance_state == "P8";
    const int generation = resting ? found.generation_max : found.generation_current;
    set_slot(device, hardware::pcie_bytes_per_s(std::min(found.generation_max, 6), found.width_max).value_or(0.0),
             hardware::pcie_bytes_per_s(std::clamp(generation, 1, 6), std::max(1, found.width_current)).value_or(0.0), found.width_max);
  }
}

/// The host's first file is of a kind that sees PCIe alone, so that no direct link drawn does not mean that there is none.
bool Enricher::direct_links_unknown() const {
  if (std::any_of(host_.links.begin(), host_.links.end(), [](const Link& link) { return link.kind == LinkKind::kNvLink || link.kind == LinkKind::kXgmi; })) return false;
  return std::any_of(assembly_.documents.begin(), assembly_.documents.end(), [this](const Document& document) {
    const bool blind = document.format == Format::kLspci || document.format == Format::kHwlocXml || document.format == Format::kSmiQuery;
    return blind && document.file == host_.name;
  });
}

/// Links to GPUs whose address is known go there, all others to one switch.
void Enricher::draw_nvlinks(const NvLinkStatus& status) {
  int fabric = -1;
  for (const NvLinkGpu& found : status.gpus) {
    const int device = gpu({}, static_cast<std::size_t>(found.index));
    if (device < 0) continue;
    std::map<int, std::pair<int, double>> ends;  // device (-1: a switch) -> links, rate of one
    for (const NvLinkState& link : found.links) {
      if (link.bytes_per_s.value_or(0) <= 0) continue;
      const auto far = std::find_if(host_.devices.begin(), host_.devices.end(), [&link](const Device& other) { return !link.far.empty() && other.kind == DeviceKind::kGpu && other.bus_id == link.far; });
      auto& [links, rate] = ends[far == host_.devices.end() ? -1 : static_cast<int>(far - host_.devices.begin())];
      ++links;
      rate = *link.bytes_per_s;
    }
    for (const auto& [end, count] : ends) {
      if (end >= 0 && end <= device) continue;  // drawn from the other end
      if (end < 0 && fabric < 0) fabric = host_.add_device({DeviceKind::kNvSwitch, "NVLink", {}, {}, {}});
      Bandwidth bandwidth;
      bandwidth.specified_bytes_per_s = bandwidth.negotiated_bytes_per_s = count.first * count.second;
      bandwidth.origin = document_.file;
      host_.add_duplex(device, end < 0 ? fabric : end, LinkKind::kNvLink, count.first, bandwidth);
    }
  }
}

void Enricher::operator()(const NvLinkStatus& status) {
  if (direct_links_unknown()) {
    for (const NvLinkGpu& found : status.gpus) name_accelerator(found.name, found.line);
    if (std::none_of(host_.links.begin(), host_.links.end(), [](const Link& link) { return link.kind == LinkKind::kNvLink; })) return draw_nvlinks(status);
  }
  for (const NvLinkGpu& found : status.gpus) {
    const int device = gpu({}, static_cast<std::size_t>(found.index));
    if (device < 0) {
      contradict(fmt::format("no GPU {} here", found.index), found.line);
      continue;
    }
    name_accelerator(found.name, found.line);
    if (found.elided || found.up() == 0) continue;
    int drawn = 0;
    double rate = 0;
    for (const Link& link : host_.links) drawn += link.from == device && link.kind == LinkKind::kNvLink ? link.width : 0;
    for (const NvLinkState& link : found.links) rate = std::max(rate, link.bytes_per_s.value_or(0.0));
    if (drawn > found.up()) contradict(fmt::format("GPU{} has {} NVLinks here, {} are up there", found.index, drawn, found.up()), found.line);
    for (Link& link : host_.links) {
      if (link.kind != LinkKind::kNvLink || (link.from != device && link.to != device)) continue;
      if (is_assumed(link.bandwidth)) link.bandwidth.specified_bytes_per_s = link.width * rate;
      const double share = drawn > found.up() ? static_cast<double>(found.up()) / drawn : 1;
      const double negotiated = link.width * rate * share;
      link.bandwidth.negotiated_bytes_per_s = std::min(link.bandwidth.negotiated_bytes_per_s.value_or(negotiated), negotiated);
      link.bandwidth.origin = document_.file;
    }
  }
}

void Enricher::operator()(const PeerMatrix& matrix) {
  if (matrix.devices.size() != host_.gpus().size()) contradict(fmt::format("{} GPUs here, {} there", host_.gpus().size(), matrix.devices.size()), matrix.line);
  const std::map<std::string, int> pairs = matrix.pairs();
  if (!pairs.empty() && pairs.count("OK") == 0) host_.peer_to_peer = false;
}

void Enricher::operator()(const PciListing& listing) {
  const Host other = host_of(listing, document_.file);
  if (!host_.gpus().empty() && other.gpus().size() != host_.gpus().size()) {
    contradict(fmt::format("{} GPUs here, {} there", host_.gpus().size(), other.gpus().size()), 0);
  }
  for (const Link& link : other.links) {
    const Device& from = other.devices[static_cast<std::size_t>(link.from)];
    if (link.kind != LinkKind::kPcie || from.bus_id.empty() || is_assumed(link.bandwidth)) continue;
    const auto own = std::find_if(host_.devices.begin(), host_.devices.end(), [&from](const Device& device) { return device.bus_id == from.bus_id && device.kind == from.kind; });
    if (own != host_.devices.end()) {
      set_slot(static_cast<int>(own - host_.devices.begin()), link.bandwidth.specified_bytes_per_s.value_or(0.0), link.bandwidth.negotiated_bytes_per_s.value_or(0.0), link.width);
      if (own->line_bytes_per_s <= 0) own->line_bytes_per_s = from.line_bytes_per_s;
      if (own->alias.empty()) own->alias = from.alias;
    }
  }
}

void Enricher::operator()(const PairTables& tables) {
  for (const TableDevice& device : tables.devices) name_accelerator(device.name, 0);
  const PairMatrix* best = nullptr;
  for (const PairMatrix& matrix : tables.matrices) {
    const bool usable = matrix.unit == PairUnit::kBytesPerS && !matrix.host_memory && matrix.rows.size() == matrix.columns.size() && matrix.peer_access.value_or(true);
    if (usable && (best == nullptr || (best->bidirectional && !matrix.bidirectional))) best = &matrix;
  }
  if (best == nullptr) return;
  const std::vector<int> gpus = host_.gpus();
  std::size_t first = 0;  // TransferBench and rocm-bandwidth-test list CPUs before the GPUs
  while (first < best->columns.size() && best->columns[first].substr(0, 3) == "CPU") ++first;
  if (best->columns.size() - first != gpus.size()) return contradict(fmt::format("{} GPUs here, a matrix of {} there", gpus.size(), best->columns.size() - first), best->line);
  const double share = best->bidirectional ? 0.5 : 1;
  std::vector<double> most(gpus.size(), 0);
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    for (std::size_t j = 0; j < gpus.size(); ++j) {
      const std::optional<double> cell = best->cells[i + first][j + first];
      if (i == j || !cell) continue;
      const double rate = *cell * share;
      bool direct = false;
      for (Link& link : host_.links) {
        if (link.from != gpus[i] || link.to != gpus[j] || (link.kind != LinkKind::kNvLink && link.kind != LinkKind::kXgmi)) continue;
        link.bandwidth.measured_bytes_per_s = rate;
        link.bandwidth.origin = document_.file;
        direct = true;
      }
      if (!direct) most[i] = std::max(most[i], rate);
    }
  }
  // What a GPU reached at best without a direct link is what its own link into the fabric of the host carries.
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (most[i] <= 0) continue;
    const auto to_switch = [&](const Link& link, LinkKind kind) {
      return link.from == gpus[i] && link.kind == kind && host_.devices[static_cast<std::size_t>(link.to)].kind != DeviceKind::kGpu;
    };
    const bool nvswitch = std::any_of(host_.links.begin(), host_.links.end(), [&](const Link& link) { return to_switch(link, LinkKind::kNvLink); });
    for (Link& link : host_.links) {
      if (!to_switch(link, nvswitch ? LinkKind::kNvLink : LinkKind::kPcie)) continue;
      link.bandwidth.measured_bytes_per_s = most[i];
      link.bandwidth.origin = document_.file;
    }
  }
}

void Enricher::operator()(const IbPorts& ports) {
  for (const IbPort& port : ports.ports) {
    bool found = false;
    for (const int nic : host_.nics()) {
      Device& device = device_at(host_, nic);
      if (device.name != port.adapter && device.alias != port.adapter) continue;
      found = true;
      const double rate = port.state == "Down" ? 0 : port.bytes_per_s;
      if (device.line_bytes_per_s > 0 && rate > 0 && std::abs(device.line_bytes_per_s - rate) > 0.05 * rate) {
        contradict(fmt::format("{} runs at {:g} Gb/s here, {:g} Gb/s there", port.adapter, device.line_bytes_per_s * 8 / 1e9, rate * 8 / 1e9), port.line);
      }
      if (rate > 0) device.line_bytes_per_s = rate;
    }
    if (!found && !host_.nics().empty()) assembly_.unknown.push_back(fmt::format("{}: where in the host its adapter {} sits", document_.file, port.adapter));
  }
}

void Enricher::operator()(const RocmTopology& found) {
  if (found.gpus != static_cast<int>(host_.gpus().size())) contradict(fmt::format("{} GPUs here, {} there", host_.gpus().size(), found.gpus), 0);
  const std::vector<int> gpus = host_.gpus();
  for (const auto& [index, node] : found.numa) {
    if (static_cast<std::size_t>(index) >= gpus.size()) continue;
    std::optional<int>& own = device_at(host_, gpus[static_cast<std::size_t>(index)]).numa;
    if (own && *own != node) contradict(fmt::format("GPU{} is on NUMA node {} here, {} there", index, *own, node), 0);
    if (!own) own = node;
  }
  const bool unknown = direct_links_unknown();
  if (!found.names.empty()) name_accelerator(found.names.front(), 0);
  if (!unknown || direct_links_unknown() != unknown) return;
  const Host other = host_of(found, document_.file);
  const std::vector<int> theirs = other.gpus();
  const auto own = [&](int device) -> std::size_t { return static_cast<std::size_t>(std::find(theirs.begin(), theirs.end(), device) - theirs.begin()); };
  for (const Link& link : other.links) {
    const std::size_t from = own(link.from);
    const std::size_t to = own(link.to);
    if (link.kind == LinkKind::kXgmi && from < to && to < gpus.size()) host_.add_duplex(gpus[from], gpus[to], LinkKind::kXgmi, link.width, link.bandwidth);
  }
}

}  // namespace

void enrich(Host& host, const Document& document, Assembly& assembly) {
  Enricher enricher(host, document, assembly);
  std::visit(enricher, document.content);
}

std::vector<std::string> gpu_addresses(const Host& host) {
  std::vector<std::string> addresses;
  for (const int gpu : host.gpus()) addresses.push_back(host.devices[static_cast<std::size_t>(gpu)].bus_id);
  return addresses;
}

}  // namespace chokepoint::assemble
