// SPDX-License-Identifier: Apache-2.0
// NVML and ROCm SMI, by their documented C interfaces (NVML API reference; rocm_smi_lib's rocm_smi.h). No header of either
// is needed: the few structures are written out here with the layout that their versions keep.
#include "library.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fmt/format.h>
#include <iterator>
#include <optional>

namespace chokepoint::wiring {

namespace {

constexpr unsigned kMostGpus = 256;
constexpr unsigned kMostLinks = 18;  // NVML_NVLINK_MAX_LINKS

struct NvmlPci {  // nvmlPciInfo_t, version 3
  std::array<char, 16> legacy_bus_id{};
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned device = 0;
  unsigned device_id = 0;
  unsigned subsystem_id = 0;
  std::array<char, 32> bus_id{};
};
struct NvmlField {  // nvmlFieldValue_t
  unsigned field = 0;
  unsigned scope = 0;
  long long timestamp = 0;
  long long latency_us = 0;
  int type = 0;
  int result = 0;
  std::uint64_t value = 0;  // a union of 8 bytes; unsigned values lie in the lower four
};
struct NvmlFabric {  // nvmlGpuFabricInfo_t
  std::array<unsigned char, 16> cluster{};
  int status = 0;
  unsigned clique = 0;
  unsigned char state = 0;
};
struct NvmlUse {  // nvmlUtilization_t
  unsigned gpu = 0;
  unsigned memory = 0;
};

template <std::size_t N>
std::string text_of(const std::array<char, N>& buffer) {
  const std::string_view all(buffer.data(), N);
  std::string text(all.substr(0, all.find('\0')));
  for (char& c : text) c = static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  return text;
}

using Device = void*;

/// Functions that every driver has are required; later ones may be missing, then what they tell is left out.
struct Nvml {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_text)(int) = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*device)(unsigned, Device*) = nullptr;
  int (*name)(Device, char*, unsigned) = nullptr;
  int (*uuid)(Device, char*, unsigned) = nullptr;
  int (*pci)(Device, NvmlPci*) = nullptr;
  int (*driver)(char*, unsigned) = nullptr;
  int (*generation_max)(Device, unsigned*) = nullptr;
  int (*generation)(Device, unsigned*) = nullptr;
  int (*width_max)(Device, unsigned*) = nullptr;
  int (*width)(Device, unsigned*) = nullptr;
  int (*performance_state)(Device, int*) = nullptr;
  int (*use)(Device, NvmlUse*) = nullptr;
  int (*slowdowns)(Device, unsigned long long*) = nullptr;
  int (*fabric)(Device, NvmlFabric*) = nullptr;
  int (*link_state)(Device, unsigned, unsigned*) = nullptr;
  int (*link_pci)(Device, unsigned, NvmlPci*) = nullptr;
  int (*link_type)(Device, unsigned, int*) = nullptr;
  int (*fields)(Device, int, NvmlField*) = nullptr;

  bool find(Library& library) {
    const bool whole = library.find(init, "nvmlInit_v2") && library.find(shutdown, "nvmlShutdown") && library.find(error_text, "nvmlErrorString") &&
                       library.find(count, "nvmlDeviceGetCount_v2") && library.find(device, "nvmlDeviceGetHandleByIndex_v2") &&
                       library.find(name, "nvmlDeviceGetName") && library.find(uuid, "nvmlDeviceGetUUID") && library.find(pci, "nvmlDeviceGetPciInfo_v3");
    library.find(driver, "nvmlSystemGetDriverVersion");
    library.find(generation_max, "nvmlDeviceGetMaxPcieLinkGeneration");
    library.find(generation, "nvmlDeviceGetCurrPcieLinkGeneration");
    library.find(width_max, "nvmlDeviceGetMaxPcieLinkWidth");
    library.find(width, "nvmlDeviceGetCurrPcieLinkWidth");
    library.find(performance_state, "nvmlDeviceGetPerformanceState");
    library.find(use, "nvmlDeviceGetUtilizationRates");
    library.find(slowdowns, "nvmlDeviceGetCurrentClocksThrottleReasons");
    library.find(fabric, "nvmlDeviceGetGpuFabricInfo");
    library.find(link_state, "nvmlDeviceGetNvLinkState");
    library.find(link_pci, "nvmlDeviceGetNvLinkRemotePciInfo_v2");
    library.find(link_type, "nvmlDeviceGetNvLinkRemoteDeviceType");
    library.find(fields, "nvmlDeviceGetFieldValues");
    return whole;
  }
};

/// The value, where the driver has the function and the device answers.
template <class Value>
std::optional<Value> asked(int (*function)(Device, Value*), Device device) {
  Value value{};
  if (function == nullptr || function(device, &value) != 0) return std::nullopt;
  return value;
}

std::string or_none(const std::optional<unsigned>& value, std::string_view after = "") { return value ? fmt::format("{}{}", *value, after) : "N/A"; }

struct NvmlReader {
  Nvml nvml;
  std::string query;
  std::string links;

  void gpu(unsigned index, Device device) {
    std::array<char, 96> name{};
    std::array<char, 96> uuid{};
    NvmlPci pci;
    nvml.name(device, name.data(), name.size());
    nvml.uuid(device, uuid.data(), uuid.size());
    nvml.pci(device, &pci);
    const auto out = std::back_inserter(query);
    fmt::format_to(out, "GPU {}\n    Product Name : {}\n    GPU UUID : {}\n    PCI\n        Device Id : 0x{:08X}\n", text_of(pci.bus_id), text_of(name), text_of(uuid), pci.device_id);
    fmt::format_to(out, "        GPU Link Info\n            PCIe Generation\n                Max : {}\n                Current : {}\n", or_none(asked(nvml.generation_max, device)), or_none(asked(nvml.generation, device)));
    fmt::format_to(out, "            Link Width\n                Max : {}\n                Current : {}\n", or_none(asked(nvml.width_max, device), "x"), or_none(asked(nvml.width, device), "x"));
    if (const auto state = asked(nvml.performance_state, device); state && *state >= 0 && *state < 16) fmt::format_to(out, "    Performance State : P{}\n", *state);
    slowdowns(device);
    if (const auto use = asked(nvml.use, device)) fmt::format_to(out, "    Utilization\n        Gpu : {} %\n", use->gpu);
    if (const auto fabric = asked(nvml.fabric, device); fabric && fabric->state != 0) {
      fmt::format_to(out, "    Fabric\n        State : {}\n        Status : {}\n", fabric->state == 3 ? "Completed" : fabric->state == 2 ? "In Progress" : "Not Started",
                     fabric->status == 0 ? "Success" : nvml.error_text(fabric->status));
    }
    nvlinks(index, device, text_of(name), text_of(uuid));
  }

  /// Bits of nvmlClocksThrottleReason*, those that hold a GPU back.
  void slowdowns(Device device) {
    const auto bits = asked(nvml.slowdowns, device);
    if (!bits) return;
    query += "    Clocks Event Reasons\n";
    const std::array<std::pair<unsigned long long, std::string_view>, 5> kReasons{{{0x4, "SW Power Cap"}, {0x8, "HW Slowdown"}, {0x20, "SW Thermal Slowdown"}, {0x40, "HW Thermal Slowdown"}, {0x80, "HW Power Brake Slowdown"}}};
    for (const auto& [bit, reason] : kReasons) query += fmt::format("        {} : {}\n", reason, (*bits & bit) != 0 ? "Active" : "Not Active");
  }

  void nvlinks(unsigned index, Device device, const std::string& name, const std::string& uuid) {
    constexpr unsigned kSpeedOfLinks = 90;  // NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON, MB/s of one link and direction
    if (nvml.link_state == nullptr) return;
    NvmlField speed;
    speed.field = kSpeedOfLinks;
    const bool known = nvml.fields != nullptr && nvml.fields(device, 1, &speed) == 0 && speed.result == 0;
    const double gbytes = known ? static_cast<double>(speed.value & 0xffffffffU) / 1e3 : 0;
    std::string lines;
    for (unsigned link = 0; link < kMostLinks; ++link) {
      unsigned active = 0;
      if (nvml.link_state(device, link, &active) != 0) continue;
      lines += active != 0 && gbytes > 0 ? fmt::format("\t Link {}: {:.3f} GB/s{}\n", link, gbytes, far_end(device, link)) : fmt::format("\t Link {}: <inactive>\n", link);
    }
    if (!lines.empty()) links += fmt::format("GPU {}: {} (UUID: {})\n{}", index, name, uuid, lines);
  }

  std::string far_end(Device device, unsigned link) const {
    constexpr int kSwitch = 2;  // NVML_NVLINK_DEVICE_TYPE_SWITCH
    int type = -1;
    if (nvml.link_type != nullptr && nvml.link_type(device, link, &type) == 0 && type == kSwitch) return " to NVSwitch";
    NvmlPci pci;
    if (nvml.link_pci == nullptr || nvml.link_pci(device, link, &pci) != 0) return "";
    return " to " + text_of(pci.bus_id);
  }
};

}  // namespace

Result<std::string> read_nvml() {
  TRY_INTO(Library library, Library::open({"libnvidia-ml.so.1"}, "NVIDIA's driver"));
  NvmlReader reader;
  if (!reader.nvml.find(library)) return library.incomplete();
  if (const int error = reader.nvml.init(); error != 0) return fail(fmt::format("NVML does not start: {}", reader.nvml.error_text(error)), {}, {"nvidia-smi says the same; check that the driver is loaded"});
  unsigned count = 0;
  const int counted = reader.nvml.count(&count);
  std::array<char, 96> driver{};
  if (reader.nvml.driver != nullptr) reader.nvml.driver(driver.data(), driver.size());
  int error = counted;
  for (unsigned i = 0; i < std::min(count, kMostGpus); ++i) {
    Device device = nullptr;
    if (const int lost = reader.nvml.device(i, &device); lost != 0) error = lost;
    else reader.gpu(i, device);
  }
  const std::string why = error == 0 ? "" : reader.nvml.error_text(error);
  reader.nvml.shutdown();
  if (reader.query.empty()) return fail(why.empty() ? "NVML shows no GPU" : "NVML shows no GPU: " + why);
  const std::string head = fmt::format("==============NVSMI LOG==============\n\nDriver Version : {}\nAttached GPUs : {}\n", text_of(driver), count);
  return head + reader.query + reader.links;
}

namespace {

struct RocmSmi {
  int (*init)(std::uint64_t) = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(std::uint32_t*) = nullptr;
  int (*name)(std::uint32_t, char*, std::size_t) = nullptr;
  int (*numa)(std::uint32_t, std::uint32_t*) = nullptr;
  int (*weight)(std::uint32_t, std::uint32_t, std::uint64_t*) = nullptr;
  int (*link)(std::uint32_t, std::uint32_t, std::uint64_t*, int*) = nullptr;
};

struct RocmPair {
  std::uint64_t weight = 0;
  std::uint64_t hops = 0;
  int type = 0;  // RSMI_IO_LINK_TYPE: 1 PCIe, 2 xGMI
};

template <class Cell>
std::string square(std::string_view title, std::uint32_t count, Cell cell) {
  std::string text = fmt::format("==== {} ====\n      ", title);
  for (std::uint32_t j = 0; j < count; ++j) text += fmt::format(" GPU{:<8}", j);
  for (std::uint32_t i = 0; i < count; ++i) {
    text += fmt::format("\nGPU{:<4}", i);
    for (std::uint32_t j = 0; j < count; ++j) text += fmt::format(" {:<11}", i == j ? std::string("0") : cell(i, j));
  }
  return text + "\n\n";
}

std::string rocm_text(const RocmSmi& smi, std::uint32_t count) {
  std::vector<RocmPair> pairs(static_cast<std::size_t>(count) * count);
  std::string names;
  std::string nodes;
  for (std::uint32_t i = 0; i < count; ++i) {
    std::array<char, 256> name{};
    if (smi.name(i, name.data(), name.size() - 1) == 0) names += fmt::format("GPU[{}] : Card Series: {}\n", i, text_of(name));
    std::uint32_t numa = 0;
    if (smi.numa(i, &numa) == 0) nodes += fmt::format("GPU[{}] : (Topology) Numa Node: {}\n", i, numa);
    for (std::uint32_t j = 0; j < count; ++j) {
      RocmPair& pair = pairs[static_cast<std::size_t>(i) * count + j];
      if (i == j) continue;
      smi.weight(i, j, &pair.weight);
      smi.link(i, j, &pair.hops, &pair.type);
    }
  }
  const auto at = [&](std::uint32_t i, std::uint32_t j) { return pairs[static_cast<std::size_t>(i) * count + j]; };
  return "==== ROCm System Management Interface ====\n" + names + square("Weight between two GPUs", count, [&](auto i, auto j) { return std::to_string(at(i, j).weight); }) +
         square("Hops between two GPUs", count, [&](auto i, auto j) { return std::to_string(at(i, j).hops); }) +
         square("Link Type between two GPUs", count, [&](auto i, auto j) { return std::string(at(i, j).type == 2 ? "XGMI" : "PCIE"); }) + "==== Numa Nodes ====\n" + nodes + "==== End of ROCm SMI Log ====\n";
}

}  // namespace

Result<std::string> read_rocm_smi() {
  TRY_INTO(Library library, Library::open({"librocm_smi64.so.7", "librocm_smi64.so.6", "librocm_smi64.so.5", "librocm_smi64.so.1", "librocm_smi64.so"}, "ROCm (rocm-smi-lib)"));
  RocmSmi smi;
  const bool whole = library.find(smi.init, "rsmi_init") && library.find(smi.shutdown, "rsmi_shut_down") && library.find(smi.count, "rsmi_num_monitor_devices") &&
                     library.find(smi.name, "rsmi_dev_name_get") && library.find(smi.numa, "rsmi_topo_get_numa_node_number") &&
                     library.find(smi.weight, "rsmi_topo_get_link_weight") && library.find(smi.link, "rsmi_topo_get_link_type");
  if (!whole) return library.incomplete();
  if (const int error = smi.init(0); error != 0) return fail(fmt::format("ROCm SMI does not start: code {}", error), {}, {"check that the driver amdgpu is loaded and /dev/kfd is readable"});
  std::uint32_t count = 0;
  const int error = smi.count(&count);
  std::string text = error == 0 && count > 0 ? rocm_text(smi, std::min(count, kMostGpus)) : "";
  smi.shutdown();
  if (text.empty()) return fail("ROCm SMI shows no GPU");
  return text;
}

}  // namespace chokepoint::wiring
