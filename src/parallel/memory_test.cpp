// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/parallel/memory.hpp>

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>

namespace chokepoint::parallel {
namespace {

Job gpt_job(int gpus) {
  Job job;
  job.model.name = "gpt";
  job.model.layers = 24;
  job.model.hidden = 2048;
  job.model.ffn_hidden = 8192;
  job.model.heads = job.model.kv_heads = 16;
  job.model.head_dim = 128;
  job.model.vocab = 51200;
  job.model.tied_embeddings = true;
  job.model.max_positions = 2048;
  job.accelerator.memory_bytes = 80e9;
  job.gpus = gpus;
  job.sequence = 2048;
  job.global_batch = gpus;
  return job;
}

double part(const Memory& memory, const std::string& name) {
  for (const MemoryPart& p : memory.parts) {
    if (name == p.name) return p.bytes;
  }
  return 0;
}

Strategy data_parallel(int gpus, int zero, Sharder sharder) {
  Strategy s;
  s.data = gpus;
  s.zero = zero;
  s.sharder = sharder;
  return s;
}

TEST(Memory, ZeroOneSavesOptimizerStatesTimesOneMinusOneOverN) {
  // Issue karpathy/llm.c#309 gives the rule: 12 bytes per parameter x (1 - 1/N).
  const Job job = gpt_job(4);
  const Memory ddp = memory_per_rank(job, data_parallel(4, 0, Sharder::kDdp));
  const Memory zero1 = memory_per_rank(job, data_parallel(4, 1, Sharder::kMegatronOptimizer));
  const double parameters = model::count_parameters(job.model).total;
  EXPECT_NEAR(part(ddp, "optimizer states") - part(zero1, "optimizer states"), 12 * parameters * 0.75, 1);
}

TEST(Memory, EachZeroStageNeedsLess) {
  const Job job = gpt_job(8);
  double before = 1e30;
  for (const int zero : {0, 1, 2, 3}) {
    const Sharder sharder = zero == 0 ? Sharder::kDdp : zero == 1 ? Sharder::kDeepspeed : Sharder::kFsdp;
    const double need = memory_per_rank(job, data_parallel(8, zero, sharder)).reserved_bytes;
    EXPECT_LT(need, before) << "ZeRO-" << zero;
    before = need;
  }
}

TEST(Memory, DeepspeedStageTwoKeepsGradientsWhole) {
  // DeepSpeed's estimate: 4 bytes per parameter replicated (2 of them gradients), whatever the number of ranks.
  const Job job = gpt_job(8);
  const double whole = part(memory_per_rank(job, data_parallel(8, 1, Sharder::kDeepspeed)), "gradients");
  EXPECT_DOUBLE_EQ(part(memory_per_rank(job, data_parallel(8, 2, Sharder::kDeepspeed)), "gradients"), whole);
  EXPECT_DOUBLE_EQ(part(memory_per_rank(job, data_parallel(8, 2, Sharder::kFsdp)), "gradients"), whole / 8);
}

TEST(Memory, PartsSumToReserved) {
  const Job job = gpt_job(8);
  const Memory memory = memory_per_rank(job, data_parallel(8, 1, Sharder::kMegatronOptimizer));
  const double sum = std::accumulate(memory.parts.begin(), memory.parts.end(), 0.0, [](double a, const MemoryPart& p) { return a + p.bytes; });
  EXPECT_NEAR(sum, memory.reserved_bytes, 1);
  EXPECT_LE(memory.allocated_bytes, memory.reserved_bytes);
}

TEST(Memory, RecomputationKeepsTheLayerInputsOnly) {
  // Full recomputation: 24 layers x 2048 tokens x 2048 wide x 2 bytes = 201 MB for one sequence.
  Job job = gpt_job(1);
  job.year = 2025;
  Strategy s = data_parallel(1, 0, Sharder::kDdp);
  s.recompute = Recompute::kFull;
  EXPECT_NEAR(part(memory_per_rank(job, s), "activations"), 24.0 * 2048 * 2048 * 2, 1);
  Strategy none = s;
  none.recompute = Recompute::kNone;
  EXPECT_GT(part(memory_per_rank(job, none), "activations"), 10 * part(memory_per_rank(job, s), "activations"));
}

TEST(Memory, GatedLayersWithFlashAttentionKeepFortyFourWidths) {
  // Fused kernels, h = 2048, f = 4h, as many key-value heads as heads: norms 8h, fused projection 6h, rotated query and key
  // 4h, attention 2h, gate, up and product 24h: 44h bytes a token. 24 layers x 2048 tokens x 44 x 2048.
  Job job = gpt_job(1);
  job.model.gated_mlp = true;
  job.model.rms_norm = true;
  job.model.max_positions = 0;
  const Memory memory = memory_per_rank(job, data_parallel(1, 0, Sharder::kDdp));
  EXPECT_NEAR(part(memory, "activations"), 24.0 * 2048 * 44 * 2048, 1);
  // Ten bytes a logit: 16-bit, the fp32 cast, and the shifted copy.
  EXPECT_NEAR(part(memory, "logits and loss"), 2048.0 * 51200 * 10, 1);
}

TEST(Memory, SequenceParallelRanksShareWhatTensorParallelRanksRepeat) {
  Job job = gpt_job(8);
  Strategy s = data_parallel(1, 0, Sharder::kDdp);
  s.tensor = 8;
  const double repeated = part(memory_per_rank(job, s), "activations");
  s.sequence_parallel = true;
  const double shared = part(memory_per_rank(job, s), "activations");
  Strategy whole = data_parallel(1, 0, Sharder::kDdp);
  EXPECT_NEAR(shared, part(memory_per_rank(job, whole), "activations") / 8, 1);
  EXPECT_GT(repeated, 2 * shared);
}

TEST(Memory, FirstStageHoldsAsManyMicroBatchesAsThereAreStages) {
  // 1F1B, 4 stages of 6 layers: the first holds 4 micro-batches, the last one: as many layers as without a pipeline, and
  // a quarter of them.
  Job job = gpt_job(4);
  job.global_batch = 16;
  Strategy s = data_parallel(1, 0, Sharder::kDdp);
  s.pipeline = 4;
  s.accumulate = 16;
  Strategy one = data_parallel(1, 0, Sharder::kDdp);
  const double whole = part(memory_per_rank(job, one), "activations");
  EXPECT_NEAR(part(memory_of_stage(job, s, 0), "activations"), whole, 1);
  EXPECT_NEAR(part(memory_of_stage(job, s, 3), "activations"), whole / 4, 1);
}

TEST(Memory, TheVerdictLeavesContextAndCommunicatorsOut) {
  const Memory alone = memory_per_rank(gpt_job(1), data_parallel(1, 0, Sharder::kDdp));
  Strategy s = data_parallel(1, 0, Sharder::kDdp);
  s.tensor = 8;
  const Memory group = memory_per_rank(gpt_job(8), s);
  EXPECT_GT(group.overhead_bytes, alone.overhead_bytes);
  EXPECT_LT(group.capacity_bytes, alone.capacity_bytes);
  EXPECT_LT(alone.capacity_bytes, gpt_job(1).accelerator.memory_bytes);
}

/// Llama-like, so that the framework's gathers and gated products count.
Job gated_job(Framework framework, int gpus) {
  Job job = gpt_job(gpus);
  job.model.gated_mlp = true;
  job.model.rms_norm = true;
  job.model.max_positions = 0;
  job.framework = framework;
  return job;
}

Strategy tensor_parallel(int tensor, int pipeline, int accumulate) {
  Strategy s = data_parallel(1, 0, Sharder::kDdp);
  s.tensor = tensor;
  s.sequence_parallel = tensor > 1;
  s.pipeline = pipeline;
  s.accumulate = accumulate;
  return s;
}

TEST(Memory, GatheredInputsWaitAsFarAsTheHostRunsAhead) {
  // One gathered input: 2048 tokens x 2048 wide x 2 bytes = 8.4 MB. From one micro-batch to the next the launch queue
  // bounds them: 52. In a single one the layers do: two a layer, 24 x 2 = 48.
  const Job job = gated_job(Framework::kNanotron, 8);
  const double one = 2048.0 * 2048 * 2;
  EXPECT_NEAR(part(memory_per_rank(job, tensor_parallel(8, 1, 4)), "gathers awaiting reuse"), 52 * one, 1);
  EXPECT_NEAR(part(memory_per_rank(job, tensor_parallel(8, 1, 1)), "gathers awaiting reuse"), 48 * one, 1);
  EXPECT_EQ(part(memory_per_rank(job, tensor_parallel(1, 1, 4)), "gathers awaiting reuse"), 0);
}

TEST(Memory, BlockingSendsLeaveNoGathersWaiting) {
  Job job = gated_job(Framework::kNanotron, 32);
  const Strategy s = tensor_parallel(8, 4, 8);
  EXPECT_GT(part(memory_of_stage(job, s, 0), "gathers awaiting reuse"), 0);
  job.blocking_sends = true;
  EXPECT_EQ(part(memory_of_stage(job, s, 0), "gathers awaiting reuse"), 0);
}

TEST(Memory, AFullDeviceGetsHalfOfTheWaitingGathersBack) {
  // The last logits of the head and the waiting gathers part needed from reserved: 8 bytes a logit more, half of 52
  // gathers less, and activations in blocks that gathers split: 10 % of them instead of 3 % of all that is live.
  const Job job = gated_job(Framework::kNanotron, 8);
  const Memory memory = memory_per_rank(job, tensor_parallel(8, 1, 4));
  const double logits = 2048.0 * 51200 / 8;
  const double split = std::max(0.0, 0.1 * part(memory, "activations") - part(memory, "allocator slack"));
  EXPECT_NEAR(memory.needed_bytes - memory.reserved_bytes, 8 * logits + split - 26 * 2048.0 * 2048 * 2, 1);
  EXPECT_LT(memory.allocated_bytes, memory.needed_bytes);
}

TEST(Memory, ZeroOfNanotronGathersTheUpdatedParametersAtOnce) {
  // A step without activations to speak of: 2 bytes a parameter whole and 2 bytes of the own half.
  Job job = gated_job(Framework::kNanotron, 2);
  job.sequence = 16;
  const Memory memory = memory_per_rank(job, data_parallel(2, 1, Sharder::kMegatronOptimizer));
  EXPECT_NEAR(part(memory, "gathered parameters of the step"), 3 * model::count_parameters(job.model).total, 1);
}

TEST(Memory, ThePipelineEngineKeepsItsPartitionOfAveragedGradients) {
  Job job = gpt_job(8);
  job.framework = Framework::kMegatronDeepspeed;
  job.dtype = hardware::Dtype::kFp16;
  Strategy s = data_parallel(4, 1, Sharder::kDeepspeed);
  s.pipeline = 2;
  s.accumulate = 4;
  const Memory memory = memory_of_stage(job, s, 0);
  EXPECT_NEAR(part(memory, "gradient buckets"), 2 * memory.parameters / 4, 1);
  // 5e8 elements of two bytes, whatever the model.
  EXPECT_NEAR(part(memory, "reduction buckets"), 1e9, 1);
  s.pipeline = 1;
  s.data = 8;
  const Memory flat = memory_per_rank(job, s);
  EXPECT_NEAR(part(flat, "gradient buckets"), 2 * flat.parameters, 1);
}

TEST(Memory, TheBf16OptimizerReducesInPlace) {
  Job job = gpt_job(8);
  job.framework = Framework::kMegatronDeepspeed;
  const Memory memory = memory_per_rank(job, data_parallel(8, 1, Sharder::kDeepspeed));
  EXPECT_EQ(part(memory, "gradient buckets") + part(memory, "reduction buckets") + part(memory, "flat gradients of the step"), 0);
  EXPECT_NEAR(part(memory, "gradient accumulation"), 4 * memory.parameters, 1);
}

TEST(Memory, EightBitProductsKeepTheirInputsInOneByte) {
  // Against the 44h of 16-bit products: norms 2 x (2 + 1)h instead of 8h, product of gate and up 1f = 4h instead of 8h,
  // and the attention's output once more, 1h: 39h.
  Job job = gated_job(Framework::kMegatron, 1);
  job.dtype = hardware::Dtype::kFp8;
  EXPECT_NEAR(part(memory_per_rank(job, data_parallel(1, 0, Sharder::kDdp)), "activations"), 24.0 * 2048 * 39 * 2048, 1);
}

TEST(Memory, ALossInEightChunksNeedsAnEighthOfTheLogits) {
  Job job = gated_job(Framework::kMegatron, 1);
  const Strategy s = data_parallel(1, 0, Sharder::kDdp);
  const double whole = part(memory_per_rank(job, s), "logits and loss");
  job.model.vocab = 512000;  // so that the loss is the peak either way
  const double large = part(memory_per_rank(job, s), "logits and loss");
  EXPECT_NEAR(large, 10 * whole, 1);
  job.chunked_loss = true;
  EXPECT_NEAR(part(memory_per_rank(job, s), "logits and loss"), large / 8, 1);
}

TEST(Memory, AFusedLossKeepsNothingInFp32) {
  Job job = gated_job(Framework::kMegatron, 1);
  job.model.vocab = 512000;
  const Strategy s = data_parallel(1, 0, Sharder::kDdp);
  const double plain = part(memory_per_rank(job, s), "logits and loss");
  job.fused_loss = true;
  EXPECT_NEAR(part(memory_per_rank(job, s), "logits and loss"), 0.4 * plain, 1);
}

TEST(Memory, FusedGradientsLeaveOnePlaceholderForEachShape) {
  // One layer of 2048: attention 4 x 2048^2 and a gated MLP 3 x 2048 x 8192 = 67 million weights of two bytes.
  Job job = gated_job(Framework::kMegatron, 1);
  const Strategy s = data_parallel(1, 0, Sharder::kDdp);
  EXPECT_NEAR(part(memory_per_rank(job, s), "gradient placeholders"), 2.0 * (4 * 2048.0 * 2048 + 3 * 2048.0 * 8192), 1);
  job.year = 2021;  // before Transformer Engine
  EXPECT_EQ(part(memory_per_rank(job, s), "gradient placeholders"), 0);
}

TEST(Memory, TheSecondaryShardIsOneHalfCopyAHost) {
  // 16 ranks on hosts of 8: 2 bytes a parameter over the 8 ranks of a host.
  Job job = gpt_job(16);
  topology::Host host;
  for (int i = 0; i < 8; ++i) host.add_device({topology::DeviceKind::kGpu, "GPU" + std::to_string(i), "", "", {}});
  job.cluster.hosts.push_back({host, 2});
  job.framework = Framework::kDeepspeed;
  Strategy s = data_parallel(16, 3, Sharder::kDeepspeed);
  EXPECT_EQ(part(memory_per_rank(job, s), "secondary shard"), 0);
  s.secondary_shard = true;
  EXPECT_NEAR(part(memory_per_rank(job, s), "secondary shard"), 2 * model::count_parameters(job.model).total / 8, 1);
}

TEST(Memory, AdaptersTrainAndTheWeightsDoNot) {
  // Rank 8: 8 x (8 x 2048 of attention + 2 x (2048 + 8192) of the MLP) = 295 thousand a layer, 24 layers, 16 bytes each.
  Job job = gpt_job(1);
  job.frozen_weights = true;
  const Memory memory = memory_per_rank(job, data_parallel(1, 0, Sharder::kDdp));
  EXPECT_NEAR(part(memory, "adapters and their states"), 16.0 * 24 * 8 * (8 * 2048 + 2 * (2048 + 8192)), 1);
  EXPECT_EQ(part(memory, "optimizer states") + part(memory, "gradients"), 0);
  EXPECT_NEAR(part(memory, "parameters"), 2 * memory.parameters, 1);
}

TEST(Memory, OldNcclConnectsRingAndTreesAtOnce) {
  Job job = gpt_job(8);
  job.accelerator.architecture = hardware::Architecture::kAmpere;
  const Strategy s = tensor_parallel(8, 1, 1);
  const double context = memory_per_rank(gpt_job(1), data_parallel(1, 0, Sharder::kDdp)).overhead_bytes;
  job.year = 2025;
  const double lazy = memory_per_rank(job, s).overhead_bytes - context;
  job.year = 2022;
  EXPECT_NEAR(memory_per_rank(job, s).overhead_bytes - context, 3 * lazy, 1);
  // Two groups (default, tensor) x 24 channels x 9.2 MiB.
  EXPECT_NEAR(lazy, 2 * 24 * 9.2 * 1048576, 1);
}

TEST(Memory, TheVerdictIsTightWhereOnlyFragmentationDecides) {
  Memory memory;
  memory.capacity_bytes = 100;
  memory.allocated_bytes = memory.needed_bytes = 90;
  EXPECT_EQ(memory.verdict(), Verdict::kFits);
  memory.needed_bytes = 97;
  EXPECT_EQ(memory.verdict(), Verdict::kTight);
  memory.needed_bytes = 120;  // live tensors leave 10 % free
  EXPECT_EQ(memory.verdict(), Verdict::kTight);
  EXPECT_FALSE(memory.fits());
  memory.allocated_bytes = 99;
  EXPECT_EQ(memory.verdict(), Verdict::kDoesNotFit);
  EXPECT_EQ(name(memory.verdict()), "does not fit");
}

TEST(Memory, MoreGpusNeverNeedMoreUnderFullSharding) {
  double before = 1e30;
  for (const int gpus : {2, 4, 8, 16, 64}) {
    const double need = memory_per_rank(gpt_job(gpus), data_parallel(gpus, 3, Sharder::kFsdp)).reserved_bytes;
    EXPECT_LE(need, before);
    before = need;
  }
}

}  // namespace
}  // namespace chokepoint::parallel
