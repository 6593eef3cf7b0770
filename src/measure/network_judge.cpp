// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/measure/network_probe.hpp>

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace chokepoint::measure {

using namespace topology;

namespace {

/// Networks are sold in bits.
std::string bits(double bytes_per_s) {
  const double rate = bytes_per_s * 8;
  return rate >= 1e9 ? fmt::format("{:.3g} Gb/s", rate / 1e9) : fmt::format("{:.3g} Mb/s", rate / 1e6);
}

double median_rate(const std::vector<MeasuredHost>& hosts, Spread MeasuredHost::* rate) {
  std::vector<double> values;
  for (const MeasuredHost& host : hosts) {
    if ((host.*rate).samples > 0) values.push_back((host.*rate).median);
  }
  return spread_of(std::move(values)).median;
}

void judge_hosts(MeasuredNetwork& network) {
  const double out = median_rate(network.hosts, &MeasuredHost::out_bytes_per_s);
  const double in = median_rate(network.hosts, &MeasuredHost::in_bytes_per_s);
  bool any = false;
  for (const MeasuredHost& host : network.hosts) {
    const bool slow_out = host.out_bytes_per_s.samples > 0 && host.out_bytes_per_s.median < kSlowShare * out;
    const bool slow_in = host.in_bytes_per_s.samples > 0 && host.in_bytes_per_s.median < kSlowShare * in;
    if (slow_out) network.slow.push_back(fmt::format("{} sends at most {}, the median host {}", host.name, bits(host.out_bytes_per_s.median), bits(out)));
    if (slow_in) network.slow.push_back(fmt::format("{} receives at most {}, the median host {}", host.name, bits(host.in_bytes_per_s.median), bits(in)));
    any = any || slow_out || slow_in;
  }
  if (any) network.unknown.push_back("of a slow host: whether its interface, its cable or its port at the switch is at fault");
}

bool explained_by_group(const MeasuredNetwork& network, const MeasuredPair& pair) {
  const int from = network.group_of(pair.from);
  const int to = network.group_of(pair.to);
  if (from < 0 || to < 0 || from == to) return false;
  const double out = network.groups[static_cast<std::size_t>(from)].out_bytes_per_s;
  const double in = network.groups[static_cast<std::size_t>(to)].in_bytes_per_s;
  const double way = out > 0 && in > 0 ? std::min(out, in) : std::max(out, in);
  return way > 0 && pair.alone_bytes_per_s.median >= kSlowShare * way;
}

/// Pairs that are slow alone although both their hosts are fast with others.
void judge_ways(MeasuredNetwork& network) {
  for (const MeasuredPair& pair : network.pairs) {
    if (pair.alone_bytes_per_s.samples == 0 || explained_by_group(network, pair)) continue;
    const MeasuredHost& from = network.hosts[static_cast<std::size_t>(pair.from)];
    const MeasuredHost& to = network.hosts[static_cast<std::size_t>(pair.to)];
    const double ends = std::min(from.out_bytes_per_s.median, to.in_bytes_per_s.median);
    if (pair.alone_bytes_per_s.median >= kSlowShare * ends) continue;
    network.slow.push_back(fmt::format("{} to {} reaches {} alone, although both ends reach {} with others", from.name, to.name,
                                       bits(pair.alone_bytes_per_s.median), bits(ends)));
  }
}

void judge_groups(MeasuredNetwork& network) {
  std::size_t limited = 0;
  for (const MeasuredGroup& group : network.groups) {
    limited += group.out_bytes_per_s > 0 || group.in_bytes_per_s > 0 ? 1 : 0;
    if (group.hosts.size() == 1) {
      network.unknown.push_back(fmt::format("{} was found with nobody: its own link and the way of its group look the same from outside",
                                            network.hosts[static_cast<std::size_t>(group.hosts.front())].name));
    }
  }
  if (limited > 0 && network.groups.size() == 2) {
    network.unknown.push_back("with two groups: whether the way out of the one or the way into the other is the narrow one");
  }
  if (limited > 0) network.unknown.push_back("how many cables make up the way a group shares, and how flows are spread over them");
}

/// Figures whose repeats differ too much to tell small differences.
void judge_spread(MeasuredNetwork& network) {
  const auto judge = [&network](const std::string& what, double median, double deviation) {
    if (median <= 0 || deviation <= kUnsteadyShare * median) return;
    network.unknown.push_back(fmt::format("{}: repeats differ by {:.0f} % around {}, so smaller differences cannot be told apart (a busy processor or network?)", what, 100 * deviation / median, bits(median)));
  };
  for (const MeasuredHost& host : network.hosts) {
    judge(host.name + " out", host.out_bytes_per_s.median, host.out_bytes_per_s.deviation);
    judge(host.name + " in", host.in_bytes_per_s.median, host.in_bytes_per_s.deviation);
  }
}

void add(Comparison& comparison, const std::string& what, const Spread& before, const Spread& now, bool latency) {
  if (before.samples == 0 || now.samples == 0 || before.median <= 0) return;
  ++comparison.compared;
  // Latencies of single messages scatter more than rates over a window; both spreads count, at three deviations each.
  const double allowed = std::max((latency ? 4 : 1) * kDriftShare * before.median, 3 * (before.deviation + now.deviation));
  const double change = now.median - before.median;
  if (std::abs(change) <= allowed) return;
  comparison.changed.push_back({what, before.median, now.median, latency, latency ? change > 0 : change < 0});
}

std::string names(const MeasuredNetwork& network, const MeasuredGroup& group) {
  std::string text;
  for (const int host : group.hosts) text += (text.empty() ? "" : ", ") + network.hosts[static_cast<std::size_t>(host)].name;
  return text;
}

const MeasuredHost* host_named(const MeasuredNetwork& network, const std::string& name) {
  const auto at = std::find_if(network.hosts.begin(), network.hosts.end(), [&](const MeasuredHost& host) { return host.name == name; });
  return at == network.hosts.end() ? nullptr : &*at;
}

void compare_groups(Comparison& comparison, const MeasuredNetwork& before, const MeasuredNetwork& now) {
  for (const MeasuredGroup& group : now.groups) {
    const std::string title = names(now, group);
    for (const MeasuredGroup& old : before.groups) {
      if (names(before, old) != title) continue;
      add(comparison, title + " to the others", {old.out_bytes_per_s, 0, old.out_bytes_per_s > 0 ? 1 : 0}, {group.out_bytes_per_s, 0, group.out_bytes_per_s > 0 ? 1 : 0}, false);
      add(comparison, "the others to " + title, {old.in_bytes_per_s, 0, old.in_bytes_per_s > 0 ? 1 : 0}, {group.in_bytes_per_s, 0, group.in_bytes_per_s > 0 ? 1 : 0}, false);
    }
  }
}

}  // namespace

void judge(MeasuredNetwork& network) {
  judge_hosts(network);
  judge_ways(network);
  judge_groups(network);
  judge_spread(network);
}

Comparison compare(const MeasuredNetwork& before, const MeasuredNetwork& now) {
  Comparison comparison;
  for (const MeasuredHost& host : now.hosts) {
    const MeasuredHost* old = host_named(before, host.name);
    if (old == nullptr) {
      comparison.missing.push_back(host.name + " is new");
      continue;
    }
    add(comparison, host.name + " out", old->out_bytes_per_s, host.out_bytes_per_s, false);
    add(comparison, host.name + " in", old->in_bytes_per_s, host.in_bytes_per_s, false);
    add(comparison, host.name + " latency", old->latency_s, host.latency_s, true);
  }
  for (const MeasuredHost& host : before.hosts) {
    if (host_named(now, host.name) == nullptr) comparison.missing.push_back(host.name + " is gone");
  }
  compare_groups(comparison, before, now);
  std::stable_sort(comparison.changed.begin(), comparison.changed.end(), [](const Drift& a, const Drift& b) {
    if (a.worse != b.worse) return a.worse;
    return std::abs(std::log(a.now / a.before)) > std::abs(std::log(b.now / b.before));
  });
  return comparison;
}

bool Comparison::worse() const {
  return std::any_of(changed.begin(), changed.end(), [](const Drift& drift) { return drift.worse; });
}

}  // namespace chokepoint::measure
