// SPDX-License-Identifier: Apache-2.0
#pragma once
// Protobuf's wire format: fields of a message one by one, without a schema. Nothing is copied; text that ends inside a field
// or holds an unknown kind ends the walk.
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace chokepoint::trace {

/// A base-128 number at `at`, which moves behind it; false where the text ends inside it or it exceeds 64 bits.
inline bool read_varint(std::string_view text, std::size_t& at, std::uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 64 && at < text.size(); shift += 7) {
    const auto byte = static_cast<unsigned char>(text[at++]);
    value |= static_cast<std::uint64_t>(byte & 0x7Fu) << shift;
    if (byte < 0x80u) return true;
  }
  return false;
}

struct WireField {
  enum class Kind { kNumber, kFixed, kBytes };
  std::uint32_t number = 0;
  Kind kind = Kind::kNumber;
  std::uint64_t value = 0;
  std::string_view bytes;
};

class WireReader {
 public:
  explicit WireReader(std::string_view text) : text_(text) {}
  bool next(WireField& field) {
    std::uint64_t key = 0;
    if (at_ >= text_.size()) return false;
    whole_ = false;
    if (!read_varint(text_, at_, key) || (key >> 3) > 0x1FFFFFFF) return false;
    field = {static_cast<std::uint32_t>(key >> 3), WireField::Kind::kNumber, 0, {}};
    switch (key & 7) {
      case 0:
        if (!read_varint(text_, at_, field.value)) return false;
        break;
      case 1:
      case 5: {
        field.kind = WireField::Kind::kFixed;
        const std::size_t width = (key & 7) == 1 ? 8 : 4;
        if (width > text_.size() - at_) return false;
        at_ += width;
        break;
      }
      case 2: {
        field.kind = WireField::Kind::kBytes;
        std::uint64_t length = 0;
        if (!read_varint(text_, at_, length) || length > text_.size() - at_) return false;
        field.bytes = text_.substr(at_, length);
        at_ += length;
        break;
      }
      default: return false;
    }
    whole_ = true;
    return true;
  }
  /// All of the text was fields.
  bool whole() const { return whole_ && at_ >= text_.size(); }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  bool whole_ = true;
};

}  // namespace chokepoint::trace
