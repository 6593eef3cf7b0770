// SPDX-License-Identifier: Apache-2.0
#pragma once
// What makes ranks of a real job differ. Everything is off by default; draws depend only on the seed, the rank and the
// operation, never on the order of evaluation.
#include <chokepoint/base/result.hpp>
#include <cstdint>
#include <string_view>
#include <vector>

namespace chokepoint::engine {

struct SlowRank {
  int rank = 0;
  double factor = 1;  ///< its kernels take so many times longer
};

struct SlowHost {
  int host = 0;
  double share = 1;  ///< of its network bandwidth that is left, above 0
};

struct Stall {
  int rank = 0;
  double seconds = 0;  ///< the device waits so long before its first kernel of a step
  int every_steps = 1;
};

struct Imperfections {
  std::vector<SlowRank> slow_ranks;
  std::vector<SlowHost> slow_hosts;
  std::vector<Stall> stalls;
  double stage_load = 1;          ///< work of the last stage against what the model says
  double jitter = 0;              ///< standard deviation of each kernel's time, relative
  double sequence_imbalance = 0;  ///< standard deviation of the work of a micro-batch on a data-parallel rank, relative
  double expert_imbalance = 1;    ///< load of the fullest expert rank over the mean
  double expert_share = 0;        ///< of a layer's computation that the experts do; filled in by simulate_step
  std::uint64_t seed = 1;
  int step = 0;  ///< which step of the run: stalls and draws differ by step

  bool any() const;
  bool every_rank_differs() const { return jitter > 0; }
};

/// "slow-rank=17:1.08", "slow-host=3:0.5", "stall=5:200ms/10", "jitter=2%", "sequences=10%", "experts=1.3",
/// "last-stage=1.2", "seed=7"; the error names what was expected.
Result<bool> parse_imperfection(std::string_view text, Imperfections& into);
/// Whether ranks and hosts exist in a job of this size.
Result<bool> check(const Imperfections& imperfections, int ranks, int hosts);

/// Factor on the work of an operation: slow rank, jitter, sequence lengths, experts. 1 without imperfections.
/// `compute`: kernels of a pass; else a collective of the expert group.
double work_factor(const Imperfections& imperfections, int rank, int data_index, int micro_batch, std::uint64_t op,
                   bool last_stage, bool hot_expert);
/// Seconds that the rank stalls before this step.
double stall_s(const Imperfections& imperfections, int rank);

}  // namespace chokepoint::engine
