// SPDX-License-Identifier: Apache-2.0
#include "network_state.hpp"

#include <algorithm>

namespace chokepoint::measure {

using namespace topology;

State::State(Runner& runner_in, const ProbeOptions& options_in) : runner(runner_in), options(options_in) {
  const std::vector<std::string> host_of_rank = runner.host_of_rank();
  std::map<std::string, std::size_t> known;
  for (std::size_t rank = 0; rank < host_of_rank.size(); ++rank) {
    const auto [at, fresh] = known.emplace(host_of_rank[rank], ranks.size());
    if (fresh) {
      ranks.emplace_back();
      network.hosts.push_back({.name = host_of_rank[rank], .ranks = 0, .out_bytes_per_s = {}, .in_bytes_per_s = {}, .latency_s = {}, .inside_bytes_per_s = {}, .inside_latency_s = {}});
    }
    ranks[at->second].push_back(static_cast<int>(rank));
    ++network.hosts[at->second].ranks;
  }
  network.transport = runner.transport();
  network.mtu = runner.mtu();
}

Flow State::flow(int from, int to, int which) const {
  const auto& a = ranks[static_cast<std::size_t>(from)];
  const auto& b = ranks[static_cast<std::size_t>(to)];
  return {a[static_cast<std::size_t>(which) % a.size()], b[static_cast<std::size_t>(which) % b.size()]};
}

std::vector<Flow> State::flows(const HostPairs& pairs, bool several) const {
  std::vector<Flow> list;
  for (const auto& [from, to] : pairs) {
    for (int which = 0; which < (several ? options.flows_per_pair : 1); ++which) list.push_back(flow(from, to, which));
  }
  return list;
}

MeasuredPair& State::pair(int from, int to) {
  const auto [at, fresh] = index_.emplace(HostPair{from, to}, network.pairs.size());
  if (fresh) network.pairs.push_back({from, to, {}, {}, {}, {}});
  return network.pairs[at->second];
}

double State::ends(int from, int to) const {
  return std::min(network.hosts[static_cast<std::size_t>(from)].out_bytes_per_s.median, network.hosts[static_cast<std::size_t>(to)].in_bytes_per_s.median);
}

double State::share_of_ends(const MeasuredPair& found, const Spread& rate) const {
  const double most = ends(found.from, found.to);
  return most > 0 ? rate.median / most : 1;
}

namespace {

constexpr double kNearBest = 0.93;

Spread near_best(const std::vector<double>& rates) {
  if (rates.empty()) return {};
  const double best = *std::max_element(rates.begin(), rates.end());
  std::vector<double> near;
  for (const double rate : rates) {
    if (rate >= kNearBest * best) near.push_back(rate);
  }
  return spread_of(near);
}

double median_of(const std::vector<MeasuredHost>& hosts, Spread MeasuredHost::* rate) {
  std::vector<double> values;
  for (const MeasuredHost& host : hosts) values.push_back((host.*rate).median);
  return spread_of(std::move(values)).median;
}

}  // namespace

void State::settle() {
  std::vector<std::vector<double>> out(network.hosts.size());
  std::vector<std::vector<double>> in(network.hosts.size());
  for (const MeasuredPair& pair : network.pairs) {
    for (const Spread* rate : {&pair.alone_bytes_per_s, &pair.together_bytes_per_s}) {
      if (rate->samples == 0) continue;
      out[static_cast<std::size_t>(pair.from)].push_back(rate->median);
      in[static_cast<std::size_t>(pair.to)].push_back(rate->median);
    }
  }
  for (std::size_t h = 0; h < network.hosts.size(); ++h) {
    network.hosts[h].out_bytes_per_s = near_best(out[h]);
    network.hosts[h].in_bytes_per_s = near_best(in[h]);
  }
}

bool State::is_slow(int host) const {
  const MeasuredHost& it = network.hosts[static_cast<std::size_t>(host)];
  return it.out_bytes_per_s.median < kSlowShare * median_of(network.hosts, &MeasuredHost::out_bytes_per_s) ||
         it.in_bytes_per_s.median < kSlowShare * median_of(network.hosts, &MeasuredHost::in_bytes_per_s);
}

Result<Outcome> State::rates(const HostPairs& pairs, int most_repeats, double windows) {
  TRY_INTO(const Outcome by_flow, runner.run({.kind = ExperimentKind::kBandwidth, .flows = flows(pairs, true), .op = {}, .ranks = {}, .bytes = 0,
                                              .window_s = windows * options.window_s, .repeats = std::min(options.repeats, most_repeats)}));
  const auto each = static_cast<std::size_t>(options.flows_per_pair);
  if (by_flow.size() != pairs.size() * each) return fail("the probe's ranks answered about other flows than asked for");
  Outcome sums(pairs.size());
  for (std::size_t i = 0; i < by_flow.size(); ++i) {
    std::vector<double>& sum = sums[i / each];
    sum.resize(std::max(sum.size(), by_flow[i].size()));
    for (std::size_t k = 0; k < by_flow[i].size(); ++k) sum[k] += by_flow[i][k];
  }
  return sums;
}

Result<bool> State::together(const HostPairs& pairs) {
  TRY_INTO(const Outcome found, rates(pairs));
  for (std::size_t i = 0; i < pairs.size(); ++i) pair(pairs[i].first, pairs[i].second).together_bytes_per_s = spread_of(found[i]);
  return true;
}

Result<bool> State::both_ways(const HostPairs& pairs, int most_repeats) {
  HostPairs directed = pairs;
  for (const auto& [a, b] : pairs) directed.emplace_back(b, a);
  TRY_INTO(const Outcome found, rates(directed, most_repeats));
  for (std::size_t i = 0; i < directed.size(); ++i) pair(directed[i].first, directed[i].second).both_ways_bytes_per_s = spread_of(found[i]);
  return true;
}

double State::both_ways_share(const HostPair& hosts) {
  const MeasuredPair forth = pair(hosts.first, hosts.second);
  const MeasuredPair back = pair(hosts.second, hosts.first);
  return std::min(share_of_ends(forth, forth.both_ways_bytes_per_s), share_of_ends(back, back.both_ways_bytes_per_s));
}

Result<bool> State::alone(std::size_t index, double windows) {
  const HostPair hosts{network.pairs[index].from, network.pairs[index].to};
  TRY_INTO(const Outcome found, rates({hosts}, 1 << 20, windows));
  network.pairs[index].alone_bytes_per_s = spread_of(found.front());
  return true;
}

}  // namespace chokepoint::measure
