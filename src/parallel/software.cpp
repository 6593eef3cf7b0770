// SPDX-License-Identifier: Apache-2.0
// Behaviour of frameworks, as their sources show it. What is not a fact of a source (the memory passes of eager
// kernels, for instance) is counted operator by operator in docs/models/step.md.
#include <chokepoint/parallel/software.hpp>

#include <algorithm>

namespace chokepoint::parallel {

namespace {

/// torchtitan components/loss.py, ChunkedCELoss.Config.num_chunks; Liger's fused linear cross entropy takes more.
constexpr int kLossChunks = 8;

void describe_megatron(const Job& job, const Strategy& strategy, Software& s) {
  const bool early = job.year <= 2022;
  // megatron/model/distributed.py until 2022: one blocking all-reduce after the last backward; --overlap-grad-reduce
  // and --overlap-param-gather came with core 0.4 (2023).
  s.buckets_overlap = !early && strategy.overlap_grad_reduce;
  s.gather_overlap = !early && strategy.overlap_param_gather && strategy.overlap_grad_reduce;
  s.wgrad_hides_tensor = job.year >= 2021;  // LinearWithGradAccumulationAndAsyncAllreduce (arXiv 2205.05198)
  // Megatron-LM's arguments default to dropout 0.1, which GPT recipes keep; gated models come with zero.
  s.dropout = early || (job.attention == compute::AttentionKernel::kUnfused && !job.model.gated_mlp);
  s.fused_library = job.year >= 2023;
  if (job.dtype == hardware::Dtype::kFp16 && early) {
    // Float16OptimizerWithFloat16Params: fp16 gradients on the wire and resident, fp32 copies for the optimizer.
    s.gradient_bytes = 2;
    s.reduce_bytes = 2;
    s.master_bytes = 16;
  }
  s.optimizer_bytes = 36;  // apex multi-tensor: L2 norm 4, Adam 28, copy to the model 4
  s.logits_bytes = 26;     // vocab_parallel_cross_entropy in fp32: max, subtract, exp, sum; backward and cast
  s.logits_peak_bytes = early ? 12 : 10;
  // transformer_engine/pytorch/module/base.py get_dummy_wgrad: products add their weight gradient to the main gradients and
  // return a cached 16-bit tensor of the same shape, one for each shape.
  if (s.fused_library) s.placeholder_bytes = 2;
  s.elementwise = Elementwise::kFused;
}

void describe_deepspeed(const Job& job, const Strategy& strategy, Software& s, bool megatron_model) {
  s.gradient_bytes = 2;
  s.reduce_bytes = 2;        // communication_data_type defaults to the model's dtype
  s.master_bytes = 12;
  s.accumulation_bytes = 0;
  s.dropout = megatron_model && job.year <= 2022;
  s.elementwise = megatron_model ? Elementwise::kFused : Elementwise::kPrimitive;
  s.logits_bytes = megatron_model ? 26 : 36;
  s.logits_peak_bytes = megatron_model ? 12 : 14;
  // runtime/zero/config.py: overlap_comm defaults to true for stage 3 only; pipeline and stage 1 reduce at the border.
  s.buckets_overlap = strategy.zero >= 2 && strategy.overlap_grad_reduce;
  s.gather_overlap = strategy.zero == 3 && strategy.overlap_param_gather && job.year >= 2022;  // prefetch and coalescing: release 0.5.5, end of 2021
  // Before that release each tensor is gathered by itself when its module runs; those below
  // stage3_param_persistence_threshold (biases, norms) stay whole.
  s.gathers_per_unit = strategy.zero == 3 && job.year < 2022 ? 4 : 1;
  s.wgrad_hides_tensor = false;
  s.optimizer_bytes = 40;
  s.boundary_copies = megatron_model;  // runtime/pipe/engine.py: pipe_buffers of inputs and outputs
  s.live_unit_parameters = 1e9;        // stage3_max_live_parameters
  s.reduce_bucket_parameters = 5e8;    // reduce_bucket_size, allgather_bucket_size
  s.groups_per_dimension = 2;          // Megatron's groups and those of pipe/topology.py PipelineParallelGrid
  // bigscience-workshop, train/tr11-176B-ml/tr11-176B-ml.slurm: CUDA_LAUNCH_BLOCKING=1 against hanging pipelines; launch
  // scripts of the time carry the line on.
  s.serial_launches = megatron_model && job.year == 2022 && strategy.zero <= 1;
  s.pipeline_groups = 2;               // runtime/pipe/p2p.py: a group of two per neighbour; tied embeddings on the ends
  const bool bf16_optimizer = job.dtype == hardware::Dtype::kBf16 && megatron_model && strategy.zero <= 1;
  // runtime/bf16_optimizer.py reduces its whole fp32 gradients where they are, and steps from them.
  if (bf16_optimizer) s.reduce_bucket_parameters = 0;
  if (strategy.zero >= 1 && strategy.zero <= 2 && !bf16_optimizer) {
    // Averaged gradients, copied flat beside param.grad (stage_1_and_2.py): stage 2's are counted as gradients, and the
    // pipeline engine, which reduces once a step, keeps the owned partition alone.
    s.bucket_bytes = strategy.zero == 1 ? 2 : 0;
    s.partitions_buckets = strategy.pipeline > 1;
    s.flat_step_bytes = 4;             // fp32 gradient of the owned partition, one flat tensor
  }
  s.fetches_by_tensor = true;          // runtime/zero/partition_parameters.py
  // Fp32 gradients beside the bf16 ones: BF16_Optimizer, and runtime/engine.py get_data_types for bf16 without ZeRO.
  if (bf16_optimizer || (job.dtype == hardware::Dtype::kBf16 && strategy.zero == 0)) s.accumulation_bytes = 4;
}

void describe_fsdp(const Job& job, const Strategy& strategy, Software& s) {
  s.resident_parameter_bytes = 4;  // sharded fp32 originals; the bf16 copy of a unit is transient
  s.master_bytes = 8;              // moments; the fp32 master is the shard itself
  s.gradient_bytes = 4;
  s.reduce_bytes = job.framework == Framework::kTorchtitan ? 4 : 2;  // mixed_precision_reduce float32 / pure bf16
  s.gather_bytes = 2;
  s.buckets_overlap = strategy.overlap_grad_reduce;
  s.gather_overlap = strategy.overlap_param_gather;
  s.optimizer_bytes = 40;
  s.elementwise = Elementwise::kPrimitive;
  s.logits_bytes = 36;
  s.logits_peak_bytes = 14;  // 16-bit, fp32 copy, log-softmax and its gradient in fp32
  s.operator_recompute = job.framework == Framework::kTorchtitan;
  if (job.framework != Framework::kTorchtitan) return;
  s.expandable_segments = true;  // run_train.sh: PYTORCH_CUDA_ALLOC_CONF
  // Until 2026 the loss saw all logits: the 16-bit ones are dropped before the backward, and a compiled loss keeps them
  // and their gradient alone. Since then models/*/config_registry.py chooses ChunkedCELoss.
  if (job.year == 2025) s.logits_peak_bytes = job.compiled ? 4 : 6;
  if (job.year >= 2026) s.loss_chunks = kLossChunks;
}

}  // namespace

Software software_of(const Job& job, const Strategy& strategy) {
  Software s;
  switch (job.framework) {
    case Framework::kMegatron:
      describe_megatron(job, strategy, s);
      break;
    case Framework::kMegatronDeepspeed:
      describe_deepspeed(job, strategy, s, true);
      break;
    case Framework::kDeepspeed:
      describe_deepspeed(job, strategy, s, false);
      break;
    case Framework::kNanotron:
      // bf16 parameters and gradients, fp32 accumulation and master copy (nanotron optim/gradient_accumulator.py).
      s.accumulation_bytes = 4;
      s.reduce_bytes = 4;
      s.elementwise = Elementwise::kMixed;  // TritonRMSNorm, flash rotary; SiLU and product apart
      // models/llama.py: sequence-first products, batch-first attention: q, k, v made contiguous, k and v joined, the output
      // turned back.
      s.attention_copies = 2;
      s.logits_bytes = 30;
      s.logits_peak_bytes = 10;  // bf16, its fp32 cast, and the difference to the maximum (_ShardedCrossEntropy)
      s.gradient_bytes = 0;      // half gradients live in the buckets of DDP, or as long as a backward
      s.bucket_bytes = 2;
      // Column-parallel products gather on NCCL's stream, async_op (tensor_parallel/functional.py).
      s.queues_ahead = strategy.pipeline == 1 || !job.blocking_sends;
      s.step_gathers_flat = strategy.zero == 1;  // optim/zero.py _all_gather_params: one coalesced all-gather
      // distributed.py all_gather_coalesced: a copy for each tensor of each rank out of the flat buffers.
      s.copies_slices = strategy.zero == 1;
      // trainer.py make_ddp, training_step: with ZeRO-1 the model is not wrapped in DDP; the whole fp32 buffer of gradients
      // is all-reduced after the last backward (reduce_scatter=False, "too memory hungry").
      s.reduces_whole = strategy.zero == 1;
      s.gather_overlap = false;
      s.optimizer_bytes = 60;
      break;
    case Framework::kPytorch:
    case Framework::kTorchtitan:
    case Framework::kLlmFoundry:
    case Framework::kFmsFsdp:
    case Framework::kMaxtext:
      describe_fsdp(job, strategy, s);
      if (strategy.zero == 0) {
        s.master_bytes = 8;
        s.reduce_bytes = 4;  // autocast keeps fp32 parameters and gradients
      }
      break;
  }
  if (job.framework == Framework::kLlmFoundry) {
    s.elementwise = Elementwise::kMixed;
    s.logits_bytes = 36;
  }
  if (job.fused_operators && s.elementwise != Elementwise::kFused) s.elementwise = Elementwise::kFused;
  // transformer_engine/pytorch/cross_entropy.py: the 16-bit logits and their gradient, nothing in fp32.
  if (job.fused_loss) s.logits_peak_bytes = std::min(s.logits_peak_bytes, 4.0);
  if (job.chunked_loss) s.loss_chunks = std::max(s.loss_chunks, kLossChunks);
  // XLA compiles the whole step into one program: no gaps between kernels, operands stay where the next one reads them.
  s.whole_program = job.framework == Framework::kMaxtext;
  s.compiled = job.compiled;
  if (job.compiled) {
    s.elementwise = Elementwise::kCompiled;
    s.logits_bytes = 16;
  }
  // Other optimizers than Adam with an fp32 master (12 bytes): SGD, Lion, 8-bit states, 16-bit training throughout.
  const double saved = 12 - job.optimizer_bytes_per_parameter;
  const bool all_16_bit = !job.fp32_gradients && job.optimizer_bytes_per_parameter <= 4;
  if (all_16_bit && s.resident_parameter_bytes == 4) {
    s.resident_parameter_bytes = 2;
    s.master_bytes = job.optimizer_bytes_per_parameter;
  } else {
    s.master_bytes = std::max(0.0, s.master_bytes - saved);
  }
  if (!job.fp32_gradients) {
    s.gradient_bytes = 2;
    s.reduce_bytes = 2;
    s.accumulation_bytes = 0;
  }
  if (job.frozen_weights) {
    s.gradient_bytes = s.accumulation_bytes = s.reduce_bytes = 0;
    s.master_bytes = s.optimizer_bytes = s.bucket_bytes = s.flat_step_bytes = s.placeholder_bytes = 0;
    s.resident_parameter_bytes = 2;
  }
  return s;
}

}  // namespace chokepoint::parallel
