// SPDX-License-Identifier: Apache-2.0
// NCCL and RCCL topology XML: <system> of <cpu> (NUMA nodes) of <pci>, nested as the PCIe tree, with <gpu>, <nic>/<net>
// and <nvlink>/<xgmi> inside. Dumps carry all of it. Overlays, which a cloud hands to NCCL, often hold <pci> only; then
// the PCI class says what a device is.
#include "parts.hpp"

#include <chokepoint/base/text.hpp>
#include <chokepoint/base/units.hpp>
#include <chokepoint/wiring/wiring.hpp>

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <pugixml.hpp>
#include <set>

namespace chokepoint::wiring {

using namespace topology;

namespace {

constexpr int kMaxDepth = 32;
constexpr std::size_t kMaxDevices = 1024;
constexpr int kMaxLinkCount = 64;

struct PciName {
  std::string_view id;  ///< vendor:device
  std::string_view accelerator;
};
/// Source: the PCI ID repository (pci-ids.ucw.cz), vendors 10de and 1002.
constexpr std::array<PciName, 30> kPciNames{{{"10de:1db1", "v100-sxm2-16gb"}, {"10de:1db5", "v100-sxm2-32gb"}, {"10de:1db8", "v100-sxm3-32gb"},
                                             {"10de:1db4", "v100-pcie-16gb"}, {"10de:1db6", "v100-pcie-32gb"}, {"10de:20b0", "a100-sxm4-40gb"},
                                             {"10de:20b2", "a100-sxm4-80gb"}, {"10de:20f1", "a100-pcie-40gb"}, {"10de:20b5", "a100-pcie-80gb"},
                                             {"10de:20f3", "a800-sxm4-80gb"}, {"10de:20f5", "a800-pcie-80gb"}, {"10de:2330", "h100-sxm5-80gb"},
                                             {"10de:2331", "h100-pcie-80gb"}, {"10de:2324", "h800-sxm5-80gb"}, {"10de:2322", "h800-pcie-80gb"},
                                             {"10de:2329", "h20"},            {"10de:2335", "h200-sxm-141gb"}, {"10de:2901", "b200-sxm-180gb"},
                                             {"10de:2941", "gb200-186gb"},    {"10de:2235", "a40"},            {"10de:2236", "a10"},
                                             {"10de:2230", "rtx-a6000"},      {"10de:2204", "rtx-3090"},       {"10de:2684", "rtx-4090"},
                                             {"10de:26b9", "l40s"},           {"10de:26b5", "l40"},            {"1002:740c", "mi250x-gcd"},
                                             {"1002:7408", "mi250x-gcd"},     {"1002:740f", "mi210"},          {"1002:74a1", "mi300x"}}};

/// Rate of one link and direction where the data sheet is not at hand: NVLink by compute capability (A6000-class boards:
/// 112.5 GB/s both ways over four links), Infinity Fabric by generation (MI100 92, MI200 100, MI300 128 GB/s both ways).
double link_rate(int sm, int gcn) {
  if (gcn > 0) return gcn >= 940 ? gbyte(64) : gcn >= 910 ? gbyte(50) : gbyte(46);
  if (sm == 86) return gbyte(112.5) / 8;
  const int generation = sm >= 100 ? 5 : sm >= 90 ? 4 : sm >= 80 ? 3 : sm >= 70 || sm == 0 ? 2 : 1;
  return hardware::nvlink_bytes_per_s(generation).value_or(0.0);
}

/// Traffic of PCIe devices between sockets. Source: NCCL's topo.h, by CPU family and model as in topo.cc.
double socket_rate(const pugi::xml_node& cpu) {
  const std::string_view arch = cpu.attribute("arch").as_string();
  const std::string_view vendor = cpu.attribute("vendor").as_string();
  const int model = cpu.attribute("modelid").as_int();
  if (arch == "ppc64" || arch == "ppc64le") return gbyte(32);
  if (arch == "arm64" || arch == "aarch64") return gbyte(6);
  if (vendor == "AuthenticAMD") return gbyte(16);
  if (vendor != "GenuineIntel") return gbyte(10);
  if (model == 0xCF) return gbyte(40);
  if (model == 0x8F) return gbyte(22);
  return model >= 0x55 ? gbyte(10) : gbyte(6);
}

/// "16 GT/s", "32.0 GT/s PCIe", "32 GT/s PCIe/s" -> generation; 0 when it says nothing.
int pcie_generation(std::string_view speed) {
  const std::vector<std::string_view> words = split_blanks(speed);
  if (words.empty()) return 0;
  const double rate = to_number(words.front()).value_or(0.0);
  static constexpr std::array<double, 6> kRates{2.5, 5, 8, 16, 32, 64};
  for (std::size_t i = 0; i < kRates.size(); ++i) {
    if (rate == kRates[i]) return static_cast<int>(i) + 1;
  }
  return 0;
}

enum class Role { kSwitch, kGpu, kNic, kUnknown };

class Reader {
 public:
  Reader(std::string_view text, const std::string& file) : text_(text), file_(file) {}
  Result<Host> read();

 private:
  struct Found {
    pugi::xml_node node;  ///< <gpu> or <net>, or the <pci> when there is none
    pugi::xml_node pci;
  };

  SourcePos at(const pugi::xml_node& node) const { return position(node.offset_debug()); }
  SourcePos position(std::ptrdiff_t offset) const;
  void note(std::string text, SourcePos pos = {}) {
    if (pos.file.empty()) pos.file = file_;
    host_.notes.push_back({std::move(text), std::move(pos)});
  }
  Role role(const pugi::xml_node& pci) const;
  Result<bool> collect(const pugi::xml_node& node, int depth);
  void add_gpus();
  void add_nics();
  Bandwidth link_of(const pugi::xml_node& pci, int& lanes);
  void attach_pci(const pugi::xml_node& pci, int parent, int numa, int generation);
  void attach_nics(const pugi::xml_node& pci, int parent, int numa);
  void attach_cpu(const pugi::xml_node& cpu);
  void attach(const pugi::xml_node& pci, int device, int parent, int numa);
  void add_gpu_links();
  int link_target(const pugi::xml_node& link, int gpu);
  void report();
  void report_slow_uplinks();
  void name_accelerator();

  std::string_view text_;
  std::string file_;
  Host host_;
  bool gpu_elements_ = false;
  std::vector<Found> gpus_;
  std::vector<Found> nets_;
  std::map<std::ptrdiff_t, int> device_of_;  ///< by offset of the element in the text
  std::map<std::string, int> gpu_by_bus_;
  std::vector<std::pair<pugi::xml_node, int>> cpus_;
  int nvswitch_ = -1;
  int unknown_endpoints_ = 0;
  int unknown_links_ = 0;
  int self_links_ = 0;
  int hidden_links_ = 0;
};

SourcePos Reader::position(std::ptrdiff_t offset) const {
  if (offset < 0 || static_cast<std::size_t>(offset) > text_.size()) return {file_, 0, 0};
  const std::string_view before = text_.substr(0, static_cast<std::size_t>(offset));
  const std::size_t line_start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  return {file_, static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1, static_cast<int>(before.size() - line_start) + 1};
}

Role Reader::role(const pugi::xml_node& pci) const {
  if (pci.child("gpu")) return Role::kGpu;
  if (pci.child("nic") || pci.child("net")) return Role::kNic;
  const std::string_view type = pci.attribute("class").as_string();
  if (pci.child("pci") || type.substr(0, 6) == "0x0604") return Role::kSwitch;
  if (type.substr(0, 4) == "0x02") return Role::kNic;
  // 3D and display controllers; VGA (0x0300) only when nothing else tells the GPUs from a board's own graphics.
  if (gpu_elements_) return Role::kUnknown;
  const std::string_view vendor = pci.attribute("vendor").as_string();
  const bool vga_gpu = type.substr(0, 6) == "0x0300" && (vendor == "0x10de" || vendor == "0x1002");
  return type.substr(0, 6) == "0x0302" || type.substr(0, 6) == "0x0380" || vga_gpu ? Role::kGpu : Role::kUnknown;
}

/// First pass: every GPU and NIC, so that device indices can follow the `dev` numbers.
Result<bool> Reader::collect(const pugi::xml_node& node, int depth) {
  if (depth > kMaxDepth) return fail(fmt::format("<pci> nested deeper than {} levels", kMaxDepth), at(node));
  if (gpus_.size() + nets_.size() + device_of_.size() > kMaxDevices) return fail(fmt::format("more than {} devices", kMaxDevices), at(node));
  for (const pugi::xml_node& child : node.children()) {
    const std::string_view name = child.name();
    if (name == "nic") {
      for (const pugi::xml_node& net : child.children("net")) nets_.push_back({net, {}});
    } else if (name == "net") {
      nets_.push_back({child, {}});
    } else if (name == "pci") {
      device_of_[child.offset_debug()] = -1;
      const Role what = role(child);
      if (what == Role::kGpu) gpus_.push_back({child.child("gpu") ? child.child("gpu") : child, child});
      if (what == Role::kNic && !child.child("nic") && !child.child("net")) nets_.push_back({child, child});
      if (what == Role::kUnknown) ++unknown_endpoints_;
      TRY_INTO([[maybe_unused]] const bool ok, collect(child, depth + 1));
    }
  }
  return true;
}

void sort_by_dev(std::vector<std::pair<int, std::size_t>>& order) { std::sort(order.begin(), order.end()); }

void Reader::add_gpus() {
  std::vector<std::pair<int, std::size_t>> order;
  for (std::size_t i = 0; i < gpus_.size(); ++i) order.emplace_back(gpus_[i].node.attribute("dev").as_int(static_cast<int>(i)), i);
  sort_by_dev(order);
  std::set<int> used;
  for (const auto& entry : order) {
    const Found& gpu = gpus_[entry.second];
    if (!used.insert(entry.first).second) note(fmt::format("two <gpu> elements have dev=\"{}\"", entry.first), at(gpu.node));
    const std::string bus = lower(gpu.pci.attribute("busid").as_string());
    const int device = host_.add_device({DeviceKind::kGpu, fmt::format("GPU{}", entry.first), {}, bus, {}});
    device_of_[gpu.pci.offset_debug()] = device;
    if (!gpu_by_bus_.emplace(bus, device).second) note(fmt::format("two GPUs have the bus id '{}'", bus), at(gpu.pci));
  }
}

void Reader::add_nics() {
  std::vector<std::pair<int, std::size_t>> order;
  for (std::size_t i = 0; i < nets_.size(); ++i) order.emplace_back(nets_[i].node.attribute("dev").as_int(static_cast<int>(i)), i);
  sort_by_dev(order);
  int unknown_rates = 0;
  for (const auto& entry : order) {
    const pugi::xml_node& net = nets_[entry.second].node;
    const std::string bus = lower(net.attribute("busid").as_string());
    std::string name = net.attribute("name").as_string();
    if (name.empty()) name = bus.empty() ? fmt::format("NIC{}", entry.first) : "NIC " + bus;
    Device device{DeviceKind::kNic, std::move(name), {}, bus, {}};
    const std::string speed = net.attribute("speed").as_string();
    const auto megabit = to_number(speed);
    // NCCL writes Mb/s: no fabric port lies below 1 Gb/s or above 1.6 Tb/s.
    constexpr double kSlowest = 1e3;
    constexpr double kFastest = 1.6e6;
    if (megabit && *megabit >= kSlowest && *megabit <= kFastest) {
      device.line_bytes_per_s = *megabit * 1e6 / 8;
    } else if (!speed.empty()) {
      note(fmt::format("{}: speed=\"{}\" is no NIC's rate in Mb/s, expected 1000 to 1600000 (400 Gb/s is 400000); taken as not stated", device.name, speed));
      ++unknown_rates;
    } else {
      ++unknown_rates;
    }
    device_of_[net.offset_debug()] = host_.add_device(std::move(device));
  }
  if (unknown_rates > 0) note(fmt::format("rate of {} NICs not stated", unknown_rates));
}

Bandwidth Reader::link_of(const pugi::xml_node& pci, int& lanes) {
  const int generation = pcie_generation(pci.attribute("link_speed").as_string());
  lanes = pci.attribute("link_width").as_int();
  if (generation == 0 || lanes < 1 || lanes > 32) {
    constexpr int kFallback = 4;
    ++unknown_links_;
    lanes = 16;
    return wiring::pcie(kFallback, lanes, fmt::format("{}PCIe {}.0 x16", kAssumed, kFallback));
  }
  Bandwidth bandwidth;
  bandwidth.negotiated_bytes_per_s = hardware::pcie_bytes_per_s(generation, lanes).value_or(0.0);
  bandwidth.origin = fmt::format("{}: PCIe {}.0 x{}", file_, generation, lanes);
  return bandwidth;
}

void Reader::attach(const pugi::xml_node& pci, int device, int parent, int numa) {
  int lanes = 0;
  const Bandwidth bandwidth = link_of(pci, lanes);
  host_.add_duplex(device, parent, LinkKind::kPcie, lanes, bandwidth);
  if (numa >= 0) host_.devices[static_cast<std::size_t>(device)].numa = numa;
}

void Reader::attach_nics(const pugi::xml_node& pci, int parent, int numa) {
  std::vector<int> ports;
  for (const pugi::xml_node& nic : pci.children("nic")) {
    for (const pugi::xml_node& net : nic.children("net")) ports.push_back(device_of_[net.offset_debug()]);
  }
  for (const pugi::xml_node& net : pci.children("net")) ports.push_back(device_of_[net.offset_debug()]);
  if (ports.empty() && device_of_[pci.offset_debug()] >= 0) ports.push_back(device_of_[pci.offset_debug()]);
  if (ports.size() == 1) return attach(pci, ports.front(), parent, numa);
  if (ports.empty()) return;
  // Ports of one card share its slot.
  const int card = add_switch(host_, fmt::format("card {}", pci.attribute("busid").as_string()), numa);
  attach(pci, card, parent, numa);
  for (const int port : ports) attach(pci, port, card, numa);
}

void Reader::attach_pci(const pugi::xml_node& pci, int parent, int numa, int generation) {
  const Role what = role(pci);
  int below = parent;
  if (what == Role::kGpu) {
    attach(pci, device_of_[pci.offset_debug()], parent, numa);
  } else if (what == Role::kNic) {
    attach_nics(pci, parent, numa);
  } else if (what == Role::kSwitch) {
    below = add_switch(host_, fmt::format("PCIe switch {}", pci.attribute("busid").as_string()), numa);
    host_.devices[static_cast<std::size_t>(below)].bus_id = pci.attribute("busid").as_string();
    attach(pci, below, parent, numa);
  }
  for (const pugi::xml_node& child : pci.children("pci")) attach_pci(child, below, numa, generation);
}

void Reader::attach_cpu(const pugi::xml_node& cpu) {
  const int numa = cpu.attribute("numaid").as_int(-1);
  const int index = host_.add_device({DeviceKind::kCpu, numa >= 0 ? fmt::format("NUMA {}", numa) : "NUMA ?", {}, {}, {}});
  if (numa >= 0) host_.devices[static_cast<std::size_t>(index)].numa = numa;
  cpus_.emplace_back(cpu, index);
  int generation = 3;
  for (const pugi::xml_node& pci : cpu.children("pci")) generation = std::max(generation, pcie_generation(pci.attribute("link_speed").as_string()));
  const int bridge = add_bridge(host_, index, generation);
  for (const pugi::xml_node& pci : cpu.children("pci")) attach_pci(pci, bridge, numa, generation);
  // Interfaces without a PCI device (virtual, or hidden by a virtual machine) live in host memory.
  const auto attach_software = [&](const pugi::xml_node& net) {
    host_.add_duplex(device_of_[net.offset_debug()], index, LinkKind::kMemory, 1,
                     specified(hardware::socket_memory_bytes_per_s(generation), std::string(kAssumed) + "interface without a PCI device"));
  };
  for (const pugi::xml_node& nic : cpu.children("nic")) {
    for (const pugi::xml_node& net : nic.children("net")) attach_software(net);
  }
  for (const pugi::xml_node& net : cpu.children("net")) attach_software(net);
}

/// Where an <nvlink> or <xgmi> leads: a device index, or -1 with the reason counted.
int Reader::link_target(const pugi::xml_node& link, int gpu) {
  const std::string target = lower(link.attribute("target").as_string());
  const std::string_view type = link.attribute("tclass").as_string();
  if (const auto found = gpu_by_bus_.find(target); found != gpu_by_bus_.end()) {
    if (found->second != gpu) return found->second;
    ++self_links_;
    return -1;
  }
  if (type.substr(0, 6) == "0x0680") {
    if (nvswitch_ < 0) nvswitch_ = host_.add_device({DeviceKind::kNvSwitch, "NVSwitch", {}, {}, {}});
    return nvswitch_;
  }
  if (type.substr(0, 4) == "0x06") {  // a CPU with NVLink (POWER9, Grace)
    const std::optional<int> numa = host_.devices[static_cast<std::size_t>(gpu)].numa;
    for (const auto& cpu : cpus_) {
      if (host_.devices[static_cast<std::size_t>(cpu.second)].numa == numa) return cpu.second;
    }
  }
  ++hidden_links_;
  return -1;
}

void Reader::add_gpu_links() {
  std::map<std::pair<int, int>, int> counts;
  LinkKind kind = LinkKind::kNvLink;
  double rate = 0;
  for (const Found& gpu : gpus_) {
    const int from = device_of_[gpu.pci.offset_debug()];
    for (const pugi::xml_node& link : gpu.node.children()) {
      const std::string_view name = link.name();
      if (name != "nvlink" && name != "xgmi") continue;
      if (name == "xgmi") kind = LinkKind::kXgmi;
      rate = std::max(rate, link_rate(gpu.node.attribute("sm").as_int(), gpu.node.attribute("gcn").as_int()));
      const int count = link.attribute("count").as_int();
      if (count < 1 || count > kMaxLinkCount) {
        note(fmt::format("a link of {} has count=\"{}\"; left out", host_.devices[static_cast<std::size_t>(from)].name,
                         link.attribute("count").as_string()), at(link));
        continue;
      }
      const int to = link_target(link, from);
      if (to >= 0) counts[{from, to}] += count;
      if (to >= 0 && host_.devices[static_cast<std::size_t>(to)].kind != DeviceKind::kGpu) counts[{to, from}] += count;
    }
  }
  int one_sided = 0;
  std::map<std::pair<int, int>, int> complete = counts;
  for (const auto& [ends, count] : counts) {
    if (complete.emplace(std::make_pair(ends.second, ends.first), count).second) ++one_sided;
  }
  if (one_sided > 0) note(fmt::format("{} GPU links are listed at one end only; taken for both directions", one_sided));
  for (const auto& [ends, count] : complete) {
    host_.links.push_back({ends.first, ends.second, kind, count,
                           specified(count * rate, std::string(kAssumed) + (kind == LinkKind::kXgmi ? "Infinity Fabric by GPU generation" : "NVLink by GPU generation"))});
  }
}

/// A switch whose uplink trained slower than a link below it.
void Reader::report_slow_uplinks() {
  int slow = 0;
  std::string first;
  for (const Link& up : host_.links) {
    if (up.kind != LinkKind::kPcie || host_.devices[static_cast<std::size_t>(up.from)].kind != DeviceKind::kPcieSwitch) continue;
    const bool towards_root = up.to > up.from ? false : true;
    if (!towards_root) continue;
    for (const Link& below : host_.links) {
      if (below.to != up.from || below.kind != LinkKind::kPcie || below.from == up.to) continue;
      const double own = up.bandwidth.effective();
      if (own > 0 && own * 1.01 < below.bandwidth.effective() && up.bandwidth.effective() < gbyte(10)) {
        ++slow;
        if (first.empty()) first = host_.devices[static_cast<std::size_t>(up.from)].name;
        break;
      }
    }
  }
  if (slow > 0) {
    note(fmt::format("{} switch uplinks are slower than the links below them (first: {}): power saving at rest looks the same; check under load",
                     slow, first));
  }
}

void Reader::report() {
  if (unknown_endpoints_ > 0) {
    note(fmt::format("{} PCI devices have no class that says what they are; left out", unknown_endpoints_));
  }
  if (unknown_links_ > 0) note(fmt::format("link speed of {} PCI devices not stated: PCIe 4.0 x16 assumed", unknown_links_));
  if (self_links_ > 0) note(fmt::format("{} NVLink entries point at their own GPU, so the partner is unknown; left out", self_links_));
  if (hidden_links_ > 0) note(fmt::format("{} GPU links lead to devices that are not in the file; left out", hidden_links_));
  if (gpus_.empty()) note("no GPU in the file: an overlay that NCCL completes on the host");
  else if (!gpu_elements_) note("no <gpu> elements: an overlay; GPUs recognised by PCI class, NVLink and GPU numbers not stated");
  report_slow_uplinks();
  const auto stated = [](const std::vector<Found>& found, int value) {
    int count = 0;
    for (const Found& entry : found) {
      const pugi::xml_attribute gdr = entry.node.attribute("gdr");
      if (gdr && gdr.as_int() == value) ++count;
    }
    return count;
  };
  std::vector<Found> cards;  // software interfaces never have it
  for (const Found& net : nets_) {
    if (std::string_view(net.node.parent().parent().name()) == "pci") cards.push_back(net);
  }
  const bool gpus_refuse = stated(gpus_, 0) > 0 && stated(gpus_, 1) == 0;
  const bool nics_refuse = stated(cards, 0) > 0 && stated(cards, 1) == 0;
  if (gpus_refuse || nics_refuse) {
    host_.gpudirect_rdma = false;
    note("GPUDirect RDMA is off (gdr=\"0\"): NIC traffic goes through host memory");
  }
}

void Reader::name_accelerator() {
  std::set<std::string> names;
  for (const Found& gpu : gpus_) {
    const auto number = [&gpu](const char* key) {
      const std::string text = lower(gpu.pci.attribute(key).as_string());
      return text.substr(0, 2) == "0x" ? text.substr(2) : text;
    };
    const std::string id = number("vendor") + ":" + number("device");
    const auto* found = std::find_if(kPciNames.begin(), kPciNames.end(), [&id](const PciName& entry) { return entry.id == id; });
    names.insert(found == kPciNames.end() ? std::string() : std::string(found->accelerator));
  }
  if (names.size() > 1) return note("GPUs of different kinds in one host");
  if (names.empty() || names.begin()->empty()) return;
  const Result<hardware::Accelerator> accelerator = hardware::find_accelerator(*names.begin());
  if (!accelerator) return;
  Result<Host> named = with_accelerator(host_, *accelerator);
  if (named) host_ = std::move(*named);
  else note(named.error().message);
}

Result<Host> Reader::read() {
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_buffer(text_.data(), text_.size());
  if (!parsed) {
    return fail(fmt::format("not well-formed XML: {}", lower(parsed.description())), position(parsed.offset),
                {"the file may be cut short; NCCL writes it whole with NCCL_TOPO_DUMP_FILE"});
  }
  const pugi::xml_node system = document.child("system");
  if (!system) {
    const std::string found = document.first_child() ? document.document_element().name() : "";
    return fail(fmt::format("the root element is <{}>, expected <system>", found), position(document.document_element().offset_debug()),
                {found == "graphs" ? "this is a graph dump (NCCL_GRAPH_DUMP_FILE); the topology comes from NCCL_TOPO_DUMP_FILE"
                                   : "expected NCCL topology XML (NCCL_TOPO_DUMP_FILE)"});
  }
  if (!system.child("cpu")) return fail("<system> holds no <cpu>, expected at least one", at(system));
  gpu_elements_ = !system.select_nodes(".//gpu").empty();
  for (const pugi::xml_node& cpu : system.children("cpu")) {
    TRY_INTO([[maybe_unused]] const bool ok, collect(cpu, 0));
  }
  add_gpus();
  add_nics();
  double sockets = 0;
  for (const pugi::xml_node& cpu : system.children("cpu")) {
    attach_cpu(cpu);
    const double rate = socket_rate(cpu);
    sockets = sockets == 0 ? rate : std::min(sockets, rate);
  }
  if (cpus_.size() > 64) return fail(fmt::format("{} <cpu> elements, expected at most 64", cpus_.size()), at(system));
  std::vector<int> cpus;
  for (const auto& cpu : cpus_) cpus.push_back(cpu.second);
  join_sockets(host_, cpus, sockets, "NCCL's estimate for this CPU model");
  add_gpu_links();
  report();
  name_accelerator();
  return std::move(host_);
}

}  // namespace

Result<Host> read_nccl_xml(std::string_view text, const std::string& file) { return Reader(text, file).read(); }

}  // namespace chokepoint::wiring
