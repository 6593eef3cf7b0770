// SPDX-License-Identifier: Apache-2.0
#include "collective_sums.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace chokepoint::report {

using diagnose::MatchedCollective;

namespace {

struct Tally {
  CollectiveSum sum;
  int with_bus = 0, with_expected = 0;
  std::map<int, int> late;
};

CollectiveSum closed(Tally& t) {
  if (t.with_bus > 0) t.sum.bus_bytes_per_s /= t.with_bus;
  if (t.with_expected > 0) t.sum.expected_bus_bytes_per_s /= t.with_expected;
  for (const auto& [rank, count] : t.late) {
    if (count <= t.sum.late_count) continue;
    t.sum.late_rank = rank;
    t.sum.late_count = count;
  }
  return t.sum;
}

}  // namespace

std::vector<CollectiveSum> summed_collectives(const diagnose::Diagnosis& d) {
  std::map<std::tuple<std::string, int, std::int64_t>, Tally> tallies;
  for (const MatchedCollective& c : d.collectives) {
    Tally& t = tallies[{c.group, c.op_known ? static_cast<int>(c.op) : -1, c.bytes}];
    t.sum.group = c.group;
    t.sum.op = c.op_known ? std::string(collective::name(c.op)) : "?";
    t.sum.bytes = c.bytes;
    ++t.sum.count;
    t.sum.wire_ns += c.wire_ns();
    t.sum.wait_ns += c.wait_ns();
    if (const double bus = c.bus_bytes_per_s(); bus > 0) {
      t.sum.bus_bytes_per_s += bus;
      ++t.with_bus;
    }
    if (c.expected_bus_bytes_per_s > 0) {
      t.sum.expected_bus_bytes_per_s += c.expected_bus_bytes_per_s;
      ++t.with_expected;
    }
    if (c.late >= 0) ++t.late[d.ranks[static_cast<std::size_t>(c.late)].rank];
  }
  std::vector<CollectiveSum> sums;
  for (auto& [key, tally] : tallies) sums.push_back(closed(tally));
  std::stable_sort(sums.begin(), sums.end(),
                   [](const auto& a, const auto& b) { return a.wire_ns + a.wait_ns > b.wire_ns + b.wait_ns; });
  return sums;
}

}  // namespace chokepoint::report
