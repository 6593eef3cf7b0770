// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/parallel/job.hpp>

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>

namespace chokepoint::parallel {
namespace {

Job small_job(int gpus, double batch) {
  Job job;
  job.model.name = "test";
  job.model.layers = 32;
  job.model.hidden = 4096;
  job.model.ffn_hidden = 11008;
  job.model.heads = job.model.kv_heads = 32;
  job.model.head_dim = 128;
  job.model.vocab = 32000;
  topology::Host host;
  for (int i = 0; i < 8; ++i) host.add_device({topology::DeviceKind::kGpu, "GPU" + std::to_string(i), "", "", {}});
  job.cluster.hosts.push_back({host, (gpus + 7) / 8});
  job.gpus = gpus;
  job.sequence = 4096;
  job.global_batch = batch;
  return job;
}

TEST(Strategy, ShortAndLongNamesMeanTheSame) {
  const auto a = parse_strategy("tensor=8 pipeline=4 zero=1 microbatch=1 recompute=selective");
  const auto b = parse_strategy("tp=8 pp=4 zero=1 mbs=1 recompute=selective");
  ASSERT_TRUE(a);
  ASSERT_TRUE(b);
  EXPECT_EQ(*a, *b);
  EXPECT_TRUE(a->sequence_parallel);
}

TEST(Strategy, TextParsesBackToItself) {
  for (const char* text : {"tensor=8 pipeline=4 virtual=2 zero=1 microbatch=1 recompute=selective", "fsdp microbatch=2", "hsdp=8 microbatch=4",
                           "ddp microbatch=1 sync=each", "tensor=2 sp=off zero=3 microbatch=1", "fsdp=grad-op microbatch=1 overlap=off",
                           "pipeline=2 ddp microbatch=1 stages=15/17", "fsdp reshard=off microbatch=1", "zero=2 microbatch=1 offload=optimizer",
                           "zero=3 zero++=on microbatch=1", "zero=3 qwz=on hpz=on microbatch=1",
                           "pipeline=4 ddp microbatch=1 schedule=zbv", "pipeline=4 zero=1 microbatch=1 schedule=dualpipe",
                           "expert=8 zero=1 microbatch=1 overlap-expert=on", "ddp microbatch=1 local-steps=64"}) {
    const auto parsed = parse_strategy(text);
    ASSERT_TRUE(parsed) << text;
    const auto again = parse_strategy(to_text(*parsed));
    ASSERT_TRUE(again) << to_text(*parsed);
    EXPECT_EQ(*parsed, *again) << text << " became " << to_text(*parsed);
  }
}

TEST(Strategy, SchedulesSayWhatTheyNeed) {
  const Job job = small_job(8, 64);
  EXPECT_TRUE(completed(job, *parse_strategy("pipeline=4 schedule=zbv microbatch=1")));
  EXPECT_TRUE(completed(job, *parse_strategy("pipeline=4 schedule=dualpipe microbatch=1")));
  EXPECT_FALSE(completed(job, *parse_strategy("schedule=zbv microbatch=1")));
  EXPECT_FALSE(completed(job, *parse_strategy("pipeline=4 virtual=3 schedule=zbv microbatch=1")));
  EXPECT_FALSE(completed(job, *parse_strategy("pipeline=1 schedule=dualpipe microbatch=1")));
  const auto local = completed(job, *parse_strategy("zero=1 local-steps=8 microbatch=1"));
  ASSERT_FALSE(local);
  EXPECT_EQ(local.error().message, "local-steps averages whole replicas; it goes with ddp, not with ZeRO or FSDP");
  EXPECT_FALSE(completed(job, *parse_strategy("overlap-expert=on microbatch=1")));
}

TEST(Strategy, UnknownWordIsAnErrorWithASuggestion) {
  const auto parsed = parse_strategy("tensr=8");
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().message, "unknown word 'tensr=8' in the strategy");
  ASSERT_FALSE(parsed.error().notes.empty());
  EXPECT_EQ(parsed.error().notes[0], "did you mean 'tensor'?");
  EXPECT_FALSE(parse_strategy("tensor=0"));
  EXPECT_EQ(parse_strategy("ddp fsdp").error().message, "the strategy says both 'ddp' and 'fsdp'; expected one way of sharding");
  EXPECT_FALSE(parse_strategy("tensor=2 tp=4"));
  EXPECT_FALSE(parse_strategy("zero=4"));
}

TEST(Strategy, QuantisedCollectivesBelongToZeroThree) {
  const auto all = parse_strategy("zero=3 zero++=on microbatch=1");
  ASSERT_TRUE(all);
  EXPECT_TRUE(all->quantised_gathers && all->quantised_reduction && all->secondary_shard);
  EXPECT_TRUE(completed(small_job(64, 128), *all));
  const auto wrong = completed(small_job(64, 128), *parse_strategy("zero=2 qgz=on microbatch=1"));
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message, "zero++, qwz, qgz and hpz belong to DeepSpeed's ZeRO-3: add zero=3");
}

TEST(Strategy, DataDegreeAndAccumulationAreDerived) {
  // 64 GPUs / (8 x 2) = 4 ranks; 128 sequences / (4 x 2) = 16 micro-steps.
  const auto done = completed(small_job(64, 128), *parse_strategy("tensor=8 pipeline=2 zero=1 microbatch=2"));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->data, 4);
  EXPECT_EQ(done->accumulate, 16);
}

TEST(Strategy, ImpossibleDegreesSayWhatDoesNotDivide) {
  EXPECT_EQ(completed(small_job(64, 128), *parse_strategy("tensor=5")).error().message,
            "tensor 5 x pipeline 1 x context 1 = 5 does not divide 64 GPUs");
  EXPECT_EQ(completed(small_job(64, 128), *parse_strategy("tensor=64")).error().message,
            "tensor=64 does not divide the 32 attention heads of test");
  EXPECT_EQ(completed(small_job(64, 128), *parse_strategy("expert=2")).error().message,
            "expert=2 needs a mixture-of-experts model; test is dense");
}

TEST(Strategy, HsdpWithoutNumberShardsInsideAHost) {
  const auto done = completed(small_job(32, 64), *parse_strategy("hsdp"));
  ASSERT_TRUE(done);
  EXPECT_EQ(done->shard_ranks, 8);
  EXPECT_EQ(done->data, 32);
}

TEST(Strategy, NanotronBalancesStagesByCost) {
  // 32 layers of cost 1 and a head of 131072 x 4096 / (4 x 4096^2 + 3 x 11008 x 4096) = 2.65: a quarter is 8.66 layers, so
  // stages end after layers 9, 18 and 26; the last stage holds six layers and the head.
  Job job = small_job(4, 4);
  job.framework = Framework::kNanotron;
  job.model.vocab = 131072;
  EXPECT_EQ(layers_per_stage(job, *parse_strategy("pipeline=4")), (std::vector<int>{9, 9, 8, 6}));
  // As many stages as layers: no stage may swallow the rest.
  Strategy deep = *parse_strategy("pipeline=32");
  const std::vector<int> layers = layers_per_stage(job, deep);
  EXPECT_EQ(std::accumulate(layers.begin(), layers.end(), 0), 32);
  EXPECT_LE(*std::max_element(layers.begin(), layers.end()), 2);
}

TEST(Strategy, BatchThatDoesNotDivideIsAnError) {
  const auto done = completed(small_job(8, 12), *parse_strategy("ddp microbatch=1"));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "batch 12 does not divide into 8 data-parallel ranks x micro-batch 1");
}

}  // namespace
}  // namespace chokepoint::parallel
