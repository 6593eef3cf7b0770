// SPDX-License-Identifier: Apache-2.0
// NVIDIA's driver for tests: memory is the host's, a stream is a thread that works off what it is given, in order.
// CHOKEPOINT_FAKE_GPUS: how many GPUs it shows.
#include "fake_cuda.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

namespace {

class Stream {
 public:
  Stream() : thread_([this] { work(); }) { thread_.detach(); }
  void give(std::function<void()> task) {
    const std::lock_guard<std::mutex> lock(mutex_);
    tasks_.push_back(std::move(task));
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return tasks_.empty(); });
  }

 private:
  void work() {
    for (;;) {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [this] { return !tasks_.empty(); });
      const std::function<void()> task = tasks_.front();
      lock.unlock();
      task();
      lock.lock();
      tasks_.pop_front();
      changed_.notify_all();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  std::thread thread_;
};

using Event = std::atomic<bool>;

int gpus() {
  const char* count = std::getenv("CHOKEPOINT_FAKE_GPUS");
  return count == nullptr ? 1 : std::atoi(count);
}

}  // namespace

void fake_enqueue(void* stream, std::function<void()> task) { static_cast<Stream*>(stream)->give(std::move(task)); }

extern "C" {
int cuInit(unsigned) { return 0; }
int cuGetErrorString(int, const char** words) {
  *words = "an error of the test's driver";
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = gpus();
  return 0;
}
int cuDeviceGet(int* device, int number) {
  *device = number;
  return number < gpus() ? 0 : 101;
}
int cuDeviceGetPCIBusId(char* text, int length, int device) {
  std::snprintf(text, static_cast<std::size_t>(length), "0000:%02x:00.0", static_cast<unsigned>(device + 3) & 0xffU);
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int) {
  static int kContext = 0;
  *context = &kContext;
  return 0;
}
int cuCtxSetCurrent(void*) { return 0; }
int cuMemAlloc_v2(unsigned long long* address, std::size_t bytes) {
  *address = reinterpret_cast<unsigned long long>(std::malloc(bytes));
  return *address == 0 ? 2 : 0;
}
int cuMemFree_v2(unsigned long long address) {
  std::free(reinterpret_cast<void*>(address));
  return 0;
}
int cuMemsetD8_v2(unsigned long long address, unsigned char value, std::size_t bytes) {
  std::memset(reinterpret_cast<void*>(address), value, bytes);
  return 0;
}
int cuMemAllocHost_v2(void** address, std::size_t bytes) {
  *address = std::calloc(bytes, 1);
  return *address == nullptr ? 2 : 0;
}
int cuMemFreeHost(void* address) {
  std::free(address);
  return 0;
}
int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, std::size_t bytes, void* stream) {
  fake_enqueue(stream, [to, from, bytes] { std::memcpy(to, reinterpret_cast<const void*>(from), bytes); });
  return 0;
}
int cuStreamCreate(void** stream, unsigned) {
  *stream = new Stream;
  return 0;
}
int cuStreamSynchronize(void* stream) {
  if (stream != nullptr) static_cast<Stream*>(stream)->wait();
  return 0;
}
int cuEventCreate(void** event, unsigned) {
  *event = new Event(true);
  return 0;
}
int cuEventDestroy_v2(void* event) {
  delete static_cast<Event*>(event);
  return 0;
}
int cuEventRecord(void* event, void* stream) {
  auto* flag = static_cast<Event*>(event);
  *flag = false;
  fake_enqueue(stream, [flag] { *flag = true; });
  return 0;
}
int cuEventQuery(void* event) { return *static_cast<Event*>(event) ? 0 : 600; }
}
