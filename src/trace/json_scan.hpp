// SPDX-License-Identifier: Apache-2.0
#pragma once
// Fast steps over JSON text in a window that may end in the middle of anything. Every function looks at [p, end) and says
// whether it finished, needs a longer window, or found what cannot be JSON. kPadding bytes after `end` must be readable
// (their value does not matter for the result), because text is looked at in blocks.
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace chokepoint::trace {

inline constexpr std::size_t kPadding = 64;

enum class Scan : std::uint8_t { kDone, kMore, kBad };

/// From just after an opening quote to the closing one. A raw line break cannot be inside a string.
Scan skip_string(const char*& p, const char* end);
/// From inside an object or array to just after its closing bracket, over everything in between.
Scan skip_container(const char*& p, const char* end);
inline void skip_blanks(const char*& p, const char* end) {
  while (p < end && static_cast<unsigned char>(*p) <= ' ') ++p;
}

/// A value as it stands: text between the quotes (escapes kept), a number or word, or a whole object or array.
struct Value {
  enum class Kind : std::uint8_t { kNone, kString, kPlain, kObject, kArray };
  Kind kind = Kind::kNone;
  std::string_view text;
};
Scan read_value(const char*& p, const char* end, Value& value);

/// Next `"key":` of an object, or its end (`at_end`); commas are passed.
Scan read_key(const char*& p, const char* end, std::string_view& key, bool& at_end);

/// Microseconds in decimal text -> whole nanoseconds, exactly. False when it is not a finite number within +-292 years.
bool parse_us_as_ns(std::string_view text, std::int64_t& ns);
/// Decimal digits with optional sign; a fraction is cut off. Values above 2^63 wrap as unsigned 64-bit.
bool parse_integer(std::string_view text, std::int64_t& value);

}  // namespace chokepoint::trace
