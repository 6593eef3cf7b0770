// SPDX-License-Identifier: Apache-2.0
#include "pickle.hpp"

#include <bit>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

namespace chokepoint::trace {

namespace {

using Json = nlohmann::json;
constexpr std::size_t kMostValues = 20'000'000;

class Unpickler {
 public:
  Unpickler(std::string_view content, const std::string& file) : in_(content), file_(file) {}

  Result<Json> read() {
    while (at_ < in_.size()) {
      const auto opcode = static_cast<unsigned char>(in_[at_++]);
      if (opcode == '.') {
        if (stack_.empty()) return bad("the pickle ends without a value");
        return std::move(stack_.back().value);
      }
      if (!step(opcode)) return bad(problem_);
      if (++values_ > kMostValues) return bad("more values than a dump can hold");
    }
    return bad("the pickle is cut off");
  }

 private:
  struct Item {
    Json value;
    std::int64_t memo = -1;
  };

  Result<Json> bad(const std::string& what) const { return fail(what, {file_, 0, 0}, {"at byte " + std::to_string(at_)}); }
  bool stop(std::string what) {
    problem_ = std::move(what);
    return false;
  }

  bool take(std::size_t count, std::string_view& bytes) {
    if (count > in_.size() - at_) return stop("the pickle is cut off");
    bytes = in_.substr(at_, count);
    at_ += count;
    return true;
  }
  template <std::size_t kBytes>
  bool take_unsigned(std::uint64_t& value) {
    std::string_view bytes;
    if (!take(kBytes, bytes)) return false;
    value = 0;
    for (std::size_t i = 0; i < kBytes; ++i) value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
    return true;
  }
  bool push(Json value) {
    stack_.push_back({std::move(value), -1});
    return true;
  }

  /// Takes what stands above the last mark.
  bool above_mark(std::vector<Json>& values) {
    if (marks_.empty()) return stop("a mark is missing in the pickle");
    const std::size_t from = marks_.back();
    marks_.pop_back();
    for (std::size_t i = from; i < stack_.size(); ++i) {
      if (stack_[i].memo >= 0) memo_[stack_[i].memo] = stack_[i].value;  // containers are remembered before they are filled
      values.push_back(std::move(stack_[i].value));
    }
    stack_.resize(from);
    return true;
  }

  bool remember(std::uint64_t slot) {
    if (stack_.empty()) return stop("nothing to remember in the pickle");
    stack_.back().memo = static_cast<std::int64_t>(slot);
    if (!stack_.back().value.is_structured()) memo_[stack_.back().memo] = stack_.back().value;
    return true;
  }
  bool recall(std::uint64_t slot) {
    const auto at = memo_.find(static_cast<std::int64_t>(slot));
    if (at == memo_.end()) return stop("the pickle recalls what it did not remember");
    values_ += 1 + (at->second.is_structured() ? at->second.size() : 0);
    return push(at->second);
  }

  bool text(std::size_t length) {
    std::string_view bytes;
    return take(length, bytes) && push(std::string(bytes));
  }

  bool tuple(std::size_t count) {
    if (stack_.size() < count || (!marks_.empty() && stack_.size() - marks_.back() < count)) return stop("a tuple lacks values in the pickle");
    Json list = Json::array();
    for (std::size_t i = stack_.size() - count; i < stack_.size(); ++i) list.push_back(std::move(stack_[i].value));
    stack_.resize(stack_.size() - count);
    return push(std::move(list));
  }

  bool set_items(const std::vector<Json>& values) {
    if (stack_.empty() || !stack_.back().value.is_object() || values.size() % 2 != 0) return stop("the pickle sets items of what is no dictionary");
    for (std::size_t i = 0; i < values.size(); i += 2) {
      const Json& key = values[i];
      stack_.back().value[key.is_string() ? key.get<std::string>() : key.dump(-1, ' ', false, Json::error_handler_t::replace)] = values[i + 1];
    }
    return true;
  }
  bool append(std::vector<Json>& values) {
    if (stack_.empty() || !stack_.back().value.is_array()) return stop("the pickle appends to what is no list");
    for (Json& value : values) stack_.back().value.push_back(std::move(value));
    return true;
  }

  /// Little-endian two's complement of any length up to 8 bytes.
  bool long_integer(std::size_t length) {
    std::string_view bytes;
    if (!take(length, bytes)) return false;
    if (length > 8) return stop("an integer above 64 bits in the pickle");
    std::uint64_t value = length > 0 && (static_cast<unsigned char>(bytes.back()) & 0x80u) != 0 ? ~std::uint64_t{0} : 0;
    for (std::size_t i = length; i-- > 0;) value = (value << 8) | static_cast<unsigned char>(bytes[i]);
    return push(static_cast<std::int64_t>(value));
  }

  bool real() {
    std::string_view bytes;
    if (!take(8, bytes)) return false;
    std::uint64_t bits = 0;
    for (const char c : bytes) bits = (bits << 8) | static_cast<unsigned char>(c);
    return push(std::bit_cast<double>(bits));
  }

  bool step(unsigned char opcode) {
    std::uint64_t n = 0;
    std::vector<Json> values;
    switch (opcode) {
      case 0x80: return take_unsigned<1>(n);                                         // PROTO
      case 0x95: return take_unsigned<8>(n);                                         // FRAME
      case '}': return push(Json::object());                                         // EMPTY_DICT
      case ']': case ')': return push(Json::array());                                // EMPTY_LIST, EMPTY_TUPLE
      case 'q': return take_unsigned<1>(n) && remember(n);                           // BINPUT
      case 'r': return take_unsigned<4>(n) && remember(n);                           // LONG_BINPUT
      case 0x94: return remember(memo_count_++);                                     // MEMOIZE
      case 'h': return take_unsigned<1>(n) && recall(n);                             // BINGET
      case 'j': return take_unsigned<4>(n) && recall(n);                             // LONG_BINGET
      case '(': marks_.push_back(stack_.size()); return true;                        // MARK
      case 'X': return take_unsigned<4>(n) && text(n);                               // BINUNICODE
      case 0x8C: return take_unsigned<1>(n) && text(n);                              // SHORT_BINUNICODE
      case 'u': return above_mark(values) && set_items(values);                      // SETITEMS
      case 'e': return above_mark(values) && append(values);                         // APPENDS
      case 't': return above_mark(values) && push(Json(values));                     // TUPLE
      case 's': return marked(2) && above_mark(values) && set_items(values);         // SETITEM
      case 'a': return marked(1) && above_mark(values) && append(values);            // APPEND
      case 'J': return take_unsigned<4>(n) && push(static_cast<std::int32_t>(static_cast<std::uint32_t>(n)));  // BININT
      case 'K': return take_unsigned<1>(n) && push(n);                               // BININT1
      case 'M': return take_unsigned<2>(n) && push(n);                               // BININT2
      case 0x8A: return take_unsigned<1>(n) && long_integer(n);                      // LONG1
      case 'G': return real();                                                       // BINFLOAT
      case 'N': return push(nullptr);                                                // NONE
      case 0x88: return push(true);                                                  // NEWTRUE
      case 0x89: return push(false);                                                 // NEWFALSE
      case 0x85: return tuple(1);
      case 0x86: return tuple(2);
      case 0x87: return tuple(3);
      default: return stop("the pickle holds an object that is no plain value (opcode " + std::to_string(opcode) + "); not read, for safety");
    }
  }

  /// Marks the last `count` items, so that single and several items go the same way.
  bool marked(std::size_t count) {
    if (stack_.size() <= count) return stop("items are missing in the pickle");
    marks_.push_back(stack_.size() - count);
    return true;
  }

  std::string_view in_;
  const std::string& file_;
  std::size_t at_ = 0;
  std::size_t values_ = 0;
  std::uint64_t memo_count_ = 0;
  std::string problem_;
  std::vector<Item> stack_;
  std::vector<std::size_t> marks_;
  std::map<std::int64_t, Json> memo_;
};

}  // namespace

Result<Json> read_pickle(std::string_view content, const std::string& file) { return Unpickler(content, file).read(); }

}  // namespace chokepoint::trace
