// SPDX-License-Identifier: Apache-2.0
// A driver's library for tests: two GPUs at 0000:03:00.0 and 0000:04:00.0, joined by two NVLinks (a third is down), the
// second GPU in half its lanes. CHOKEPOINT_FAKE=crash|hang|lost: a sick driver.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

struct Pci {  // nvmlPciInfo_t
  char legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
struct Field {  // nvmlFieldValue_t
  unsigned field, scope;
  long long timestamp, latency_us;
  int type, result;
  std::uint64_t value;
};

const char* const kBusIds[2] = {"00000000:03:00.0", "00000000:04:00.0"};
int kHandles[2] = {0, 1};

bool sick(const char* how) {
  const char* word = std::getenv("CHOKEPOINT_FAKE");
  return word != nullptr && std::strcmp(word, how) == 0;
}
int index_of(void* device) { return *static_cast<int*>(device); }

void fill(Pci* pci, int index) {
  std::memset(pci, 0, sizeof *pci);
  std::strncpy(pci->bus_id, kBusIds[index], sizeof pci->bus_id - 1);
  pci->device_id = 0x233010de;
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
  if (sick("crash")) std::abort();
  while (sick("hang")) ::pause();
  return sick("lost") ? 9 : 0;
}
int nvmlShutdown() { return 0; }
const char* nvmlErrorString(int code) { return code == 9 ? "Driver Not Loaded" : "Not Supported"; }
int nvmlSystemGetDriverVersion(char* text, unsigned length) {
  std::strncpy(text, "570.0", length);
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = &kHandles[index];
  return 0;
}
int nvmlDeviceGetName(void*, char* text, unsigned length) {
  std::strncpy(text, "NVIDIA H100 80GB HBM3", length);
  return 0;
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned length) {
  std::strncpy(text, index_of(device) == 0 ? "GPU-aaaaaaaa-0000-0000-0000-000000000000" : "GPU-aaaaaaaa-0000-0000-0000-000000000001", length);
  return 0;
}
int nvmlDeviceGetPciInfo_v3(void* device, Pci* pci) {
  fill(pci, index_of(device));
  return 0;
}
int nvmlDeviceGetMaxPcieLinkGeneration(void*, unsigned* value) {
  *value = 5;
  return 0;
}
int nvmlDeviceGetCurrPcieLinkGeneration(void*, unsigned* value) {
  *value = 5;
  return 0;
}
int nvmlDeviceGetMaxPcieLinkWidth(void*, unsigned* value) {
  *value = 16;
  return 0;
}
int nvmlDeviceGetCurrPcieLinkWidth(void* device, unsigned* value) {
  *value = index_of(device) == 0 ? 16 : 8;
  return 0;
}
int nvmlDeviceGetPerformanceState(void*, int* state) {
  *state = 0;
  return 0;
}
int nvmlDeviceGetNvLinkState(void*, unsigned link, unsigned* active) {
  *active = link < 2 ? 1 : 0;
  return link < 3 ? 0 : 2;
}
int nvmlDeviceGetNvLinkRemoteDeviceType(void*, unsigned, int* type) {
  *type = 0;  // a GPU
  return 0;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void* device, unsigned, Pci* pci) {
  fill(pci, 1 - index_of(device));
  return 0;
}
int nvmlDeviceGetFieldValues(void*, int count, Field* fields) {
  for (int i = 0; i < count; ++i) {
    fields[i].result = fields[i].field == 90 ? 0 : 3;
    fields[i].value = 26562;
  }
  return 0;
}
}
