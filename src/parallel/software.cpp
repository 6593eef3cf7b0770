// SPDX-License-Identifier: Apache-2.0
// Behaviour of frameworks, as their sources show it. What is not a fact of a source (the memory passes of eager
// kernels, for instance) is counted operator by operator in docs/models/step.md.
#include <chokepoint/parallel/software.hpp>

#include <algorithm>

namespace chokepoint::parallel {

namespace {

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
  if (strategy.zero >= 1 && strategy.zero <= 2) {
    s.bucket_bytes = 2;                // averaged gradients, copied flat beside param.grad (stage_1_and_2.py)
    s.flat_step_bytes = 4;             // fp32 gradient of the owned partition, one flat tensor
  }
  s.fetches_by_tensor = true;          // runtime/zero/partition_parameters.py
  if (job.dtype == hardware::Dtype::kBf16 && megatron_model && strategy.zero <= 1) {
    s.accumulation_bytes = 4;  // BF16_Optimizer keeps fp32 gradients beside the bf16 ones
  }
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
  if (job.framework == Framework::kTorchtitan && job.year >= 2025) {
    // The 16-bit logits are dropped before the backward; a compiled loss keeps them and their gradient alone.
    s.logits_peak_bytes = job.compiled ? 4 : 6;
  }
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
      s.logits_bytes = 30;
      // bf16, its fp32 cast, and the difference to the maximum (_ShardedCrossEntropy); between micro-batches the 16-bit
      // gradient of the last ones is not reused yet.
      s.logits_peak_bytes = strategy.accumulate > 1 ? 12 : 10;
      s.gradient_bytes = 0;      // half gradients live in the buckets of DDP, or as long as a backward
      s.bucket_bytes = 2;
      s.queues_ahead = true;     // column-parallel products gather on NCCL's stream, async_op
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
    s.master_bytes = s.optimizer_bytes = s.bucket_bytes = s.flat_step_bytes = 0;
    s.resident_parameter_bytes = 2;
  }
  return s;
}

}  // namespace chokepoint::parallel
