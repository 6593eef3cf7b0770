// SPDX-License-Identifier: Apache-2.0
// libibnetdisc walks an InfiniBand subnet with management datagrams; what it finds is written as ibnetdiscover writes it.
// Its structures come from its header, so a build without the header cannot do this and says so.
#include "library.hpp"

#if __has_include(<infiniband/ibnetdisc.h>)
#define CHOKEPOINT_IBNETDISC 1
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wconversion"
#include <infiniband/ibnetdisc.h>
#pragma GCC diagnostic pop
#endif

#include <algorithm>
#include <chokepoint/base/text.hpp>
#include <cstdint>
#include <cstdlib>
#include <fmt/format.h>
#include <iterator>
#include <set>

namespace chokepoint::wiring {

#ifndef CHOKEPOINT_IBNETDISC

Result<std::string> read_ibnetdisc(const std::vector<std::string>&) {
  return fail("this build cannot ask libibnetdisc", {}, {"install libibnetdisc-dev and libibmad-dev and build again, or give the output of ibnetdiscover"});
}

#else

namespace {

struct Calls {
  ibnd_fabric_t* (*discover)(char*, int, ib_portid_t*, ibnd_config*) = nullptr;
  void (*destroy)(ibnd_fabric_t*) = nullptr;
  std::uint32_t (*field)(void*, int, MAD_FIELDS) = nullptr;
};

/// Values of PortInfo. Source: InfiniBand Architecture Specification, volume 1, PortInfo.
std::string_view width_name(unsigned active) {
  switch (active) {
    case 1: return "1x";
    case 2: return "4x";
    case 4: return "8x";
    case 8: return "12x";
    case 16: return "2x";
    default: return "";
  }
}
std::string_view speed_name(unsigned speed, unsigned extended) {
  switch (extended) {
    case 1: return "FDR";
    case 2: return "EDR";
    case 4: return "HDR";
    case 8: return "NDR";
    default: break;
  }
  switch (speed) {
    case 1: return "SDR";
    case 2: return "DDR";
    case 4: return "QDR";
    default: return "";
  }
}

std::string id_of(const ibnd_node_t& node) { return fmt::format("{}-{:016x}", node.type == IB_NODE_SWITCH ? "S" : node.type == IB_NODE_ROUTER ? "R" : "H", node.guid); }

/// The description field is text of a device's firmware: 64 bytes, not always ended, anything in it.
std::string description(const ibnd_node_t& node) {
  std::string text;
  for (const char c : node.nodedesc) {
    if (c == '\0') break;
    text += static_cast<unsigned char>(c) < 0x20 || c == '"' ? ' ' : c;
  }
  return std::string(trim(text));
}

class Writer {
 public:
  explicit Writer(const Calls& calls) : calls_(calls) {}

  /// Adds the nodes that no earlier discovery saw.
  void add(const ibnd_fabric_t& fabric) {
    std::vector<ibnd_node_t*> nodes;
    for (ibnd_node_t* node = fabric.nodes; node != nullptr; node = node->next) nodes.push_back(node);
    std::sort(nodes.begin(), nodes.end(), [](const ibnd_node_t* a, const ibnd_node_t* b) { return std::pair(a->type != IB_NODE_SWITCH, a->guid) < std::pair(b->type != IB_NODE_SWITCH, b->guid); });
    for (ibnd_node_t* node : nodes) {
      if (seen_.insert({node->type, node->guid}).second) write(*node);
    }
  }
  bool knows_port(std::uint64_t guid) const { return ports_.count(guid) != 0; }
  std::string text;

 private:
  unsigned value(void* info, MAD_FIELDS which) const { return calls_.field(info, 0, which); }

  std::string rate(ibnd_node_t& node, ibnd_port_t& port) const {
    constexpr unsigned kExtendedSpeeds = 1U << 14;  // capability mask, of port 0 on a switch
    void* capable = node.type == IB_NODE_SWITCH && node.ports[0] != nullptr ? node.ports[0]->info : port.info;
    const bool extended = (value(capable, IB_PORT_CAPMASK_F) & kExtendedSpeeds) != 0;
    return fmt::format("{}{}", width_name(value(port.info, IB_PORT_LINK_WIDTH_ACTIVE_F)),
                       speed_name(value(port.info, IB_PORT_LINK_SPEED_ACTIVE_F), extended ? value(port.info, IB_PORT_LINK_SPEED_EXT_ACTIVE_F) : 0));
  }

  void write(ibnd_node_t& node) {
    const bool is_switch = node.type == IB_NODE_SWITCH;
    const auto out = std::back_inserter(text);
    fmt::format_to(out, "\n{}guid=0x{:x}\n{}\t{} \"{}\"\t\t# \"{}\"\n", is_switch ? "switch" : "ca", node.guid, is_switch ? "Switch" : "Ca", node.numports, id_of(node), description(node));
    for (int number = 1; node.ports != nullptr && number <= node.numports; ++number) {
      ibnd_port_t* port = node.ports[number];
      if (port == nullptr) continue;
      ports_.insert(port->guid);
      if (port->remoteport == nullptr || port->remoteport->node == nullptr) continue;
      const ibnd_node_t& far = *port->remoteport->node;
      fmt::format_to(out, "[{}]\t\"{}\"[{}]\t\t# \"{}\" lid {} {}\n", number, id_of(far), port->remoteport->portnum, description(far),
                     far.type == IB_NODE_SWITCH ? far.smalid : port->remoteport->base_lid, rate(node, *port));
    }
  }

  Calls calls_;
  std::set<std::pair<int, std::uint64_t>> seen_;
  std::set<std::uint64_t> ports_;
};

/// "mlx5_0:1:0x0002c903...": adapter, port, the port's GUID where it is known.
struct Start {
  std::string adapter;
  int port = 0;
  std::uint64_t guid = 0;
};

Start start_of(const std::string& word) {
  const std::vector<std::string_view> parts = split(word, ':');
  Start start;
  start.adapter = std::string(parts.empty() ? std::string_view() : parts[0]);
  if (parts.size() > 1) start.port = to_int(parts[1]).value_or(0);
  if (parts.size() > 2 && parts[2].size() > 2) start.guid = std::strtoull(std::string(parts[2]).c_str(), nullptr, 16);
  return start;
}

}  // namespace

Result<std::string> read_ibnetdisc(const std::vector<std::string>& ports) {
  TRY_INTO(Library discovery, Library::open({"libibnetdisc.so.5", "libibnetdisc.so"}, "rdma-core (Debian: libibnetdisc5)"));
  TRY_INTO(Library datagrams, Library::open({"libibmad.so.5", "libibmad.so"}, "rdma-core (Debian: libibmad5)"));
  Calls calls;
  if (!discovery.find(calls.discover, "ibnd_discover_fabric") || !discovery.find(calls.destroy, "ibnd_destroy_fabric")) return discovery.incomplete();
  if (!datagrams.find(calls.field, "mad_get_field")) return datagrams.incomplete();
  Writer writer(calls);
  std::vector<Start> starts;
  for (const std::string& word : ports) starts.push_back(start_of(word));
  if (starts.empty()) starts.emplace_back();
  bool any = false;
  for (Start& start : starts) {
    if (start.guid != 0 && writer.knows_port(start.guid)) continue;  // the same subnet as an earlier port's
    ibnd_config config{};
    ibnd_fabric_t* fabric = calls.discover(start.adapter.empty() ? nullptr : start.adapter.data(), start.port, nullptr, &config);
    if (fabric == nullptr) continue;
    any = true;
    writer.add(*fabric);
    calls.destroy(fabric);
  }
  if (!any) return fail("no answer from an InfiniBand subnet", {}, {"it needs an active port, and /dev/infiniband/umad* readable: root, or the group of that file"});
  return "# Topology file: as ibnetdiscover writes it\n" + writer.text;
}

#endif

}  // namespace chokepoint::wiring
