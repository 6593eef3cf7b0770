// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/files.hpp>
#include <chokepoint/base/memory_files.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

namespace chokepoint {

namespace fs = std::filesystem;

namespace {

Result<std::string> read_all(std::istream& in, const std::string& path) {
  std::string text;
  char buffer[65536];
  while (in.read(buffer, sizeof buffer) || in.gcount() > 0) {
    text.append(buffer, static_cast<std::size_t>(in.gcount()));
    if (text.size() > kMaxTextFileBytes) return fail("larger than 256 MiB, expected a small text file", {path, 0, 0});
  }
  if (in.bad()) return fail("cannot read: " + std::string(std::strerror(errno)), {path, 0, 0});
  return text;
}

}  // namespace

tl::unexpected<Error> no_such_file(const std::string& path) {
  Error error{"no such file: " + path, {path, 0, 0}, {}};
  if (const MemoryFiles* memory = memory_files(); memory != nullptr && !memory->disk_open()) {
    std::string listed;
    for (const std::string& name : memory->names()) listed += (listed.empty() ? "" : ", ") + name;
    error.notes.push_back(listed.empty() ? "the request holds no files" : "files of the request: " + listed);
  }
  return tl::make_unexpected(std::move(error));
}

Result<std::string> read_text_file(const std::string& path) {
  if (const MemoryFiles* memory = memory_files()) {
    if (const std::string* content = memory->find(path)) return *content;
    if (!memory->disk_open()) return no_such_file(path);
  }
  if (path == "-") return read_all(std::cin, "standard input");
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  if (!fs::exists(status)) return no_such_file(path);
  if (fs::is_directory(status)) return fail("is a directory, expected a file: " + path, {path, 0, 0});
  std::ifstream in(path, std::ios::binary);
  if (!in) return fail("cannot open: " + std::string(std::strerror(errno)), {path, 0, 0});
  return read_all(in, path);
}

namespace {
/// Devices, pipes and links are written to, never replaced.
Result<bool> write_through(const std::string& path, std::string_view text) {
  if (fs::is_directory(path)) return fail("is a directory, expected a file: " + path, {path, 0, 0});
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << text;
  out.flush();
  if (!out) return fail("cannot write: " + std::string(std::strerror(errno)), {path, 0, 0});
  return true;
}
}  // namespace

Result<bool> write_text_file(const std::string& path, std::string_view text) {
  if (MemoryFiles* memory = memory_files(); memory != nullptr && (path == "-" || !memory->disk_open())) {
    memory->write(path, text);
    return true;
  }
  if (path == "-") {
    std::cout << text << std::flush;
    if (!std::cout) return fail("cannot write to standard output: " + std::string(std::strerror(errno)));
    return true;
  }
  std::error_code kind;
  const fs::file_status present = fs::symlink_status(path, kind);
  if (fs::exists(present) && !fs::is_regular_file(present)) return write_through(path, text);
  const std::string partial = path + ".partial";
  {
    std::ofstream out(partial, std::ios::binary | std::ios::trunc);
    out << text;
    out.flush();
    if (!out) {
      std::remove(partial.c_str());
      return fail("cannot write: " + std::string(std::strerror(errno)), {path, 0, 0});
    }
  }
  std::error_code code;
  if (fs::exists(present)) fs::permissions(partial, present.permissions(), code);
  fs::rename(partial, path, code);
  if (code) {
    std::remove(partial.c_str());
    return fail("cannot write: " + code.message(), {path, 0, 0});
  }
  return true;
}

std::string directory_of(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

bool file_exists(const std::string& path) {
  if (const MemoryFiles* memory = memory_files()) {
    if (memory->find(path) != nullptr) return true;
    if (!memory->disk_open()) return false;
  }
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  return fs::exists(status) && !fs::is_directory(status);
}

Result<bool> check_output(const std::string& output, std::span<const std::string> inputs) {
  if (output.empty() || output == "-") return true;
  if (const MemoryFiles* memory = memory_files(); memory != nullptr && !memory->disk_open()) return true;  // inputs stay apart
  std::error_code code;
  if (!fs::is_regular_file(output, code)) return true;
  for (const std::string& input : inputs) {
    if (input.empty() || !fs::equivalent(output, input, code)) continue;
    return fail("would replace its own input " + input, {output, 0, 0}, {"write the result to another file"});
  }
  return true;
}

}  // namespace chokepoint
