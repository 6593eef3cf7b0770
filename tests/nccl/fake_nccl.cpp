// SPDX-License-Identifier: Apache-2.0
// NCCL for tests: bytes go from process to process through named pipes in CHOKEPOINT_FAKE_DIR. Each process sends and takes
// CHOKEPOINT_FAKE_RATE bytes a second at most, over all its peers.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "fake_cuda.hpp"

namespace {

struct Id {
  char bytes[128];
};

/// One direction of this process: who sends next may begin when the bytes before have gone.
class Way {
 public:
  void pass(std::size_t bytes) {
    static const char* given = std::getenv("CHOKEPOINT_FAKE_RATE");
    const double rate = given == nullptr ? 2e6 : std::atof(given);
    const auto takes = std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(static_cast<double>(bytes) / rate));
    std::chrono::steady_clock::time_point end;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      // Who wakes up late may catch up, as a card's own queue would.
      const auto earliest = std::chrono::steady_clock::now() - std::chrono::milliseconds(50);
      free_ = (free_ < earliest ? earliest : free_) + takes;
      end = free_;
    }
    std::this_thread::sleep_until(end);
  }

 private:
  std::mutex mutex_;
  std::chrono::steady_clock::time_point free_;
};

Way& out_way() {
  static Way way;
  return way;
}
Way& in_way() {
  static Way way;
  return way;
}

struct Comm {
  std::string id;
  int ranks = 0;
  int me = 0;
  std::mutex mutex;
  std::map<std::pair<int, bool>, int> pipes;

  int pipe(int peer, bool sends) {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = pipes.find({peer, sends});
    if (found != pipes.end()) return found->second;
    const char* folder = std::getenv("CHOKEPOINT_FAKE_DIR");
    const std::string path = std::string(folder == nullptr ? "/tmp" : folder) + "/" + id + "-" + std::to_string(sends ? me : peer) + "-" + std::to_string(sends ? peer : me);
    ::mkfifo(path.c_str(), 0600);
    // Both ways open at either end: no end waits for the other here, and none sees the other leave.
    const int opened = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (opened < 0) std::abort();
    ::fcntl(opened, F_SETPIPE_SZ, 4096);
    return pipes[{peer, sends}] = opened;
  }
};

struct Operation {
  bool sends = false;
  char* data = nullptr;
  std::size_t bytes = 0;
  int peer = 0;
  Comm* comm = nullptr;
  void* stream = nullptr;
};

void move_bytes(const Operation& operation) {
  constexpr std::size_t kPiece = 4096;
  const int pipe = operation.comm->pipe(operation.peer, operation.sends);
  for (std::size_t at = 0; at < operation.bytes;) {
    const std::size_t piece = operation.bytes - at < kPiece ? operation.bytes - at : kPiece;
    const ssize_t moved = operation.sends ? ::write(pipe, operation.data + at, piece) : ::read(pipe, operation.data + at, piece);
    if (moved <= 0) std::abort();
    at += static_cast<std::size_t>(moved);
    (operation.sends ? out_way() : in_way()).pass(static_cast<std::size_t>(moved));
  }
}

/// All at once, as the ends of a group do.
void move_all(const std::vector<Operation>& operations) {
  if (operations.size() == 1) return move_bytes(operations.front());
  std::vector<std::thread> threads;
  for (const Operation& operation : operations) threads.emplace_back([&operation] { move_bytes(operation); });
  for (std::thread& thread : threads) thread.join();
}

thread_local int depth = 0;
thread_local std::vector<Operation> waiting;

int flush() {
  std::map<void*, std::vector<Operation>> by_stream;
  for (const Operation& operation : waiting) by_stream[operation.stream].push_back(operation);
  waiting.clear();
  for (auto& [stream, operations] : by_stream) fake_enqueue(stream, [list = operations] { move_all(list); });
  return 0;
}

int add(const Operation& operation) {
  waiting.push_back(operation);
  return depth == 0 ? flush() : 0;
}

/// Every rank's `bytes` at `from` to every other, side by side in the result.
std::vector<char> gathered(Comm& comm, const char* from, std::size_t bytes) {
  std::vector<char> all(bytes * static_cast<std::size_t>(comm.ranks));
  std::vector<Operation> operations;
  for (int peer = 0; peer < comm.ranks; ++peer) {
    char* place = all.data() + bytes * static_cast<std::size_t>(peer);
    if (peer == comm.me) {
      std::memcpy(place, from, bytes);
      continue;
    }
    operations.push_back({true, const_cast<char*>(from), bytes, peer, &comm, nullptr});
    operations.push_back({false, place, bytes, peer, &comm, nullptr});
  }
  move_all(operations);
  return all;
}

void sum(Comm& comm, const void* from, void* to, std::size_t count, std::size_t first, std::size_t whole) {
  const std::vector<char> all = gathered(comm, static_cast<const char*>(from), whole * sizeof(float));
  auto* result = static_cast<float*>(to);
  for (std::size_t i = 0; i < count; ++i) {
    result[i] = 0;
    for (int rank = 0; rank < comm.ranks; ++rank) {
      float value = 0;
      std::memcpy(&value, all.data() + (static_cast<std::size_t>(rank) * whole + first + i) * sizeof(float), sizeof value);
      result[i] += value;
    }
  }
}

}  // namespace

extern "C" {
int ncclGetVersion(int* version) {
  *version = 29901;
  return 0;
}
const char* ncclGetErrorString(int) { return "an error of the test's NCCL"; }
int ncclGetUniqueId(Id* id) {
  static int kNext = 0;
  std::snprintf(id->bytes, sizeof id->bytes, "%d-%d", static_cast<int>(::getpid()), kNext++);
  return 0;
}
int ncclCommInitRank(void** comm, int ranks, Id id, int rank) {
  auto* made = new Comm;
  made->id = id.bytes;
  made->ranks = ranks;
  made->me = rank;
  *comm = made;
  return 0;
}
int ncclCommGetAsyncError(void*, int* error) {
  *error = 0;
  return 0;
}
int ncclGroupStart() {
  ++depth;
  return 0;
}
int ncclGroupEnd() { return --depth == 0 ? flush() : 0; }
int ncclSend(const void* data, std::size_t count, int, int peer, void* comm, void* stream) {
  return add({true, static_cast<char*>(const_cast<void*>(data)), count, peer, static_cast<Comm*>(comm), stream});
}
int ncclRecv(void* data, std::size_t count, int, int peer, void* comm, void* stream) {
  return add({false, static_cast<char*>(data), count, peer, static_cast<Comm*>(comm), stream});
}
int ncclAllGather(const void* from, void* to, std::size_t count, int, void* comm, void* stream) {
  fake_enqueue(stream, [=] {
    const std::vector<char> all = gathered(*static_cast<Comm*>(comm), static_cast<const char*>(from), count * sizeof(float));
    std::memcpy(to, all.data(), all.size());
  });
  return 0;
}
int ncclAllReduce(const void* from, void* to, std::size_t count, int, int, void* comm, void* stream) {
  fake_enqueue(stream, [=] { sum(*static_cast<Comm*>(comm), from, to, count, 0, count); });
  return 0;
}
int ncclReduceScatter(const void* from, void* to, std::size_t count, int, int, void* comm, void* stream) {
  fake_enqueue(stream, [=] {
    Comm& group = *static_cast<Comm*>(comm);
    sum(group, from, to, count, count * static_cast<std::size_t>(group.me), count * static_cast<std::size_t>(group.ranks));
  });
  return 0;
}
}
