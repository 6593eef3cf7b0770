// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/parallel/memory.hpp>

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
