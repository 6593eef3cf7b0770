// SPDX-License-Identifier: Apache-2.0
// Group tests: each transfer passes certain parts of the wiring, and is slow or not. A part is suspected as far as slow
// transfers pass it, and cleared by fast ones that pass it too.
#include <chokepoint/diagnose/slow_link.hpp>

#include <algorithm>
#include <compare>
#include <chokepoint/base/text.hpp>
#include <cstdio>
#include <map>
#include <set>
#include <vector>

#include "choke_sentence.hpp"

namespace chokepoint::diagnose {

namespace {

/// A part of the wiring; of equally suspected ones the first kind says most.
struct Part {
  enum class Kind { kNic, kHost, kLeaf, kInside };
  Kind kind = Kind::kNic;
  int number = 0;  ///< host or leaf
  int device = 0;  ///< NIC, in Host::devices
  auto operator<=>(const Part&) const = default;
};

struct Evidence {
  double lost_s = 0;
  int slow = 0;
  int fast = 0;
  std::set<int> ranks;  ///< whose transfers pass it
};

constexpr double kSlow = 0.7;       // of the expected bandwidth; expectations are good to some 10 %
constexpr double kCleared = 0.1;    // share of fast transfers that clears a part
constexpr double kExplains = 0.5;   // of the time lost
constexpr double kAlike = 0.99;     // of the most that a part explains
constexpr std::size_t kMostNamed = 3;

class SlowParts {
 public:
  SlowParts(const Diagnosis& d, const topology::Cluster& cluster)
      : d_(d), host_(cluster.hosts.front().host), gpus_(std::max(1, cluster.gpus_per_host())), hosts_per_leaf_(cluster.fabric.hosts_per_leaf) {
    const std::vector<int> gpus = host_.gpus();
    const std::vector<int> nics = topology::compute_nics(host_);
    for (const int gpu : gpus) {
      const std::vector<topology::PathClass> paths = topology::path_classes(host_, gpu, nics);
      const auto nearest = std::min_element(paths.begin(), paths.end());
      nic_of_.emplace_back();
      for (std::size_t k = 0; k < nics.size(); ++k) {
        if (paths[k] == *nearest) nic_of_.back().push_back(nics[k]);
      }
    }
  }

  std::optional<SlowLink> find() {
    for (const MatchedCollective& c : d_.collectives) weigh(c);
    if (total_.slow == 0) return std::nullopt;
    double most = 0;
    for (const auto& [part, e] : evidence_) {
      if (suspected(e)) most = std::max(most, e.lost_s);
    }
    if (most < kExplains * total_.lost_s) return std::nullopt;
    std::vector<Part> named;  // the map's order puts the kind that says most first
    for (const auto& [part, e] : evidence_) {
      if (suspected(e) && e.lost_s >= kAlike * most && (named.empty() || named.front().kind == part.kind)) named.push_back(part);
    }
    if (named.size() > kMostNamed) return std::nullopt;
    SlowLink link;
    for (const Part& part : named) link.where += (link.where.empty() ? "" : " or ") + words(part);
    const Evidence& e = evidence_[named.front()];
    link.slow = e.slow;
    link.slow_in_all = total_.slow;
    link.fast = e.fast;
    link.fast_in_all = total_.fast;
    link.lost_share = e.lost_s / total_.lost_s;
    return link;
  }

 private:
  static bool suspected(const Evidence& e) { return e.slow > 0 && e.fast <= kCleared * (e.slow + e.fast); }

  void weigh(const MatchedCollective& c) {
    const double achieved = c.bus_bytes_per_s();
    if (achieved <= 0 || c.expected_bus_bytes_per_s <= 0) return;
    const bool slow = achieved < kSlow * c.expected_bus_bytes_per_s;
    const double lost = slow ? 1e-9 * static_cast<double>(c.wire_ns()) * (1 - achieved / c.expected_bus_bytes_per_s) : 0;
    const auto add = [&](Evidence& e) {
      e.lost_s += lost;
      e.slow += slow ? 1 : 0;
      e.fast += slow ? 0 : 1;
    };
    add(total_);
    for (const auto& [part, ranks] : parts_of(c)) {
      Evidence& e = evidence_[part];
      add(e);
      e.ranks.insert(ranks.begin(), ranks.end());
    }
  }

  /// What a transfer passes: on each host the NICs nearest to its ranks, and between leaves their uplinks; or one host's inside.
  std::map<Part, std::set<int>> parts_of(const MatchedCollective& c) const {
    std::map<Part, std::set<int>> parts;
    std::set<int> hosts;
    std::set<int> leaves;
    for (const int m : c.members) {
      hosts.insert(rank_of(m) / gpus_);
      if (hosts_per_leaf_ > 0) leaves.insert(rank_of(m) / gpus_ / hosts_per_leaf_);
    }
    for (const int m : c.members) {
      const int rank = rank_of(m);
      const int host = rank / gpus_;
      if (hosts.size() < 2) {
        parts[{Part::Kind::kInside, host, 0}].insert(rank);
        continue;
      }
      const auto local = static_cast<std::size_t>(rank % gpus_);
      if (local < nic_of_.size()) {
        for (const int nic : nic_of_[local]) parts[{Part::Kind::kNic, host, nic}].insert(rank);
      }
      parts[{Part::Kind::kHost, host, 0}].insert(rank);
      if (leaves.size() > 1) parts[{Part::Kind::kLeaf, host / hosts_per_leaf_, 0}].insert(rank);
    }
    return parts;
  }

  int rank_of(int member) const { return d_.ranks[static_cast<std::size_t>(member)].rank; }

  std::string words(const Part& part) {
    std::vector<std::string> ranks;
    for (const int rank : evidence_[part].ranks) ranks.push_back(std::to_string(rank));
    const std::string who = " (rank" + std::string(ranks.size() > 1 ? "s " : " ") + short_list(ranks) + ")";
    switch (part.kind) {
      case Part::Kind::kNic: {
        const topology::Device& nic = host_.devices[static_cast<std::size_t>(part.device)];
        return "NIC " + (nic.alias.empty() ? nic.name : nic.alias) + " of host " + std::to_string(part.number) + who + " or its cable";
      }
      case Part::Kind::kHost: return "the NICs of host " + std::to_string(part.number) + who;
      case Part::Kind::kLeaf: return "the uplinks of leaf " + std::to_string(part.number) + who;
      case Part::Kind::kInside: break;
    }
    return "the links inside host " + std::to_string(part.number) + who;
  }

  const Diagnosis& d_;
  const topology::Host& host_;
  int gpus_;
  int hosts_per_leaf_;
  std::vector<std::vector<int>> nic_of_;  ///< nearest NICs of each GPU of a host
  std::map<Part, Evidence> evidence_;
  Evidence total_;
};

}  // namespace

std::optional<SlowLink> find_slow_link(const Diagnosis& d, const topology::Cluster& cluster) { return SlowParts(d, cluster).find(); }

void name_slow_link(Diagnosis& d, const topology::Cluster& cluster) {
  const std::optional<SlowLink> link = find_slow_link(d, cluster);
  if (!link) return;
  char counts[120];
  std::snprintf(counts, sizeof counts, "%d of %d slow transfers pass it, and %d of %d at full speed", link->slow, link->slow_in_all, link->fast, link->fast_in_all);
  const auto cause = std::find_if(d.causes.begin(), d.causes.end(), [](const Cause& c) { return c.id == "slow-wire"; });
  if (cause == d.causes.end()) {
    d.notes.push_back({"slow transfers are explained by " + link->where + ": " + counts, {}});
    return;
  }
  cause->where = link->where;
  cause->what += ", explained by " + link->where + ": " + counts;
  cause->remedy = "look at " + link->where + ": ibstat, mlxlink or ethtool (rate, errors), nvidia-smi topo -m and lspci -vv (PCIe width); then " + cause->remedy;
  constexpr double kWorthNaming = 0.02;
  if (cause == d.causes.begin() && cause->cost_s > kWorthNaming * d.measured_s) d.choke_point = choke_sentence(*cause, d.measured_s);
}

}  // namespace chokepoint::diagnose
