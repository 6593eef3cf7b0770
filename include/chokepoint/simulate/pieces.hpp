// SPDX-License-Identifier: Apache-2.0
#pragma once
// What one optimizer step is made of, before anything is laid over anything else: the closed form adds these pieces up
// by formula, the event engine runs them. Both read this one description, so they can differ only in how work overlaps.
//
//   const simulate::Pieces pieces = predictor.pieces(completed_strategy);
//   pieces.stages[0].forward.compute_s  // kernels of one layer, forward, one micro-batch, on a rank of stage 0
#include <chokepoint/collective/collective.hpp>
#include <chokepoint/parallel/job.hpp>
#include <vector>

namespace chokepoint::simulate {

/// Seconds of one pass of one layer (or of embedding and head) for one micro-batch on one rank.
struct PassPieces {
  double compute_s = 0;  ///< kernels
  double tensor_s = 0;   ///< exposed tensor-parallel communication
  double context_s = 0;  ///< exposed context-parallel communication
  double expert_s = 0;   ///< exposed expert all-to-all
  double host_s = 0;     ///< launches and Python: a floor under the sum of a stage's passes, not an addition
  double device_s() const { return compute_s + tensor_s + context_s + expert_s; }
};

/// A collective that the step repeats: its time alone on the wires, and what it moves.
struct TransferPieces {
  collective::Op op = collective::Op::kAllReduce;
  double seconds = 0;    ///< with latency and the copies around it
  double latency_s = 0;  ///< part that no bandwidth shortens
  double bytes = 0;      ///< nccl-tests' size
};

/// Data parallelism of one stage.
struct DataPieces {
  bool active = false;   ///< the group has more than one rank
  bool by_unit = false;  ///< ZeRO-3 and FSDP: parameters gathered and gradients scattered layer by layer
  // By unit.
  TransferPieces gather;        ///< one layer, forward
  TransferPieces gather_again;  ///< one layer, backward; 0 s when parameters stay gathered
  TransferPieces scatter;       ///< gradients of one layer
  TransferPieces replicate;     ///< of the scattered gradients between replicas (HSDP); 0 s without
  TransferPieces root_gather;   ///< embedding and head
  TransferPieces root_scatter;
  TransferPieces root_replicate;
  double overlap_share = 1;         ///< of a gather that can hide at all
  int prefetch = 1;                 ///< units gathered ahead of the one that computes
  bool scatters_last_only = false;  ///< gradients are scattered in the last micro-step only
  // In buckets.
  int buckets = 0;                  ///< of gradients
  TransferPieces reduce;            ///< one of them
  TransferPieces reduce_last;       ///< the one that is ready last
  int gather_buckets = 0;           ///< of updated parameters (ZeRO-1, 2)
  TransferPieces parameters;        ///< one of them
  TransferPieces parameters_first;  ///< the one that the first layers wait for
  bool each_micro_step = false;     ///< gradients are reduced in every micro-step
  // Both.
  bool reduces_behind_backward = true;
  bool gathers_behind_forward = true;
};

struct StagePieces {
  int layers = 0;
  PassPieces forward;      ///< one layer
  PassPieces backward;     ///< one layer, without recomputation
  PassPieces recompute;    ///< what backward of one layer runs again
  PassPieces end_forward;  ///< embedding and head held here
  PassPieces end_backward;
  double forward_host_s = 0;  ///< what the host needs beyond the device, for all layers and ends of the stage
  double backward_host_s = 0;
  double recompute_host_s = 0;
  double weight_gradient_s = 0;  ///< part of the stage's backward that zero-bubble schedules may delay
  double parameters = 0;         ///< held by a rank before data-parallel sharding
  double paired_expert = 1;      ///< of expert_s, what shows in a pass that runs beside another micro-batch's
  DataPieces data;
};

/// Process groups as they lie on hosts (rank order: tensor, context, data, pipeline slowest).
struct GroupPieces {
  collective::Group tensor, context, expert, data, shard, replicate;
  int stage_distance = 0;  ///< ranks between neighbouring stages
};

struct Pieces {
  std::vector<StagePieces> stages;
  GroupPieces groups;
  TransferPieces send;     ///< activation of one micro-batch to the next stage, or its gradient back
  double send_wire_s = 0;  ///< how long it keeps the link busy
  bool blocking_sends = false;
  TransferPieces tied_embedding;  ///< all-reduce between first and last stage; 0 s without
  double interference = 1;        ///< computation beside a data-parallel collective takes so many times longer
  double optimizer_s = 0;
  double offload_s = 0;
  double fixed_s = 0;           ///< once per step: data hand-over, loss readback, logging
  double activation_bytes = 0;  ///< of one micro-batch between layers, on one rank before tensor slicing
  double closed_form_s = 0;     ///< step time by formula
};

/// Passes and transfers between stages by formula: the step but for data parallelism and its end.
double pipeline_s(const Pieces& pieces, const parallel::Strategy& strategy);
/// Whether that is the time of a run on free links; elsewhere no run is shorter.
bool pipeline_is_exact(const Pieces& pieces, const parallel::Strategy& strategy);

/// Micro-batches that pass a chunk one after the other before the next chunk's turn comes: as few as let a whole number
/// of groups, or a last one that is not smaller than the pipeline, hold all (Megatron-Core refuses smaller ones,
/// microbatch_group_size_per_vp_stage; torch.distributed.pipelining divides into rounds); all where they are fewer than stages.
int interleaved_group(int stages, int micro_batches);

}  // namespace chokepoint::simulate
