// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/trace/log_tail.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/stat.h>

namespace chokepoint::trace {

namespace {
constexpr std::size_t kRemembered = 64;            // bytes by which a file is known again
constexpr std::size_t kLongestLine = 1u << 20;    // longer ones are handed on in pieces
}  // namespace

Result<bool> LogTail::open() {
  struct stat status {};
  if (::stat(path_.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return fail("cannot open: " + std::string(std::strerror(errno)), {path_, 0, 0});
  }
  if (!S_ISREG(status.st_mode)) return fail("is no regular file, so it cannot be followed: " + path_, {path_, 0, 0}, {"give the log's own file"});
  file_.reset(std::fopen(path_.c_str(), "rb"));
  if (!file_) {
    if (errno == ENOENT) return false;
    return fail("cannot open: " + std::string(std::strerror(errno)), {path_, 0, 0});
  }
  if (::fstat(fileno(file_.get()), &status) != 0) return fail("cannot read: " + std::string(std::strerror(errno)), {path_, 0, 0});
  device_ = static_cast<std::uint64_t>(status.st_dev);
  inode_ = static_cast<std::uint64_t>(status.st_ino);
  offset_ = 0;
  last_read_.clear();
  partial_.clear();
  return true;
}

bool LogTail::was_cut() const {
  struct stat status {};
  if (::fstat(fileno(file_.get()), &status) != 0) return false;
  if (status.st_size < offset_) return true;
  if (last_read_.empty()) return false;
  std::string there(last_read_.size(), '\0');
  if (std::fseek(file_.get(), static_cast<long>(offset_) - static_cast<long>(there.size()), SEEK_SET) != 0) return false;
  return std::fread(there.data(), 1, there.size(), file_.get()) != there.size() || there != last_read_;
}

bool LogTail::was_replaced() const {
  struct stat status {};
  if (::stat(path_.c_str(), &status) != 0) return false;  // moved away, its successor not there yet
  return static_cast<std::uint64_t>(status.st_dev) != device_ || static_cast<std::uint64_t>(status.st_ino) != inode_;
}

void LogTail::keep_whole_lines(Gained& gained, std::string&& fresh) {
  partial_ += fresh;
  const std::size_t last = partial_.rfind('\n');
  if (last != std::string::npos) {
    gained.text.append(partial_, 0, last + 1);
    partial_.erase(0, last + 1);
  }
  if (partial_.size() > kLongestLine) {
    gained.text += partial_ + '\n';
    partial_.clear();
  }
}

void LogTail::read(Gained& gained) {
  std::clearerr(file_.get());
  if (std::fseek(file_.get(), static_cast<long>(offset_), SEEK_SET) != 0) return;
  std::string fresh(kMostPerLook, '\0');
  fresh.resize(std::fread(fresh.data(), 1, fresh.size(), file_.get()));
  offset_ += static_cast<std::int64_t>(fresh.size());
  gained.more = fresh.size() == kMostPerLook;
  last_read_ += fresh.size() > kRemembered ? fresh.substr(fresh.size() - kRemembered) : fresh;
  if (last_read_.size() > kRemembered) last_read_.erase(0, last_read_.size() - kRemembered);
  keep_whole_lines(gained, std::move(fresh));
}

Result<Gained> LogTail::look() {
  Gained gained;
  if (!file_) {
    TRY_INTO(const bool opened, open());
    if (!opened) {
      gained.missing = true;
      return gained;
    }
    gained.restarted = replaced_;
    replaced_ = false;
  } else if (was_cut()) {
    offset_ = 0;
    last_read_.clear();
    partial_.clear();
    gained.restarted = true;
  }
  read(gained);
  if (gained.more || !was_replaced()) return gained;
  // The old file is at its end: what it left unfinished is its last line.
  if (!partial_.empty()) gained.text += partial_ + '\n';
  file_.reset();
  replaced_ = true;
  gained.more = true;
  return gained;
}

}  // namespace chokepoint::trace
