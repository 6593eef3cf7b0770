// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/flow/lower.hpp>

#include <algorithm>
#include <cmath>
#include <optional>

#include "pick.hpp"

namespace chokepoint::flow {

namespace {

constexpr int kMostChannels = 1024;

/// In-order tree: number r hangs on the number that differs in its lowest set bit and the bit above. Its inner numbers
/// are even, so that a copy shifted or mirrored by one has them as leaves (Sanders, Speck and Traff, "Two-tree
/// algorithms for full bandwidth broadcast, reduction and scan", 2009; NCCL builds its double trees this way).
int parent_in_tree(int number, int count) {
  if (number == 0) return -1;
  const int bit = number & -number;
  const int up = (number ^ bit) | (bit << 1);
  return up < count ? up : number ^ bit;
}

/// The second tree: shifted by one for an odd count, mirrored for an even one.
int parent_of(int number, int count, bool second) {
  if (!second) return parent_in_tree(number, count);
  if (count % 2 == 0) {
    const int parent = parent_in_tree(count - 1 - number, count);
    return parent < 0 ? -1 : count - 1 - parent;
  }
  const int parent = parent_in_tree((number + count - 1) % count, count);
  return parent < 0 ? -1 : (parent + 1) % count;
}

/// Uses of one link become one, from `begin` on.
void merge(std::vector<Use>& uses, std::size_t begin) {
  const auto first = uses.begin() + static_cast<std::ptrdiff_t>(begin);
  std::stable_sort(first, uses.end(), [](const Use& a, const Use& b) { return a.link < b.link; });
  std::size_t kept = begin;
  for (std::size_t i = begin; i < uses.size(); ++i) {
    if (kept > begin && uses[kept - 1].link == uses[i].link) {
      uses[kept - 1].weight += uses[i].weight;
    } else {
      uses[kept++] = uses[i];
    }
  }
  uses.resize(kept);
}

class Lowering {
 public:
  Lowering(const Platform& platform, double bytes, std::span<const int> gpus, const LowerOptions& options)
      : platform_(platform), options_(options), bytes_(bytes), gpus_(gpus), count_(static_cast<double>(gpus.size())) {
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      if (i == 0 || platform.host_of(gpus[i]) != platform.host_of(gpus[i - 1])) runs_.push_back({i, 0});
      ++runs_.back().size;
    }
  }

  Result<FlowSet> ring(double share, bool open, bool towards_root);
  Result<FlowSet> tree(bool nvls);
  Result<FlowSet> all_to_all();
  Result<FlowSet> send();

 private:
  /// Members of one host, next to each other in the order.
  struct Run {
    std::size_t first;
    std::size_t size;
  };
  int member(const Run& run, std::size_t position) const { return gpus_[run.first + position % run.size]; }
  /// Position in the run of the member that the channel enters the host by.
  std::size_t entry(const Run& run, int channel) const;
  std::vector<int> order(int channel) const;
  /// Puts a message's links down; remembers the first failure.
  void hop(int from, int to, double weight, int channel);
  void host_tree(std::size_t offset, double weight, int channel);
  void close(double bytes) {
    merge(set_.open(), begin_);
    set_.close(bytes);
    begin_ = merged_ = set_.open().size();
  }
  Result<FlowSet> finish() {
    if (failure_) return tl::make_unexpected(std::move(*failure_));
    return std::move(set_);
  }

  const Platform& platform_;
  const LowerOptions& options_;
  double bytes_;
  std::span<const int> gpus_;
  double count_;
  std::vector<Run> runs_;
  FlowSet set_;
  std::size_t begin_ = 0;   ///< of the flow being made
  std::size_t merged_ = 0;  ///< up to here its uses were merged already
  std::optional<Error> failure_;
};

std::size_t Lowering::entry(const Run& run, int channel) const {
  const int host = platform_.host_of(gpus_[run.first]);
  const int nics = platform_.nics_of(host);
  for (std::size_t i = 0; nics > 0 && i < run.size; ++i) {
    if (platform_.nearest_nic(member(run, i)) == channel % nics) return i;
  }
  return static_cast<std::size_t>(channel) % run.size;
}

/// The ring of a channel. Over several hosts it enters each one at another GPU, so that channels take the NICs in turn.
std::vector<int> Lowering::order(int channel) const {
  if (runs_.size() == 1) return {gpus_.begin(), gpus_.end()};
  std::vector<int> ordered;
  ordered.reserve(gpus_.size());
  for (const Run& run : runs_) {
    const std::size_t first = entry(run, channel);
    for (std::size_t i = 0; i < run.size; ++i) ordered.push_back(member(run, first + i));
  }
  return ordered;
}

void Lowering::hop(int from, int to, double weight, int channel) {
  if (failure_) return;
  std::vector<Use>& uses = set_.open();
  const std::size_t begin = uses.size();
  RouteChoice choice;
  choice.hash = mixed(options_.seed + mixed(static_cast<std::uint64_t>(from) << 32 | static_cast<std::uint32_t>(to)) +
                      static_cast<std::uint64_t>(channel));
  choice.fluid = options_.fluid;
  if (Result<void> routed = platform_.route(from, to, choice, uses); !routed) {
    failure_ = std::move(routed).error();
    return;
  }
  for (std::size_t i = begin; i < uses.size(); ++i) uses[i].weight *= weight;
  constexpr std::size_t kWorthMerging = 1 << 16;
  if (uses.size() - merged_ > std::max(kWorthMerging, 2 * (merged_ - begin_))) {
    merge(uses, begin_);
    merged_ = uses.size();
  }
}

/// `share`: part of the payload that passes each hop. `open`: a chain from the root, or towards it.
Result<FlowSet> Lowering::ring(double share, bool open, bool towards_root) {
  for (int channel = 0; channel < options_.channels; ++channel) {
    const std::vector<int> ring = order(channel);
    for (std::size_t i = 0; i < ring.size(); ++i) {
      const int from = ring[i];
      const int to = ring[(i + 1) % ring.size()];
      if (open && (towards_root ? from : to) == gpus_.front()) continue;
      hop(from, to, 1, channel);
    }
    close(bytes_ * share / options_.channels);
  }
  return finish();
}

/// Both directions of the tree over hosts that this channel takes, between the members at its entry (plus an offset).
void Lowering::host_tree(std::size_t offset, double weight, int channel) {
  const int hosts = static_cast<int>(runs_.size());
  for (int host = 0; host < hosts; ++host) {
    const int parent = parent_of(host, hosts, channel % 2 == 1);
    if (parent < 0) continue;
    const Run& below = runs_[static_cast<std::size_t>(host)];
    const Run& above = runs_[static_cast<std::size_t>(parent)];
    const int a = member(below, entry(below, channel) + offset);
    const int b = member(above, entry(above, channel) + offset);
    hop(a, b, weight, channel);
    hop(b, a, weight, channel);
  }
}

Result<FlowSet> Lowering::tree(bool nvls) {
  std::vector<int> seen;
  for (const Run& run : runs_) {
    seen.push_back(platform_.host_of(gpus_[run.first]));
    if (nvls && run.size != runs_.front().size) return fail("NVLS needs as many members on every host");
    if (nvls && (run.size < 2 || !platform_.share_nvlink(member(run, 0), member(run, 1))))
      return fail("NVLS needs members that share an NVSwitch");
  }
  std::sort(seen.begin(), seen.end());
  if (std::adjacent_find(seen.begin(), seen.end()) != seen.end()) {
    return fail("members of one host do not stand together in the group, which a tree over hosts needs");
  }
  for (int channel = 0; channel < options_.channels; ++channel) {
    for (const Run& run : runs_) {
      const std::size_t first = entry(run, channel);
      // NVLS: every member's link to the switch once up and once down, which is what a closed chain of messages loads.
      for (std::size_t i = 0; i + (nvls ? 0 : 1) < run.size; ++i) {
        hop(member(run, first + i), member(run, first + i + 1), 1, channel);
        if (!nvls) hop(member(run, first + i + 1), member(run, first + i), 1, channel);
      }
    }
    const std::size_t parts = nvls ? runs_.front().size : 1;
    for (std::size_t part = 0; part < parts; ++part) host_tree(part, 1.0 / static_cast<double>(parts), channel);
    close(bytes_ / options_.channels);
  }
  return finish();
}

Result<FlowSet> Lowering::all_to_all() {
  for (const int from : gpus_) {
    for (const int to : gpus_) {
      if (from == to) continue;
      hop(from, to, 1, 0);
      if (options_.coupling == Coupling::kPairs) close(bytes_ / count_);
    }
    if (options_.coupling == Coupling::kRanks) close(bytes_ / count_);
  }
  if (options_.coupling == Coupling::kGroup) close(bytes_ / count_);
  return finish();
}

Result<FlowSet> Lowering::send() {
  for (std::size_t i = 0; i + 1 < gpus_.size(); ++i) {
    hop(gpus_[i], gpus_[i + 1], 1, 0);
    close(bytes_);
  }
  return finish();
}

Result<void> check(const Platform& platform, double bytes, std::span<const int> gpus, const LowerOptions& options) {
  if (!(bytes >= 0) || !std::isfinite(bytes))
    return fail("the size of a collective must be a number of bytes, 0 or more");
  if (options.channels < 1 || options.channels > kMostChannels) {
    return fail("a collective needs 1 to " + std::to_string(kMostChannels) + " channels, not " +
                std::to_string(options.channels));
  }
  std::vector<int> sorted(gpus.begin(), gpus.end());
  std::sort(sorted.begin(), sorted.end());
  if (sorted.empty()) return {};
  const int outside = sorted.front() < 0 ? sorted.front() : sorted.back();
  if (outside < 0 || outside >= platform.gpus()) {
    return fail("GPU " + std::to_string(outside) + " does not exist; the cluster has " +
                std::to_string(platform.gpus()));
  }
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) return fail("GPU " + std::to_string(*twice) + " is in the group twice");
  return {};
}

}  // namespace

Result<FlowSet> lower(const Platform& platform, Pattern pattern, Algorithm algorithm, double bytes,
                      std::span<const int> gpus, const LowerOptions& options) {
  if (Result<void> sane = check(platform, bytes, gpus, options); !sane)
    return tl::make_unexpected(std::move(sane).error());
  if (gpus.size() < 2 || bytes == 0) return FlowSet();
  Lowering lowering(platform, bytes, gpus, options);
  const double others = static_cast<double>(gpus.size() - 1) / static_cast<double>(gpus.size());
  const bool ring = algorithm == Algorithm::kRing;
  const bool direct = algorithm == Algorithm::kDirect;
  switch (pattern) {
    case Pattern::kAllReduce:
      if (ring) return lowering.ring(2 * others, false, false);
      if (!direct) return lowering.tree(algorithm == Algorithm::kNvls);
      break;
    case Pattern::kAllGather:
    case Pattern::kReduceScatter:
      if (ring) return lowering.ring(others, false, false);
      break;
    case Pattern::kBroadcast:
    case Pattern::kReduce:
      if (ring) return lowering.ring(1, true, pattern == Pattern::kReduce);
      break;
    case Pattern::kAllToAll:
      if (direct) return lowering.all_to_all();
      break;
    case Pattern::kSendRecv:
      if (direct) return lowering.send();
      break;
  }
  return fail("this operation has no such algorithm");
}

}  // namespace chokepoint::flow
