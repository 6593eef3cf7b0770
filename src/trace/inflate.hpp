// SPDX-License-Identifier: Apache-2.0
#pragma once
// gzip, through isa-l where the machine has it (it inflates two to three times as fast), else through zlib.
#include <memory>
#include <string_view>

namespace chokepoint::trace {

class Inflater {
 public:
  enum class State { kMore, kMemberEnd, kDamaged };
  virtual ~Inflater() = default;
  /// Begins a new gzip member.
  virtual void reset() = 0;
  /// Takes from `in` and writes to `out`; both are advanced.
  virtual State step(const unsigned char*& in, std::size_t& in_left, unsigned char*& out, std::size_t& out_left) = 0;
  virtual std::string_view library() const = 0;
};

std::unique_ptr<Inflater> make_inflater();

}  // namespace chokepoint::trace
