// SPDX-License-Identifier: Apache-2.0
// Colour refinement from rank coordinates. Groups and neighbours of a rank follow from its number, the links of its
// transfers from the ways; one colour per rank, link and group is stored. A link's colour comes from what passes it, a
// transfer's from its members and links, a rank's from its transfers. Rounds end when the number of colours of ranks
// stops growing, at the latest when every rank has its own.
#include <chokepoint/engine/fold.hpp>

#include <algorithm>
#include <map>
#include <span>
#include <utility>
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
  Refiner(const Layout& layout, const Imperfections& imperfections, bool folded, const Ways* ways)
      : l_(layout), i_(imperfections), n_(static_cast<std::size_t>(layout.ranks())), folded_(folded), w_(ways) {}

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
    colour_links();
    return describe();
  }

 private:
  void initial() {
    base_links();
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
    for (std::size_t r = 0; r < n_; ++r) {
      next[r] = mix(next[r] ^ mix(colour_[(r + stage) % n_] + 1001));
      next[r] = mix(next[r] ^ mix(colour_[(r + n_ - stage) % n_] + 1002));
    }
    if (w_ != nullptr) mix_links(next);
    colour_ = std::move(next);
  }

  // ---- links

  void base_links() {
    if (w_ == nullptr) return;
    share_.assign(w_->links, 1.0);
    link_base_.assign(w_->links, 1);
    if (i_.slow_hosts.empty()) return;
    std::map<int, double> shares;
    for (const SlowHost& s : i_.slow_hosts) shares[s.host] = s.share;
    for (std::uint32_t link = 0; link < w_->links; ++link) {
      if (const auto slow = shares.find(w_->interface_of(link)); slow != shares.end()) {
        share_[link] = slow->second;
        link_base_[link] = mix(bits(slow->second));
      }
    }
  }

  /// Colour of each instance of a kind of transfer: a group's members, or the sender.
  std::uint64_t instance_colour(int kind, const std::vector<std::uint64_t>& sums, std::size_t i) const {
    return kind < kMeetCount ? sums[i] : colour_[i];
  }
  void sums_of_kind(int kind, std::vector<std::uint64_t>& sums) const {
    if (kind < kMeetCount) sum_groups(static_cast<Meet>(kind), sums);
  }
  /// Sums of floating point that were added up in another order still are one colour.
  static std::uint64_t weight_colour(double weight) { return bits(static_cast<double>(static_cast<float>(weight))); }

  void colour_links() {
    if (w_ == nullptr) return;
    link_colour_ = link_base_;
    std::vector<std::uint64_t> sums;
    for (int k = 0; k < kWayKinds; ++k) {
      const WayKind& kind = w_->kinds[static_cast<std::size_t>(k)];
      if (kind.loads.empty()) continue;
      sums_of_kind(k, sums);
      for (std::size_t i = 0; i + 1 < kind.begin.size(); ++i) {
        if (kind.begin[i] == kind.begin[i + 1]) continue;
        const std::uint64_t own = mix(instance_colour(k, sums, i) + static_cast<std::uint64_t>(k));
        for (std::uint32_t at = kind.begin[i]; at < kind.begin[i + 1]; ++at)
          link_colour_[kind.loads[at].link] += mix(own ^ weight_colour(kind.loads[at].weight));
      }
    }
  }

  void mix_links(std::vector<std::uint64_t>& next) {
    colour_links();
    std::vector<std::uint64_t> of_instance;
    for (int k = 0; k < kWayKinds; ++k) {
      const WayKind& kind = w_->kinds[static_cast<std::size_t>(k)];
      if (kind.loads.empty()) continue;
      of_instance.assign(kind.begin.size() - 1, 0);
      for (std::size_t i = 0; i < of_instance.size(); ++i) {
        for (std::uint32_t at = kind.begin[i]; at < kind.begin[i + 1]; ++at) {
          of_instance[i] +=
              mix(mix(link_colour_[kind.loads[at].link]) ^ weight_colour(kind.loads[at].weight));
        }
      }
      for (std::size_t r = 0; r < n_; ++r) {
        const std::size_t i =
            k < kMeetCount ? static_cast<std::size_t>(l_.group_of(static_cast<Meet>(k), static_cast<int>(r))) : r;
        next[r] = mix(next[r] ^ mix(of_instance[i] + 2000 + static_cast<std::uint64_t>(k)));
      }
    }
  }

  /// Classes of the links that anything passes, numbered by their lowest link.
  void describe_links(std::vector<int>& class_of_link) {
    class_of_link.assign(w_->links, -1);
    std::vector<char> used(w_->links, 0);
    for (const WayKind& kind : w_->kinds) {
      for (const Load& load : kind.loads) used[load.link] = 1;
    }
    std::unordered_map<std::uint64_t, int> seen;
    for (std::uint32_t link = 0; link < w_->links; ++link) {
      if (used[link] == 0) continue;
      const auto [at, fresh] =
          folded_ ? seen.try_emplace(link_colour_[link], static_cast<int>(fold_.links.size()))
                  : seen.try_emplace(link, static_cast<int>(fold_.links.size()));
      if (fresh) {
        class_of_link[link] = at->second;  // of representatives alone
        fold_.links.push_back({link, 0, share_[link], w_->collides && w_->in_fabric(link)});
      }
      ++fold_.links[static_cast<std::size_t>(at->second)].count;
    }
  }

  /// What each class of transfers puts on the representative of each class of links.
  void describe_loads() {
    if (w_ == nullptr) return;
    std::vector<int> class_of_link;
    describe_links(class_of_link);
    std::vector<std::uint64_t> sums;
    for (int k = 0; k < kWayKinds; ++k) {
      const auto at_kind = static_cast<std::size_t>(k);
      const WayKind& kind = w_->kinds[at_kind];
      std::vector<double>& siblings = fold_.siblings[at_kind];
      siblings.assign(fold_.links.size(), 0);
      if (kind.loads.empty()) continue;
      std::vector<std::map<int, double>> loads(k < kMeetCount ? fold_.groups.size() : fold_.classes.size());
      sums_of_kind(k, sums);
      for (std::size_t i = 0; i + 1 < kind.begin.size(); ++i) {
        int instance = -1;
        for (std::uint32_t at = kind.begin[i]; at < kind.begin[i + 1]; ++at) {
          const int link = class_of_link[kind.loads[at].link];
          if (link < 0) continue;
          if (instance < 0) instance = k < kMeetCount ? group_class_of_.at({k, sums[i]}) : fold_.class_of[i];
          loads[static_cast<std::size_t>(instance)][link] += kind.loads[at].weight;
          siblings[static_cast<std::size_t>(link)] += kind.loads[at].weight;
        }
      }
      for (std::size_t i = 0; i < loads.size(); ++i) {
        std::vector<ClassLoad>& to = k < kMeetCount             ? fold_.groups[i].loads
                                     : k == kWaySendForward ? fold_.classes[i].forward_loads
                                                            : fold_.classes[i].backward_loads;
        for (const auto& [link, weight] : loads[i]) to.push_back({link, weight});
      }
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
    describe_loads();
    return std::move(fold_);
  }

  void describe_groups(Meet meet) {
    std::vector<std::uint64_t> sums;
    sum_groups(meet, sums);
    std::vector<std::uint32_t> first(n_ + 1, 0);  // members of all groups, group by group
    for (std::size_t r = 0; r < n_; ++r) ++first[group_at(meet, r) + 1];
    for (std::size_t g = 1; g <= n_; ++g) first[g] += first[g - 1];
    std::vector<std::uint32_t> at(first.begin(), first.end() - 1);
    std::vector<int> members(n_);
    for (std::size_t r = 0; r < n_; ++r) members[at[group_at(meet, r)]++] = static_cast<int>(r);
    for (RankClass& c : fold_.classes) {
      const std::size_t g = group_at(meet, static_cast<std::size_t>(c.representative));
      if (first[g + 1] - first[g] < 2) continue;
      const auto [known, fresh] =
          group_class_of_.try_emplace({static_cast<int>(meet), sums[g]}, static_cast<int>(fold_.groups.size()));
      if (fresh) fold_.groups.push_back(group_class(meet, {members.data() + first[g], first[g + 1] - first[g]}));
      c.group[static_cast<std::size_t>(meet)] = known->second;
    }
  }
  std::size_t group_at(Meet meet, std::size_t rank) const {
    return static_cast<std::size_t>(l_.group_of(meet, static_cast<int>(rank)));
  }

  GroupClass group_class(Meet meet, std::span<const int> members) const {
    GroupClass g;
    g.meet = meet;
    g.size = static_cast<int>(members.size());
    for (const int r : members) g.members.push_back(fold_.class_of[static_cast<std::size_t>(r)]);
    std::sort(g.members.begin(), g.members.end());
    g.members.erase(std::unique(g.members.begin(), g.members.end()), g.members.end());
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
  const Ways* w_;
  std::vector<std::uint64_t> colour_;
  std::vector<std::uint64_t> link_base_;    ///< what a link is, before what passes it
  std::vector<std::uint64_t> link_colour_;
  std::vector<double> share_;
  std::map<std::pair<int, std::uint64_t>, int> group_class_of_;  ///< by meeting and sum of the members' colours
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

Fold fold_ranks(const Layout& layout, const Imperfections& imperfections, bool folded, const Ways* ways) {
  return Refiner(layout, imperfections, folded, ways).run();
}

}  // namespace chokepoint::engine
