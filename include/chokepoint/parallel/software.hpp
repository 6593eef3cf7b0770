// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a framework does that changes time or memory: which gradients it keeps, what it overlaps, what it fuses.
// Facts of the frameworks' sources at the given year; each field of `software_of` cites where it comes from.
#include <chokepoint/parallel/job.hpp>

namespace chokepoint::parallel {

/// How operators between the products reach memory.
enum class Elementwise {
  kPrimitive,  ///< one kernel per primitive: each cast, square, mean and product of a norm is a pass of its own
  kMixed,      ///< fused norms and rotary embedding, primitive activation
  kFused,      ///< hand-fused norm, rotary, bias-activation, bias-dropout-add
  kCompiled,   ///< generated code: residual, norm and cast in one pass
};

struct Software {
  double gradient_bytes = 4;           ///< per parameter, resident
  double accumulation_bytes = 0;       ///< per parameter, a second (fp32) accumulation buffer
  double reduce_bytes = 4;             ///< per parameter on the wire in gradient reduction
  double gather_bytes = 2;             ///< per parameter on the wire in parameter gathers
  double master_bytes = 12;            ///< fp32 copy and optimizer moments, per parameter
  double resident_parameter_bytes = 2; ///< unsharded working copy
  double bucket_bytes = 0;             ///< per parameter, flat copies of gradients beside the gradients themselves
  double cast_bytes = 0;               ///< per parameter, 16-bit copies that autocast caches during a forward
  double step_bytes = 0;               ///< per owned parameter, temporaries of the optimizer step
  double flat_step_bytes = 0;          ///< of `step_bytes`' kind, but one flat tensor that no activation block can hold
  bool operator_recompute = false;     ///< selective recomputation keeps every second product, not all but the scores
  double live_unit_parameters = 0;     ///< parameters that ZeRO-3 keeps gathered at least (0: whole layers)
  double reduce_bucket_parameters = 0; ///< ZeRO-2 and 3 reduce in buckets of so many (0: whole layers)
  bool boundary_copies = false;        ///< a pipeline stage keeps its input and output per micro-batch in flight
  bool queues_ahead = false;           ///< buffers of asynchronous gathers wait for their event while the host runs on
  bool reduces_whole = false;          ///< gradients are all-reduced in one call, after the last backward
  bool copies_slices = false;          ///< each rank's slice of each tensor is copied by itself after a gather
  bool step_gathers_flat = false;      ///< the optimizer step gathers all updated parameters into one flat tensor
  bool partitions_buckets = false;     ///< of ZeRO-1's averaged gradients a rank keeps its own partition alone
  bool expandable_segments = false;    ///< the caching allocator maps pages, so blocks of any size come together again
  int groups_per_dimension = 1;        ///< communicators that a parallel dimension opens
  int pipeline_groups = 0;             ///< further ones of a pipeline: pairs of neighbours, tied embeddings
  double placeholder_bytes = 0;        ///< per parameter of one layer, standing in for gradients fused into the products
  int loss_chunks = 1;                 ///< pieces in which head and loss run
  bool buckets_overlap = true;         ///< gradient reduction starts during backward
  bool gather_overlap = true;          ///< ZeRO-1 parameter gather hides behind the next forward
  bool wgrad_hides_tensor = false;     ///< TP backward communication hides under gradient products
  Elementwise elementwise = Elementwise::kFused;
  double attention_copies = 0;         ///< passes that only change the layout of queries, keys and values
  bool fused_library = false;          ///< Transformer Engine kernels
  bool whole_program = false;          ///< the step is compiled as one program (XLA)
  bool fetches_by_tensor = false;      ///< sharded parameters arrive tensor by tensor through flat buffers and hooks
  bool compiled = false;
  bool dropout = false;
  bool serial_launches = false;        ///< the host waits for each kernel before it launches the next (CUDA_LAUNCH_BLOCKING)
  int gathers_per_unit = 1;            ///< collectives that gather one layer: one, or one for each of its large tensors
  int gathers_in_flight = 2;           ///< FSDP prefetch
  double optimizer_bytes = 34;         ///< device memory traffic of the optimizer per parameter
  double logits_bytes = 26;            ///< memory traffic of cross entropy per logit, forward and backward
  double logits_peak_bytes = 10;       ///< live bytes per logit at the peak
};

Software software_of(const Job& job, const Strategy& strategy);

}  // namespace chokepoint::parallel
