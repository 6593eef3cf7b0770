// SPDX-License-Identifier: Apache-2.0
// ROCm SMI for tests: four GPUs on two NUMA nodes, xGMI inside each pair.
#include <cstddef>
#include <cstdint>
#include <cstring>

extern "C" {

int rsmi_init(std::uint64_t) { return 0; }
int rsmi_shut_down() { return 0; }
int rsmi_num_monitor_devices(std::uint32_t* count) {
  *count = 4;
  return 0;
}
int rsmi_dev_name_get(std::uint32_t, char* text, std::size_t length) {
  std::strncpy(text, "AMD Instinct MI210", length);
  return 0;
}
int rsmi_topo_get_numa_node_number(std::uint32_t gpu, std::uint32_t* node) {
  *node = gpu / 2;
  return 0;
}
int rsmi_topo_get_link_weight(std::uint32_t a, std::uint32_t b, std::uint64_t* weight) {
  *weight = a / 2 == b / 2 ? 15 : 72;
  return 0;
}
int rsmi_topo_get_link_type(std::uint32_t a, std::uint32_t b, std::uint64_t* hops, int* type) {
  *hops = a / 2 == b / 2 ? 1 : 3;
  *type = a / 2 == b / 2 ? 2 : 1;
  return 0;
}
}
