// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/memory_files.hpp>
#include <chokepoint/base/parallel.hpp>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace chokepoint {

void parallel_for(std::size_t count, const std::function<void(std::size_t)>& body) {
  constexpr std::size_t kMostThreads = 16;
  const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
  const std::size_t workers = std::min({cores, kMostThreads, count});
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) body(i);
  };
  std::vector<std::thread> threads;
  MemoryFiles* const files = memory_files();
  for (std::size_t i = 1; i < workers; ++i) {
    threads.emplace_back([&work, files] {
      const FilesInMemory same(files);
      work();
    });
  }
  work();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace chokepoint
