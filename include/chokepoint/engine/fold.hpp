// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ranks that behave alike. Two ranks are of one class if they have the same stage and the same imperfections, and their
// groups, neighbours and the links that their transfers pass are made of the same classes: the coarsest equitable
// partition of ranks, groups and links, found by refining colours from rank coordinates. One representative per class
// then stands for all, with links loaded by multiplicity.
//
//   const Fold fold = fold_ranks(layout, imperfections, true);
//   fold.classes.size()  // = pipeline stages where nothing differs
#include <chokepoint/engine/graph.hpp>
#include <chokepoint/engine/imperfections.hpp>
#include <chokepoint/engine/ways.hpp>

namespace chokepoint::engine {

/// Where a rank stands: tensor fastest, then context, data, and pipeline slowest.
struct Layout {
  int tensor = 1;
  int context = 1;
  int data = 1;
  int pipeline = 1;
  int expert = 1;
  int shard = 1;  ///< ranks (data x context) that share one copy of the sharded state
  int gpus_per_host = 8;
  bool tied = false;  ///< first and last stage meet over the embedding

  int stage_ranks() const { return tensor * context * data; }
  int ranks() const { return stage_ranks() * pipeline; }
  int hosts() const { return (ranks() + gpus_per_host - 1) / gpus_per_host; }
  int stage_of(int rank) const { return rank / stage_ranks(); }
  int host_of(int rank) const { return rank / gpus_per_host; }
  int data_index(int rank) const { return rank % stage_ranks() / (tensor * context); }
  /// Number of the group of this kind that the rank is in, counted over all groups of the kind.
  int group_of(Meet meet, int rank) const;
  /// Ranks of a group, ascending.
  std::vector<int> members(Meet meet, int rank) const;
};

/// What one class of transfers puts on one link of a class, all its instances together, as Load.
struct ClassLoad {
  int link = 0;  ///< index into Fold::links
  double weight = 0;
};

struct RankClass {
  int representative = 0;  ///< lowest rank
  int stage = 0;
  int count = 0;  ///< ranks
  int next = -1;  ///< class of the rank one stage on (round the end), -1: one stage
  int previous = -1;
  std::array<int, kMeetCount> group{};  ///< index into Fold::groups, -1: alone
  std::vector<ClassLoad> forward_loads;  ///< of messages to the next stage
  std::vector<ClassLoad> backward_loads;
};

struct GroupClass {
  Meet meet = Meet::kNobody;
  std::vector<int> members;  ///< classes, ascending
  int size = 1;              ///< ranks of one group
  std::vector<ClassLoad> loads;
};

/// Links that carry the same transfers.
struct SharedLink {
  std::uint32_t representative = 0;
  int count = 0;
  double share = 1;      ///< of its capacity that is left
  bool collides = false;  ///< hashed: siblings of one kind may fill it more than once
};

struct Fold {
  std::vector<RankClass> classes;
  std::vector<GroupClass> groups;
  std::vector<SharedLink> links;
  std::array<std::vector<double>, kWayKinds> siblings;  ///< by link: load of all transfers of a kind together
  std::vector<std::int32_t> class_of;  ///< by rank
};

/// `folded` false: every rank is a class of its own. `ways`: links that transfers share; null: none are.
/// Each round of refinement costs O(ranks x kinds of groups + loads).
Fold fold_ranks(const Layout& layout, const Imperfections& imperfections, bool folded, const Ways* ways = nullptr);

}  // namespace chokepoint::engine
