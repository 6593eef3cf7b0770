// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/memory_files.hpp>

#include <filesystem>

namespace chokepoint {
namespace {

/// What one thread works on, set and put back by FilesInMemory alone.
thread_local MemoryFiles* current = nullptr;

std::string plain(std::string_view name) { return std::filesystem::path(name).lexically_normal().string(); }

}  // namespace

void MemoryFiles::add(std::string_view name, std::string content) { files_[plain(name)] = std::move(content); }

const std::string* MemoryFiles::find(std::string_view name) const {
  const auto at = files_.find(plain(name));
  return at == files_.end() ? nullptr : &at->second;
}

std::vector<std::string> MemoryFiles::names() const {
  std::vector<std::string> out;
  for (const auto& [name, content] : files_) out.push_back(name);
  return out;
}

void MemoryFiles::write(std::string_view name, std::string_view content) { written_[plain(name)] += content; }

MemoryFiles* memory_files() { return current; }

FilesInMemory::FilesInMemory(MemoryFiles* files) : before_(current) { current = files; }
FilesInMemory::~FilesInMemory() { current = before_; }

}  // namespace chokepoint
