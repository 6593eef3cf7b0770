// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/trace/trace.hpp>
#include <gtest/gtest.h>

#include "wire_format.hpp"

namespace chokepoint::trace {
namespace {

std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7F) | 0x80);
  return out + static_cast<char>(value);
}
std::string number(int field, std::uint64_t value) { return varint(static_cast<std::uint64_t>(field) << 3) + varint(value); }
std::string bytes(int field, const std::string& text) { return varint((static_cast<std::uint64_t>(field) << 3) | 2) + varint(text.size()) + text; }
std::string message(const std::string& text) { return varint(text.size()) + text; }
std::string attribute(const std::string& name, int kind, std::uint64_t value) { return bytes(10, bytes(1, name) + number(kind, value)); }

std::string node(std::uint64_t id, const std::string& name, int type, std::uint64_t us, const std::string& waits_for, const std::string& more = "") {
  return message(number(1, id) + bytes(2, name) + number(3, static_cast<std::uint64_t>(type)) + bytes(5, waits_for) + number(7, us) + more);
}

const std::string kHead = message(bytes(1, "0.0.4"));

// 30 us of computing, then an all-reduce of 4096 bytes for 20 us beside 50 us more: begins at 0, 30, 30.
TEST(Chakra, NodesBeginWhenWhatTheyWaitForIsOver) {
  const std::string text = kHead + node(1, "forward", 4, 30, "") + node(2, "reduce", 7, 20, varint(1), attribute("comm_type", 9, 0) + attribute("comm_size", 9, 4096)) +
                           node(3, "backward", 4, 50, varint(1)) + node(4, "step", 4, 5, varint(2) + varint(3));
  EXPECT_TRUE(looks_like_chakra(text));
  EXPECT_EQ(recognise(text), Format::kChakra);
  const auto t = read_chakra_text(text, "job.3.et");
  ASSERT_TRUE(t) << format(t.error());
  EXPECT_EQ(t->rank, 3);
  ASSERT_EQ(t->device.size(), 4u);
  const std::int64_t zero = t->device.start_ns[0];
  EXPECT_EQ(t->device.start_ns[1] - zero, 30'000);
  EXPECT_EQ(t->device.start_ns[2] - zero, 30'000);
  EXPECT_EQ(t->device.start_ns[3] - zero, 80'000);
  ASSERT_EQ(t->collectives.size(), 1u);
  EXPECT_EQ(t->names[t->collectives[0].op], "allreduce");
  EXPECT_EQ(t->collectives[0].in_elements, 4096);
}

TEST(Chakra, CirclesAndDanglingDependenciesAreSaidAndDoNotHang) {
  const auto t = read_chakra_text(kHead + node(1, "a", 4, 10, varint(2)) + node(2, "b", 4, 10, varint(1)) + node(3, "c", 4, 10, varint(99)), "x.et");
  ASSERT_TRUE(t);
  EXPECT_EQ(t->device.size(), 3u);
  EXPECT_EQ(t->notes.at(0), "1 dependencies lead to nodes that the file does not hold");
  EXPECT_EQ(t->notes.at(1), "2 nodes wait for each other in a circle and begin at once");
}

TEST(Chakra, ATraceWithoutDurationsIsOneClearMessage) {
  const auto t = read_chakra_text(kHead + node(1, "reduce", 7, 0, ""), "x.et");
  ASSERT_FALSE(t);
  EXPECT_EQ(t.error().message, "the execution trace holds no durations, so there is nothing to diagnose");
}

TEST(Chakra, AFileCutShortKeepsWhatItHolds) {
  const std::string text = kHead + node(1, "a", 4, 10, "") + node(2, "b", 4, 10, varint(1));
  const auto t = read_chakra_text(text.substr(0, text.size() - 3), "x.et");
  ASSERT_TRUE(t);
  EXPECT_EQ(t->device.size(), 1u);
  EXPECT_EQ(t->defects[Defect::kCutOff], 1u);
}

TEST(Chakra, OtherTextIsNotTakenForOne) {
  EXPECT_FALSE(looks_like_chakra("hello world, this is no trace"));
  EXPECT_FALSE(looks_like_chakra(""));
  EXPECT_FALSE(looks_like_chakra(std::string(100, '\0')));
}

}  // namespace
}  // namespace chokepoint::trace
