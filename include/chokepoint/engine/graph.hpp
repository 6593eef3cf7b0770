// SPDX-License-Identifier: Apache-2.0
#pragma once
// The graph of one optimizer step: what a rank of each pipeline stage does, in which order, and what it waits for.
// Ranks of a stage share the graph; they may differ in speed (fold.hpp says which do).
//
//   TRY_INTO(const StepGraph graph, build_graph(predictor.pieces(strategy), strategy));
//   graph.stages[0].ops.size()
//
// A lane runs its operations one after the other, in index order. Collectives start when all members have come.
#include <array>
#include <chokepoint/base/result.hpp>
#include <chokepoint/parallel/job.hpp>
#include <chokepoint/simulate/pieces.hpp>
#include <chokepoint/simulate/predict.hpp>
#include <cstdint>
#include <string_view>
#include <vector>

namespace chokepoint::engine {

/// What an operation does.
enum class Work : std::uint8_t {
  kForward,
  kBackward,
  kRecompute,
  kWeightGradient,
  kHost,  ///< the device waits for launches and Python
  kTensor,
  kContext,
  kExpert,  ///< exposed part of the collectives inside a pass
  kSendForward,
  kSendBackward,
  kGather,      ///< parameters of a unit (ZeRO-3, FSDP)
  kParameters,  ///< bucket of updated parameters (ZeRO-1, 2)
  kReduce,
  kReplicate,
  kTied,
  kNorm,  ///< gradient norm: all ranks meet before the optimizer
  kOptimizer,
  kOffload,
  kFixed,
};
inline constexpr int kWorkCount = 19;
std::string_view name(Work work);
simulate::Bill bill_of(Work work);

/// Who takes part in an operation beside the rank itself.
enum class Meet : std::uint8_t { kNobody, kTensor, kContext, kExpert, kData, kShard, kReplicate, kTied, kWorld };
inline constexpr int kMeetCount = 9;

/// What runs one thing at a time.
enum class Lane : std::uint8_t { kCompute, kSendForward, kSendBackward, kData, kReplicate };
inline constexpr int kLaneCount = 5;

struct Op {
  Work work = Work::kForward;
  Lane lane = Lane::kCompute;
  Meet meet = Meet::kNobody;
  collective::Op collective = collective::Op::kAllReduce;
  std::int32_t micro_batch = -1;
  std::int32_t chunk = 0;        ///< of the stage's model chunks
  std::int32_t part = -1;        ///< layer or bucket within the chunk
  std::uint32_t ordinal = 0;     ///< counts the operations of the same `meet` in a stage
  double seconds = 0;            ///< alone: of own work, or of the transfer once all have come
  double latency_s = 0;          ///< part of a transfer that needs no bandwidth
  double bytes = 0;              ///< nccl-tests' size; 0: unknown
  std::int32_t peer_stage = -1;  ///< of a send
  std::uint32_t peer_op = 0;     ///< what waits for it there
  bool overlaps = false;         ///< computation beside it runs slower
};

struct StageGraph {
  std::vector<Op> ops;
  std::vector<std::uint32_t> successor_begin;  ///< ops.size() + 1 offsets into `successors`
  std::vector<std::uint32_t> successors;
  std::vector<std::uint16_t> waits_for;  ///< dependencies of each op, a received message included
  std::array<std::vector<std::uint32_t>, kLaneCount> lanes;
  std::array<std::uint32_t, kMeetCount> meetings{};  ///< operations of each kind of meeting
};

struct StepGraph {
  std::vector<StageGraph> stages;
  double interference = 1;
  std::size_t ops() const;
};

struct GraphOptions {
  bool by_layer = false;  ///< an operation per layer even where a whole pass would do: timelines, jitter
  std::size_t most_ops = 20'000'000;
};

/// Refuses what has no end (cycles) or no sensible size, in one message.
Result<StepGraph> build_graph(const simulate::Pieces& pieces, const parallel::Strategy& strategy,
                              const GraphOptions& options = {});
/// Success when every operation can run: lanes, dependencies and messages together have no cycle, and all indices
/// exist.
Result<bool> check(const StepGraph& graph);

/// One pass of one micro-batch through one chunk.
struct Slot {
  enum class Kind : std::uint8_t { kForward, kBackward, kWeightGradient };
  Kind kind = Kind::kForward;
  int micro_batch = 0;
  int chunk = 0;
  bool operator==(const Slot&) const = default;
};

/// Seconds of one micro-batch on a stage, for schedules that order by time.
struct SlotTimes {
  double forward_s = 0;
  double backward_s = 0;  ///< without the part below
  double weight_gradient_s = 0;
};

/// Model chunks that a rank holds and a micro-batch passes one after the other.
int chunks_of(const parallel::Strategy& strategy);
/// Where a chunk of a stage stands in the pipeline that a micro-batch walks through, and which one stands at a position.
struct Place {
  int stage = 0;
  int chunk = 0;
};
int position_of(const parallel::Strategy& strategy, int stage, int chunk, int micro_batch);
Place place_of(const parallel::Strategy& strategy, int position, int micro_batch);

/// Order of passes on each stage.
std::vector<std::vector<Slot>> schedule_order(const parallel::Strategy& strategy, const std::vector<SlotTimes>& stages);

}  // namespace chokepoint::engine
