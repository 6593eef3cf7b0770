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
    if (p.name == name) return p.bytes;
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
