// SPDX-License-Identifier: Apache-2.0
// RFC 4648, section 4. Line breaks are skipped, as tools that wrap lines put them in.
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "request.hpp"

namespace chokepoint::service {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t kNone = 255;

constexpr std::array<std::uint8_t, 256> values() {
  std::array<std::uint8_t, 256> out{};
  for (std::uint8_t& value : out) value = kNone;
  for (std::size_t i = 0; i < kDigits.size(); ++i) out[static_cast<unsigned char>(kDigits[i])] = static_cast<std::uint8_t>(i);
  return out;
}
constexpr std::array<std::uint8_t, 256> kValues = values();

}  // namespace

std::optional<std::string> from_base64(std::string_view text) {
  std::string out;
  out.reserve(text.size() / 4 * 3);
  std::uint32_t bits = 0;
  int held = 0;
  std::size_t digits = 0;
  std::size_t padding = 0;
  for (const char c : text) {
    if (c == '\n' || c == '\r') continue;
    if (c == '=') {
      ++padding;
      continue;
    }
    const std::uint8_t value = kValues[static_cast<unsigned char>(c)];
    if (value == kNone || padding > 0) return std::nullopt;
    ++digits;
    bits = (bits << 6 | value) & 0xFFFFFF;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    out += static_cast<char>(bits >> held & 0xFF);
  }
  if (padding > 2 || digits % 4 == 1 || (padding > 0 && (digits + padding) % 4 != 0)) return std::nullopt;
  return out;
}

std::string to_base64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t left = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k) bits = bits << 8 | (k < left ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k) out += k <= left ? kDigits[bits >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

}  // namespace chokepoint::service
