// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/measure/network_probe.hpp>
#include <gtest/gtest.h>

namespace chokepoint::measure {
namespace {

/// Messages of 1 MB that take `each_s`, from `start_s` on until `end_s`.
void add(std::vector<Arrival>& arrivals, double start_s, double end_s, double each_s) {
  double bytes = arrivals.empty() ? 0 : arrivals.back().bytes;
  for (int i = 1; start_s + i * each_s <= end_s + 1e-9; ++i) arrivals.push_back({start_s + i * each_s, bytes += 1e6});
}

TEST(ArrivalRate, EvenMessagesGiveTheirRateWhereverTheWindowCutsThem) {
  std::vector<Arrival> arrivals;
  add(arrivals, 0, 1.2, 0.01);  // 100 MB/s
  for (const double from : {0.3, 0.303, 0.3099}) EXPECT_NEAR(arrival_rate(arrivals, from, 1), 100e6, 1);
}

TEST(ArrivalRate, FlowsThatTakeTurnsAddUpToTheirWay) {
  // 100 MB/s between the two, in turns of 0.15 s; a turn of neither ends with the window.
  std::vector<Arrival> one;
  std::vector<Arrival> other;
  for (int turn = 0; turn < 10; ++turn) add(turn % 2 == 0 ? one : other, 0.15 * turn, 0.15 * (turn + 1), 0.01);
  EXPECT_NEAR(arrival_rate(one, 0.3, 1) + arrival_rate(other, 0.3, 1), 100e6, 1e6);
}

TEST(ArrivalRate, AReceiverThatWaitsAtTheEndChangesLittle) {
  // 100 MB/s; what came from 0.93 s on is seen at 1.03 s, all at once. Bytes over time would lose a tenth.
  std::vector<Arrival> arrivals;
  add(arrivals, 0, 0.93, 0.01);
  for (int i = 0; i < 10; ++i) arrivals.push_back({1.03, arrivals.back().bytes + 1e6});
  EXPECT_NEAR(arrival_rate(arrivals, 0.3, 1), 100e6, 5e6);
}

TEST(ArrivalRate, NothingThatCameIsNoRate) {
  EXPECT_EQ(arrival_rate({}, 0.3, 1), 0);
  EXPECT_EQ(arrival_rate({{0.1, 5}}, 0.3, 1), 0);
  EXPECT_EQ(arrival_rate({{0.1, 5}}, 1, 1), 0);
}

}  // namespace
}  // namespace chokepoint::measure
