// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/trace/columns.hpp>

#include <cstring>

namespace chokepoint::trace {

namespace {

constexpr std::size_t kBlockBytes = 64 * 1024;

/// Multiply-and-fold over eight bytes at a time; needs speed and spread, not secrecy.
std::uint64_t hash_of(std::string_view text) {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15ull;  // 2^64 / golden ratio
  std::uint64_t hash = text.size() * kOdd;
  const char* p = text.data();
  std::size_t left = text.size();
  const auto mix = [&hash](std::uint64_t word) {
    hash = (hash ^ word) * kOdd;
    hash ^= hash >> 29;
  };
  for (; left >= 8; left -= 8, p += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, p, 8);
    mix(word);
  }
  std::uint64_t rest = 0;
  std::memcpy(&rest, p, left);
  mix(rest);
  return hash | 1u;  // never 0
}

}  // namespace

Names::Names() : texts_{""}, slots_(256) {}

std::string_view Names::keep(std::string_view text) {
  if (text.size() > block_left_) {
    const std::size_t size = text.size() > kBlockBytes ? text.size() : kBlockBytes;
    blocks_.push_back(std::make_unique<char[]>(size));
    block_next_ = blocks_.back().get();
    block_left_ = size;
  }
  std::memcpy(block_next_, text.data(), text.size());
  const std::string_view kept(block_next_, text.size());
  block_next_ += text.size();
  block_left_ -= text.size();
  return kept;
}

void Names::grow() {
  std::vector<Slot> bigger(slots_.size() * 2);
  for (const Slot& slot : slots_) {
    if (slot.id == 0) continue;
    std::size_t at = slot.hash & (bigger.size() - 1);
    while (bigger[at].id != 0) at = (at + 1) & (bigger.size() - 1);
    bigger[at] = slot;
  }
  slots_ = std::move(bigger);
}

NameId Names::intern(std::string_view text) {
  if (text.empty()) return kNoName;
  const std::uint64_t hash = hash_of(text);
  std::size_t at = hash & (slots_.size() - 1);
  for (; slots_[at].id != 0; at = (at + 1) & (slots_.size() - 1)) {
    if (slots_[at].hash == hash && texts_[slots_[at].id] == text) return slots_[at].id;
  }
  const NameId id = static_cast<NameId>(texts_.size());
  texts_.push_back(keep(text));
  slots_[at] = {hash, id};
  if (texts_.size() * 2 > slots_.size()) grow();
  return id;
}

std::string_view name(Defect defect) {
  switch (defect) {
    case Defect::kSyntax: return "not JSON";
    case Defect::kCutOff: return "cut off";
    case Defect::kDamagedStream: return "damaged compression";
    case Defect::kBadTime: return "no usable time";
    case Defect::kNegativeDuration: return "negative duration";
    case Defect::kImplausibleDuration: return "duration above 7 days";
    case Defect::kTooLong: return "event above 64 MiB";
    case Defect::kTimeBeforeBase: return "time before the clock's base";
    case Defect::kUnmatchedEnd: return "begin without end";
    case Defect::kOverlapOnStream: return "overlap on one stream";
    case Defect::kLaunchAfterStart: return "starts before its launch";
    case Defect::kOrphan: return "launched before the recording";
    case Defect::kCount: break;
  }
  return "?";
}

bool drops(Defect defect) {
  return defect != Defect::kOverlapOnStream && defect != Defect::kLaunchAfterStart && defect != Defect::kOrphan;
}

std::uint64_t Defects::dropped() const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < count.size(); ++i) {
    if (drops(static_cast<Defect>(i))) sum += count[i];
  }
  return sum;
}

}  // namespace chokepoint::trace
