// SPDX-License-Identifier: Apache-2.0
// Which hosts share a way to the others.
//
// In a round a host has one partner, so a pair that is slow although both ends are fast with others shares a way with
// other slow pairs. Let (a, b) and (c, d) be slow together. Run the same round with (a, d) and (c, b) instead, then with
// (a, c) and (b, d). With two racks exactly one of the two exchanges keeps every pair crossing, so it stays slow and the
// other is fast: that tells whether a stands with c or with d. One fast and one slow new pair (three racks or more): the
// ends of the fast one stand together. A pair that was fast in the slow round has both ends in one rack; exchanging it
// with (a, b) tells which. Each slow pair costs two experiments; no assumption about names or numbering is made.
#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <optional>
#include <string_view>

#include "network_state.hpp"

namespace chokepoint::measure {

using namespace topology;

namespace {

constexpr int kMostExchanges = 48;  ///< experiments spent on finding groups
constexpr double kSharedWindows = 6;  ///< flows over one way are watched longer: they take turns in its queue
constexpr double kSteadyShare = 0.02; ///< repeats that differ by more are done again
constexpr double kFastShare = 0.93; ///< of the ends' rates: above it a pair shares nothing that matters

/// Sets of hosts that stand together.
class Sets {
 public:
  explicit Sets(std::size_t hosts) : parent_(hosts) { std::iota(parent_.begin(), parent_.end(), 0); }
  int find(int host) const {
    while (parent_[static_cast<std::size_t>(host)] != host) host = parent_[static_cast<std::size_t>(host)];
    return host;
  }
  void join(int a, int b) {
    const int low = std::min(find(a), find(b));
    const int high = std::max(find(a), find(b));
    parent_[static_cast<std::size_t>(high)] = low;
  }

 private:
  std::vector<int> parent_;
};

enum class Verdict { kBothSlow, kFirstFast, kSecondFast, kBothFast };

class Exchanger {
 public:
  Exchanger(State& state, HostPairs base) : state_(state), base_(std::move(base)), sets_(state.network.hosts.size()) {}

  Result<bool> run() {
    HostPairs slow;
    HostPairs fast;
    HostPairs with_slow_host;  // a host slower than its share of the way is never held back by it: it tells nothing
    for (const HostPair& pair : base_) {
      const bool first = state_.is_slow(pair.first);
      const bool second = state_.is_slow(pair.second);
      if (first && second) continue;
      if (first || second) with_slow_host.push_back(first ? pair : HostPair{pair.second, pair.first});
      else (state_.both_ways_share(pair) < kSlowShare ? slow : fast).push_back(pair);
    }
    double least = 1;
    for (const HostPair& pair : slow) least = std::min(least, state_.both_ways_share(pair));
    fast_from_ = std::min(kSlowShare, (1 + least) / 2);  // half way between held back and free: scatter reaches neither
    for (std::size_t i = 0; i < slow.size(); ++i) {
      for (std::size_t j = i + 1; j < slow.size() && may_go_on(); ++j) {
        if (placed(slow[i]) && placed(slow[j])) continue;
        TRY_INTO([[maybe_unused]] const bool done, place(slow[i], slow[j]));
      }
    }
    for (const HostPair& pair : fast) {
      if (slow.empty() || !may_go_on()) break;
      TRY_INTO([[maybe_unused]] const bool done, place_fast(pair, slow.front()));
    }
    for (const HostPair& pair : with_slow_host) {
      if (slow.empty() || !may_go_on()) break;
      TRY_INTO([[maybe_unused]] const bool done, place_partner(pair, slow.front()));
    }
    return true;
  }
  const Sets& sets() const { return sets_; }

 private:
  bool may_go_on() const { return exchanges_ < kMostExchanges && !state_.out_of_time(); }
  bool placed(const HostPair& pair) const { return in_company(pair.first) && in_company(pair.second); }
  bool in_company(int host) const {
    for (int other = 0; other < static_cast<int>(state_.network.hosts.size()); ++other) {
      if (other != host && sets_.find(other) == sets_.find(host)) return true;
    }
    return false;
  }

  /// The base round with two of its pairs replaced.
  Result<Verdict> exchange(const HostPair& out1, const HostPair& out2, const HostPair& in1, const HostPair& in2) {
    HostPairs round;
    for (const HostPair& pair : base_) {
      if (pair != out1 && pair != out2) round.push_back(pair);
    }
    round.push_back(in1);
    round.push_back(in2);
    ++exchanges_;
    TRY_INTO([[maybe_unused]] const bool done, state_.both_ways(round));
    const bool first = state_.both_ways_share(in1) >= fast_from_;
    const bool second = state_.both_ways_share(in2) >= fast_from_;
    return first && second ? Verdict::kBothFast : first ? Verdict::kFirstFast : second ? Verdict::kSecondFast : Verdict::kBothSlow;
  }

  Result<bool> place(const HostPair& p, const HostPair& q) {
    const auto [a, b] = p;
    const auto [c, d] = q;
    TRY_INTO(const Verdict crossed, exchange(p, q, {a, d}, {c, b}));
    TRY_INTO(const Verdict swapped, exchange(p, q, {a, c}, {b, d}));
    if (crossed == Verdict::kBothSlow && swapped == Verdict::kBothFast) join_sides(a, c, b, d);
    if (swapped == Verdict::kBothSlow && crossed == Verdict::kBothFast) join_sides(a, d, b, c);
    if (crossed == Verdict::kFirstFast) sets_.join(a, d);
    if (crossed == Verdict::kSecondFast) sets_.join(c, b);
    if (swapped == Verdict::kFirstFast) sets_.join(a, c);
    if (swapped == Verdict::kSecondFast) sets_.join(b, d);
    return true;
  }
  void join_sides(int a, int c, int b, int d) {
    sets_.join(a, c);
    sets_.join(b, d);
  }

  /// (x, y) was fast: both stand with a, or both with b, or elsewhere.
  Result<bool> place_fast(const HostPair& pair, const HostPair& slow) {
    const auto [x, y] = pair;
    const auto [a, b] = slow;
    for (const HostPair& ends : {HostPair{x, y}, HostPair{y, x}}) {
      TRY_INTO(const Verdict verdict, exchange(pair, slow, {ends.first, a}, {ends.second, b}));
      if (verdict != Verdict::kFirstFast && verdict != Verdict::kSecondFast) continue;
      const int with = verdict == Verdict::kFirstFast ? a : b;
      sets_.join(x, with);
      sets_.join(y, with);
      return true;
    }
    return true;
  }

  /// (s, x) with a slow s: only x counts. It stands with that one of a and b with which it stays fast.
  Result<bool> place_partner(const HostPair& pair, const HostPair& slow) {
    const auto [s, x] = pair;
    const auto [a, b] = slow;
    TRY_INTO(const Verdict with_a, exchange(original(pair), slow, {x, a}, {s, b}));
    TRY_INTO(const Verdict with_b, exchange(original(pair), slow, {x, b}, {s, a}));
    const bool fast_a = with_a == Verdict::kFirstFast || with_a == Verdict::kBothFast;
    const bool fast_b = with_b == Verdict::kFirstFast || with_b == Verdict::kBothFast;
    if (fast_a != fast_b) sets_.join(x, fast_a ? a : b);
    return true;
  }
  /// As it stands in the base round.
  HostPair original(const HostPair& pair) const {
    return std::find(base_.begin(), base_.end(), pair) != base_.end() ? pair : HostPair{pair.second, pair.first};
  }

  State& state_;
  HostPairs base_;
  Sets sets_;
  int exchanges_ = 0;
  double fast_from_ = kSlowShare;
};

/// The round with most pairs held back that no slow host explains; empty when there is none.
HostPairs worst_round(State& state) {
  HostPairs worst;
  double most = 0;
  for (const HostPairs& round : state.rounds) {
    double lost = 0;
    for (const HostPair& pair : round) {
      const double share = state.both_ways_share(pair);
      if (share < kSlowShare && !state.is_slow(pair.first) && !state.is_slow(pair.second)) lost += 1 + (1 - share);
    }
    if (lost > most) {
      most = lost;
      worst = round;
    }
  }
  return worst;
}

Result<bool> take_given(State& state) {
  std::vector<bool> seen(state.network.hosts.size(), false);
  for (const std::vector<std::string>& names : state.options.groups) {
    MeasuredGroup group;
    for (const std::string& name : names) {
      const auto at = std::find_if(state.network.hosts.begin(), state.network.hosts.end(), [&](const MeasuredHost& host) { return host.name == name; });
      if (at == state.network.hosts.end()) continue;  // the file may describe more hosts than take part
      const auto index = static_cast<std::size_t>(at - state.network.hosts.begin());
      if (seen[index]) return fail(fmt::format("host '{}' stands in two groups", name));
      seen[index] = true;
      group.hosts.push_back(static_cast<int>(index));
    }
    if (!group.hosts.empty()) state.network.groups.push_back(std::move(group));
  }
  if (state.network.groups.empty()) return fail("none of the groups' hosts takes part", {}, {fmt::format("hosts here: {} ...", state.network.hosts.front().name)});
  state.network.groups_given = true;
  return true;
}

/// Rates of the pairs at once, summed repeat by repeat, and what their ends could do.
struct Load {
  double reached = 0;
  double deviation = 0;
  double possible = 0;
};
Result<Load> load_of(State& state, const HostPairs& pairs, int most_repeats = 1 << 20, double windows = 1) {
  TRY_INTO(const Outcome found, state.rates(pairs, most_repeats, windows));
  Load load;
  std::vector<double> sums;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    load.possible += state.ends(pairs[i].first, pairs[i].second);
    sums.resize(std::max(sums.size(), found[i].size()));
    for (std::size_t k = 0; k < found[i].size(); ++k) sums[k] += found[i][k];
  }
  const Spread reached = spread_of(sums);
  load.reached = reached.median;
  load.deviation = reached.deviation;
  return load;
}

/// Of a shared way: again over twice the time where the first ones differ, as far as the time allows.
Result<Load> way_of(State& state, const HostPairs& pairs) {
  TRY_INTO(Load load, load_of(state, pairs, 1 << 20, kSharedWindows));
  for (int again = 0; again < 2 && load.deviation > kSteadyShare * load.reached && !state.out_of_time(); ++again) {
    TRY_INTO(const Load other, load_of(state, pairs, 1 << 20, 2 * kSharedWindows));
    if (other.deviation < load.deviation) load = other;
  }
  return load;
}

void say_if_unsteady(State& state, std::size_t g, std::string_view direction, const Load& load) {
  if (load.deviation <= kUnsteadyShare * load.reached) return;
  const std::string& host = state.network.hosts[static_cast<std::size_t>(state.network.groups[g].hosts.front())].name;
  state.network.unknown.push_back(fmt::format("the way {} the group of {}: repeats differ by {:.0f} %, so smaller differences cannot be told apart (a busy processor or network?)", direction, host, 100 * load.deviation / load.reached));
}

/// Each host of the group with one of another, as far as there are; the fastest first, so that one slow end hides nothing.
/// `without_slow`: what a slow end takes in comes out of its own queue for long after, beside what the way carries then.
HostPairs outward(const State& state, std::size_t g, bool without_slow = false) {
  const auto faster = [&](int a, int b) {
    const auto rate = [&](int host) { return state.network.hosts[static_cast<std::size_t>(host)].out_bytes_per_s.median; };
    return rate(a) != rate(b) ? rate(a) > rate(b) : a < b;
  };
  std::vector<int> mine = state.network.groups[g].hosts;
  std::vector<int> others;
  for (std::size_t h = 0; h < state.network.hosts.size(); ++h) {
    const int group = state.network.group_of(static_cast<int>(h));
    if (group >= 0 && group != static_cast<int>(g)) others.push_back(static_cast<int>(h));
  }
  if (without_slow) {
    for (std::vector<int>* hosts : {&mine, &others}) {
      hosts->erase(std::remove_if(hosts->begin(), hosts->end(), [&state](int host) { return state.is_slow(host); }), hosts->end());
    }
  }
  std::sort(mine.begin(), mine.end(), faster);
  std::sort(others.begin(), others.end(), faster);
  HostPairs pairs;
  for (std::size_t i = 0; i < std::min(mine.size(), others.size()); ++i) pairs.emplace_back(mine[i], others[i]);
  return pairs;
}

/// Whether the way that these pairs share is what holds them back.
bool limits(const Load& load) { return load.reached > 0 && load.reached < kFastShare * load.possible; }

/// The group's way to the others, or from them: by its fast hosts, and by all where those do not fill it.
Result<Load> way_of_group(State& state, std::size_t g, bool inward) {
  const HostPairs fast = outward(state, g, true);
  const HostPairs all = outward(state, g);
  Load load;
  for (const HostPairs& pairs : {fast.size() > 1 ? fast : all, all}) {
    HostPairs directed;
    for (const auto& [mine, other] : pairs) directed.emplace_back(inward ? other : mine, inward ? mine : other);
    TRY_INTO(load, way_of(state, directed));
    if (limits(load) || pairs.size() == all.size() || state.out_of_time()) break;
  }
  return load;
}

/// A slow host is not held back itself, but it takes from the others what it sends: with the way into a group full, a
/// further flow to a host of that group costs the others its rate, one to a host elsewhere nothing.
Result<bool> stands_in(State& state, int host, std::size_t g, bool& answer) {
  HostPairs flows;
  for (const auto& [mine, other] : outward(state, g)) {
    if (mine != host && other != host) flows.emplace_back(other, mine);
  }
  if (flows.size() < 2) return true;
  std::optional<int> sender;
  for (int h = 0; h < static_cast<int>(state.network.hosts.size()) && !sender; ++h) {
    const bool busy = std::any_of(flows.begin(), flows.end(), [h](const HostPair& flow) { return flow.first == h || flow.second == h; });
    const int group = state.network.group_of(h);
    if (!busy && h != host && group >= 0 && group != static_cast<int>(g)) sender = h;
  }
  if (!sender) {  // one of the flows gives way
    sender = flows.back().first;
    flows.pop_back();
  }
  TRY_INTO(const Load before, load_of(state, flows));
  HostPairs more = flows;
  more.emplace_back(*sender, host);
  TRY_INTO(const Outcome with, state.rates(more));
  double others = 0;
  for (std::size_t i = 0; i < flows.size(); ++i) others += spread_of(with[i]).median;
  const double taken = spread_of(with.back()).median;
  answer = before.reached < kFastShare * before.possible && before.reached - others > taken / 2;
  return true;
}

Result<bool> place_slow_hosts(State& state) {
  for (std::size_t at = 0; at < state.network.groups.size();) {
    const std::vector<int>& hosts = state.network.groups[at].hosts;
    const int host = hosts.front();
    bool moved = false;
    for (std::size_t g = 0; hosts.size() == 1 && state.is_slow(host) && g < state.network.groups.size() && !moved && !state.out_of_time(); ++g) {
      if (g == at || state.network.groups[g].hosts.size() < 2) continue;
      TRY_INTO([[maybe_unused]] const bool tried, stands_in(state, host, g, moved));
      if (moved) state.network.groups[g].hosts.push_back(host);
    }
    if (moved) state.network.groups.erase(state.network.groups.begin() + static_cast<std::ptrdiff_t>(at));
    else ++at;
  }
  for (MeasuredGroup& group : state.network.groups) std::sort(group.hosts.begin(), group.hosts.end());
  std::sort(state.network.groups.begin(), state.network.groups.end(), [](const MeasuredGroup& a, const MeasuredGroup& b) { return a.hosts.front() < b.hosts.front(); });
  return true;
}

}  // namespace

Result<bool> find_groups(State& state) {
  if (!state.options.groups.empty()) return take_given(state);
  const HostPairs round = worst_round(state);
  if (round.empty()) {
    state.network.unknown.push_back(fmt::format("no pair lost bandwidth while {} pairs were busy: a shared way that so many do not fill stays hidden",
                                                state.network.hosts.size() / 2));
    return true;
  }
  Exchanger exchanger(state, round);
  TRY_INTO([[maybe_unused]] const bool done, exchanger.run());
  for (int h = 0; h < static_cast<int>(state.network.hosts.size()); ++h) {
    const int set = exchanger.sets().find(h);
    const auto at = std::find_if(state.network.groups.begin(), state.network.groups.end(), [&](const MeasuredGroup& group) { return group.hosts.front() == set; });
    if (at != state.network.groups.end()) at->hosts.push_back(h);
    else if (set == h) state.network.groups.push_back({.hosts = {h}, .out_bytes_per_s = 0, .in_bytes_per_s = 0, .out_oversubscription = 1, .in_oversubscription = 1});
  }
  TRY_INTO([[maybe_unused]] const bool placed, place_slow_hosts(state));
  const bool found = std::any_of(state.network.groups.begin(), state.network.groups.end(), [](const MeasuredGroup& group) { return group.hosts.size() > 1; });
  if (!found || state.network.groups.size() < 2) {
    state.network.groups.clear();
    state.network.unknown.push_back("pairs slowed each other in company, but who shares a way with whom did not come out clear; --groups says it");
  }
  return true;
}

Result<bool> measure_groups(State& state) {
  bool limited = false;
  for (std::size_t g = 0; g < state.network.groups.size(); ++g) {
    if (outward(state, g).empty() || state.out_of_time()) continue;
    TRY_INTO(const Load sent, way_of_group(state, g, false));
    TRY_INTO(const Load taken, way_of_group(state, g, true));
    MeasuredGroup& group = state.network.groups[g];
    double out_alone = 0;
    double in_alone = 0;
    for (const int host : group.hosts) {
      out_alone += state.network.hosts[static_cast<std::size_t>(host)].out_bytes_per_s.median;
      in_alone += state.network.hosts[static_cast<std::size_t>(host)].in_bytes_per_s.median;
    }
    if (limits(sent)) {
      group.out_bytes_per_s = sent.reached;
      say_if_unsteady(state, g, "out of", sent);
      group.out_oversubscription = std::max(1.0, out_alone / sent.reached);
    }
    if (limits(taken)) {
      group.in_bytes_per_s = taken.reached;
      say_if_unsteady(state, g, "into", taken);
      group.in_oversubscription = std::max(1.0, in_alone / taken.reached);
    }
    limited = limited || group.out_bytes_per_s > 0 || group.in_bytes_per_s > 0;
  }
  if (!limited && !state.network.groups_given) state.network.groups.clear();
  return true;
}

Result<bool> measure_ends(State& state) {
  const int hosts = static_cast<int>(state.network.hosts.size());
  for (int h = 0; h < hosts && hosts > 2; ++h) {
    if (state.out_of_time()) {
      state.network.unknown.push_back(fmt::format("hosts from {} on were not tried with two partners at once: they may be faster than any partner",
                                                  state.network.hosts[static_cast<std::size_t>(h)].name));
      return true;
    }
    std::vector<int> partners;
    for (int other = 0; other < hosts; ++other) {
      if (other != h && (state.network.groups.empty() || state.network.group_of(other) == state.network.group_of(h))) partners.push_back(other);
    }
    if (partners.size() < 2) continue;
    const auto in = [&](int host) { return state.network.hosts[static_cast<std::size_t>(host)].in_bytes_per_s.median; };
    const auto out = [&](int host) { return state.network.hosts[static_cast<std::size_t>(host)].out_bytes_per_s.median; };
    std::stable_sort(partners.begin(), partners.end(), [&](int a, int b) { return in(a) > in(b); });
    MeasuredHost& host = state.network.hosts[static_cast<std::size_t>(h)];
    // A host clearly slower than its best partner is its own limit.
    if (host.out_bytes_per_s.median >= kSlowShare * in(partners.front())) {
      TRY_INTO(const Load sent, load_of(state, {{h, partners[0]}, {h, partners[1]}}, 1));
      if (sent.reached > host.out_bytes_per_s.median / kSlowShare) host.out_bytes_per_s = {sent.reached, 0, 1};
    }
    std::stable_sort(partners.begin(), partners.end(), [&](int a, int b) { return out(a) > out(b); });
    if (host.in_bytes_per_s.median >= kSlowShare * out(partners.front())) {
      TRY_INTO(const Load taken, load_of(state, {{partners[0], h}, {partners[1], h}}, 1));
      if (taken.reached > host.in_bytes_per_s.median / kSlowShare) host.in_bytes_per_s = {taken.reached, 0, 1};
    }
  }
  return true;
}

}  // namespace chokepoint::measure
