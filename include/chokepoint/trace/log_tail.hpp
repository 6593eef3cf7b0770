// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a growing file gained since the last look. A file that was cut short is read again from its beginning; one that was
// replaced under its name (log rotation) is read to its end first, then its successor from the beginning.
#include <chokepoint/base/result.hpp>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

namespace chokepoint::trace {

struct Gained {
  std::string text;          ///< whole lines, each with its end
  bool restarted = false;    ///< cut short or replaced: `text` begins a file anew
  bool missing = false;      ///< there is no file of this name now; it may come
  bool more = false;         ///< the limit per look was reached: look again at once
};

/// Not copyable; holds the file open. Memory: what one look may bring, at most kMostPerLook.
class LogTail {
 public:
  static constexpr std::size_t kMostPerLook = std::size_t{1} << 20;
  explicit LogTail(std::string path) : path_(std::move(path)) {}
  const std::string& path() const { return path_; }
  /// Errors only for what will not mend itself: no regular file, no right to read.
  Result<Gained> look();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  /// Opens the file of this name where none is open; false: there is none.
  Result<bool> open();
  bool was_cut() const;
  bool was_replaced() const;
  void read(Gained& gained);
  void keep_whole_lines(Gained& gained, std::string&& fresh);

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::uint64_t device_ = 0;
  std::uint64_t inode_ = 0;
  std::int64_t offset_ = 0;
  std::string last_read_;   ///< the last bytes before the offset: a file cut and grown again does not hold them
  bool replaced_ = false;   ///< the file to be opened next succeeds another
  std::string partial_;     ///< the beginning of a line whose end is still to come
};

}  // namespace chokepoint::trace
