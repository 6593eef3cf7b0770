// SPDX-License-Identifier: Apache-2.0
#include "inflate.hpp"

#include <dlfcn.h>
#include <limits>
#include <zlib.h>
#ifdef CHOKEPOINT_ISAL
#include <isa-l/igzip_lib.h>
#endif

namespace chokepoint::trace {

namespace {

unsigned int clamp_size(std::size_t size) {
  constexpr std::size_t kMost = std::numeric_limits<unsigned int>::max() / 2;
  return static_cast<unsigned int>(size < kMost ? size : kMost);
}

class ZlibInflater final : public Inflater {
 public:
  ZlibInflater() { ok_ = inflateInit2(&stream_, kGzipOnly) == Z_OK; }
  ~ZlibInflater() override { inflateEnd(&stream_); }
  ZlibInflater(const ZlibInflater&) = delete;
  ZlibInflater& operator=(const ZlibInflater&) = delete;

  void reset() override { ok_ = ok_ && inflateReset(&stream_) == Z_OK; }

  State step(const unsigned char*& in, std::size_t& in_left, unsigned char*& out, std::size_t& out_left) override {
    if (!ok_) return State::kDamaged;
    stream_.next_in = const_cast<unsigned char*>(in);  // zlib only reads it
    stream_.avail_in = clamp_size(in_left);
    stream_.next_out = out;
    stream_.avail_out = clamp_size(out_left);
    const unsigned int before = stream_.avail_in;
    const unsigned int room = stream_.avail_out;
    const int code = inflate(&stream_, Z_NO_FLUSH);
    in += before - stream_.avail_in;
    in_left -= before - stream_.avail_in;
    out += room - stream_.avail_out;
    out_left -= room - stream_.avail_out;
    if (code == Z_STREAM_END) return State::kMemberEnd;
    return code == Z_OK || code == Z_BUF_ERROR ? State::kMore : State::kDamaged;
  }
  std::string_view library() const override { return "zlib"; }

 private:
  static constexpr int kGzipOnly = 15 + 16;  // window of 32 KiB; zlib.h: 16 more means gzip header and trailer
  z_stream stream_{};
  bool ok_ = false;
};

#ifdef CHOKEPOINT_ISAL
/// isa-l has no static library in the distributions, so it is opened at run time where present.
struct Isal {
  using Init = void (*)(inflate_state*);
  using Inflate = int (*)(inflate_state*);
  Init init = nullptr;
  Inflate inflate = nullptr;
  explicit operator bool() const { return init != nullptr && inflate != nullptr; }
};

Isal open_isal() {
  Isal isal;
  void* library = dlopen("libisal.so.2", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return isal;
  isal.init = reinterpret_cast<Isal::Init>(dlsym(library, "isal_inflate_init"));
  isal.inflate = reinterpret_cast<Isal::Inflate>(dlsym(library, "isal_inflate"));
  return isal;
}

class IsalInflater final : public Inflater {
 public:
  explicit IsalInflater(const Isal& isal) : isal_(isal), state_(std::make_unique<inflate_state>()) { reset(); }

  void reset() override {
    isal_.init(state_.get());
    state_->crc_flag = ISAL_GZIP;
  }

  State step(const unsigned char*& in, std::size_t& in_left, unsigned char*& out, std::size_t& out_left) override {
    state_->next_in = const_cast<unsigned char*>(in);  // isa-l only reads it
    state_->avail_in = clamp_size(in_left);
    state_->next_out = out;
    state_->avail_out = clamp_size(out_left);
    const unsigned int before = state_->avail_in;
    const unsigned int room = state_->avail_out;
    const int code = isal_.inflate(state_.get());
    in += before - state_->avail_in;
    in_left -= before - state_->avail_in;
    out += room - state_->avail_out;
    out_left -= room - state_->avail_out;
    if (code != ISAL_DECOMP_OK && code != ISAL_END_INPUT) return State::kDamaged;
    return state_->block_state == ISAL_BLOCK_FINISH ? State::kMemberEnd : State::kMore;
  }
  std::string_view library() const override { return "isa-l"; }

 private:
  Isal isal_;
  std::unique_ptr<inflate_state> state_;
};
#endif

}  // namespace

std::unique_ptr<Inflater> make_inflater() {
#ifdef CHOKEPOINT_ISAL
  static const Isal isal = open_isal();
  if (isal) return std::make_unique<IsalInflater>(isal);
#endif
  return std::make_unique<ZlibInflater>();
}

}  // namespace chokepoint::trace
