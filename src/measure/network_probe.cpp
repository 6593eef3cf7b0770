// SPDX-License-Identifier: Apache-2.0
// The order of experiments. Cost: with n hosts up to 3 (n - 1) rounds of `repeats` windows, then one experiment for each
// slow pair and a few for each group; the time budget cuts the list from its end.
#include <chokepoint/measure/network_probe.hpp>

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <optional>

#include "network_state.hpp"

namespace chokepoint::measure {

using namespace topology;

namespace {

constexpr double kShortBytes = 8;            ///< of latency's messages
constexpr int kLatencyRepeats = 20;
constexpr int kAllRoundsHosts = 16;          ///< up to here every pair meets; above, rounds of doubling distance
constexpr std::size_t kMostAlone = 12;       ///< pairs run again alone, the slowest first

/// Rounds among many hosts: a tournament where there are few, else partners at distances 1, 2, 4, ... both ways round.
std::vector<std::vector<std::pair<int, int>>> rounds_of(int hosts) {
  if (hosts <= kAllRoundsHosts) return tournament(hosts);
  std::vector<std::vector<std::pair<int, int>>> rounds;
  for (int distance = 1; distance < hosts; distance *= 2) {
    for (const int first : {0, distance}) {
      std::vector<std::pair<int, int>> round;
      for (int i = first; i + distance < hosts; ++i) {
        if ((i - first) / distance % 2 == 0) round.emplace_back(i, i + distance);
      }
      if (!round.empty()) rounds.push_back(std::move(round));
    }
  }
  return rounds;
}

/// Short messages: every pair of every round.
Result<bool> measure_latency(State& state, const std::vector<std::vector<std::pair<int, int>>>& rounds) {
  std::vector<std::vector<double>> of_host(state.network.hosts.size());
  for (const auto& round : rounds) {
    if (state.out_of_time()) break;
    Experiment experiment{.kind = ExperimentKind::kMessage, .flows = state.flows(round, false), .bytes = kShortBytes, .repeats = kLatencyRepeats};
    TRY_INTO(const Outcome outcome, state.runner.run(experiment));
    for (std::size_t i = 0; i < round.size() && i < outcome.size(); ++i) {
      const Spread spread = spread_of(outcome[i]);
      state.pair(round[i].first, round[i].second).latency_s = spread;
      state.pair(round[i].second, round[i].first).latency_s = spread;
      of_host[static_cast<std::size_t>(round[i].first)].push_back(spread.median);
      of_host[static_cast<std::size_t>(round[i].second)].push_back(spread.median);
    }
  }
  for (std::size_t h = 0; h < of_host.size(); ++h) state.network.hosts[h].latency_s = spread_of(of_host[h]);
  return true;
}

/// The first two ranks of each host, all hosts at once: what is inside a host does not meet another host's traffic.
Result<bool> measure_inside(State& state) {
  std::vector<Flow> flows;
  std::vector<std::size_t> hosts;
  for (std::size_t h = 0; h < state.ranks.size(); ++h) {
    if (state.ranks[h].size() < 2) continue;
    flows.push_back({state.ranks[h][0], state.ranks[h][1]});
    hosts.push_back(h);
  }
  if (flows.empty()) return true;
  TRY_INTO(const Outcome rates, state.runner.run({.kind = ExperimentKind::kBandwidth, .flows = flows, .window_s = state.options.window_s, .repeats = state.options.repeats}));
  TRY_INTO(const Outcome times, state.runner.run({.kind = ExperimentKind::kMessage, .flows = flows, .bytes = kShortBytes, .repeats = kLatencyRepeats}));
  for (std::size_t i = 0; i < hosts.size() && i < rates.size() && i < times.size(); ++i) {
    state.network.hosts[hosts[i]].inside_bytes_per_s = spread_of(rates[i]).median;
    state.network.hosts[hosts[i]].inside_latency_s = spread_of(times[i]).median;
  }
  return true;
}

/// Each round one way, the other way, and both at once.
Result<bool> measure_rounds(State& state, const std::vector<std::vector<std::pair<int, int>>>& rounds) {
  std::size_t done = 0;
  for (const auto& round : rounds) {
    if (state.out_of_time()) break;
    std::vector<std::pair<int, int>> back;
    for (const auto& [a, b] : round) back.emplace_back(b, a);
    TRY_INTO([[maybe_unused]] const bool forth_done, state.together(round));
    TRY_INTO([[maybe_unused]] const bool back_done, state.together(back));
    TRY_INTO([[maybe_unused]] const bool both_done, state.both_ways(round));
    state.rounds.push_back(round);
    ++done;
  }
  state.settle();
  if (done < rounds.size()) {
    state.network.notes.push_back({fmt::format("{} of {} rounds done in the time allowed", done, rounds.size()), {}});
  }
  if (static_cast<int>(state.network.hosts.size()) > kAllRoundsHosts) {
    state.network.notes.push_back({fmt::format("more than {} hosts: partners at distances 1, 2, 4, ..., not every pair", kAllRoundsHosts), {}});
  }
  return true;
}

/// Pairs below what both ends reach elsewhere, worst first, one at a time.
Result<bool> measure_alone(State& state) {
  std::vector<std::pair<double, std::size_t>> slow;
  for (std::size_t i = 0; i < state.network.pairs.size(); ++i) {
    const MeasuredPair& pair = state.network.pairs[i];
    const double share = state.share_of_ends(pair, pair.together_bytes_per_s);
    if (pair.together_bytes_per_s.samples > 0 && share < kSlowShare) slow.emplace_back(share, i);
  }
  std::sort(slow.begin(), slow.end());
  std::size_t done = 0;
  for (const auto& [share, index] : slow) {
    if (done == kMostAlone || state.out_of_time()) break;
    TRY_INTO([[maybe_unused]] const bool ran, state.alone(index));
    ++done;
  }
  state.settle();
  if (done < slow.size()) {
    state.network.notes.push_back({fmt::format("{} of {} pairs that were slow in company were run alone, the slowest first", done, slow.size()), {}});
  }
  return true;
}

/// Before a host counts as slow, its best pair each way runs again alone and over twice the time: one disturbed round may have
/// been all that showed it with a near partner.
Result<bool> confirm_slow(State& state) {
  std::size_t done = 0;
  for (int h = 0; h < static_cast<int>(state.network.hosts.size()) && done < kMostAlone; ++h) {
    if (!state.is_slow(h)) continue;
    for (const bool out : {true, false}) {
      std::optional<std::size_t> best;
      for (std::size_t i = 0; i < state.network.pairs.size(); ++i) {
        const MeasuredPair& pair = state.network.pairs[i];
        if ((out ? pair.from : pair.to) != h || pair.together_bytes_per_s.samples == 0) continue;
        if (!best || pair.together_bytes_per_s.median > state.network.pairs[*best].together_bytes_per_s.median) best = i;
      }
      if (!best || state.network.pairs[*best].alone_bytes_per_s.samples > 0 || state.out_of_time()) continue;
      TRY_INTO([[maybe_unused]] const bool ran, state.alone(*best, 2));
      ++done;
    }
  }
  state.settle();
  return true;
}

/// Sizes from 1 KiB to 1 MiB between the two hosts of the fastest pair, and of the slowest.
Result<bool> measure_messages(State& state) {
  if (state.network.pairs.empty()) return true;
  const auto less = [](const MeasuredPair& a, const MeasuredPair& b) { return a.together_bytes_per_s.median < b.together_bytes_per_s.median; };
  const auto [slowest, fastest] = std::minmax_element(state.network.pairs.begin(), state.network.pairs.end(), less);
  for (const MeasuredPair* pair : {&*fastest, &*slowest}) {
    for (double bytes = 1024; bytes <= 1 << 20; bytes *= 4) {
      if (state.out_of_time()) return true;
      const int repeats = bytes * 10 > pair->together_bytes_per_s.median ? 3 : 7;
      TRY_INTO(const Outcome outcome, state.runner.run({.kind = ExperimentKind::kMessage, .flows = {state.flow(pair->from, pair->to, 0)}, .bytes = bytes, .repeats = repeats}));
      if (!outcome.empty()) state.network.messages.push_back({pair->from, pair->to, bytes, spread_of(outcome.front())});
    }
    if (&*fastest == &*slowest) break;
  }
  return true;
}

/// MPI's collectives over one rank of each host; the largest size is one that takes about half a second.
Result<bool> measure_collectives(State& state) {
  std::vector<int> ranks;
  double slowest = 0;
  for (std::size_t h = 0; h < state.ranks.size(); ++h) {
    ranks.push_back(state.ranks[h].front());
    const double rate = state.network.hosts[h].out_bytes_per_s.median;
    if (rate > 0 && (slowest == 0 || rate < slowest)) slowest = rate;
  }
  for (const char* op : {"all_reduce", "all_gather", "reduce_scatter"}) {
    for (double bytes = 8 * 1024; bytes <= 64.0 * 1024 * 1024; bytes *= 8) {
      if (state.out_of_time()) {
        state.network.notes.push_back({fmt::format("{} of {:.0f} bytes and what would follow left out: time is up", op, bytes), {}});
        return true;
      }
      if (bytes > slowest * 0.5) break;
      TRY_INTO(const Outcome outcome, state.runner.run({.kind = ExperimentKind::kCollective, .op = op, .ranks = ranks, .bytes = bytes, .repeats = state.options.repeats}));
      if (!outcome.empty()) state.network.collectives.push_back({op, static_cast<int>(ranks.size()), bytes, spread_of(outcome.front())});
    }
  }
  return true;
}

Result<bool> run_all(State& state) {
  const auto rounds = rounds_of(static_cast<int>(state.network.hosts.size()));
  TRY_INTO([[maybe_unused]] const bool latency, measure_latency(state, rounds));
  TRY_INTO([[maybe_unused]] const bool inside, measure_inside(state));
  TRY_INTO([[maybe_unused]] const bool pairs, measure_rounds(state, rounds));
  TRY_INTO([[maybe_unused]] const bool alone, measure_alone(state));
  TRY_INTO([[maybe_unused]] const bool confirmed, confirm_slow(state));
  TRY_INTO([[maybe_unused]] const bool groups, find_groups(state));
  TRY_INTO([[maybe_unused]] const bool shared, measure_groups(state));
  TRY_INTO([[maybe_unused]] const bool ends, measure_ends(state));
  TRY_INTO([[maybe_unused]] const bool messages, measure_messages(state));
  if (state.options.collectives) {
    TRY_INTO([[maybe_unused]] const bool collectives, measure_collectives(state));
  }
  return true;
}

}  // namespace

std::vector<std::vector<std::pair<int, int>>> tournament(int count) {
  std::vector<std::vector<std::pair<int, int>>> rounds;
  if (count < 2) return rounds;
  const int even = count + count % 2;
  for (int r = 0; r + 1 < even; ++r) {
    std::vector<std::pair<int, int>> round;
    // One stands still (number even - 1), the others turn; with an odd count it stands for a pause.
    if (even == count) round.emplace_back(r, even - 1);
    for (int k = 1; k < even / 2; ++k) round.emplace_back((r + k) % (even - 1), (r + even - 1 - k) % (even - 1));
    rounds.push_back(std::move(round));
  }
  return rounds;
}

Result<MeasuredNetwork> probe_network(Runner& runner, const ProbeOptions& options) {
  State state(runner, options);
  if (state.network.hosts.size() < 2) {
    return fail(fmt::format("all {} ranks run on one host, expected two hosts or more", runner.host_of_rank().size()), {},
                {"mpirun --host nodeA,nodeB ... or a hostfile; one rank for each host is enough"});
  }
  TRY_INTO([[maybe_unused]] const bool done, run_all(state));
  judge(state.network);
  for (const std::string& note : runner.notes()) state.network.notes.push_back({note, {}});
  state.network.wall_s = runner.elapsed_s();
  return std::move(state.network);
}

}  // namespace chokepoint::measure
