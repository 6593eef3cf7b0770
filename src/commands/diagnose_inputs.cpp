// SPDX-License-Identifier: Apache-2.0
#include "diagnose_inputs.hpp"

#include <chokepoint/base/memory_files.hpp>

#include <algorithm>
#include <filesystem>

namespace chokepoint::commands {

namespace fs = std::filesystem;

Result<std::vector<std::string>> with_folders_opened(const std::vector<std::string>& paths) {
  // A request's files lie in no folders, and it sees none of the disk.
  if (const MemoryFiles* memory = memory_files(); memory != nullptr && !memory->disk_open()) return paths;
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code code;
    if (!fs::is_directory(path, code)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> inside;
    for (fs::directory_iterator at(path, code), end; !code && at != end; at.increment(code)) {
      std::error_code ignored;
      if (at->is_regular_file(ignored) && at->path().filename().string().front() != '.') inside.push_back(at->path().string());
    }
    if (code) return fail("cannot read the folder: " + code.message(), {path, 0, 0});
    if (inside.empty()) return fail("the folder holds no files", {path, 0, 0}, {"give the traces of one job, or the folder they lie in"});
    std::sort(inside.begin(), inside.end());
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

}  // namespace chokepoint::commands
