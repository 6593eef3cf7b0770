// SPDX-License-Identifier: Apache-2.0
// libibverbs, by its documented C interface (ibv_query_device(3), ibv_query_port(3), ibv_query_gid(3)). The structures keep
// their layout within the library's major version; no header is needed. Answers read as `ibv_devinfo -v` prints them.
#include "library.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fmt/format.h>
#include <iterator>

namespace chokepoint::wiring {

namespace {

constexpr int kMostDevices = 256;
constexpr int kMostGids = 256;

struct VerbsDevice {  // ibv_device_attr
  std::array<char, 64> firmware{};
  std::array<std::uint8_t, 8> node_guid{};
  std::array<std::uint8_t, 8> system_guid{};
  std::uint64_t max_region = 0;
  std::uint64_t page_sizes = 0;
  std::uint32_t vendor = 0;
  std::uint32_t part = 0;
  std::uint32_t revision = 0;
  std::array<std::int32_t, 29> limits{};  // max_qp ... max_srq_sge
  std::uint16_t max_keys = 0;
  std::uint8_t ack_delay = 0;
  std::uint8_t ports = 0;
  std::array<char, 64> later{};           // what a newer library might add
};
struct VerbsPort {  // _compat_ibv_port_attr: what the exported function fills in
  std::int32_t state = 0;
  std::int32_t max_mtu = 0;
  std::int32_t active_mtu = 0;
  std::int32_t gids = 0;
  std::uint32_t capabilities = 0;
  std::uint32_t max_message = 0;
  std::uint32_t bad_keys = 0;
  std::uint32_t violations = 0;
  std::uint16_t keys = 0;
  std::uint16_t lid = 0;
  std::uint16_t manager_lid = 0;
  std::uint8_t lid_mask = 0;
  std::uint8_t lanes = 0;
  std::uint8_t service_level = 0;
  std::uint8_t timeout = 0;
  std::uint8_t reply = 0;
  std::uint8_t width = 0;
  std::uint8_t speed = 0;
  std::uint8_t physical = 0;
  std::uint8_t link_layer = 0;
  std::uint8_t flags = 0;
  std::array<char, 62> later{};
};
struct VerbsGid {  // ibv_gid_entry
  std::array<std::uint8_t, 16> raw{};
  std::uint32_t index = 0;
  std::uint32_t port = 0;
  std::uint32_t type = 0;       // 0 InfiniBand, 1 RoCE v1, 2 RoCE v2
  std::uint32_t interface = 0;
};

struct Verbs {
  void** (*list)(int*) = nullptr;
  void (*free_list)(void**) = nullptr;
  const char* (*name)(void*) = nullptr;
  void* (*open)(void*) = nullptr;
  int (*close)(void*) = nullptr;
  int (*device)(void*, VerbsDevice*) = nullptr;
  int (*port)(void*, std::uint8_t, VerbsPort*) = nullptr;
  int (*gid)(void*, std::uint8_t, int, std::array<std::uint8_t, 16>*) = nullptr;
  int (*gid_entry)(void*, std::uint32_t, std::uint32_t, VerbsGid*, std::uint32_t, std::size_t) = nullptr;

  bool find(Library& library) {
    const bool whole = library.find(list, "ibv_get_device_list") && library.find(free_list, "ibv_free_device_list") && library.find(name, "ibv_get_device_name") &&
                       library.find(open, "ibv_open_device") && library.find(close, "ibv_close_device") && library.find(device, "ibv_query_device") &&
                       library.find(port, "ibv_query_port") && library.find(gid, "ibv_query_gid");
    library.find(gid_entry, "_ibv_query_gid_ex");
    return whole;
  }
};

std::string_view state_name(int state) {
  static constexpr std::array<std::string_view, 6> kNames{"PORT_NOP", "PORT_DOWN", "PORT_INIT", "PORT_ARMED", "PORT_ACTIVE", "PORT_ACTIVE_DEFER"};
  return state >= 0 && state < static_cast<int>(kNames.size()) ? kNames[static_cast<std::size_t>(state)] : "unknown";
}
std::string_view physical_name(int state) {
  static constexpr std::array<std::string_view, 8> kNames{"NO_STATE_CHANGE", "SLEEP", "POLLING", "DISABLED", "PORT_CONFIGURATION_TRAINNING", "LINK_UP", "LINK_ERROR_RECOVERY", "PHY_TEST"};
  return state >= 0 && state < static_cast<int>(kNames.size()) ? kNames[static_cast<std::size_t>(state)] : "unknown";
}
int bytes_of_mtu(int code) { return code >= 1 && code <= 5 ? 128 << code : 0; }
int lanes_of(int width) { return width == 1 ? 1 : width == 2 ? 4 : width == 4 ? 8 : width == 8 ? 12 : width == 16 ? 2 : 0; }
/// Gb/s of one lane. Source: InfiniBand Architecture Specification, LinkSpeedActive and LinkSpeedExtActive.
double lane_rate(int speed) {
  switch (speed) {
    case 1: return 2.5;
    case 2: return 5;
    case 4:
    case 8: return 10;
    case 16: return 14;
    case 32: return 25;
    case 64: return 50;
    case 128: return 100;
    default: return 0;
  }
}

std::string guid_text(const std::array<std::uint8_t, 8>& guid) {
  std::string text;
  for (std::size_t i = 0; i < guid.size(); ++i) text += fmt::format("{}{:02x}", i > 0 && i % 2 == 0 ? ":" : "", guid[i]);
  return text;
}

class Writer {
 public:
  explicit Writer(const Verbs& verbs) : verbs_(verbs) {}

  /// False where the device answers nothing.
  bool write(void* device, const std::string& name) {
    void* context = verbs_.open(device);
    if (context == nullptr) return false;
    VerbsDevice attributes;
    const bool answered = verbs_.device(context, &attributes) == 0;
    if (answered) {
      attributes.firmware.back() = '\0';
      std::string firmware(attributes.firmware.data());
      std::erase_if(firmware, [](char c) { return static_cast<unsigned char>(c) < 0x21 || static_cast<unsigned char>(c) > 0x7e; });
      fmt::format_to(std::back_inserter(text), "hca_id:\t{}\n\tfw_ver:\t\t{}\n\tnode_guid:\t{}\n\tvendor_id:\t0x{:04x}\n\tvendor_part_id:\t{}\n\tphys_port_cnt:\t{}\n", name, firmware,
                     guid_text(attributes.node_guid), attributes.vendor, attributes.part, attributes.ports);
      for (int port = 1; port <= attributes.ports; ++port) write_port(context, static_cast<std::uint8_t>(port));
    }
    verbs_.close(context);
    return answered;
  }
  std::string text;

 private:
  void write_port(void* context, std::uint8_t number) {
    VerbsPort port;
    if (verbs_.port(context, number, &port) != 0) return;
    const auto out = std::back_inserter(text);
    const bool ethernet = port.link_layer == 2;
    fmt::format_to(out, "\t\tport:\t{}\n\t\t\tstate:\t\t{} ({})\n\t\t\tmax_mtu:\t{} ({})\n\t\t\tactive_mtu:\t{} ({})\n", number, state_name(port.state), port.state, bytes_of_mtu(port.max_mtu), port.max_mtu,
                   bytes_of_mtu(port.active_mtu), port.active_mtu);
    fmt::format_to(out, "\t\t\tsm_lid:\t\t{}\n\t\t\tport_lid:\t{}\n\t\t\tlink_layer:\t{}\n", port.manager_lid, port.lid, ethernet ? "Ethernet" : "InfiniBand");
    if (lanes_of(port.width) > 0 && lane_rate(port.speed) > 0) {
      fmt::format_to(out, "\t\t\tactive_width:\t{}X ({})\n\t\t\tactive_speed:\t{:.1f} Gbps ({})\n", lanes_of(port.width), port.width, lane_rate(port.speed), port.speed);
    }
    fmt::format_to(out, "\t\t\tphys_state:\t{} ({})\n", physical_name(port.physical), port.physical);
    for (int i = 0; i < std::clamp<int>(port.gids, 0, kMostGids); ++i) write_gid(context, number, i, ethernet);
  }

  void write_gid(void* context, std::uint8_t port, int index, bool ethernet) {
    VerbsGid entry;
    const bool typed = verbs_.gid_entry != nullptr && verbs_.gid_entry(context, port, static_cast<std::uint32_t>(index), &entry, 0, sizeof entry) == 0;
    if (!typed && verbs_.gid(context, port, index, &entry.raw) != 0) return;
    // The last eight bytes of an unused place are zero.
    if (std::all_of(entry.raw.begin() + 8, entry.raw.end(), [](std::uint8_t byte) { return byte == 0; })) return;
    std::string words;
    for (std::size_t i = 0; i < entry.raw.size(); ++i) words += fmt::format("{}{:02x}", i > 0 && i % 2 == 0 ? ":" : "", entry.raw[i]);
    const std::string_view kind = !typed || !ethernet ? "" : entry.type == 2 ? ", RoCE v2" : entry.type == 1 ? ", RoCE v1" : "";
    text += fmt::format("\t\t\tGID[{:3}]:\t{}{}\n", index, words, kind);
  }

  Verbs verbs_;
};

}  // namespace

Result<std::string> read_ibverbs() {
  TRY_INTO(Library library, Library::open({"libibverbs.so.1"}, "rdma-core (Debian: libibverbs1)"));
  Verbs verbs;
  if (!verbs.find(library)) return library.incomplete();
  int count = 0;
  void** list = verbs.list(&count);
  if (list == nullptr) return fail("libibverbs lists nothing", {}, {"is the kernel module ib_uverbs loaded?"});
  Writer writer(verbs);
  std::string silent;
  for (int i = 0; i < std::min(count, kMostDevices) && list[i] != nullptr; ++i) {
    const char* name = verbs.name(list[i]);
    const std::string known = name == nullptr ? "" : name;
    if (!writer.write(list[i], known)) silent += (silent.empty() ? "" : ", ") + known;
  }
  verbs.free_list(list);
  if (writer.text.empty() && silent.empty()) return fail("libibverbs shows no device");
  if (writer.text.empty()) return fail("cannot open " + silent, {}, {"it needs /dev/infiniband/uverbs* readable and writable"});
  return writer.text;
}

}  // namespace chokepoint::wiring
