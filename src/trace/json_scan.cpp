// SPDX-License-Identifier: Apache-2.0
// Blocks of 64 bytes become bit masks, one bit a byte, as in Langdale and Lemire, "Parsing gigabytes of JSON per second"
// (VLDB Journal 2019). Unlike a full parser, skipping needs only quotes, backslashes and brackets.
#include "json_scan.hpp"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace chokepoint::trace {

namespace {

struct Masks {
  std::uint64_t quotes = 0;
  std::uint64_t backslashes = 0;
  std::uint64_t opens = 0;   ///< { and [
  std::uint64_t closes = 0;  ///< } and ]
  std::uint64_t breaks = 0;  ///< line breaks
};

constexpr char kCaseBit = 0x20;  // { } and [ ] differ in this bit only

#if defined(__SSE2__)
inline std::uint64_t bits(__m128i equal, int part) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(_mm_movemask_epi8(equal))) << (16 * part);
}

inline Masks masks_of(const char* p) {
  Masks m;
  for (int part = 0; part < 4; ++part) {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 16 * part));
    const __m128i folded = _mm_or_si128(v, _mm_set1_epi8(kCaseBit));
    m.quotes |= bits(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')), part);
    m.backslashes |= bits(_mm_cmpeq_epi8(v, _mm_set1_epi8('\\')), part);
    m.opens |= bits(_mm_cmpeq_epi8(folded, _mm_set1_epi8('{')), part);
    m.closes |= bits(_mm_cmpeq_epi8(folded, _mm_set1_epi8('}')), part);
    m.breaks |= bits(_mm_cmpeq_epi8(v, _mm_set1_epi8('\n')), part);
  }
  return m;
}
#else
inline Masks masks_of(const char* p) {
  Masks m;
  for (int i = 0; i < 64; ++i) {
    const std::uint64_t bit = std::uint64_t{1} << i;
    const char c = p[i];
    if (c == '"') m.quotes |= bit;
    if (c == '\\') m.backslashes |= bit;
    if ((c | kCaseBit) == '{') m.opens |= bit;
    if ((c | kCaseBit) == '}') m.closes |= bit;
    if (c == '\n') m.breaks |= bit;
  }
  return m;
}
#endif

/// Bit i of the result is the parity of bits 0..i.
inline std::uint64_t prefix_parity(std::uint64_t x) {
  x ^= x << 1;
  x ^= x << 2;
  x ^= x << 4;
  x ^= x << 8;
  x ^= x << 16;
  x ^= x << 32;
  return x;
}

/// Characters that a backslash takes the meaning from. `carry`: the block before ended in an open backslash.
std::uint64_t escaped(std::uint64_t backslashes, bool& carry) {
  std::uint64_t result = carry ? 1 : 0;
  if (carry) backslashes &= ~std::uint64_t{1};
  carry = false;
  while (backslashes != 0) {
    const int at = std::countr_zero(backslashes);
    backslashes &= backslashes - 1;
    if (at == 63) {
      carry = true;
      break;
    }
    const std::uint64_t next = std::uint64_t{2} << at;
    result |= next;
    backslashes &= ~next;
  }
  return result;
}

bool is_plain_end(char c) { return c == ',' || c == '}' || c == ']' || static_cast<unsigned char>(c) <= ' '; }

}  // namespace

Scan skip_string(const char*& p, const char* end) {
#if defined(__SSE2__)
  while (p < end) {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m128i hit = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')), _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'))),
                                     _mm_cmpeq_epi8(v, _mm_set1_epi8('\n')));
    const auto found = static_cast<std::uint32_t>(_mm_movemask_epi8(hit));
    if (found == 0) {
      p += 16;
      continue;
    }
    p += std::countr_zero(found);
    if (p >= end) return Scan::kMore;
    if (*p == '"') return Scan::kDone;
    if (*p == '\n') return Scan::kBad;
    p += 2;  // a backslash and what it escapes
  }
#else
  while (p < end) {
    if (*p == '"') return Scan::kDone;
    if (*p == '\n') return Scan::kBad;
    p += *p == '\\' ? 2 : 1;
  }
#endif
  return Scan::kMore;
}

Scan skip_container(const char*& p, const char* end) {
  std::uint64_t inside = 0;  // all ones while a string is open across blocks
  bool carry = false;
  int depth = 1;
  for (const char* block = p; block < end; block += 64) {
    Masks m = masks_of(block);
    if (end - block < 64) {
      const std::uint64_t valid = (std::uint64_t{1} << (end - block)) - 1;
      m = {m.quotes & valid, m.backslashes & valid, m.opens & valid, m.closes & valid, m.breaks & valid};
    }
    if (m.backslashes != 0 || carry) m.quotes &= ~escaped(m.backslashes, carry);
    const std::uint64_t strings = prefix_parity(m.quotes) ^ inside;
    inside = static_cast<std::uint64_t>(static_cast<std::int64_t>(strings) >> 63);
    if ((m.breaks & strings) != 0) return Scan::kBad;
    const std::uint64_t opens = m.opens & ~strings;
    std::uint64_t closes = m.closes & ~strings;
    if (std::popcount(closes) < depth) {
      depth += std::popcount(opens) - std::popcount(closes);
      continue;
    }
    std::uint64_t before = 0;  // bits already counted
    while (closes != 0) {
      const int at = std::countr_zero(closes);
      const std::uint64_t up_to = (std::uint64_t{1} << at) - 1;
      depth += std::popcount(opens & up_to & ~before) - 1;
      before = up_to;
      if (depth == 0) {
        p = block + at + 1;
        return Scan::kDone;
      }
      closes &= closes - 1;
    }
    depth += std::popcount(opens & ~before);
  }
  p = end;
  return Scan::kMore;
}

Scan read_value(const char*& p, const char* end, Value& value) {
  skip_blanks(p, end);
  if (p >= end) return Scan::kMore;
  const char* begin = p;
  if (*p == '"') {
    ++p;
    const Scan scan = skip_string(p, end);
    if (scan != Scan::kDone) return scan;
    value = {Value::Kind::kString, {begin + 1, static_cast<std::size_t>(p - begin - 1)}};
    ++p;
    return Scan::kDone;
  }
  if (*p == '{' || *p == '[') {
    const Value::Kind kind = *p == '{' ? Value::Kind::kObject : Value::Kind::kArray;
    ++p;
    const Scan scan = skip_container(p, end);
    if (scan != Scan::kDone) return scan;
    value = {kind, {begin, static_cast<std::size_t>(p - begin)}};
    return Scan::kDone;
  }
  while (p < end && !is_plain_end(*p)) ++p;
  if (p >= end) return Scan::kMore;
  if (p == begin) return Scan::kBad;
  value = {Value::Kind::kPlain, {begin, static_cast<std::size_t>(p - begin)}};
  return Scan::kDone;
}

Scan read_key(const char*& p, const char* end, std::string_view& key, bool& at_end) {
  at_end = false;
  skip_blanks(p, end);
  if (p < end && *p == ',') {
    ++p;
    skip_blanks(p, end);
  }
  if (p >= end) return Scan::kMore;
  if (*p == '}') {
    ++p;
    at_end = true;
    return Scan::kDone;
  }
  if (*p != '"') return Scan::kBad;
  const char* begin = ++p;
  const Scan scan = skip_string(p, end);
  if (scan != Scan::kDone) return scan;
  key = {begin, static_cast<std::size_t>(p - begin)};
  ++p;
  skip_blanks(p, end);
  if (p >= end) return Scan::kMore;
  if (*p != ':') return Scan::kBad;
  ++p;
  return Scan::kDone;
}

namespace {

constexpr std::int64_t kMost_us = 4'500'000'000'000'000;  // the year 2112; two such times add without overflow
constexpr std::int64_t kLeast_us = -100'000'000'000'000;  // three years before a file's zero: differences do not overflow either

/// The rare forms: exponents and very long numbers.
bool parse_slowly(std::string_view text, std::int64_t& ns) {
  const std::string copy(text);
  char* rest = nullptr;
  const double us = std::strtod(copy.c_str(), &rest);
  if (rest != copy.c_str() + copy.size() || !std::isfinite(us) || us > static_cast<double>(kMost_us) || us < static_cast<double>(kLeast_us)) return false;
  ns = std::llround(us * 1000);
  return true;
}

}  // namespace

bool parse_us_as_ns(std::string_view text, std::int64_t& ns) {
  constexpr std::size_t kMostDigits = 15;
  std::size_t i = 0;
  const bool negative = !text.empty() && text[0] == '-';
  if (negative) ++i;
  const std::size_t first = i;
  std::int64_t value = 0;
  for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) {
    if (i - first > kMostDigits) return parse_slowly(text, ns);
    value = value * 10 + (text[i] - '0');
  }
  if (i == first) return parse_slowly(text, ns);
  if (value > (negative ? -kLeast_us : kMost_us)) return false;
  value *= 1000;
  if (i < text.size() && text[i] == '.') {
    ++i;
    std::int64_t unit = 100;
    for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) {
      if (unit > 0) {
        value += unit * (text[i] - '0');
        unit /= 10;
        if (unit == 0 && i + 1 < text.size() && text[i + 1] >= '5' && text[i + 1] <= '9') ++value;  // rounds at the picosecond
      }
    }
  }
  if (i != text.size()) return parse_slowly(text, ns);
  ns = negative ? -value : value;
  return true;
}

bool parse_integer(std::string_view text, std::int64_t& value) {
  std::size_t i = 0;
  const bool negative = !text.empty() && text[0] == '-';
  if (negative) ++i;
  const std::size_t first = i;
  std::uint64_t sum = 0;
  for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) sum = sum * 10 + static_cast<std::uint64_t>(text[i] - '0');
  if (i == first || i - first > 20 || (i < text.size() && text[i] != '.')) return false;
  value = static_cast<std::int64_t>(negative ? 0 - sum : sum);
  return true;
}

}  // namespace chokepoint::trace
