// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bytes of a file in order, decompressed by content: plain, gzip (several members), zstd.
#include <chokepoint/base/result.hpp>
#include <memory>
#include <string>

namespace chokepoint::trace {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Up to `size` bytes into `out`; 0 at the end. Damaged compressed data ends the stream and sets damaged().
  virtual std::size_t read(char* out, std::size_t size) = 0;
  virtual bool damaged() const { return false; }
};

/// Opens a file; an error when it is absent, a directory or unreadable.
Result<std::unique_ptr<ByteSource>> open_source(const std::string& path);
/// The first bytes of a file, decompressed.
Result<std::string> read_head(const std::string& path, std::size_t bytes);
/// Bytes that are already in memory; they must outlive the source.
std::unique_ptr<ByteSource> memory_source(std::string_view text);
/// Whole of a small file, decompressed; an error above `limit` bytes.
Result<std::string> read_whole(const std::string& path, std::size_t limit);

}  // namespace chokepoint::trace
