// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>
#include <chokepoint/base/text.hpp>
#include <chokepoint/base/units.hpp>
#include <chokepoint/wiring/describe.hpp>
#include <chokepoint/wiring/wiring.hpp>
#include <cmath>

namespace chokepoint::wiring {
namespace {

using hardware::Accelerator;
using hardware::Architecture;
using hardware::GpuInterconnect;

constexpr int kMaxHosts = 1 << 20;
constexpr int kMaxGpusPerHost = 64;
/// Chips of one TPU pod, the largest set that ICI joins. Source: Google Cloud TPU v4 page (v5p: 8,960, Ironwood: 9,216).
constexpr int kTpuPodChips = 4096;
/// GPUs of one rack-scale NVLink domain. Source: NVIDIA GB200 NVL72 data sheet: 18 compute trays of 4 GPUs.
constexpr int kNvl72Gpus = 72;
/// Chips of one TPU host (VM) and what its NIC carries. Source: Google Cloud TPU v5p page: four chips a host, 200 Gb/s,
/// 50 Gb/s of data-center network per chip.
constexpr int kTpuHostChips = 4;
constexpr double kTpuHostGbit = 200;
/// Hosts with several NICs have at least this many GPUs (4 in HPC nodes, 8 in HGX boards).
constexpr int kUsualGpusPerHost = 4;

bool has(std::string_view text, std::string_view word) { return text.find(word) != std::string_view::npos; }

void assume(std::vector<Note>& notes, std::string text) { notes.push_back(Note{"assumed: " + std::move(text), {}}); }

/// Lower-case runs of letters and digits.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (std::isalnum(u) != 0) {
      words.back() += static_cast<char>(std::tolower(u));
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

/// "a100-sxm4-80gb" -> "a100"; "rtx-4090" -> "rtx4090": the words up to the first with two digits.
std::string family_of(const std::vector<std::string>& words, std::size_t& used) {
  std::string family;
  used = 0;
  for (const std::string& word : words) {
    family += word;
    ++used;
    const auto digits = std::count_if(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    if (digits >= 2) break;
  }
  return family;
}

bool names_family(const std::vector<std::string>& words, const std::string& family) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string joined;
    for (std::size_t j = i; j < words.size() && joined.size() < family.size(); ++j) {
      joined += words[j];
      if (joined == family) return true;
    }
  }
  return false;
}

/// How well the words fit a catalogue name of the same family: named variants count, unnamed ones count against.
int variant_score(const std::vector<std::string>& words, const std::vector<std::string>& variants, bool prefer_pcie) {
  bool form_named = false;
  for (const std::string& word : words) {
    if (word.starts_with("sxm") || word.starts_with("pci") || word == "nvl") form_named = true;
  }
  int score = 0;
  for (const std::string& variant : variants) {
    for (const std::string& word : words) {
      if (word == variant) {
        score += 4;
      } else if (word.size() >= 3 && variant.size() >= 3 && (word.starts_with("sxm") || word.starts_with("pci")) &&
                 word.substr(0, 3) == variant.substr(0, 3)) {
        score += 3;
      } else if (word.ends_with("gb") && variant.ends_with("gb")) {
        const int said = to_int(word.substr(0, word.size() - 2)).value_or(0);
        const int has_gb = to_int(variant.substr(0, variant.size() - 2)).value_or(0);
        if (std::abs(said - has_gb) * 5 < has_gb) score += 3;  // 80 and 94 GB editions of one part
      }
    }
    if (!form_named && prefer_pcie && variant.starts_with("pci")) score += 2;
    if (!form_named && !prefer_pcie && variant.starts_with("sxm")) score += 2;
    if (form_named && variant.starts_with("pci") &&
        std::none_of(words.begin(), words.end(), [](const std::string& w) { return w.starts_with("pci"); })) {
      score -= 3;
    }
  }
  return score;
}

/// The number that ends right before `end`, with an optional fraction; blanks between are skipped.
std::optional<double> number_before(std::string_view text, std::size_t end) {
  while (end > 0 && text[end - 1] == ' ') --end;
  std::size_t begin = end;
  while (begin > 0 && (std::isdigit(static_cast<unsigned char>(text[begin - 1])) != 0 || text[begin - 1] == '.')) --begin;
  return begin == end ? std::nullopt : to_number(text.substr(begin, end - begin));
}

/// First "<number> <unit>" in the text, as a network rate in bytes per second.
std::optional<double> rate_in(std::string_view text) {
  for (std::size_t i = 1; i < text.size(); ++i) {
    const char unit = text[i];
    if (unit != 'g' && unit != 't') continue;
    const std::string_view rest = text.substr(i + 1);
    const bool ends = rest.empty() || std::isalpha(static_cast<unsigned char>(rest[0])) == 0;
    if (!ends && !rest.starts_with("b")) continue;  // 100g, 100gb, 100gbe, 100gbps, 100gbit, 2 tb/s
    const auto value = number_before(text, i);
    if (!value || *value <= 0) continue;
    return gbit(unit == 't' ? *value * 1000 : *value);
  }
  return std::nullopt;
}

struct NamedRate {
  std::string_view word;
  double gbit_per_s;
};
/// Line rates that a name alone gives. Sources: InfiniBand Trade Association roadmap (4x links); Cray Slingshot-11 and
/// Intel Omni-Path 100 series product briefs. Longer names first.
constexpr std::array<NamedRate, 10> kNamedRates{{{"hdr100", 100}, {"hdr200", 200}, {"ndr200", 200}, {"ndr400", 400},
                                                  {"xdr", 800}, {"ndr", 400}, {"hdr", 200}, {"edr", 100},
                                                  {"slingshot", 200}, {"omni-path", 100}}};

/// NICs before an "x", and their rate right after it: "8xHDR200", "4 x 100G", "4x ConnectX-6".
struct Count {
  int nics = 0;
  std::optional<double> bytes_per_s;
};
Count count_in(std::string_view text) {
  for (std::size_t i = 1; i + 1 < text.size(); ++i) {
    if (text[i] != 'x') continue;
    const auto count = number_before(text, i);
    if (!count || *count < 1 || *count > 64 || *count != std::floor(*count)) continue;
    const std::string_view rest = text.substr(i + 1);
    const std::size_t digits = rest.find_first_not_of("0123456789. ");
    Count found{static_cast<int>(*count), std::nullopt};
    if (digits != std::string_view::npos && digits > 0) found.bytes_per_s = rate_in(rest.substr(0, digits + 3));
    return found;
  }
  return {};
}

topology::Transport transport_in(std::string_view text) {
  using topology::Transport;
  const bool sockets = has(text, "tcp") || has(text, "socket");
  if (sockets || has(text, "no infiniband")) return Transport::kTcp;
  if (has(text, "efa")) return Transport::kEfa;
  if (has(text, "roce")) return Transport::kRoce;
  if (has(text, "omni") || has(text, "opa")) return Transport::kOmniPath;
  if (has(text, "slingshot")) return Transport::kSlingshot;
  for (const std::string& word : words_of(text)) {
    if (word == "ib" || word == "infiniband" || word.ends_with("edr") || has(word, "hdr") || has(word, "ndr")) {
      return Transport::kInfiniBand;
    }
  }
  if (has(text, "rdma")) return Transport::kRoce;
  return has(text, "ethernet") || has(text, "gbe") ? Transport::kTcp : Transport::kInfiniBand;
}

/// NICs of the speed class that one x16 slot of the generation feeds. Source: PCIe 3.0/4.0/5.0/6.0 x16 payload 15.75,
/// 31.5, 63, 121 GB/s against 100, 200, 400, 800 Gb/s ports.
double nic_class_bytes_per_s(int pcie_generation) {
  return gbit(100.0 * std::pow(2.0, std::clamp(pcie_generation, 3, 6) - 3));
}

/// Fills what the words leave open about the NICs.
void complete(InterWords& inter, const Accelerator& accelerator, int gpus, std::vector<Note>& notes) {
  const double usual = nic_class_bytes_per_s(accelerator.pcie_generation);
  if (inter.nics > 0 && inter.per_gpu) inter.nics *= gpus;
  if (inter.nics == 0 && inter.nic_bytes_per_s > 0 && inter.host_bytes_per_s > 0) {
    inter.nics = std::max(1, static_cast<int>(std::lround(inter.host_bytes_per_s / inter.nic_bytes_per_s)));
  }
  if (inter.nics > 0 && inter.nic_bytes_per_s <= 0) {
    inter.nic_bytes_per_s = inter.host_bytes_per_s > 0 ? inter.host_bytes_per_s / inter.nics : usual;
    assume(notes, "NICs of " + format_rate(inter.nic_bytes_per_s) + " (speed not stated)");
  }
  if (inter.nics == 0 && inter.host_bytes_per_s > 0) {
    const double total = inter.host_bytes_per_s * (inter.per_gpu ? gpus : 1);
    inter.nics = std::max(1, static_cast<int>(std::lround(total / usual)));
    inter.nic_bytes_per_s = total / inter.nics;
    if (inter.nics > 1) assume(notes, std::to_string(inter.nics) + " NICs share the stated rate of a host");
  }
  if (inter.nics == 0) {
    inter.nics = gpus;
    inter.nic_bytes_per_s = usual;
    assume(notes, "one NIC of " + format_rate(usual) + " per GPU (network not stated)");
  }
}

/// A job on a part of a host's GPUs reaches the NICs beside them, as many as their slots feed; the others stay idle.
void leave_idle_nics(InterWords& inter, const Accelerator& accelerator, int gpus, std::vector<Note>& notes) {
  const auto slot = hardware::pcie_bytes_per_s(std::clamp(accelerator.pcie_generation, 3, 6), 16);
  if (!slot || inter.per_gpu || inter.nics <= gpus || gpus >= kUsualGpusPerHost) return;
  const int per_gpu = std::max(1, static_cast<int>(*slot / inter.nic_bytes_per_s));
  if (per_gpu * gpus >= inter.nics) return;
  inter.nics = per_gpu * gpus;
  assume(notes, std::to_string(inter.nics) + " of the NICs of a host serve its " + std::to_string(gpus) + " GPUs in use");
}

/// PCIe switches (or, without any, root complexes) in the order of the GPUs below them.
std::vector<int> attachment_points(const topology::Host& host) {
  std::vector<int> points;
  for (const int gpu : host.gpus()) {
    for (const topology::Link& link : host.links) {
      if (link.from != gpu || link.kind != topology::LinkKind::kPcie) continue;
      if (std::find(points.begin(), points.end(), link.to) == points.end()) points.push_back(link.to);
    }
  }
  return points;
}

/// Spreads the NICs evenly over the PCIe switches; fewer NICs than switches sit under the first of each run of switches.
Result<bool> attach_nics(topology::Host& host, const InterWords& inter, int generation) {
  const std::vector<int> points = attachment_points(host);
  if (points.empty()) return fail("no PCIe attachment for the NICs in the described host");
  // A slot carries the NIC: its width in lanes does not matter as long as it is at least the line rate.
  TRY_INTO(const double slot, hardware::pcie_bytes_per_s(std::clamp(generation, 3, 6), 16));
  const auto count = static_cast<std::size_t>(inter.nics);
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t at = i * points.size() / count;
    if (inter.cross_numa) at = (at + points.size() / 2) % points.size();
    topology::Device nic;
    nic.kind = topology::DeviceKind::kNic;
    nic.name = "NIC" + std::to_string(i);
    nic.numa = host.devices[static_cast<std::size_t>(points[at])].numa;
    nic.line_bytes_per_s = inter.nic_bytes_per_s;
    const int device = host.add_device(nic);
    topology::Bandwidth bandwidth;
    bandwidth.specified_bytes_per_s = slot;
    bandwidth.origin = "assumed: PCIe " + std::to_string(generation) + ".0 x16 slot";
    host.add_duplex(points[at], device, topology::LinkKind::kPcie, 16, bandwidth);
  }
  return true;
}

hardware::HostTemplate host_template(const Accelerator& accelerator, const IntraWords& intra, int gpus) {
  hardware::HostTemplate host;
  host.name = "described";
  host.accelerator = accelerator.name;
  host.gpus = gpus;
  host.interconnect = intra.interconnect;
  host.links_per_pair = intra.links_per_pair;
  host.sockets = gpus >= 4 ? 2 : 1;
  host.nvlink_domain_hosts = intra.nvlink_domain_hosts;
  // SXM boards up to Ampere put two GPUs behind a PCIe switch, later ones one (DGX-1, DGX A100, DGX H100 user guides).
  const bool board = accelerator.nvlinks > 0 && intra.interconnect != GpuInterconnect::kNone &&
                     intra.interconnect != GpuInterconnect::kBridgePairs;
  const bool older = accelerator.architecture == Architecture::kVolta || accelerator.architecture == Architecture::kAmpere;
  host.gpus_per_pcie_switch = !board ? 0 : (older && gpus >= 2 ? 2 : 1);
  if (intra.gpus_per_pcie_switch >= 0) host.gpus_per_pcie_switch = intra.gpus_per_pcie_switch;
  host.source = "described in words";
  return host;
}

/// Words that set another number of NVLinks than the data sheet: the links of the graph follow.
void set_links_per_gpu(topology::Host& host, const Accelerator& accelerator, int links_per_gpu) {
  for (topology::Link& link : host.links) {
    if (link.kind != topology::LinkKind::kNvLink || accelerator.nvlinks == 0) continue;
    link.width = links_per_gpu;
    link.bandwidth.specified_bytes_per_s = links_per_gpu * accelerator.nvlink_bytes_per_s;
  }
}

/// One or two GeForce cards sit in a desktop: two channels of memory instead of a server's six to eight.
/// Source: JEDEC DDR4-3200 and DDR5-5600, 8 bytes a channel and transfer.
void set_desktop_memory(topology::Host& host, const Accelerator& accelerator, int gpus, std::vector<Note>& notes) {
  if (accelerator.pcie_peer_to_peer || gpus > 2) return;
  const double bytes_per_s = 2 * 8 * (accelerator.pcie_generation >= 5 ? 5600e6 : 3200e6);
  for (topology::Link& link : host.links) {
    if (link.kind == topology::LinkKind::kMemory) link.bandwidth.specified_bytes_per_s = bytes_per_s;
  }
  assume(notes, "a desktop with two memory channels (" + format_rate(bytes_per_s) + ")");
}

}  // namespace

Result<Accelerator> accelerator_from_words(std::string_view text, std::string_view hint, std::vector<Note>& notes) {
  const std::string whole(trim(text));
  const std::vector<std::string> words = words_of(whole);
  const std::string lower_hint = lower(hint);
  const bool prefer_pcie = has(lower_hint, "pcie") && !has(lower_hint, "nvswitch");
  if (auto exact = hardware::find_accelerator(whole)) {
    // An alias without a board form means the usual board; words about PCIe say that it is the other one.
    const bool form_open = !has(lower(whole), "sxm") && has(exact->name, "sxm");
    if (!prefer_pcie || !form_open) return *exact;
  }
  const Accelerator* best = nullptr;
  int best_score = 0;
  for (const Accelerator& candidate : hardware::accelerators()) {
    const std::vector<std::string> name = words_of(candidate.name);
    std::size_t used = 0;
    if (!names_family(words, family_of(name, used))) continue;
    const int score = variant_score(words, {name.begin() + static_cast<std::ptrdiff_t>(used), name.end()}, prefer_pcie);
    if (best == nullptr || score > best_score) {
      best = &candidate;
      best_score = score;
    }
  }
  if (best == nullptr) {
    return fail("accelerator '" + whole + "' is not in the catalogue", {}, {"`chokepoint accelerators` lists the known ones"});
  }
  notes.push_back(Note{"accelerator '" + whole + "' read as " + best->name, {}});
  return *best;
}

IntraWords intra_from_words(std::string_view text, const Accelerator& accelerator, int gpus, std::vector<Note>& notes) {
  const std::string words = lower(text);
  IntraWords intra;
  if (const auto at = words.find("pcie"); at != std::string::npos) {
    for (std::size_t i = at + 4; i < words.size() && i < at + 6; ++i) {
      if (words[i] >= '1' && words[i] <= '6') intra.pcie_generation = words[i] - '0';
    }
  }
  if (has(words, "no switch") || has(words, "root port")) intra.gpus_per_pcie_switch = 0;
  if (has(words, "per switch")) intra.gpus_per_pcie_switch = std::max(1, gpus / 2);
  intra.peer_to_peer_denied = has(words, "no p2p");
  intra.peer_to_peer_granted = !intra.peer_to_peer_denied && has(words, "p2p");
  for (const std::string& word : words_of(words)) {
    if (word.starts_with("nv") && word.size() <= 4) {
      if (const auto links = to_int(std::string_view(word).substr(2)); links && *links > 1) intra.links_per_gpu = *links;
    }
  }
  if (gpus < 2) return intra;
  const bool nvl72 = has(words, "nvl72");
  const bool said = has(words, "nvlink") || has(words, "mesh") || has(words, "nvswitch") || has(words, "nvl") || has(words, "infinity") || has(words, "xgmi") ||
                    has(words, "ici ");
  const bool off = has(words, "not in use") || has(words, "disabled");
  const bool silent = trim(words).empty() || has(words, "not stated") || words == "none";
  const bool board = accelerator.nvlinks > 0 && !has(lower(accelerator.name), "pcie") && !has(lower(accelerator.name), "nvl");
  if (off || accelerator.nvlinks == 0 || (!said && !(silent && board))) return intra;
  if (silent && !said) assume(notes, "the NVLink wiring usual for " + accelerator.name);
  if (accelerator.architecture == Architecture::kTpu) {
    // The torus carries rings at the sum of a chip's links, as a switch would.
    intra.interconnect = GpuInterconnect::kNvSwitch;
    if (!has(words, "slice")) intra.nvlink_domain_hosts = std::max(1, kTpuPodChips / gpus);
    return intra;
  }
  const bool amd = accelerator.vendor == "AMD" || accelerator.architecture == Architecture::kCdna2 ||
                   accelerator.architecture == Architecture::kCdna3;
  if (amd) {
    intra.interconnect = accelerator.architecture == Architecture::kCdna2 ? GpuInterconnect::kMi250xMesh : GpuInterconnect::kFullMesh;
    intra.links_per_pair = 1;
  } else if (board && (has(words, "mesh") || (accelerator.architecture == Architecture::kVolta && gpus == 8 && !has(words, "nvswitch")))) {
    // Before "pairs": people also tell of the pairs of the mesh that have no link.
    intra.interconnect = GpuInterconnect::kHybridCubeMesh;
    intra.links_per_pair = 1;
  } else if (has(words, "bridge") || has(words, "pairs") || !board) {
    intra.interconnect = GpuInterconnect::kBridgePairs;
    intra.links_per_pair = accelerator.nvlinks;
  } else if (!has(words, "nvswitch") && !nvl72 && gpus <= 4 &&
             (has(words, "connected") || accelerator.architecture <= Architecture::kAmpere)) {
    intra.interconnect = GpuInterconnect::kFullMesh;
    // Boards of four divide the links of a GPU over its three peers, also when fewer GPUs take part.
    intra.links_per_pair = std::max(1, accelerator.nvlinks / 3);
  } else {
    intra.interconnect = GpuInterconnect::kNvSwitch;
    if (said && !has(words, "nvswitch") && !nvl72) assume(notes, "NVSwitch between the GPUs of a host");
  }
  if (nvl72) intra.nvlink_domain_hosts = std::max(1, kNvl72Gpus / gpus);
  return intra;
}

InterWords inter_from_words(std::string_view text, std::vector<Note>& notes) {
  const std::string words = lower(text);
  InterWords inter;
  inter.transport = transport_in(words);
  const Count count = count_in(words);
  inter.nics = count.nics;
  const auto rate = rate_in(words);
  // "100 Gb/s per node" is a host's rate, "100GbE" and "4x100G" that of one NIC; a name ("HDR") is always a NIC's.
  const bool of_host = has(words, "per node") || has(words, "per host") || (rate && *rate > gbit(800));
  for (const NamedRate& named : kNamedRates) {
    if (inter.nic_bytes_per_s <= 0 && has(words, named.word)) inter.nic_bytes_per_s = gbit(named.gbit_per_s);
  }
  if (count.bytes_per_s) {
    inter.nic_bytes_per_s = *count.bytes_per_s;
  } else if (rate && count.nics == 0 && !of_host) {
    inter.nics = 1;
    inter.nic_bytes_per_s = *rate;
  } else if (rate && inter.nic_bytes_per_s <= 0 && count.nics > 0 && *rate <= gbit(400)) {
    inter.nic_bytes_per_s = *rate;
  } else if (rate && of_host) {
    inter.host_bytes_per_s = *rate;
  }
  if (has(words, "dual-port") && inter.nic_bytes_per_s > 0) inter.nic_bytes_per_s *= 2;
  const bool fabric_of_its_own = has(words, "slingshot") || (has(words, "infiniband") && !has(words, "no infiniband")) || has(words, "ipoib") || has(words, "omni");
  if (inter.transport == topology::Transport::kTcp && fabric_of_its_own) {
    // Sockets over the IP layer of such a fabric: the ring's process of each GPU drives one kernel stream of 1.17 GB/s in
    // published logs (1, 2 and 4 GPUs a host reach 1.2, 2.1 and 4.2), whatever the wire.
    constexpr double kOneStream_bytes_per_s = 1.173e9;
    inter.stream_bytes_per_s = kOneStream_bytes_per_s;
    assume(notes, "sockets over the fabric's IP layer: one stream of 1.2 GB/s for each GPU");
  }
  inter.per_gpu = has(words, "per gpu") && !has(words, "per node");
  inter.cross_numa = has(words, "cross numa") || has(words, "other numa");
  inter.without_gpudirect = has(words, "no gdr") || inter.transport == topology::Transport::kTcp ||
                            inter.transport == topology::Transport::kOmniPath;
  inter.says_nothing = inter.nics == 0 && inter.nic_bytes_per_s <= 0 && inter.host_bytes_per_s <= 0;
  if (inter.says_nothing && has(words, "ethernet")) {
    inter.nics = 1;
    inter.nic_bytes_per_s = gbit(25);
    assume(notes, "one 25 Gb/s Ethernet port per host (speed not stated)");
  }
  return inter;
}

namespace {

Result<topology::Cluster> host_of_impossible_size(int gpus, int hosts) {
  return fail("a cluster of " + std::to_string(hosts) + " hosts with " + std::to_string(gpus) + " GPUs", {},
              {"expected 1 to " + std::to_string(kMaxGpusPerHost) + " GPUs in a host"});
}

/// TPUs: `chips` of one slice (or of one host, when the hosts make up a slice together), joined by a torus; slices meet
/// over the data-center network. A slice is one NVLink-like domain of hosts with four chips.
Result<topology::Cluster> slices_from_words(const Accelerator& accelerator, int chips, int count, const std::string& intra,
                                            const std::string& inter, topology::Cluster cluster) {
  const bool hosts_are_slices = chips > 2 * kTpuHostChips || has(inter, "slice");
  int per_host = std::min(chips, kTpuHostChips);
  while (chips % per_host != 0) --per_host;
  const int hosts_of_slice = hosts_are_slices ? std::max(1, chips / per_host) : std::max(1, chips / per_host * count);
  const int slices = hosts_are_slices ? count : 1;
  IntraWords words;
  words.interconnect = accelerator.nvlinks > 0 ? GpuInterconnect::kNvSwitch : GpuInterconnect::kNone;
  words.nvlink_domain_hosts = hosts_of_slice;
  TRY_INTO(topology::Host host, build_host(host_template(accelerator, words, per_host)));
  host.nvlink_domain_hosts = hosts_of_slice;
  host.torus_dimensions = has(intra, "2d") ? 2 : has(intra, "3d") ? 3 : accelerator.nvlinks / 2;
  host.gpudirect_rdma = false;
  if (hosts_of_slice * slices > 1) {
    InterWords nic;
    nic.nics = 1;
    nic.nic_bytes_per_s = gbit(kTpuHostGbit);
    nic.transport = topology::Transport::kRoce;
    if (slices > 1) assume(cluster.notes, "200 Gb/s of data-center network per host of four chips");
    TRY_INTO([[maybe_unused]] const bool attached, attach_nics(host, nic, accelerator.pcie_generation));
    cluster.fabric.kind = topology::FabricKind::kFatTree;
    cluster.fabric.transport = nic.transport;
    cluster.fabric.origin = inter;
  }
  cluster.name = std::to_string(slices) + " slices of " + std::to_string(hosts_of_slice * per_host) + " " + accelerator.name;
  cluster.hosts.push_back(topology::HostGroup{std::move(host), hosts_of_slice * slices});
  return cluster;
}

}  // namespace

Result<topology::Cluster> cluster_from_words(std::string_view accelerator_text, int gpus, int hosts,
                                             std::string_view intra_link, std::string_view inter_link) {
  if (gpus < 1 || gpus > kMaxHosts || hosts < 1 || hosts > kMaxHosts) return host_of_impossible_size(gpus, hosts);
  topology::Cluster cluster;
  TRY_INTO(const Accelerator accelerator, accelerator_from_words(accelerator_text, intra_link, cluster.notes));
  if (accelerator.architecture == Architecture::kTpu) {
    return slices_from_words(accelerator, gpus, hosts, lower(intra_link), lower(inter_link), std::move(cluster));
  }
  if (gpus > kMaxGpusPerHost) return host_of_impossible_size(gpus, hosts);
  const IntraWords intra = intra_from_words(intra_link, accelerator, gpus, cluster.notes);
  TRY_INTO(topology::Host host, build_host(host_template(accelerator, intra, gpus)));
  host.peer_to_peer = intra.peer_to_peer_granted || (accelerator.pcie_peer_to_peer && !intra.peer_to_peer_denied);
  host.nvlink_domain_hosts = intra.nvlink_domain_hosts;
  if (!host.peer_to_peer) set_desktop_memory(host, accelerator, gpus, cluster.notes);
  if (intra.links_per_gpu > 0 && intra.interconnect == GpuInterconnect::kNvSwitch) {
    set_links_per_gpu(host, accelerator, intra.links_per_gpu);
  }
  if (hosts > 1) {
    InterWords inter = inter_from_words(inter_link, cluster.notes);
    complete(inter, accelerator, gpus, cluster.notes);
    leave_idle_nics(inter, accelerator, gpus, cluster.notes);
    // GeForce drivers refuse peer memory to NICs as they do to other cards.
    host.gpudirect_rdma = accelerator.pcie_peer_to_peer && !inter.without_gpudirect;
    TRY_INTO([[maybe_unused]] const bool attached, attach_nics(host, inter, accelerator.pcie_generation));
    cluster.fabric.kind = topology::FabricKind::kFatTree;
    cluster.fabric.transport = inter.transport;
    cluster.fabric.origin = std::string(inter_link);
    if (inter.stream_bytes_per_s > 0) {
      cluster.fabric.node_measured_bytes_per_s = std::min(gpus * inter.stream_bytes_per_s, inter.nics * inter.nic_bytes_per_s);
    }
  }
  cluster.name = std::to_string(hosts) + " x " + std::to_string(gpus) + " " + accelerator.name;
  cluster.hosts.push_back(topology::HostGroup{std::move(host), hosts});
  return cluster;
}

}  // namespace chokepoint::wiring
