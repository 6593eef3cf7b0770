// SPDX-License-Identifier: Apache-2.0
// libibverbs for tests: mlx5_0, one active InfiniBand port of 4 lanes at 100 Gb/s; mlx5_1, one active Ethernet port of
// 4 lanes at 25 Gb/s with packets of 1,024 bytes and two GIDs; mlx5_2, which does not open. CHOKEPOINT_FAKE=crash.
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

struct Gid {
  std::uint8_t raw[16];
  std::uint32_t index, port, type, interface;
};

int kDevices[3] = {0, 1, 2};

int index_of(void* device) { return *static_cast<int*>(device); }

/// A field of a structure that the library fills in, by its offset in the documented layout.
template <class Value>
void put(void* to, std::size_t offset, Value value) {
  std::memcpy(static_cast<char*>(to) + offset, &value, sizeof value);
}

}  // namespace

extern "C" {
void** ibv_get_device_list(int* count) {
  const char* fault = std::getenv("CHOKEPOINT_FAKE");
  if (fault != nullptr && std::strcmp(fault, "crash") == 0) std::abort();
  static void* list[4] = {&kDevices[0], &kDevices[1], &kDevices[2], nullptr};
  *count = 3;
  return list;
}
void ibv_free_device_list(void**) {}
const char* ibv_get_device_name(void* device) {
  static const char* const kNames[3] = {"mlx5_0", "mlx5_1", "mlx5_2"};
  return kNames[index_of(device)];
}
void* ibv_open_device(void* device) { return index_of(device) == 2 ? nullptr : device; }
int ibv_close_device(void*) { return 0; }
int ibv_query_device(void* context, void* attributes) {
  std::strcpy(static_cast<char*>(attributes), "28.39.1002");
  put<std::uint8_t>(attributes, 64, 0xb8);
  put<std::uint8_t>(attributes, 71, static_cast<std::uint8_t>(index_of(context)));
  put<std::uint32_t>(attributes, 96, 0x02c9);  // vendor_id
  put<std::uint32_t>(attributes, 100, 4129);   // vendor_part_id
  put<std::uint8_t>(attributes, 227, 1);       // phys_port_cnt
  return 0;
}
int ibv_query_port(void* context, std::uint8_t, void* attributes) {
  const bool ethernet = index_of(context) == 1;
  put<std::int32_t>(attributes, 0, 4);                  // PORT_ACTIVE
  put<std::int32_t>(attributes, 4, 5);                  // 4,096
  put<std::int32_t>(attributes, 8, ethernet ? 3 : 5);
  put<std::int32_t>(attributes, 12, 4);                 // places for GIDs
  put<std::uint16_t>(attributes, 34, 7);                // lid
  put<std::uint8_t>(attributes, 43, 2);                 // 4 lanes
  put<std::uint8_t>(attributes, 44, ethernet ? 32 : 128);
  put<std::uint8_t>(attributes, 45, 5);                 // LINK_UP
  put<std::uint8_t>(attributes, 46, ethernet ? 2 : 1);
  return 0;
}
int ibv_query_gid(void*, std::uint8_t, int, void*) { return -1; }
int _ibv_query_gid_ex(void* context, std::uint32_t, std::uint32_t index, Gid* entry, std::uint32_t, std::size_t) {
  if (index > 1) return 61;
  entry->raw[0] = 0xfe;
  entry->raw[1] = 0x80;
  entry->raw[15] = 9;
  entry->type = index_of(context) == 0 ? 0 : index + 1;
  return 0;
}
}
