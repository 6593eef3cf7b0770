// SPDX-License-Identifier: Apache-2.0
// Blocks begin with an address at the line's start; everything indented belongs to the block. The tree form draws
// branches with "+-", "\-" and "[bus]": the column of a branch says which bus a line goes on from.
#include <chokepoint/wiring/lspci.hpp>

#include "scan.hpp"

#include <chokepoint/base/text.hpp>

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace chokepoint::wiring {

namespace {

constexpr std::size_t kMaxFunctions = 1 << 16;
constexpr int kMaxNuma = 63;
constexpr int kMaxEndpoints = 1024;

/// "06:00.0", "0000:06:00.0" at the beginning of a word.
bool is_address(std::string_view word) {
  const std::size_t dot = word.find('.');
  if (dot == std::string_view::npos || dot + 2 != word.size() || word.find(':') == std::string_view::npos) return false;
  return !pci_address(word).empty() && dot >= 5;
}

/// "Speed 16GT/s (downgraded), Width x8 (ok)".
std::optional<PciLinkState> link_state(std::string_view text, int line) {
  const auto speed = after(text, "Speed ");
  const auto width = after(text, "Width x");
  if (!speed || !width) return std::nullopt;
  PciLinkState state;
  state.transfers_per_s = leading_number(*speed).value_or(0.0) * 1e9;
  state.width = std::clamp(leading_int(*width).value_or(0), 0, 64);
  state.speed_downgraded = contains(speed->substr(0, speed->find(',')), "downgraded");
  state.width_downgraded = contains(width->substr(0, width->find(',')), "downgraded");
  state.line = line;
  return state;
}

struct RoleWord {
  std::string_view word;
  PciRole role;
};
/// Source: class names of the PCI ID repository (classes 02, 03, 06, 12).
constexpr std::array<RoleWord, 9> kClasses{{{"3D controller", PciRole::kGpu},
                                            {"VGA compatible controller", PciRole::kGpu},
                                            {"Display controller", PciRole::kGpu},
                                            {"Processing accelerators", PciRole::kGpu},
                                            {"Infiniband controller", PciRole::kNic},
                                            {"InfiniBand controller", PciRole::kNic},
                                            {"Ethernet controller", PciRole::kNic},
                                            {"Fabric controller", PciRole::kNic},
                                            {"PCI bridge", PciRole::kBridge}}};

PciRole role_of(const PciFunction& function) {
  const bool nvidia = contains(function.text, "NVIDIA") || function.ids.substr(0, 5) == "10de:";
  const bool amd = contains(function.text, "AMD") || function.ids.substr(0, 5) == "1002:";
  if (nvidia && (function.class_text == "Bridge" || contains(function.text, "NVSwitch"))) return PciRole::kNvSwitch;
  for (const RoleWord& entry : kClasses) {
    if (function.class_text.substr(0, entry.word.size()) != entry.word) continue;
    // Consoles of management controllers are no accelerators.
    if (entry.role == PciRole::kGpu && !nvidia && !amd && entry.word != "Processing accelerators") return PciRole::kOther;
    return entry.role;
  }
  if (!function.class_text.empty()) return PciRole::kOther;
  if (nvidia && !contains(function.text, "udio") && !contains(function.text, "USB")) return PciRole::kGpu;
  if (contains(function.text, "Mellanox") || contains(function.text, "ConnectX")) return PciRole::kNic;
  return PciRole::kOther;
}

class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}
  Result<PciListing> read(std::string_view text);

 private:
  void header(std::string_view line, int number);
  void detail(std::string_view content, int number);
  bool tree_line(std::string_view line, int number);
  void find_parents();
  void leave_out_virtual_functions();

  struct Branch {
    std::size_t column;
    int domain;
    int bus;
    int parent;
  };

  std::string file_;
  PciListing listing_;
  std::vector<Branch> branches_;
};

/// "06:00.0 3D controller [0302]: NVIDIA Corporation Device [10de:2bb5] (rev a1)".
void Reader::header(std::string_view line, int number) {
  PciFunction function;
  const std::size_t blank = line.find(' ');
  function.bus_id = pci_address(line.substr(0, blank));
  function.line = number;
  std::string_view rest = blank == std::string_view::npos ? std::string_view() : line.substr(blank + 1);
  const std::size_t colon = rest.find(": ");
  if (colon != std::string_view::npos) {
    std::string_view name = rest.substr(0, colon);
    if (const std::size_t bracket = name.find(" ["); bracket != std::string_view::npos) name = name.substr(0, bracket);
    function.class_text = std::string(trim(name));
    rest = rest.substr(colon + 2);
  }
  function.text = std::string(trim(rest));
  for (std::size_t at = rest.find('['); at != std::string_view::npos; at = rest.find('[', at + 1)) {
    const auto inside = between(rest.substr(at), "[", "]");
    if (inside && inside->size() == 9 && (*inside)[4] == ':' && to_hex(inside->substr(0, 4)) && to_hex(inside->substr(5))) function.ids = std::string(*inside);
  }
  function.role = role_of(function);
  listing_.functions.push_back(std::move(function));
}

void Reader::detail(std::string_view content, int number) {
  PciFunction& function = listing_.functions.back();
  if (content.substr(0, 7) == "LnkCap:") function.capability = link_state(content, number);
  if (content.substr(0, 7) == "LnkSta:") function.state = link_state(content, number);
  if (content.substr(0, 7) == "ACSCtl:") {
    function.access = PciAccessControl{contains(content, "ReqRedir+"), contains(content, "CmpltRedir+"), contains(content, "UpstreamFwd+"), number};
  }
  if (content.substr(0, 10) == "NUMA node:") function.numa = std::min(leading_int(content.substr(10)).value_or(0), kMaxNuma);
  if (content.substr(0, 14) == "Physical Slot:") function.slot = std::string(trim(content.substr(14)));
  if (content.substr(0, 4) == "Bus:") {
    const auto bus = [&content](std::string_view mark) -> std::optional<int> {
      const auto rest = after(content, mark);
      const auto value = rest ? to_hex(rest->substr(0, rest->find_first_of(", "))) : std::nullopt;
      return value && *value <= 0xff ? std::optional<int>(static_cast<int>(*value)) : std::nullopt;
    };
    function.secondary_bus = bus("secondary=");
    function.subordinate_bus = bus("subordinate=");
  }
  if (content.substr(0, 13) == "Capabilities:" && contains(content, "Express")) {
    for (const std::string_view type : {"Root Port", "Upstream Port", "Downstream Port", "Legacy Endpoint", "Endpoint"}) {
      if (contains(content, type)) {
        function.port_type = std::string(type);
        break;
      }
    }
  }
}

/// One line of `lspci -t`: true when it was one.
bool Reader::tree_line(std::string_view line, int number) {
  std::size_t at = line.find_first_not_of(" |");
  if (at == std::string_view::npos) return false;
  Branch now{at, -1, -1, -1};
  if (line.substr(at, 2) == "-[" || line.substr(at, 3) == "+-[" || line.substr(at, 3) == "\\-[") {
    const std::size_t open = line.find('[', at);
    const std::string_view inside = line.substr(open + 1, line.find(']', open) - open - 1);
    const std::size_t colon = inside.find(':');
    if (colon != std::string_view::npos) {
      const auto domain = to_hex(inside.substr(0, colon));
      const auto bus = to_hex(inside.substr(colon + 1, 2));
      if (!domain || !bus) return false;
      now = {0, static_cast<int>(*domain & 0xffffff), static_cast<int>(*bus), -1};
      branches_.clear();
      at = line.find(']', open) + 1;
    }
  }
  if (now.bus < 0) {
    if (line[at] != '+' && line[at] != '\\') return false;
    const auto found = std::find_if(branches_.begin(), branches_.end(), [at](const Branch& branch) { return branch.column == at; });
    if (found == branches_.end()) return false;
    now = *found;
    branches_.erase(std::next(found), branches_.end());
  }
  while (at < line.size()) {
    if (line[at] == '+') {
      branches_.push_back({at, now.domain, now.bus, now.parent});
      ++at;
    } else if (line[at] == '-' || line[at] == '\\') {
      ++at;
    } else if (line[at] == '[') {
      const std::size_t close = line.find(']', at);
      const auto bus = to_hex(line.substr(at + 1, 2));
      if (close == std::string_view::npos || !bus || listing_.functions.empty()) return true;
      PciFunction& bridge = listing_.functions.back();
      bridge.secondary_bus = static_cast<int>(*bus);
      bridge.role = PciRole::kBridge;
      now.bus = static_cast<int>(*bus);
      now.parent = static_cast<int>(listing_.functions.size()) - 1;
      at = close + 1;
    } else {
      const std::string_view word = line.substr(at, 4);
      if (word.size() < 4 || word[2] != '.') return true;
      PciFunction function;
      function.bus_id = pci_address(fmt::format("{:04x}:{:02x}:{}", now.domain, now.bus, word));
      function.parent = now.parent;
      function.line = number;
      at += 4;
      if (function.bus_id.empty()) return true;
      if (at >= line.size() || line[at] == ' ') function.text = std::string(trim(line.substr(at)));
      function.role = role_of(function);
      listing_.functions.push_back(std::move(function));
      if (at >= line.size() || line[at] == ' ') return true;
    }
  }
  return true;
}

void Reader::find_parents() {
  for (std::size_t i = 0; i < listing_.functions.size(); ++i) {
    PciFunction& function = listing_.functions[i];
    if (function.parent >= 0) continue;
    for (std::size_t j = 0; j < listing_.functions.size(); ++j) {
      const PciFunction& bridge = listing_.functions[j];
      if (i != j && bridge.secondary_bus && *bridge.secondary_bus == function.bus() && bridge.domain() == function.domain() && *bridge.secondary_bus != 0) {
        function.parent = static_cast<int>(j);
        break;
      }
    }
  }
}

/// Beside its physical functions a card's virtual ones are no further NICs; in a virtual machine they are all there is.
void Reader::leave_out_virtual_functions() {
  const auto is_virtual = [](const PciFunction& function) { return contains(function.text, "Virtual Function"); };
  const bool physical = std::any_of(listing_.functions.begin(), listing_.functions.end(), [&](const PciFunction& function) { return function.role == PciRole::kNic && !is_virtual(function); });
  const bool rdma = std::any_of(listing_.functions.begin(), listing_.functions.end(), [&](const PciFunction& function) {
    return function.role == PciRole::kNic && !is_virtual(function) && contains(function.text, "Mellanox");
  });
  int left_out = 0;
  for (PciFunction& function : listing_.functions) {
    if (function.role != PciRole::kNic || !is_virtual(function) || !(contains(function.text, "Mellanox") ? rdma : physical)) continue;
    function.role = PciRole::kOther;
    ++left_out;
  }
  if (left_out > 0) listing_.notes.push_back({fmt::format("{} virtual functions are not counted as NICs", left_out), {file_, 0, 0}});
}

Result<PciListing> Reader::read(std::string_view text) {
  int number = 0;
  for (const std::string_view line : split_lines(text)) {
    ++number;
    if (listing_.functions.size() >= kMaxFunctions) return fail("more than 65,536 PCI functions", {file_, number, 0}, {"this cannot be one host"});
    if (trim(line).empty()) continue;
    const bool drawn = line.find("-[") != std::string_view::npos || line.find("+-") != std::string_view::npos || line.find("\\-") != std::string_view::npos;
    if (is_address(line.substr(0, line.find(' ')))) header(line, number);
    else if (drawn && (listing_.tree || listing_.functions.empty()) && tree_line(line, number)) listing_.tree = true;
    else if (!listing_.functions.empty() && indent_of(line) > 0) detail(trim(line), number);
  }
  if (listing_.functions.empty()) return fail("no PCI address at the beginning of a line", {file_, 0, 0}, {"save the output of `lspci -vvv`"});
  if (listing_.functions.size() <= 4096) find_parents();
  leave_out_virtual_functions();
  if (listing_.count(PciRole::kGpu) + listing_.count(PciRole::kNic) > kMaxEndpoints) return fail("more than 1,024 GPUs and NICs", {file_, 0, 0}, {"this cannot be one host"});
  for (const PciFunction& function : listing_.functions) listing_.verbose = listing_.verbose || function.state.has_value();
  if (!listing_.verbose) listing_.notes.push_back({"no link states in the file; `lspci -vvv` as root shows what each link trained at", {file_, 0, 0}});
  return std::move(listing_);
}

}  // namespace

int PciFunction::domain() const { return static_cast<int>(to_hex(bus_id.substr(0, bus_id.find(':'))).value_or(0) & 0xffffff); }
int PciFunction::bus() const {
  const std::size_t colon = bus_id.find(':');
  return colon == std::string::npos ? 0 : static_cast<int>(to_hex(bus_id.substr(colon + 1, 2)).value_or(0));
}

int PciListing::count(PciRole role) const {
  return static_cast<int>(std::count_if(functions.begin(), functions.end(), [role](const PciFunction& f) { return f.role == role; }));
}

Result<PciListing> read_lspci(std::string_view text, const std::string& file) { return Reader(file).read(text); }

}  // namespace chokepoint::wiring
