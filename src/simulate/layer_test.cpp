// SPDX-License-Identifier: Apache-2.0
// Layers of every kind, in models whose layers differ.
#include <chokepoint/model/model.hpp>
#include <chokepoint/parallel/memory.hpp>
#include <chokepoint/simulate/pieces.hpp>
#include <chokepoint/simulate/predict.hpp>

#include <gtest/gtest.h>
#include <numeric>

#include "test_jobs.hpp"

namespace chokepoint::simulate {
namespace {

Prediction predicted(const parallel::Job& job, const char* strategy) {
  const auto parsed = parallel::parse_strategy(strategy);
  EXPECT_TRUE(parsed) << strategy;
  const auto p = Predictor(job).predict(*parsed);
  EXPECT_TRUE(p) << (p ? "" : format(p.error()));
  return *p;
}

parallel::Job llama_job() { return job_on("dgx-h100", 2, "llama-2-7b", 4096, 64); }

/// llama_job() with another model in it.
parallel::Job with(model::Model model) {
  parallel::Job job = llama_job();
  job.model = *model::validated(std::move(model));
  return job;
}

TEST(Layers, TwoHalvesCostWhatTheWholeLayerDoes) {
  const parallel::Job whole = llama_job();
  model::Model halves = whole.model;
  halves.layers = 64;
  halves.pattern = "*-";
  const Prediction a = predicted(whole, "tensor=4 zero=1 microbatch=1");
  const Prediction b = predicted(with(halves), "tensor=4 zero=1 microbatch=1");
  // The halves' memory passes are cut elsewhere into kernels; all else is the same work.
  EXPECT_NEAR(b.item(Bill::kCompute), a.item(Bill::kCompute), 0.01 * a.item(Bill::kCompute));
  EXPECT_NEAR(b.item(Bill::kTensor), a.item(Bill::kTensor), 1e-9 * a.item(Bill::kTensor));
  EXPECT_NEAR(b.memory.parameters, a.memory.parameters, 1);
  EXPECT_NEAR(b.mfu, a.mfu, 0.01 * a.mfu);
}

TEST(Layers, BillsOfHybridsSumAndEveryStrategyOfTheirsRuns) {
  for (const char* name : {"nemotron-h-8b", "nemotron-3-nano", "qwen3-next-80b", "gpt-oss-20b"}) {
    const parallel::Job job = job_on("dgx-h100", 2, name, 4096, 64);
    for (const char* strategy : {"zero=1 microbatch=1", "fsdp microbatch=1", "tensor=2 zero=1 microbatch=1", "context=2 zero=1 microbatch=1",
                                 "pipeline=4 zero=1 microbatch=1 recompute=full", "pipeline=2 virtual=2 zero=1 microbatch=1"}) {
      SCOPED_TRACE(std::string(name) + " " + strategy);
      const Prediction p = predicted(job, strategy);
      EXPECT_NEAR(std::accumulate(p.bill.begin(), p.bill.end(), 0.0), p.step_time_s, 1e-12 * p.step_time_s);
      for (const double item : p.bill) EXPECT_GE(item, 0);
      EXPECT_GT(p.mfu, 0.01);
      EXPECT_LT(p.mfu, 0.8);
    }
  }
}

TEST(Layers, ARecurrentLayerDoesNotGrowWithTheSquareOfTheSequence) {
  // Same tokens per step: attention pays for the longer sequence, the scan does not.
  const parallel::Job base = job_on("dgx-h100", 2, "nemotron-h-8b", 4096, 64);
  parallel::Job shorter = base;
  shorter.model.layers = 24;
  shorter.model.pattern = std::string(24, 'M');
  parallel::Job longer = shorter;
  longer.sequence = 32768;
  longer.global_batch = 16;
  shorter.global_batch = 128;
  const double few = predicted(shorter, "zero=1 microbatch=8").item(Bill::kCompute);
  const double many = predicted(longer, "zero=1 microbatch=1").item(Bill::kCompute);
  EXPECT_NEAR(many, few, 0.01 * few);
}

TEST(Layers, AWindowShortensOnlyTheLayersThatHaveOne) {
  model::Model all = llama_job().model;
  model::Model windows = all;
  windows.sliding_window = 128;
  model::Model alternating = windows;
  alternating.full_attention_every = 2;
  const char* strategy = "zero=1 microbatch=1";
  const double full = predicted(with(all), strategy).item(Bill::kCompute);
  const double none = predicted(with(windows), strategy).item(Bill::kCompute);
  const double half = predicted(with(alternating), strategy).item(Bill::kCompute);
  EXPECT_LT(none, full);
  EXPECT_NEAR(half, 0.5 * (full + none), 1e-9 * full);
}

TEST(Layers, AnEncoderSeesTheWholeSquare) {
  model::Model causal = llama_job().model;
  model::Model both = causal;
  both.bidirectional = true;
  EXPECT_GT(predicted(with(both), "zero=1 microbatch=1").item(Bill::kCompute), predicted(with(causal), "zero=1 microbatch=1").item(Bill::kCompute));
}

TEST(Layers, FurtherTokensLengthenTheLastStageOnly) {
  model::Model plain = llama_job().model;
  model::Model further = plain;
  further.further.modules = 1;
  const char* strategy = "pipeline=4 zero=1 microbatch=1 stages=9/9/8/6";
  const Pieces without = Predictor(with(plain)).pieces(*parallel::completed(with(plain), *parallel::parse_strategy(strategy)));
  const Pieces with_it = Predictor(with(further)).pieces(*parallel::completed(with(further), *parallel::parse_strategy(strategy)));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(with_it.stages[i].end_forward.compute_s, without.stages[i].end_forward.compute_s);
  // A layer and the head once more.
  const double added = with_it.stages[3].end_forward.compute_s - without.stages[3].end_forward.compute_s;
  EXPECT_GT(added, without.stages[3].forward.compute_s + without.stages[3].end_forward.compute_s);
  const auto last_stage = [&](const parallel::Job& job) {
    return parallel::memory_of_stage(job, *parallel::completed(job, *parallel::parse_strategy(strategy)), 3).allocated_bytes;
  };
  EXPECT_GT(last_stage(with(further)), last_stage(with(plain)));
}

TEST(Layers, StagesHoldTheLayersOfTheirPlace) {
  // Eight attention layers, then eight MLPs: the first of two stages has all the attention.
  model::Model m = llama_job().model;
  m.layers = 16;
  m.pattern = "********--------";
  const parallel::Job job = with(m);
  const Pieces pieces = Predictor(job).pieces(*parallel::completed(job, *parallel::parse_strategy("pipeline=2 zero=1 microbatch=1")));
  m.pattern = "****************";
  const parallel::Job same = with(m);
  const Pieces attention = Predictor(same).pieces(*parallel::completed(same, *parallel::parse_strategy("pipeline=2 zero=1 microbatch=1")));
  EXPECT_EQ(pieces.stages[0].forward.compute_s, attention.stages[0].forward.compute_s);
  EXPECT_NE(pieces.stages[1].forward.compute_s, attention.stages[1].forward.compute_s);
}

TEST(Layers, EncodersOfTheCatalogueRun) {
  for (const auto& [name, sequence] : {std::pair("bert-large", 512), std::pair("t5-11b", 512), std::pair("vit-large-16", 197)}) {
    SCOPED_TRACE(name);
    const Prediction p = predicted(job_on("dgx-h100", 1, name, sequence, 512), "zero=1 microbatch=8");
    EXPECT_NEAR(std::accumulate(p.bill.begin(), p.bill.end(), 0.0), p.step_time_s, 1e-12 * p.step_time_s);
    EXPECT_GT(p.mfu, 0.005);
    EXPECT_LT(p.mfu, 0.8);
  }
}

TEST(Layers, AShorterDecoderCostsLess) {
  parallel::Job job = job_on("dgx-h100", 1, "t5-11b", 512, 512);
  const double shorter = predicted(job, "zero=1 microbatch=8").item(Bill::kCompute);
  job.model.decoder_sequence = 512;
  EXPECT_GT(predicted(job, "zero=1 microbatch=8").item(Bill::kCompute), 1.3 * shorter);
}

TEST(Layers, TensorParallelismNeedsWholeGroupsOfMamba) {
  const parallel::Job job = job_on("dgx-h100", 2, "nemotron-h-8b", 4096, 64);
  const auto refused = parallel::completed(job, *parallel::parse_strategy("tensor=16 microbatch=1"));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("8 groups of the Mamba-2 layers"), std::string::npos) << refused.error().message;
}

}  // namespace
}  // namespace chokepoint::simulate
