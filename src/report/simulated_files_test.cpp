// SPDX-License-Identifier: Apache-2.0
// What a simulated step writes beside its text: Chakra traces and the picture of its links.
#include <chokepoint/report/simulate_view.hpp>

#include <gtest/gtest.h>
#include <map>
#include <set>

#include "test_jobs.hpp"

namespace chokepoint::report {
namespace {

engine::Simulated step(const char* text, bool record = false) {
  const parallel::Job job = job_on("dgx-a100", 2, "llama-2-7b", 4096, 16);
  engine::SimulateOptions options;
  options.record = record;
  auto s = engine::simulate_step(simulate::Predictor(job), *parallel::parse_strategy(text), options);
  EXPECT_TRUE(s);
  return std::move(*s);
}

std::uint64_t varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (int shift = 0; !bytes.empty() && shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) break;
  }
  return value;
}
std::string_view delimited(std::string_view& bytes) {
  const std::size_t size = static_cast<std::size_t>(varint(bytes));
  EXPECT_LE(size, bytes.size());
  const std::string_view own = bytes.substr(0, size);
  bytes.remove_prefix(own.size());
  return own;
}

/// The parts of a Node of et_def.proto that the test needs.
struct Node {
  std::uint64_t id = 0, type = 0;
  std::string name;
  std::vector<std::uint64_t> needs;
  std::map<std::string, std::int64_t> numbers;
};

Node read_node(std::string_view bytes) {
  Node node;
  while (!bytes.empty()) {
    const std::uint64_t key = varint(bytes);
    if (key == (1 << 3)) node.id = varint(bytes);
    else if (key == (3 << 3)) node.type = varint(bytes);
    else if (key % 8 == 0) varint(bytes);
    else {
      std::string_view field = delimited(bytes);
      if (key >> 3 == 2) node.name = field;
      if (key >> 3 == 4 || key >> 3 == 5) {
        while (!field.empty()) node.needs.push_back(varint(field));
      }
      if (key >> 3 != 10) continue;
      varint(field);  // tag of the attribute's name
      const std::string name(delimited(field));
      if (varint(field) == (9 << 3)) node.numbers[name] = static_cast<std::int64_t>(varint(field));
    }
  }
  return node;
}

std::vector<Node> nodes_of(const std::string& trace) {
  std::string_view rest = trace;
  std::string_view metadata = delimited(rest);
  EXPECT_EQ(metadata.substr(2), "0.0.4");
  std::vector<Node> nodes;
  while (!rest.empty()) nodes.push_back(read_node(delimited(rest)));
  return nodes;
}

TEST(Chakra, EveryOperationIsANodeWhoseDependenciesExist) {
  const engine::Simulated s = step("tensor=2 pipeline=2 zero=1 microbatch=1");
  for (const int rank : {0, 9}) {
    const std::vector<Node> nodes = nodes_of(chakra_trace(s, rank));
    EXPECT_GT(nodes.size(), s.graph.stages[static_cast<std::size_t>(s.layout.stage_of(rank))].ops.size());
    std::set<std::uint64_t> ids;
    for (const Node& node : nodes) EXPECT_TRUE(ids.insert(node.id).second);
    for (const Node& node : nodes) {
      EXPECT_TRUE(node.type >= 4 && node.type <= 7) << node.name;
      for (const std::uint64_t need : node.needs) EXPECT_EQ(ids.count(need), 1u) << node.name;
    }
  }
}

TEST(Chakra, EverySendHasItsReceive) {
  const engine::Simulated s = step("tensor=2 pipeline=2 zero=1 microbatch=1");
  std::multiset<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>> sent, received;
  for (const int rank : {1, 9}) {
    for (const Node& node : nodes_of(chakra_trace(s, rank))) {
      if (node.type != 5 && node.type != 6) continue;
      const auto message = std::tuple(node.numbers.at("comm_src"), node.numbers.at("comm_dst"), node.numbers.at("comm_tag"),
                                      node.numbers.at("comm_size"));
      (node.type == 5 ? sent : received).insert(message);
    }
  }
  EXPECT_EQ(sent.size(), 2u * static_cast<std::size_t>(s.strategy.accumulate));  // an activation and a gradient each
  EXPECT_EQ(sent, received);
}

TEST(LinksSvg, ShowsTheBusiestLinksByName) {
  const std::string picture = links_svg(step("zero=1 microbatch=1", true));
  EXPECT_EQ(picture.rfind("<svg", 0), 0u);
  EXPECT_NE(picture.find("host 0"), std::string::npos);
  EXPECT_NE(picture.find("% full at"), std::string::npos);
  // One rank alone sends nothing.
  engine::Simulated none;
  none.step_s = 1;
  EXPECT_NE(links_svg(none).find("no transfer of this step shares a link"), std::string::npos);
}

}  // namespace
}  // namespace chokepoint::report
