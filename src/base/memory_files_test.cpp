// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <chokepoint/base/files.hpp>
#include <chokepoint/base/memory_files.hpp>
#include <chokepoint/base/parallel.hpp>

namespace chokepoint {
namespace {

TEST(MemoryFiles, SpellingsOfOneNameAreOneFile) {
  MemoryFiles files(Disk::kClosed);
  files.add("./wiring/a.topo", "x");
  EXPECT_NE(files.find("wiring/a.topo"), nullptr);
  EXPECT_NE(files.find("wiring/../wiring//a.topo"), nullptr);
  EXPECT_EQ(files.find("a.topo"), nullptr);
}

TEST(MemoryFiles, AClosedDiskShowsOnlyWhatWasAdded) {
  MemoryFiles files(Disk::kClosed);
  files.add("a", "inside");
  const FilesInMemory scope(&files);
  EXPECT_EQ(read_text_file("a").value(), "inside");
  EXPECT_FALSE(file_exists("/dev/null"));
  const auto outside = read_text_file("/dev/null");
  ASSERT_FALSE(outside);
  EXPECT_EQ(format(outside.error()), "/dev/null: error: no such file: /dev/null\n  files of the request: a\n");
  const auto input = read_text_file("-");
  EXPECT_FALSE(input);
}

TEST(MemoryFiles, AnOpenDiskComesSecond) {
  MemoryFiles files(Disk::kOpen);
  files.add("a", "inside");
  const FilesInMemory scope(&files);
  EXPECT_EQ(read_text_file("a").value(), "inside");
  EXPECT_EQ(read_text_file("/dev/null").value(), "");
}

TEST(MemoryFiles, ThreadsOfALoopSeeTheSameFiles) {
  MemoryFiles files(Disk::kClosed);
  files.add("a", "inside");
  std::atomic<int> seen{0};
  {
    const FilesInMemory scope(&files);
    parallel_for(64, [&](std::size_t) { seen += file_exists("a") && !file_exists("/dev/null") ? 1 : 0; });
  }
  EXPECT_EQ(seen, 64);
  EXPECT_TRUE(file_exists("/dev/null"));
}

}  // namespace
}  // namespace chokepoint
