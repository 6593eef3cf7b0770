// SPDX-License-Identifier: Apache-2.0
// The probe on made-up networks: flows share links max-min fairly, latencies are given, repeats scatter a little.
#include <chokepoint/measure/network_probe.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <chokepoint/wiring/measured_network.hpp>
#include <set>

namespace chokepoint::measure {
namespace {

using topology::MeasuredNetwork;

/// Hosts with a link each way, in racks whose uplinks are shared.
class MadeUp final : public Runner {
 public:
  std::vector<double> out, in;     ///< bytes/s by host
  std::vector<int> rack;
  std::vector<double> up, down;    ///< by rack
  int ranks_per_host = 1;
  mutable double clock_s = 0;
  int experiments = 0;
  int disturbed_host = -1;         ///< its flows lose a third while others run
  bool backlog = false;            ///< what goes into a slow host comes out of its queue: it takes nothing of the way

  MadeUp(std::vector<int> racks, double host, double uplink) : out(racks.size(), host), in(racks.size(), host), rack(std::move(racks)) {
    const int count = 1 + *std::max_element(rack.begin(), rack.end());
    up.assign(static_cast<std::size_t>(count), uplink);
    down = up;
  }
  std::vector<std::string> host_of_rank() const override {
    std::vector<std::string> names;
    for (std::size_t h = 0; h < rack.size(); ++h) names.insert(names.end(), static_cast<std::size_t>(ranks_per_host), "h" + std::to_string(h));
    return names;
  }
  std::string transport() const override { return "tcp"; }
  int mtu() const override { return 1500; }
  double elapsed_s() const override { return clock_s; }

  Result<Outcome> run(const Experiment& experiment) override {
    ++experiments;
    clock_s += experiment.kind == ExperimentKind::kBandwidth ? experiment.window_s * experiment.repeats : 1e-3;
    Outcome outcome;
    const std::vector<double> rates = shared(experiment.flows);
    for (std::size_t f = 0; f < experiment.flows.size(); ++f) {
      const bool disturbed = experiment.flows.size() > 1 && disturbed_host >= 0 && (experiment.flows[f].from == disturbed_host || experiment.flows[f].to == disturbed_host);
      std::vector<double> repeats;
      for (int k = 0; k < experiment.repeats; ++k) {
        const double value = experiment.kind == ExperimentKind::kBandwidth ? rates[f] : 20e-6 + experiment.bytes / rates[f];
        repeats.push_back(value * scatter() * (disturbed ? 0.67 : 1));
      }
      outcome.push_back(std::move(repeats));
    }
    if (experiment.kind == ExperimentKind::kCollective) outcome.assign(1, std::vector<double>(static_cast<std::size_t>(experiment.repeats), 1e-3));
    return outcome;
  }

 private:
  /// 1 +- 1 %, the same in each run of the test.
  double scatter() {
    seed_ = seed_ * 1103515245U + 12345U;
    return 1 + 0.01 * (static_cast<double>(seed_ >> 16U & 0xffffU) / 32768.0 - 1);
  }
  std::size_t host(int rank) const { return static_cast<std::size_t>(rank / ranks_per_host); }
  std::vector<std::size_t> links(const Flow& flow) const {
    const std::size_t a = host(flow.from);
    const std::size_t b = host(flow.to);
    const std::size_t n = rack.size();
    if (a == b) return {};
    std::vector<std::size_t> list{a, n + b};
    if (backlog && in[b] < in[a]) return list;
    if (rack[a] != rack[b]) list.insert(list.end(), {2 * n + static_cast<std::size_t>(rack[a]), 2 * n + up.size() + static_cast<std::size_t>(rack[b])});
    return list;
  }
  /// Progressive filling: the link with the least room for each of its flows is filled first.
  std::vector<double> shared(const std::vector<Flow>& flows) const {
    std::vector<double> room(out);
    for (const auto* list : {&in, &up, &down}) room.insert(room.end(), list->begin(), list->end());
    std::vector<double> rate(flows.size(), 10e9);
    std::vector<bool> fixed(flows.size(), false);
    for (;;) {
      double least = 1e18;
      std::size_t tightest = room.size();
      for (std::size_t l = 0; l < room.size(); ++l) {
        double users = 0;
        for (std::size_t f = 0; f < flows.size(); ++f) users += !fixed[f] && crosses(flows[f], l) ? 1 : 0;
        if (users > 0 && room[l] / users < least) {
          least = room[l] / users;
          tightest = l;
        }
      }
      if (tightest == room.size()) return rate;
      for (std::size_t f = 0; f < flows.size(); ++f) {
        if (fixed[f] || !crosses(flows[f], tightest)) continue;
        fixed[f] = true;
        rate[f] = least;
        for (const std::size_t l : links(flows[f])) room[l] -= least;
      }
    }
  }
  bool crosses(const Flow& flow, std::size_t link) const {
    const std::vector<std::size_t> list = links(flow);
    return std::find(list.begin(), list.end(), link) != list.end();
  }
  unsigned seed_ = 7;
};

MeasuredNetwork probed(MadeUp& network, const ProbeOptions& options = {}) {
  Result<MeasuredNetwork> found = probe_network(network, options);
  EXPECT_TRUE(found) << (found ? "" : found.error().message);
  return found ? *found : MeasuredNetwork{};
}

bool any_mentions(const std::vector<std::string>& lines, const std::string& word) {
  return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) { return line.find(word) != std::string::npos; });
}

TEST(Tournament, EveryPairMeetsOnceAndNobodyTwiceInARound) {
  for (const int hosts : {2, 3, 4, 7, 8}) {
    std::set<std::pair<int, int>> met;
    for (const auto& round : tournament(hosts)) {
      std::set<int> busy;
      for (const auto& [a, b] : round) {
        EXPECT_TRUE(busy.insert(a).second && busy.insert(b).second) << hosts;
        EXPECT_TRUE(met.insert({std::min(a, b), std::max(a, b)}).second) << hosts;
      }
    }
    EXPECT_EQ(met.size(), static_cast<std::size_t>(hosts * (hosts - 1) / 2));
  }
  EXPECT_TRUE(tournament(1).empty());
}

TEST(NetworkProbe, EvenNetworkHasNothingSlowAndNothingShared) {
  MadeUp network({0, 0, 0, 0, 0, 0}, 100e6, 1e12);
  const MeasuredNetwork found = probed(network);
  EXPECT_TRUE(found.slow.empty());
  EXPECT_TRUE(found.groups.empty());
  for (const auto& host : found.hosts) EXPECT_NEAR(host.out_bytes_per_s.median, 100e6, 2e6);
  EXPECT_TRUE(any_mentions(found.unknown, "stays hidden"));
}

// Every round ran while something else kept h1 back; alone it has its full rate.
TEST(NetworkProbe, AHostThatWasDisturbedInCompanyIsNotCalledSlow) {
  MadeUp network({0, 0, 0, 0, 0, 0}, 100e6, 1e12);
  network.disturbed_host = 1;
  const MeasuredNetwork found = probed(network);
  EXPECT_FALSE(any_mentions(found.slow, "h1 sends")) << found.slow.size();
  EXPECT_FALSE(any_mentions(found.slow, "h1 receives"));
  EXPECT_NEAR(found.hosts[1].out_bytes_per_s.median, 100e6, 3e6);
}

// 200 MB/s between racks of four; h5 takes 40. Counted with it the way into its rack would seem to carry 240.
TEST(NetworkProbe, AWayIsMeasuredWithoutTheQueueOfASlowHost) {
  MadeUp network({0, 0, 0, 0, 1, 1, 1, 1}, 100e6, 200e6);
  network.in[5] = network.out[5] = 40e6;
  network.backlog = true;
  ProbeOptions options;
  options.seconds = 600;
  options.groups = {{"h0", "h1", "h2", "h3"}, {"h4", "h5", "h6", "h7"}};
  const MeasuredNetwork found = probed(network, options);
  ASSERT_EQ(found.groups.size(), 2U);
  EXPECT_NEAR(found.groups[0].out_bytes_per_s, 200e6, 5e6);
  EXPECT_NEAR(found.groups[1].in_bytes_per_s, 200e6, 5e6);
}

TEST(NetworkProbe, SlowHostIsNamedByDirection) {
  MadeUp network({0, 0, 0, 0, 0}, 100e6, 1e12);
  network.out[3] = 40e6;
  const MeasuredNetwork found = probed(network);
  ASSERT_EQ(found.slow.size(), 1U);
  EXPECT_EQ(found.slow.front().rfind("h3 sends at most", 0), 0U) << found.slow.front();
  EXPECT_NEAR(found.hosts[3].out_bytes_per_s.median, 40e6, 1e6);
  EXPECT_NEAR(found.hosts[3].in_bytes_per_s.median, 100e6, 2e6);
}

TEST(NetworkProbe, TwoRacksAreFoundHoweverTheyAreNumbered) {
  for (const std::vector<int>& racks : {std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1}, {0, 1, 0, 1, 0, 1, 0, 1}, {0, 0, 0, 0, 0, 1, 1, 1}, {1, 0, 0, 1, 1, 0, 1, 0}}) {
    MadeUp network(racks, 100e6, 200e6);
    const MeasuredNetwork found = probed(network);
    ASSERT_EQ(found.groups.size(), 2U);
    for (std::size_t a = 0; a < racks.size(); ++a) {
      for (std::size_t b = 0; b < racks.size(); ++b) EXPECT_EQ(racks[a] == racks[b], found.group_of(static_cast<int>(a)) == found.group_of(static_cast<int>(b))) << a << " " << b;
    }
    // Four hosts of 100 MB/s over 200 MB/s: 2:1. Of five and three, three pairs at once fill it: 5 x 100 / 200 and 3 x 100 / 200.
    const auto& group = found.groups[static_cast<std::size_t>(found.group_of(0))];
    EXPECT_NEAR(group.out_bytes_per_s, 200e6, 6e6);
    EXPECT_NEAR(group.out_oversubscription, static_cast<double>(group.hosts.size()) * 100 / 200, 0.1);
    EXPECT_TRUE(found.slow.empty());
  }
}

TEST(NetworkProbe, SlowHostInsideARackIsPlacedToo) {
  MadeUp network({0, 0, 0, 0, 1, 1, 1, 1}, 100e6, 200e6);
  network.out[5] = network.in[5] = 40e6;
  const MeasuredNetwork found = probed(network);
  EXPECT_EQ(found.slow.size(), 2U);
  ASSERT_EQ(found.groups.size(), 2U);
  EXPECT_EQ(found.group_of(5), found.group_of(4));
  EXPECT_EQ(found.group_of(3), found.group_of(0));
}

TEST(NetworkProbe, UplinkNarrowerThanOneHostShowsAlone) {
  MadeUp network({0, 0, 0, 1, 1, 1}, 100e6, 60e6);
  const MeasuredNetwork found = probed(network);
  ASSERT_EQ(found.groups.size(), 2U);
  EXPECT_NEAR(found.groups[0].out_bytes_per_s, 60e6, 2e6);
  EXPECT_TRUE(found.slow.empty()) << found.slow.front();  // the shared way explains every slow pair
}

TEST(NetworkProbe, NamedGroupsAreTakenAndUnknownHostsIgnored) {
  MadeUp network({0, 0, 1, 1}, 100e6, 100e6);
  ProbeOptions options;
  options.groups = {{"h0", "h1", "h9"}, {"h2", "h3"}};
  const MeasuredNetwork found = probed(network, options);
  ASSERT_EQ(found.groups.size(), 2U);
  EXPECT_TRUE(found.groups_given);
  EXPECT_NEAR(found.groups[0].out_oversubscription, 2, 0.1);
  options.groups = {{"h0", "h1"}, {"h1"}};
  EXPECT_FALSE(probe_network(network, options));
}

TEST(NetworkProbe, StopsWhenItsTimeIsUp) {
  MadeUp network({0, 0, 0, 0, 1, 1, 1, 1}, 100e6, 200e6);
  ProbeOptions options;
  options.seconds = 2;
  const MeasuredNetwork found = probed(network, options);
  EXPECT_LT(network.clock_s, 4);
  EXPECT_FALSE(found.notes.empty());
}

TEST(NetworkProbe, OneHostIsAnError) {
  MadeUp network({0}, 1e6, 1e6);
  network.ranks_per_host = 4;
  const auto found = probe_network(network, {});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message, "all 4 ranks run on one host, expected two hosts or more");
}

TEST(NetworkDrift, WorseOnlyBeyondBothSpreads) {
  MadeUp before({0, 0, 0, 0}, 100e6, 1e12);
  MadeUp same({0, 0, 0, 0}, 100e6, 1e12);
  MadeUp slower({0, 0, 0, 0}, 100e6, 1e12);
  slower.in[2] = 70e6;
  const MeasuredNetwork first = probed(before);
  EXPECT_FALSE(compare(first, probed(same)).worse());
  const Comparison comparison = compare(first, probed(slower));
  ASSERT_TRUE(comparison.worse());
  EXPECT_EQ(comparison.changed.front().what, "h2 in");
  EXPECT_FALSE(compare(probed(slower), first).worse());  // better is no fault
}

TEST(MeasuredNetworkFile, ReadsBackWhatItWrote) {
  MadeUp network({0, 0, 0, 1, 1, 1}, 100e6, 60e6);
  const MeasuredNetwork found = probed(network);
  const std::string text = wiring::to_json(found);
  const Result<MeasuredNetwork> again = wiring::read_measured_network(text, "net.json");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(wiring::to_json(*again), text);
  const topology::Fabric fabric = wiring::fabric_of(*again);
  EXPECT_EQ(fabric.hosts_per_leaf, 3);
  EXPECT_NEAR(fabric.oversubscription, 5, 0.3);  // 3 x 100 over 60
}

TEST(MeasuredNetworkFile, FaultsAreNamedByTheirPlace) {
  const auto fault = [](const std::string& text) { return wiring::read_measured_network(text, "n.json").error().message; };
  EXPECT_EQ(fault("[]"), "this is no JSON object");
  EXPECT_EQ(fault(R"({"schema": "other/1"})"), "'schema' is 'other/1', expected 'chokepoint.network/1'");
  EXPECT_EQ(fault(R"({"schema": "chokepoint.network/1"})"), "'hosts' is missing or empty");
  EXPECT_EQ(fault(R"({"schema": "chokepoint.network/1", "hosts": [{"name": "a"}], "pairs": [{"from": 1, "to": 0}]})"),
            "'pairs[0].from' is not a number from 0 to 0");
}

TEST(MeasuredNetwork, FrameBytesFollowTheMtu) {
  MeasuredNetwork network;
  network.transport = "tcp";
  network.mtu = 1500;
  EXPECT_NEAR(network.frame_bytes_per_byte(), 1514.0 / 1448.0, 1e-12);
  network.transport = "ucx";
  EXPECT_EQ(network.frame_bytes_per_byte(), 1);
}

}  // namespace
}  // namespace chokepoint::measure
