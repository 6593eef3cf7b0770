// SPDX-License-Identifier: Apache-2.0
#include "source.hpp"

#include <algorithm>
#include <cerrno>
#include <chokepoint/base/files.hpp>
#include <chokepoint/base/memory_files.hpp>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>
#include <zstd.h>

#include "inflate.hpp"

namespace chokepoint::trace {

namespace {

constexpr std::size_t kInputBytes = 256 * 1024;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

class PlainSource final : public ByteSource {
 public:
  explicit PlainSource(File file) : file_(std::move(file)) {}
  std::size_t read(char* out, std::size_t size) override { return std::fread(out, 1, size, file_.get()); }

 private:
  File file_;
};

class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::string_view text) : text_(text) {}
  std::size_t read(char* out, std::size_t size) override {
    const std::size_t n = std::min(size, text_.size());
    if (n > 0) std::memcpy(out, text_.data(), n);
    text_.remove_prefix(n);
    return n;
  }

 private:
  std::string_view text_;
};

/// Compressed input in blocks, shared by both decoders.
class Input {
 public:
  explicit Input(File file) : file_(std::move(file)), buffer_(kInputBytes) {}
  /// Fills when empty; false at the end of the file.
  bool fill() {
    if (left > 0) return true;
    left = std::fread(buffer_.data(), 1, buffer_.size(), file_.get());
    next = buffer_.data();
    return left > 0;
  }
  const unsigned char* next = nullptr;
  std::size_t left = 0;

 private:
  File file_;
  std::vector<unsigned char> buffer_;
};

class GzipSource final : public ByteSource {
 public:
  explicit GzipSource(File file) : input_(std::move(file)), inflater_(make_inflater()) {}
  bool damaged() const override { return damaged_; }

  std::size_t read(char* out, std::size_t size) override {
    unsigned char* to = reinterpret_cast<unsigned char*>(out);
    std::size_t room = size;
    while (room > 0 && !damaged_) {
      const bool at_end = !input_.fill();
      if (at_end && !inside_) break;
      if (!inside_) {
        if (*input_.next == 0) {  // padding after a member
          ++input_.next;
          --input_.left;
          continue;
        }
        inflater_->reset();
        inside_ = true;
      }
      const std::size_t room_before = room;
      const Inflater::State state = inflater_->step(input_.next, input_.left, to, room);
      if (state == Inflater::State::kMemberEnd) inside_ = false;
      if (state == Inflater::State::kDamaged) damaged_ = true;
      if (at_end && state == Inflater::State::kMore && room == room_before) damaged_ = true;  // no trailer: cut off
    }
    return size - room;
  }

 private:
  Input input_;
  std::unique_ptr<Inflater> inflater_;
  bool inside_ = false;
  bool damaged_ = false;
};

struct FreeZstd {
  void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
};

class ZstdSource final : public ByteSource {
 public:
  explicit ZstdSource(File file) : input_(std::move(file)), stream_(ZSTD_createDStream()) {
    damaged_ = stream_ == nullptr || ZSTD_isError(ZSTD_initDStream(stream_.get()));
  }
  bool damaged() const override { return damaged_; }

  std::size_t read(char* out, std::size_t size) override {
    ZSTD_outBuffer to{out, size, 0};
    while (to.pos < to.size && !damaged_) {
      const bool at_end = !input_.fill();
      if (at_end && !inside_) break;
      ZSTD_inBuffer from{input_.next, input_.left, 0};
      const std::size_t before = to.pos;
      const std::size_t code = ZSTD_decompressStream(stream_.get(), &to, &from);
      input_.next += from.pos;
      input_.left -= from.pos;
      if (ZSTD_isError(code) != 0u) damaged_ = true;
      inside_ = code != 0;
      if (at_end && to.pos == before && inside_) damaged_ = true;
    }
    return to.pos;
  }

 private:
  Input input_;
  std::unique_ptr<ZSTD_DStream, FreeZstd> stream_;
  bool inside_ = false;
  bool damaged_ = false;
};

Result<File> open_file(const std::string& path) {
  if (const MemoryFiles* memory = memory_files()) {
    if (const std::string* content = memory->find(path)) {
      // Opened for reading alone, so the content is not written to.
      File file(::fmemopen(const_cast<char*>(content->data()), content->size(), "r"));
      if (!file) return fail("cannot read an empty file", {path, 0, 0});
      return file;
    }
    if (!memory->disk_open()) return no_such_file(path);
  }
  std::error_code code;
  const auto status = std::filesystem::status(path, code);
  if (!std::filesystem::exists(status)) return no_such_file(path);
  if (std::filesystem::is_directory(status)) return fail("is a directory, expected a file: " + path, {path, 0, 0});
  File file(std::fopen(path.c_str(), "rb"));
  if (!file) return fail("cannot open: " + std::string(std::strerror(errno)), {path, 0, 0});
  return file;
}

}  // namespace

Result<std::unique_ptr<ByteSource>> open_source(const std::string& path) {
  TRY_INTO(File file, open_file(path));
  unsigned char magic[4] = {};
  const std::size_t got = std::fread(magic, 1, sizeof magic, file.get());
  std::rewind(file.get());
  std::unique_ptr<ByteSource> source;
  if (got >= 2 && magic[0] == 0x1F && magic[1] == 0x8B) {
    source = std::make_unique<GzipSource>(std::move(file));
  } else if (got == 4 && magic[0] == 0x28 && magic[1] == 0xB5 && magic[2] == 0x2F && magic[3] == 0xFD) {
    source = std::make_unique<ZstdSource>(std::move(file));
  } else {
    std::setvbuf(file.get(), nullptr, _IONBF, 0);  // read() asks for MiB at a time
    source = std::make_unique<PlainSource>(std::move(file));
  }
  return source;
}

std::unique_ptr<ByteSource> memory_source(std::string_view text) { return std::make_unique<MemorySource>(text); }

Result<std::string> read_head(const std::string& path, std::size_t bytes) {
  TRY_INTO(const std::unique_ptr<ByteSource> source, open_source(path));
  std::string head(bytes, '\0');
  std::size_t got = 0;
  while (got < bytes) {
    const std::size_t n = source->read(head.data() + got, bytes - got);
    if (n == 0) break;
    got += n;
  }
  head.resize(got);
  return head;
}

Result<std::string> read_whole(const std::string& path, std::size_t limit) {
  TRY_INTO(const std::unique_ptr<ByteSource> source, open_source(path));
  std::string text;
  constexpr std::size_t kStep = 1 << 20;
  for (;;) {
    const std::size_t at = text.size();
    text.resize(at + kStep);
    const std::size_t n = source->read(text.data() + at, kStep);
    text.resize(at + n);
    if (n == 0) break;
    if (text.size() > limit) return fail("larger than " + std::to_string(limit >> 20) + " MiB uncompressed", {path, 0, 0});
  }
  if (source->damaged()) return fail("the compressed data ends early or is damaged", {path, 0, 0}, {"copy the file again"});
  return text;
}

}  // namespace chokepoint::trace
