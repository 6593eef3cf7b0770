// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/report/network_view.hpp>

#include <algorithm>
#include <chokepoint/base/text.hpp>
#include <chokepoint/base/units.hpp>
#include <fmt/format.h>

#include "table.hpp"

namespace chokepoint::report {
namespace {

using topology::MeasuredGroup;
using topology::MeasuredHost;
using topology::MeasuredNetwork;
using topology::Spread;

constexpr std::size_t kHostsShown = 32;

std::string bits(double bytes_per_s) {
  const double rate = bytes_per_s * 8;
  return rate >= 1e9 ? fmt::format("{:.3g} Gb/s", rate / 1e9) : fmt::format("{:.3g} Mb/s", rate / 1e6);
}

std::string with_spread(const Spread& spread) {
  if (spread.samples == 0) return "-";
  const double share = spread.median > 0 ? 100 * spread.deviation / spread.median : 0;
  return bits(spread.median) + (spread.samples > 1 ? fmt::format(" ±{:.1f}%", share) : "");
}

std::string names(const MeasuredNetwork& network, const std::vector<int>& hosts) {
  std::vector<std::string> list;
  for (const int host : hosts) list.push_back(network.hosts[static_cast<std::size_t>(host)].name);
  return short_list(list);
}

std::string verdict(const MeasuredNetwork& network, const Style& style) {
  std::string out;
  for (const std::string& line : network.slow) out += style.red("slow  ") + line + "\n";
  for (const MeasuredGroup& group : network.groups) {
    const std::string title = names(network, group.hosts);
    if (group.out_bytes_per_s > 0) {
      out += style.yellow("shared  ") + fmt::format("{} to the others: {} for all together, {:.2f}:1 oversubscribed\n", title, bits(group.out_bytes_per_s), group.out_oversubscription);
    }
    if (group.in_bytes_per_s > 0) {
      out += style.yellow("shared  ") + fmt::format("the others to {}: {} for all together, {:.2f}:1 oversubscribed\n", title, bits(group.in_bytes_per_s), group.in_oversubscription);
    }
  }
  if (out.empty()) out = style.green("even  ") + "no host and no way far below the others, none seen shared\n";
  return out;
}

std::string hosts_text(const MeasuredNetwork& network, const Style& style) {
  const double frames = network.frame_bytes_per_byte();
  std::vector<std::vector<std::string>> rows;
  for (std::size_t h = 0; h < std::min(kHostsShown, network.hosts.size()); ++h) {
    const MeasuredHost& host = network.hosts[h];
    const int group = network.group_of(static_cast<int>(h));
    rows.push_back({host.name, group < 0 ? "" : std::string(1, static_cast<char>('A' + group % 26)), with_spread(host.out_bytes_per_s), with_spread(host.in_bytes_per_s),
                    bits(host.out_bytes_per_s.median * frames), bits(host.in_bytes_per_s.median * frames),
                    host.latency_s.samples > 0 ? format_duration(host.latency_s.median) : "-",
                    host.inside_bytes_per_s ? bits(*host.inside_bytes_per_s) : ""});
  }
  std::string out = "\n" + table({{"host", false}, {"group", false}, {"out", true}, {"in", true}, {"frames out", true}, {"frames in", true}, {"latency", true}, {"inside", true}}, rows, style);
  if (network.hosts.size() > kHostsShown) out += fmt::format("{} more hosts: --save has all\n", network.hosts.size() - kHostsShown);
  if (frames > 1) out += fmt::format("frames: Ethernet frames at MTU {}, {:.3f} bytes for each byte of payload\n", network.mtu, frames);
  return out;
}

std::string messages_text(const MeasuredNetwork& network, const Style& style) {
  std::vector<std::vector<std::string>> rows;
  for (const topology::MeasuredMessage& m : network.messages) {
    rows.push_back({network.hosts[static_cast<std::size_t>(m.from)].name + " to " + network.hosts[static_cast<std::size_t>(m.to)].name, format_bytes(m.bytes),
                    format_duration(m.time_s.median), fmt::format("±{:.0f}%", m.time_s.median > 0 ? 100 * m.time_s.deviation / m.time_s.median : 0),
                    bits(m.time_s.median > 0 ? m.bytes / m.time_s.median : 0)});
  }
  for (const topology::MeasuredCollective& c : network.collectives) {
    const double n = std::max(1, c.ranks);
    const double factor = c.op == "all_reduce" ? 2 * (n - 1) / n : (n - 1) / n;
    rows.push_back({fmt::format("{} of {}", c.op, c.ranks), format_bytes(c.bytes), format_duration(c.time_s.median),
                    fmt::format("±{:.0f}%", c.time_s.median > 0 ? 100 * c.time_s.deviation / c.time_s.median : 0),
                    bits(c.time_s.median > 0 ? c.bytes * factor / c.time_s.median : 0)});
  }
  if (rows.empty()) return {};
  return "\n" + table({{"messages, collectives", false}, {"size", true}, {"time", true}, {"spread", true}, {"bandwidth", true}}, rows, style);
}

std::string comparison_text(const measure::Comparison& comparison, const Style& style) {
  std::string out = style.bold("\nAgainst the earlier result") + fmt::format("  {} figures compared, {} beyond their spread\n", comparison.compared, comparison.changed.size());
  for (const measure::Drift& drift : comparison.changed) {
    const std::string line = fmt::format("{}: {} before, {} now ({:+.0f} %)", drift.what, drift.latency ? format_duration(drift.before) : bits(drift.before),
                                         drift.latency ? format_duration(drift.now) : bits(drift.now), 100 * (drift.now / drift.before - 1));
    out += "  " + (drift.worse ? style.red("worse   ") : style.green("better  ")) + line + "\n";
  }
  for (const std::string& host : comparison.missing) out += "  " + host + "\n";
  return out;
}

std::string list_text(const std::string& title, const std::vector<std::string>& lines, const Style& style) {
  std::string out;
  for (const std::string& line : lines) {
    const std::vector<std::string> parts = wrapped(line, style.width - 4);
    for (std::size_t i = 0; i < parts.size(); ++i) out += (i == 0 ? "  - " : "    ") + parts[i] + "\n";
  }
  return out.empty() ? out : style.bold("\n" + title) + "\n" + out;
}

}  // namespace

std::string network_text(const MeasuredNetwork& network, const measure::Comparison* comparison, const Style& style, bool quiet) {
  int ranks = 0;
  for (const MeasuredHost& host : network.hosts) ranks += host.ranks;
  std::string out = style.bold(fmt::format("{} hosts, {} ranks", network.hosts.size(), ranks));
  if (!network.transport.empty()) out += " · " + network.transport;
  out += fmt::format(" · {} of probing\n", format_duration(network.wall_s)) + verdict(network, style);
  if (comparison != nullptr) out += comparison_text(*comparison, style);
  if (quiet) return out;
  out += hosts_text(network, style) + messages_text(network, style);
  std::vector<std::string> notes;
  for (const Note& note : network.notes) notes.push_back(note.text);
  return out + list_text("Cannot be told apart", network.unknown, style) + list_text("Notes", notes, style);
}

}  // namespace chokepoint::report
