// SPDX-License-Identifier: Apache-2.0
// The proof's proof: on thousands of random small jobs the bounded search finds what walking everything finds, and no
// bound lies above the time it bounds.
#include <chokepoint/parallel/memory_floor.hpp>
#include <chokepoint/plan/rematch.hpp>
#include <chokepoint/wiring/wiring.hpp>

#include <cmath>
#include <gtest/gtest.h>
#include <random>

#include "floor.hpp"
#include "space.hpp"
#include "test_jobs.hpp"

namespace chokepoint::plan {
namespace {

using parallel::Framework;

/// Small enough to walk completely, different enough to reach every rule: dense and mixed experts, uneven layers, tied
/// embeddings, odd batches, every framework, memory from plenty to none.
class RandomJobs {
 public:
  explicit RandomJobs(unsigned seed) : random_(seed) {}

  parallel::Job next() {
    const char* clusters[] = {"dgx-a100", "pcie-a100-8", "dgx-h100"};
    parallel::Job job = bases_[pick(3)] ? *bases_[last_] : *(bases_[last_] = job_on(clusters[last_], 1, "llama-2-7b", 1024, 8));
    job.gpus = 1 << pick(3);
    if (pick(24) == 0) {  // two hosts: pipelines longer than any in one
      job.cluster = wiring::build_cluster(clusters[0], 2).value();
      job.accelerator = *hardware::find_accelerator(job.cluster.hosts.front().host.accelerator);
      job.gpus = 16;
    }
    model::Model& m = job.model;
    m.layers = 1 + static_cast<int>(pick(4));
    m.heads = 4 << pick(2);
    m.kv_heads = m.heads;
    m.head_dim = 64;
    m.hidden = m.heads * m.head_dim;
    m.ffn_hidden = 4 * m.hidden;
    m.vocab = 1000 + static_cast<int>(pick(30000));
    m.tied_embeddings = pick(2) == 0;
    m.moe.reset();
    if (pick(3) == 0) {
      m.moe = model::find_model("mixtral-8x7b")->moe;
      m.moe->experts = 4;
      m.moe->top_k = 2;
      m.moe->expert_ffn_hidden = m.ffn_hidden;
    }
    job.sequence = 256 << pick(4);
    job.global_batch = static_cast<double>(1 + pick(6));
    const Framework frameworks[] = {Framework::kMegatron, Framework::kDeepspeed, Framework::kMegatronDeepspeed, Framework::kTorchtitan, Framework::kNanotron, Framework::kPytorch};
    job.framework = frameworks[pick(6)];
    job.dtype = last_ == 2 && pick(2) == 0 ? hardware::Dtype::kFp8 : hardware::Dtype::kBf16;
    job.accelerator.memory_bytes = 2e9 * std::pow(10.0, 0.1 * static_cast<double>(pick(16)));
    return job;
  }
  std::size_t pick(std::size_t below) { return last_ = random_() % below; }

 private:
  std::mt19937 random_;
  std::size_t last_ = 0;
  std::optional<parallel::Job> bases_[3];
};

Options fast(bool exhaustive, int top, bool any_framework = true) {
  Options options;
  options.explain = false;
  options.top = top;
  options.exhaustive = exhaustive;
  options.constraints.any_framework = any_framework;
  return options;
}

TEST(Proof, BoundedSearchFindsWhatWalkingEverythingFinds) {
  RandomJobs jobs(7);
  long with_answer = 0;
  long excluded = 0;
  for (int i = 0; i < 2000; ++i) {
    const parallel::Job job = jobs.next();
    const int top = i % 4 == 0 ? 5 : 1;
    const auto bounded = make_plan(job, fast(false, top, i % 3 == 0));
    const auto everything = make_plan(job, fast(true, top, i % 3 == 0));
    ASSERT_EQ(bounded.has_value(), everything.has_value());
    if (!bounded) {
      // Nothing legal, or a dtype the part does not have; never a strategy of the space that the step model refuses.
      const std::string& why = bounded.error().message;
      EXPECT_TRUE(why.find("no legal strategy") != std::string::npos || why.find("arithmetic") != std::string::npos) << why;
      continue;
    }
    EXPECT_EQ(bounded->enumerated, everything->enumerated);
    ASSERT_EQ(bounded->candidates.size(), everything->candidates.size()) << i;
    for (std::size_t c = 0; c < bounded->candidates.size(); ++c) {
      ASSERT_DOUBLE_EQ(bounded->candidates[c].step_time_s, everything->candidates[c].step_time_s)
          << i << ": " << parallel::to_text(bounded->candidates[c].strategy) << " | " << parallel::to_text(everything->candidates[c].strategy);
    }
    if (bounded->candidates.empty()) continue;
    ++with_answer;
    excluded += everything->evaluated - bounded->evaluated;
    EXPECT_TRUE(bounded->optimal);
    EXPECT_DOUBLE_EQ(bounded->bound_s, bounded->candidates.front().step_time_s);
  }
  EXPECT_GT(with_answer, 1500);
  EXPECT_GT(excluded, 10000) << "the bounds exclude nothing";
}

TEST(Proof, NoStrategyIsFasterThanItsBound) {
  RandomJobs jobs(11);
  long seen = 0;
  for (int i = 0; i < 100; ++i) {
    const parallel::Job job = jobs.next();
    const Options options = fast(true, 1);
    const auto space = Space::of(job, options);
    ASSERT_TRUE(space);
    const simulate::Predictor predictor(job);
    Floors floors(predictor);
    for (const auto& degrees : space->degrees()) {
      if (!space->batch_divides(degrees)) continue;
      for (const auto& sharded : space->shardings(degrees)) {
        for (const auto& kernel : space->kernels(sharded)) {
          const Floor& floor = floors.with_recompute(kernel);
          const StageCounts stages = stage_counts(job, kernel, floor.uniform);
          for (auto leaf : space->schedules(kernel)) {
            for (const auto recompute : space->recomputes()) {
              leaf.recompute = recompute;
              ASSERT_LE(bound_s(floor, stages, leaf), predictor.evaluate(leaf).step_time_s) << i << ": " << parallel::to_text(leaf);
              ASSERT_LE(parallel::state_bytes(job, sharded), parallel::memory_per_rank(job, leaf).needed_bytes) << parallel::to_text(leaf);
              ASSERT_EQ(parallel::memory_capacity(job, sharded), parallel::memory_per_rank(job, leaf).capacity_bytes);
              ++seen;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(seen, 20000);
}

TEST(Proof, EveryListedStrategyIsLegal) {
  RandomJobs jobs(3);
  long seen = 0;
  for (int i = 0; i < 40; ++i) {
    const parallel::Job job = jobs.next();
    const Options options = fast(true, 1000);
    Options all = options;
    all.variants = true;
    const auto plan = make_plan(job, all);
    if (!plan) continue;
    for (const auto& p : plan->candidates) {
      const auto again = parallel::completed(job, p.strategy);
      ASSERT_TRUE(again) << parallel::to_text(p.strategy) << ": " << format(again.error());
      ++seen;
    }
  }
  EXPECT_GT(seen, 1000);
}

TEST(Pareto, NoPointBeatsAnother) {
  const parallel::Job job = job_on("dgx-a100", 2, "llama-2-7b", 2048, 64);
  Options options;
  Plan plan;
  find_pareto(job, options, 2.0, plan);
  ASSERT_GE(plan.pareto.size(), 2u);
  for (const ParetoPoint& a : plan.pareto) {
    // Dollars of 10^9 tokens: accelerators x hours at 2 $.
    EXPECT_NEAR(a.usd_per_billion_tokens, 2.0 / 3600 * a.gpus * a.step_time_s / (64 * 2048) * 1e9, 1e-6 * a.usd_per_billion_tokens);
    for (const ParetoPoint& b : plan.pareto) {
      if (&a == &b) continue;
      EXPECT_FALSE(a.step_time_s <= b.step_time_s && a.needed_bytes <= b.needed_bytes && a.usd_per_billion_tokens <= b.usd_per_billion_tokens);
    }
  }
  EXPECT_DOUBLE_EQ(plan.pareto.front().step_time_s, make_plan(job, options)->candidates.front().step_time_s);
}

TEST(Rematch, ListsTheLeadersByTheEnginesTime) {
  const parallel::Job job = job_on("dgx-a100", 2, "llama-2-7b", 2048, 64);
  auto plan = make_plan(job);
  ASSERT_TRUE(plan);
  rematch(job, {}, 3, 0, *plan);
  ASSERT_GE(plan->engine.size(), 3u);
  for (std::size_t i = 1; i < plan->engine.size(); ++i) EXPECT_LE(plan->engine[i - 1].engine_s, plan->engine[i].engine_s);
  for (const Rematch& r : plan->engine) EXPECT_DOUBLE_EQ(r.closed_form_s, plan->candidates[r.candidate].step_time_s);
  for (std::size_t i = 1; i < plan->candidates.size(); ++i) EXPECT_GE(plan->candidates[i].step_time_s, plan->candidates[i - 1].step_time_s);
}

TEST(Rematch, WhatTheListLeavesOutIsRunUntilNothingMayOvertake) {
  // Slow wires and one candidate: whatever else the engine could prefer is outside the list.
  parallel::Job job = job_on("pcie-a100-8", 4, "llama-2-7b", 4096, 64);
  job.cluster.fabric.node_measured_bytes_per_s = 1.25e9;
  Options one;
  one.top = 1;
  auto plan = make_plan(job, one);
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->candidates.size(), 1u);
  Plan two = *plan;
  rematch(job, one, 1, 0, *plan);
  ASSERT_FALSE(plan->engine.empty());
  // The list's own best runs in any case, and only an overtaking strategy joins it.
  ASSERT_LE(plan->candidates.size(), 2u);
  EXPECT_LE(plan->engine.front().engine_s, plan->engine.back().engine_s);
  if (plan->candidates.size() == 2) { EXPECT_NE(plan->engine.front().candidate, plan->engine.back().candidate); }
  // More work allowed never ends with a slower winner.
  rematch(job, one, 4, 0, two);
  EXPECT_LE(two.engine.front().engine_s, plan->engine.front().engine_s);
}

TEST(Rematch, ALimitOfTimeEndsItAndSaysWhatIsLeft) {
  const parallel::Job job = job_on("dgx-a100", 2, "llama-2-7b", 2048, 64);
  auto plan = make_plan(job);
  ASSERT_TRUE(plan);
  rematch(job, {}, 3, 1e-9, *plan);
  EXPECT_TRUE(plan->engine.empty());
  ASSERT_FALSE(plan->rejected.empty());
  EXPECT_EQ(plan->rejected.back().reason, kNotRun);
  EXPECT_EQ(plan->rejected.back().count, 3);
}

TEST(Undecided, NamesTheConstantThatSeparatesThePair) {
  // By hand: two strategies of one machine, one without any traffic between hosts. Only the bandwidth between hosts and the
  // start-up of collectives move their difference much; arithmetic moves both alike.
  const parallel::Job job = job_on("pcie-a100-8", 2, "llama-2-7b", 2048, 64);
  auto plan = make_plan(job);
  ASSERT_TRUE(plan);
  ASSERT_GE(plan->candidates.size(), 2u);
  find_undecided(job, {}, *plan);
  for (const Undecided& u : plan->undecided) {
    EXPECT_LT(u.slower_s, 1.2816 * u.sigma_s);
    EXPECT_FALSE(u.constant.empty());
    EXPECT_FALSE(u.measure.empty());
    EXPECT_GE(u.needed, 0.01);
    EXPECT_LE(u.needed, 0.5);
  }
  // The best against itself: no difference, no error, nothing to decide.
  plan->candidates = {plan->candidates.front(), plan->candidates.front()};
  find_undecided(job, {}, *plan);
  EXPECT_TRUE(plan->undecided.empty());
}

parallel::Job gpt3() { return job_on("dgx-a100", 8, "gpt3-175b", 2048, 64); }

TEST(Proof, ASearchStoppedAtOnceClaimsNothing) {
  Options options;
  options.explain = false;
  options.constraints.any_framework = true;
  options.time_limit_s = 1e-9;
  const auto stopped = make_plan(gpt3(), options);
  ASSERT_TRUE(stopped);
  EXPECT_TRUE(stopped->stopped);
  EXPECT_FALSE(stopped->optimal);
  // What was never listed is bounded by the products at the peak alone: 6 x 175e9 x 64 x 2048 / (64 x 312e12) = 6.9 s.
  EXPECT_LT(stopped->bound_s, 6.9);
  EXPECT_GE(stopped->gap, 0);
}

TEST(Proof, ACallerMayEndTheSearchAndGetsABound) {
  // Exhaustive, so that the walk is still on when the caller is asked: every 2,000 evaluations, at least 0.2 s apart.
  Options options;
  options.explain = false;
  options.exhaustive = true;
  options.constraints.any_framework = true;
  double best_s = 0;
  options.report = [&best_s](const Progress& p) {
    best_s = p.best_s;
    return p.best_s == 0;
  };
  const parallel::Job job = job_on("dgx-a100", 64, "gpt3-175b", 2048, 1536);
  const auto stopped = make_plan(job, options);
  ASSERT_TRUE(stopped);
  ASSERT_TRUE(stopped->stopped);
  ASSERT_FALSE(stopped->candidates.empty());
  EXPECT_GT(stopped->bound_s, 0);
  EXPECT_LE(stopped->bound_s, stopped->candidates.front().step_time_s);
  EXPECT_FALSE(stopped->optimal);
  EXPECT_NEAR(stopped->gap, stopped->candidates.front().step_time_s / stopped->bound_s - 1, 1e-12);
  // The bound holds: the true optimum lies at or above it.
  options.exhaustive = false;
  options.report = nullptr;
  EXPECT_GE(make_plan(job, options)->candidates.front().step_time_s, stopped->bound_s);
}

TEST(Proof, FrozenWordsHoldForEveryCandidate) {
  Options options;
  options.constraints.frozen = "tensor=8 recompute=full";
  const auto plan = make_plan(gpt3(), options);
  ASSERT_TRUE(plan);
  ASSERT_FALSE(plan->candidates.empty());
  for (const auto& p : plan->candidates) {
    EXPECT_EQ(p.strategy.tensor, 8);
    EXPECT_EQ(p.strategy.recompute, parallel::Recompute::kFull);
  }
  options.constraints.frozen = "tensor=7";
  const auto none = make_plan(gpt3(), options);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("under these constraints"), std::string::npos);
}

TEST(Proof, LimitsHold) {
  Options options;
  const double free_s = make_plan(gpt3(), options)->candidates.front().step_time_s;
  options.constraints.memory_margin = 0.4;
  options.constraints.largest_micro_batch = 2;
  const auto plan = make_plan(gpt3(), options);
  ASSERT_TRUE(plan);
  ASSERT_FALSE(plan->candidates.empty());
  for (const auto& p : plan->candidates) {
    EXPECT_LE(p.strategy.micro_batch, 2);
    EXPECT_LE(p.memory.needed_bytes, 0.6 * p.memory.capacity_bytes);
    EXPECT_GE(p.step_time_s, free_s);
  }
  options.constraints = {};
  options.constraints.longest_step_s = free_s / 2;
  const auto dear = make_plan(gpt3(), options);
  ASSERT_TRUE(dear);
  EXPECT_TRUE(dear->candidates.empty());
  EXPECT_TRUE(dear->too_slow);
}

}  // namespace
}  // namespace chokepoint::plan
