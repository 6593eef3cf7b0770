// SPDX-License-Identifier: Apache-2.0
#include "diagnose_inputs.hpp"

#include <chokepoint/base/memory_files.hpp>

#include <algorithm>
#include <filesystem>
#include <glob.h>

namespace chokepoint::commands {

namespace fs = std::filesystem;

namespace {

/// Files that a shell's pattern stands for, by name.
std::vector<std::string> matching(const std::string& pattern) {
  std::vector<std::string> files;
  glob_t found{};
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0) files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  return files;
}

}  // namespace

Result<std::vector<std::string>> with_folders_opened(const std::vector<std::string>& paths) {
  // A request's files lie in no folders, and it sees none of the disk.
  if (const MemoryFiles* memory = memory_files(); memory != nullptr && !memory->disk_open()) return paths;
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code code;
    if (!fs::exists(path, code) && path.find_first_of("*?[") != std::string::npos) {  // a quoted pattern
      const std::vector<std::string> found = matching(path);
      if (found.empty()) return fail("no file matches the pattern", {path, 0, 0}, {"give the traces of one job, or the folder they lie in"});
      files.insert(files.end(), found.begin(), found.end());
      continue;
    }
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
