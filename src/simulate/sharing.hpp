// SPDX-License-Identifier: Apache-2.0
#pragma once
// Data parallelism: what gradient reductions and parameter gathers add to a step beyond what computation hides.
#include <chokepoint/simulate/pieces.hpp>

#include "layer.hpp"
#include "pipeline.hpp"

namespace chokepoint::simulate {

/// One pipeline stage of one rank.
struct StageCost {
  double layers = 0;
  double parameters = 0;        ///< on this rank (after tensor, pipeline and expert splits)
  double unit_parameters = 0;   ///< one layer
  double root_parameters = 0;   ///< embedding and head held here
  double embedding_parameters = 0;  ///< of those the embedding, whose gradient comes last
  double layer_forward_s = 0;   ///< one layer, device or host, whichever is longer
  double layer_backward_s = 0;
  double end_forward_s = 0;     ///< embedding and head
  double end_backward_s = 0;
  double forward_kernels = 1;   ///< share of its passes that kernels take: they alone run slower beside a transfer
  double backward_kernels = 1;
  /// Exchanges that other passes hide, in the step's first forward and its last backward, which run beside none.
  double alone_forward_s = 0;
  double alone_backward_s = 0;
  double forward() const { return layers * layer_forward_s + end_forward_s + alone_forward_s; }
  double backward() const { return layers * layer_backward_s + end_backward_s + alone_backward_s; }
};

struct Exposed {
  double gather_s = 0;          ///< per optimizer step
  double reduce_s = 0;
};

/// Gradient buckets of torch's DistributedDataParallel for `parameters` elements of one rank: the tensors of a layer join
/// in reverse order and a bucket closes once it holds `cap` elements (bucket_cap_mb, 25 MiB of the parameter's dtype), so
/// that a tensor is never cut (torch/csrc/distributed/c10d/reducer.cpp). `merged`: gate and up are one tensor, and q, k, v.
double ddp_buckets(const model::Model& model, double tensor_degree, double parameters, double cap, bool merged);

/// What a pipeline gives a stage to hide behind.
struct Slack {
  double gather_s = 0;  ///< before its first pass, while earlier stages have the first micro-batch
  double reduce_s = 0;  ///< after its last pass, while earlier stages finish
  double chunks = 1;    ///< of the stage's layers, passed one after the other
  double hops = 1;      ///< stages: a micro-batch comes to the next chunk after so many passes
};

/// Exposed communication of the data-parallel group over one optimizer step, for the stage given.
Exposed data_parallel(const StepContext& context, const StageCost& stage, const Slack& slack);

/// The collectives that data_parallel() lays over the step, one by one.
DataPieces data_pieces(const StepContext& context, const StageCost& stage);

}  // namespace chokepoint::simulate
