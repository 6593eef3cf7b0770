// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operations of pipeline workers, one row each: what a trainer's own timers write (forward and backward computations,
// sends and receives, gathers and reductions per step and micro-batch), without kernels.
#include <chokepoint/base/result.hpp>
#include <chokepoint/trace/columns.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace chokepoint::trace {

enum class OpType : std::uint8_t {
  kForwardCompute,
  kBackwardCompute,
  kForwardSend,
  kForwardRecv,
  kBackwardSend,
  kBackwardRecv,
  kParamsGather,
  kGradsReduce,
  kSeparateGradsReduce,  ///< what cannot overlap with the backward pass
  kLayerNormReduce,
  kEmbeddingReduce,
  kClipGrads,
  kOptimizer,
  kGarbageCollection,
  kCount,
};
/// As trainers write it: "forward-compute".
std::string_view name(OpType type);

struct OpTimeline {
  std::string file;
  int data_ranks = 0;
  int stages = 0;
  std::vector<int> steps;              ///< as numbered by the trainer, ascending
  // One entry per operation:
  std::vector<std::int16_t> data_rank;
  std::vector<std::int16_t> stage;
  std::vector<std::int32_t> step;      ///< position in `steps`
  std::vector<OpType> type;
  std::vector<std::int32_t> sequence;  ///< counts operations of a type in a step
  std::vector<std::int16_t> chunk;     ///< model chunk of the stage; -1: none
  std::vector<std::int64_t> start_ns;
  std::vector<std::int64_t> end_ns;    ///< may lie before the start, by the clocks' error
  std::uint64_t negative = 0;          ///< such operations
  std::uint64_t unknown = 0;           ///< rows of an operation type that is not known, left out
  std::size_t size() const { return start_ns.size(); }
};

/// CSV with a header (dp_rank, stage, step, optype, start_ts, duration in seconds, seq_id, mc), or the Chrome array of the
/// same (process = data rank, thread "PP rank P, ..."); plain or compressed.
Result<OpTimeline> read_op_timeline(const std::string& path);
Result<OpTimeline> read_op_timeline_text(std::string text, const std::string& file);

}  // namespace chokepoint::trace
