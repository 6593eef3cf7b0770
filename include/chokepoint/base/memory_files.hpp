// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files that stand in memory: those of a request to the service, whose job and cluster files name each other as they would
// in a folder. While a FilesInMemory lives, everything on its thread (and on the threads of parallel_for) that reads or
// writes files by name meets these first; with Disk::kClosed it meets nothing else, whatever the names say.
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint {

enum class Disk { kClosed, kOpen };

class MemoryFiles {
 public:
  explicit MemoryFiles(Disk disk) : disk_(disk) {}

  void add(std::string_view name, std::string content);
  /// Content of a file that was added; "./a" and "b/../a" are "a". Null when there is none.
  const std::string* find(std::string_view name) const;
  /// Whether what is not found here may be looked for on disk, and what is written may go there.
  bool disk_open() const { return disk_ == Disk::kOpen; }
  std::vector<std::string> names() const;

  /// What was written: by name, and what would have been printed under "-".
  void write(std::string_view name, std::string_view content);
  const std::map<std::string, std::string, std::less<>>& written() const { return written_; }

 private:
  Disk disk_;
  std::map<std::string, std::string, std::less<>> files_;
  std::map<std::string, std::string, std::less<>> written_;
};

/// The files of this thread; null: the disk alone.
MemoryFiles* memory_files();

/// Puts files in place of the disk for the current thread, until its own end. Null puts the disk back.
class FilesInMemory {
 public:
  explicit FilesInMemory(MemoryFiles* files);
  ~FilesInMemory();
  FilesInMemory(const FilesInMemory&) = delete;
  FilesInMemory& operator=(const FilesInMemory&) = delete;

 private:
  MemoryFiles* before_;
};

}  // namespace chokepoint
