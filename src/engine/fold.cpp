// SPDX-License-Identifier: Apache-2.0
// Colour refinement from rank coordinates. Groups and neighbours of a rank follow from its number, so nothing but one
// colour per rank, host and group is ever stored. Each round costs O(ranks x kinds of groups); rounds end when the
// number of colours stops growing, at the latest when every rank has its own.
#include <chokepoint/engine/fold.hpp>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

namespace chokepoint::engine {

namespace {

constexpr std::array<Meet, 7> kMeets = {Meet::kTensor, Meet::kContext,   Meet::kExpert, Meet::kData,
                                        Meet::kShard,  Meet::kReplicate, Meet::kTied};

std::uint64_t mix(std::uint64_t x) {  // splitmix64's finaliser
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

std::uint64_t bits(double value) {
  std::uint64_t out = 0;
  static_assert(sizeof out == sizeof value);
  __builtin_memcpy(&out, &value, sizeof out);
  return out;
}

class Refiner {
 public:
  Refiner(const Layout& layout, const Imperfections& imperfections, bool folded)
      : l_(layout), i_(imperfections), n_(static_cast<std::size_t>(layout.ranks())), folded_(folded) {}

  Fold run() {
    initial();
    if (folded_) {
      std::size_t count = distinct();
      for (;;) {
        round();
        const std::size_t now = distinct();
        if (now == count) break;
        count = now;
      }
    }
    hosts();
    return describe();
  }

 private:
  void initial() {
    colour_.resize(n_);
    for (std::size_t r = 0; r < n_; ++r) {
      const int rank = static_cast<int>(r);
      colour_[r] = folded_ ? mix(static_cast<std::uint64_t>(l_.stage_of(rank))) : mix(r + 1);
      if (i_.sequence_imbalance > 0)
        colour_[r] = mix(colour_[r] ^ mix(static_cast<std::uint64_t>(l_.data_index(rank)) + 77));
      if (i_.every_rank_differs()) colour_[r] = mix(colour_[r] ^ mix(r + 1));
      if (i_.expert_imbalance > 1 && l_.expert > 1 && rank % l_.expert == 0) colour_[r] = mix(colour_[r] + 5);
    }
    const auto mark = [this](int rank, std::uint64_t with) {
      if (rank >= 0 && static_cast<std::size_t>(rank) < n_)
        colour_[static_cast<std::size_t>(rank)] = mix(colour_[static_cast<std::size_t>(rank)] ^ mix(with));
    };
    for (const SlowRank& s : i_.slow_ranks) mark(s.rank, bits(s.factor) + 1);
    for (const Stall& s : i_.stalls) mark(s.rank, bits(s.seconds) + 2);
    for (const SlowHost& s : i_.slow_hosts) {
      for (int k = 0; k < l_.gpus_per_host; ++k) mark(s.host * l_.gpus_per_host + k, bits(s.share) + 3);
    }
  }

  std::size_t distinct() const { return std::unordered_set<std::uint64_t>(colour_.begin(), colour_.end()).size(); }

  /// Sum of mixed colours over each group: the same for groups with the same multiset of colours.
  void sum_groups(Meet meet, std::vector<std::uint64_t>& sums) const {
    sums.assign(n_, 0);
    for (std::size_t r = 0; r < n_; ++r)
      sums[static_cast<std::size_t>(l_.group_of(meet, static_cast<int>(r)))] += mix(colour_[r]);
  }

  void round() {
    std::vector<std::uint64_t> next = colour_;
    std::vector<std::uint64_t> sums;
    for (const Meet meet : kMeets) {
      sum_groups(meet, sums);
      for (std::size_t r = 0; r < n_; ++r) {
        next[r] = mix(next[r] ^ mix(sums[static_cast<std::size_t>(l_.group_of(meet, static_cast<int>(r)))] +
                                    static_cast<std::uint64_t>(meet)));
      }
    }
    const auto stage = static_cast<std::size_t>(l_.stage_ranks());
    std::vector<std::uint64_t> host(static_cast<std::size_t>(l_.hosts()), 0);
    for (std::size_t r = 0; r < n_; ++r)
      host[static_cast<std::size_t>(l_.host_of(static_cast<int>(r)))] += mix(colour_[r]);
    for (std::size_t r = 0; r < n_; ++r) {
      next[r] = mix(next[r] ^ mix(colour_[(r + stage) % n_] + 1001));
      next[r] = mix(next[r] ^ mix(colour_[(r + n_ - stage) % n_] + 1002));
      next[r] = mix(next[r] ^ mix(host[static_cast<std::size_t>(l_.host_of(static_cast<int>(r)))] + 1003));
    }
    colour_ = std::move(next);
  }

  void hosts() {
    host_class_.resize(static_cast<std::size_t>(l_.hosts()));
    std::unordered_map<std::uint64_t, int> seen;
    for (int h = 0; h < l_.hosts(); ++h) {
      std::uint64_t sum = 0;
      for (int k = 0; k < l_.gpus_per_host && h * l_.gpus_per_host + k < l_.ranks(); ++k)
        sum += mix(colour_[static_cast<std::size_t>(h * l_.gpus_per_host + k)]);
      const auto [at, fresh] = seen.try_emplace(sum, static_cast<int>(fold_.hosts.size()));
      if (fresh) fold_.hosts.push_back({h, 0});
      ++fold_.hosts[static_cast<std::size_t>(at->second)].count;
      host_class_[static_cast<std::size_t>(h)] = at->second;
    }
  }

  Fold describe() {
    std::unordered_map<std::uint64_t, int> seen;
    fold_.class_of.resize(n_);
    for (std::size_t r = 0; r < n_; ++r) {
      const auto [at, fresh] = seen.try_emplace(colour_[r], static_cast<int>(fold_.classes.size()));
      if (fresh) {
        RankClass c;
        c.representative = static_cast<int>(r);
        c.stage = l_.stage_of(c.representative);
        c.host = host_class_[static_cast<std::size_t>(l_.host_of(c.representative))];
        c.group.fill(-1);
        fold_.classes.push_back(c);
      }
      fold_.class_of[r] = at->second;
      ++fold_.classes[static_cast<std::size_t>(at->second)].count;
    }
    const int n = l_.ranks();
    for (RankClass& c : fold_.classes) {
      if (l_.pipeline <= 1) continue;
      c.next = fold_.class_of[static_cast<std::size_t>((c.representative + l_.stage_ranks()) % n)];
      c.previous = fold_.class_of[static_cast<std::size_t>((c.representative + n - l_.stage_ranks()) % n)];
    }
    for (const Meet meet : kMeets) describe_groups(meet);
    add_world();
    return std::move(fold_);
  }

  void describe_groups(Meet meet) {
    std::vector<std::uint64_t> sums;
    sum_groups(meet, sums);
    std::unordered_map<std::uint64_t, int> seen;
    for (RankClass& c : fold_.classes) {
      const std::vector<int> members = l_.members(meet, c.representative);
      if (members.size() < 2) continue;
      const std::uint64_t sum = sums[static_cast<std::size_t>(l_.group_of(meet, c.representative))];
      const auto [at, fresh] = seen.try_emplace(sum, static_cast<int>(fold_.groups.size()));
      if (fresh) fold_.groups.push_back(group_class(meet, members, sum, sums));
      c.group[static_cast<std::size_t>(meet)] = at->second;
    }
  }

  GroupClass group_class(Meet meet, const std::vector<int>& members, std::uint64_t sum,
                         const std::vector<std::uint64_t>& sums) const {
    GroupClass g;
    g.meet = meet;
    g.size = static_cast<int>(members.size());
    std::map<int, int> hosts;  // class -> a host of it
    int last_host = -1;
    g.spans_hosts = 0;
    for (const int r : members) {
      g.members.push_back(fold_.class_of[static_cast<std::size_t>(r)]);
      const int h = l_.host_of(r);
      if (h != last_host) ++g.spans_hosts;
      last_host = h;
      hosts.try_emplace(host_class_[static_cast<std::size_t>(h)], h);
    }
    std::sort(g.members.begin(), g.members.end());
    g.members.erase(std::unique(g.members.begin(), g.members.end()), g.members.end());
    for (const auto& [host_class, host] : hosts) {
      std::vector<int> groups;
      for (int k = 0; k < l_.gpus_per_host && host * l_.gpus_per_host + k < l_.ranks(); ++k) {
        const int group = l_.group_of(meet, host * l_.gpus_per_host + k);
        if (sums[static_cast<std::size_t>(group)] == sum) groups.push_back(group);
      }
      std::sort(groups.begin(), groups.end());
      groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
      g.hosts.push_back({host_class, static_cast<int>(groups.size())});
    }
    return g;
  }

  void add_world() {
    if (fold_.classes.size() < 2) return;
    GroupClass world;
    world.meet = Meet::kWorld;
    world.size = l_.ranks();
    for (std::size_t c = 0; c < fold_.classes.size(); ++c) world.members.push_back(static_cast<int>(c));
    for (RankClass& c : fold_.classes)
      c.group[static_cast<std::size_t>(Meet::kWorld)] = static_cast<int>(fold_.groups.size());
    fold_.groups.push_back(world);
  }

  const Layout& l_;
  const Imperfections& i_;
  std::size_t n_;
  bool folded_;
  std::vector<std::uint64_t> colour_;
  std::vector<int> host_class_;
  Fold fold_;
};

}  // namespace

int Layout::group_of(Meet meet, int rank) const {
  const int stage = stage_of(rank);
  const int inside = rank % stage_ranks();
  const int t = inside % tensor;
  const int dc = inside / tensor;  // context fastest, then data
  switch (meet) {
    case Meet::kTensor:
      return rank / tensor;
    case Meet::kContext:
      return (stage * data + dc / context) * tensor + t;
    case Meet::kExpert:
      return rank / expert;
    case Meet::kData:
      return stage * tensor + t;
    case Meet::kShard:
      return (stage * (context * data / shard) + dc / shard) * tensor + t;
    case Meet::kReplicate:
      return (stage * shard + dc % shard) * tensor + t;
    case Meet::kTied:
      return tied && pipeline > 1 ? (stage == pipeline - 1 ? inside : rank) : rank;
    case Meet::kWorld:
    case Meet::kNobody:
      break;
  }
  return 0;
}

std::vector<int> Layout::members(Meet meet, int rank) const {
  std::vector<int> out;
  const int first = stage_of(rank) * stage_ranks();
  if (meet == Meet::kTied) {
    const int inside = rank % stage_ranks();
    const int stage = stage_of(rank);
    if (tied && pipeline > 1 && (stage == 0 || stage == pipeline - 1))
      return {inside, (pipeline - 1) * stage_ranks() + inside};
    return {rank};
  }
  const int group = group_of(meet, rank);
  for (int r = first; r < first + stage_ranks(); ++r) {
    if (group_of(meet, r) == group) out.push_back(r);
  }
  return out;
}

Fold fold_ranks(const Layout& layout, const Imperfections& imperfections, bool folded) {
  return Refiner(layout, imperfections, folded).run();
}

}  // namespace chokepoint::engine
