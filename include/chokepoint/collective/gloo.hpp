// SPDX-License-Identifier: Apache-2.0
#pragma once
// Collectives of gloo, PyTorch's backend for CPUs and plain TCP, as the messages it sends: who sends what to whom, and what
// must have come before. Read from gloo's sources (allreduce.cc, allgather.cc, broadcast.cc, alltoall.cc of 2018 to 2023):
// rings with two segments under way, binomial trees, and direct exchange. docs/models/gloo.md has the formulas.
//
//   GlooSchedule ring = gloo_schedule(Op::kAllReduce, 4e6, {0, 1, 2, 3});
#include <chokepoint/collective/collective.hpp>
#include <vector>

namespace chokepoint::collective {

struct GlooMessage {
  int from = 0;   ///< rank
  int to = 0;
  double bytes = 0;
};

enum class GlooStep { kPost, kWait };
/// One rank's call: posts its side of a message, or waits until the message has arrived.
struct GlooAction {
  GlooStep step = GlooStep::kPost;
  int message = 0;
};

struct GlooSchedule {
  std::vector<GlooMessage> messages;
  std::vector<std::vector<GlooAction>> actions;  ///< by position in the group
};

/// Longest piece of an all_reduce that is sent at once: gloo's default, 1 MiB (AllreduceOptions::kMaxSegmentSize).
inline constexpr double kGlooSegmentBytes = 1024 * 1024;

/// `bytes` as nccl-tests counts them. `ranks`: members in group order; `root`: position, for broadcast. Ops: all_reduce,
/// all_gather, broadcast, all_to_all; reduce_scatter is not gloo's (PyTorch 1.13) and gives an empty schedule.
GlooSchedule gloo_schedule(Op op, double bytes, const std::vector<int>& ranks, int root = 0);

}  // namespace chokepoint::collective
