// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the probe knows so far, and the experiments its parts share.
#include <chokepoint/measure/network_probe.hpp>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace chokepoint::measure {

using HostPair = std::pair<int, int>;
using HostPairs = std::vector<HostPair>;

struct State {
  State(Runner& runner, const ProbeOptions& options);

  Runner& runner;
  const ProbeOptions& options;
  topology::MeasuredNetwork network;
  std::vector<std::vector<int>> ranks;         ///< by host
  std::vector<HostPairs> rounds;               ///< those that ran

  bool out_of_time() const { return runner.elapsed_s() > options.seconds; }
  Flow flow(int from, int to, int which) const;
  /// One flow (or several, of further ranks) for each pair.
  std::vector<Flow> flows(const HostPairs& pairs, bool several) const;
  topology::MeasuredPair& pair(int from, int to);
  /// What both ends reach with anyone, the smaller.
  double ends(int from, int to) const;
  double share_of_ends(const topology::MeasuredPair& pair, const topology::Spread& rate) const;

  /// Rates of the pairs while all run at once, by pair and repeat (the options' repeats, or fewer).
  /// `windows`: how many times longer than usual each repeat is; flows that share a way take turns in it.
  Result<Outcome> rates(const HostPairs& pairs, int most_repeats = 1 << 20, double windows = 1);
  /// The same, kept as what each pair reaches in company and each host at most.
  Result<bool> together(const HostPairs& pairs);
  /// Both directions of all pairs at once.
  Result<bool> both_ways(const HostPairs& pairs, int most_repeats = 1 << 20);
  /// The smaller share of its ends' rates that the pair's two directions reached when last busy both ways.
  double both_ways_share(const HostPair& hosts);
  Result<bool> alone(std::size_t pair, double windows = 1);
  /// What each host reaches: the median over the partners with which it is near its best, so that no single lucky window
  /// decides.
  void settle();
  /// Below kSlowShare of the median host, either way.
  bool is_slow(int host) const;

 private:
  std::map<HostPair, std::size_t> index_;
};

/// Hosts that share a way, from the user or from exchanging partners of slow pairs.
Result<bool> find_groups(State& state);
/// All hosts of a group to others at once against alone: the rate of the way they share.
Result<bool> measure_groups(State& state);
/// One host with two partners at once: whether its partners or its own link were the limit.
Result<bool> measure_ends(State& state);

}  // namespace chokepoint::measure
