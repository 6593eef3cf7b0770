// SPDX-License-Identifier: Apache-2.0
#pragma once
// A training job: model, batch, software, and the strategy that lays it over a cluster. Degrees carry Megatron's names.
#include <chokepoint/base/result.hpp>
#include <chokepoint/compute/kernels.hpp>
#include <chokepoint/hardware/catalogue.hpp>
#include <chokepoint/model/model.hpp>
#include <chokepoint/topology/topology.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::parallel {

/// Software whose behaviour the step model knows: how it buckets, overlaps, prefetches, launches.
enum class Framework {
  kPytorch,      ///< plain DDP, FSDP1 (HF Trainer, Lightning)
  kTorchtitan,   ///< FSDP2, torch.compile
  kLlmFoundry,   ///< Composer FSDP1
  kFmsFsdp,      ///< FSDP1 + torch.compile
  kMegatron,     ///< Megatron-LM / Megatron-Core / NeMo
  kMegatronDeepspeed,
  kDeepspeed,
  kNanotron,
  kMaxtext,
};
std::string_view name(Framework framework);
Result<Framework> parse_framework(std::string_view text);

/// What data-parallel ranks shard. Stage 0 replicates all (DDP), 1 the optimizer state, 2 also the gradients, 3 also
/// the parameters (FSDP full shard).
enum class Sharder { kDdp, kMegatronOptimizer, kFsdp, kDeepspeed };

enum class Recompute { kNone, kSelective, kFull };
std::string_view name(Recompute recompute);
enum class Offload { kNone, kOptimizer, kParameters, kAll, kActivations };
enum class Schedule {
  kOneForwardOneBackward,
  kInterleaved,
  kGpipe,
  kZeroBubble1,
  kZeroBubble2,
  kZeroBubbleV,  ///< two chunks of a rank laid out as a V: the first stage also holds the last chunk
  kDualPipe,     ///< micro-batches enter at both ends; every rank holds a stage and its mirror image
};

struct Strategy {
  int tensor = 1;
  int pipeline = 1;
  int virtual_stages = 1;           ///< model chunks per pipeline rank
  int context = 1;
  int expert = 1;
  int data = 1;                     ///< GPUs / (tensor x pipeline x context)
  bool sequence_parallel = false;   ///< Megatron sequence parallelism beside tensor parallelism
  int zero = 0;                     ///< ZeRO stage
  Sharder sharder = Sharder::kDdp;
  int shard_ranks = 0;              ///< ranks that share one copy (HSDP); 0: the whole data-parallel group
  bool quantised_gathers = false;   ///< ZeRO++ qwZ: parameters travel in 8 bits
  bool quantised_reduction = false; ///< ZeRO++ qgZ: gradients travel in 4 bits, by all-to-all inside a host, then across
  bool secondary_shard = false;     ///< ZeRO++ hpZ: a second copy shared by a host serves the backward's gathers
  bool reshard_after_forward = true;
  int micro_batch = 1;              ///< sequences per data-parallel rank and micro-step
  int accumulate = 1;               ///< micro-steps per step
  bool sync_every_micro_step = false;  ///< gradients reduced in each micro-step instead of the last (no no_sync)
  bool sync_last_only = false;      ///< FSDP too reduces in the last micro-step only (no_sync); gradients stay whole
  Recompute recompute = Recompute::kNone;
  Offload offload = Offload::kNone;
  Schedule schedule = Schedule::kOneForwardOneBackward;
  bool overlap_grad_reduce = true;
  bool overlap_param_gather = true;
  bool overlap_tensor = false;      ///< asynchronous tensor parallelism / user-buffer overlap
  bool overlap_expert = false;      ///< expert exchanges of one micro-batch run beside the computation of another
  int local_steps = 1;              ///< optimizer steps between two averagings of the replicas (local SGD, DiLoCo)
  std::vector<int> stage_layers;    ///< uneven stages; empty: as even as possible
  bool operator==(const Strategy&) const = default;
};

/// "tensor=8 pipeline=4 zero=1 microbatch=1 recompute=selective"; short names tp, pp, vpp, cp, ep, mbs are accepted.
/// Unknown words are errors with a suggestion. Data degree and accumulation are derived by `completed`.
Result<Strategy> parse_strategy(std::string_view text);
/// The shortest text that parses back to the strategy, for humans and `--strategy`.
std::string to_text(const Strategy& strategy);
/// The same for reading, without what goes without saying: "TP 2, PP 4x2, ZeRO-1 x8, batch 2 x16, full recompute".
std::string title(const Strategy& strategy);

struct Job {
  model::Model model;
  topology::Cluster cluster;
  hardware::Accelerator accelerator;
  int gpus = 0;                     ///< ranks used, <= cluster.gpu_count()
  int sequence = 2048;
  double global_batch = 1;          ///< sequences per optimizer step
  hardware::Dtype dtype = hardware::Dtype::kBf16;  ///< of matrix products; fp8 keeps bf16 weights
  bool fp8_rowwise = false;         ///< one scale per row (torchao row-wise): products gain nothing over bf16
  compute::AttentionKernel attention = compute::AttentionKernel::kFlash2;
  bool causal = true;               ///< the kernel skips masked blocks
  Framework framework = Framework::kMegatron;
  bool compiled = false;            ///< torch.compile or CUDA graphs: fewer, fused launches
  bool framework_assumed = false;   ///< nobody said which
  int year = 2025;                  ///< software generation, for launch cost and fusion defaults
  bool fp32_gradients = true;       ///< main gradients accumulate and reduce in fp32
  bool token_once_per_host = false; ///< experts get tokens through one copy per host (DeepEP, HybridEP), not one per expert
  bool frozen_weights = false;      ///< only adapters train (LoRA): no weight gradients, no optimizer state
  int adapter_rank = 8;             ///< of the adapters on every product; their time is neglected
  bool chunked_loss = false;        ///< head and loss run in chunks: the logits are never whole
  bool fused_loss = false;          ///< cross entropy in one kernel that writes its gradient over the logits
  bool fused_operators = false;     ///< hand-fused norm, rotary embedding and activation (Liger) in a framework without
  bool blocking_sends = false;      ///< the host waits for each transfer between pipeline stages
  int padded_vocab = 0;             ///< 0: pad to 128 x tensor
  double optimizer_bytes_per_parameter = 12;  ///< fp32 master + two Adam moments
  std::vector<Note> assumptions;    ///< defaults taken while the job was read
};

/// Decoder layers of each pipeline stage: as listed, or as the framework spreads them (evenly, the first stages take the
/// rest; nanotron balances by cost, the head counted).
std::vector<int> layers_per_stage(const Job& job, const Strategy& strategy);

/// Layers of each kind that a stage holds, in all of its virtual stages; `layers` as layers_per_stage() gives them.
model::LayerCounts kinds_of_stage(const Job& job, const Strategy& strategy, const std::vector<int>& layers, int stage);

/// Fills data degree and accumulation, and checks that the strategy is legal for the job: degrees divide, batch divides,
/// layers suffice, groups fit. The error says what would be legal.
Result<Strategy> completed(const Job& job, Strategy strategy);

}  // namespace chokepoint::parallel
