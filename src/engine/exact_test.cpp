// SPDX-License-Identifier: Apache-2.0
// The closed form against runs without contention: equal where closed_form_is_exact() says so, never longer elsewhere.
#include <chokepoint/engine/engine.hpp>
#include <chokepoint/engine/exact.hpp>

#include <gtest/gtest.h>
#include <random>

#include "test_jobs.hpp"

namespace chokepoint::engine {
namespace {

using parallel::Schedule;

double run_s(const simulate::Pieces& pieces, const parallel::Strategy& s) {
  const auto graph = build_graph(pieces, s);
  EXPECT_TRUE(graph) << (graph ? "" : graph.error().message);
  if (!graph) return 0;
  Layout layout;
  layout.pipeline = s.pipeline;
  const Fold fold = fold_ranks(layout, {}, true, nullptr);
  const auto result = run(*graph, fold, layout, {}, {});
  EXPECT_TRUE(result);
  return result ? result->end_s : 0;
}

struct Drawn {
  simulate::Pieces pieces;
  parallel::Strategy strategy;
};

/// Stages of 4 layers; `uneven` 0: all alike, 1: the last longer, 2: each its own.
Drawn draw(std::mt19937& random, Schedule schedule, int uneven, double longest_send_s) {
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  const auto real = [&](double low, double high) { return std::uniform_real_distribution<double>(low, high)(random); };
  Drawn d;
  d.strategy.schedule = schedule;
  d.strategy.pipeline = schedule == Schedule::kDualPipe ? 2 * pick(1, 4) : pick(2, 8);
  d.strategy.virtual_stages = schedule == Schedule::kInterleaved ? pick(2, 4) : schedule == Schedule::kZeroBubbleV ? 2 : 1;
  d.strategy.accumulate = pick(1, 40);
  const double backward = real(1, 2.5);
  for (int i = 0; i < d.strategy.pipeline; ++i) {
    simulate::StagePieces s;
    s.layers = 4;
    const bool last = i == d.strategy.pipeline - 1;
    const double more = uneven == 2 ? real(0.6, 1.4) : uneven == 1 && last ? real(1, 1.6) : 1;
    s.forward.compute_s = more / 4;
    s.backward.compute_s = more * backward / 4;
    s.weight_gradient_s = more * backward / 2;
    d.pieces.stages.push_back(s);
  }
  d.pieces.send.seconds = real(0, longest_send_s);
  d.pieces.send_wire_s = 0.5 * d.pieces.send.seconds;
  d.pieces.send.latency_s = d.pieces.send.seconds - d.pieces.send_wire_s;
  return d;
}

TEST(Exact, PipelinesTakeTheFormulasTimeWhereItIsExactAndNeverLessElsewhere) {
  std::mt19937 random(31);
  int exact = 0;
  for (const Schedule schedule :
       {Schedule::kOneForwardOneBackward, Schedule::kGpipe, Schedule::kInterleaved, Schedule::kZeroBubble1, Schedule::kZeroBubble2,
        Schedule::kZeroBubbleV, Schedule::kDualPipe}) {
    for (int round = 0; round < 240; ++round) {
      const Drawn d = draw(random, schedule, round % 3, round % 4 == 0 ? 0 : round % 4 == 1 ? 0.2 : 2);
      const double formula = simulate::pipeline_s(d.pieces, d.strategy);
      const double ran = run_s(d.pieces, d.strategy);
      const std::string what = parallel::to_text(d.strategy) + " micro-batches " + std::to_string(d.strategy.accumulate) +
                               " uneven " + std::to_string(round % 3) + " send " + std::to_string(d.pieces.send.seconds);
      EXPECT_LE(formula, ran * (1 + 1e-9)) << what;
      if (!closed_form_is_exact(d.pieces, d.strategy)) continue;
      ++exact;
      EXPECT_NEAR(ran, formula, 1e-9 * ran) << what;
    }
  }
  EXPECT_GT(exact, 300);
}

TEST(Exact, ZeroBubblePipelinesOfEqualThirdsTakeTheirPapersTime) {
  for (const int p : {2, 4, 6}) {
    for (const int m : {2 * p, 2 * p + 1, 5 * p}) {
      std::mt19937 random(1);
      Drawn d = draw(random, Schedule::kZeroBubble1, 0, 0);
      d.strategy.pipeline = p;
      d.strategy.accumulate = m;
      d.pieces.stages.resize(static_cast<std::size_t>(p), d.pieces.stages.front());
      for (simulate::StagePieces& s : d.pieces.stages) {
        s.forward.compute_s = 0.25;
        s.backward.compute_s = 0.5;
        s.weight_gradient_s = 1;
      }
      ASSERT_TRUE(closed_form_is_exact(d.pieces, d.strategy));
      // Every rank works 3 m; the last one begins after p - 1 forwards.
      EXPECT_NEAR(run_s(d.pieces, d.strategy), 3.0 * m + (p - 1), 1e-9) << p << " " << m;
      EXPECT_NEAR(run_s(d.pieces, d.strategy), simulate::pipeline_s(d.pieces, d.strategy), 1e-9) << p << " " << m;
    }
  }
}

TEST(Exact, JobsOfOneStageTakeTheFormulasTimeWhereTransfersHide) {
  SimulateOptions options;
  options.contention = false;
  int exact = 0;
  for (const char* cluster : {"dgx-h100", "dgx-a100"}) {
    for (const char* model : {"llama-2-7b", "llama-2-13b"}) {
      const parallel::Job job = job_on(cluster, 4, model, 4096, 512);
      const simulate::Predictor predictor(job);
      for (const char* text : {"ddp microbatch=1", "ddp microbatch=4", "zero=1 microbatch=1", "zero=1 microbatch=4",
                               "zero=3 microbatch=2 recompute=full", "zero=3 microbatch=8", "zero=3 microbatch=1"}) {
        const auto strategy = parallel::parse_strategy(text);
        ASSERT_TRUE(strategy) << text;
        const auto s = simulate_step(predictor, *strategy, options);
        ASSERT_TRUE(s) << text;
        EXPECT_GE(s->step_s, s->closed_form_s * (1 - 0.005)) << cluster << " " << model << " " << text;
        if (!closed_form_is_exact(s->pieces, s->strategy)) continue;
        ++exact;
        EXPECT_NEAR(s->step_s, s->closed_form_s, 1e-9 * s->step_s) << cluster << " " << model << " " << text;
      }
    }
  }
  EXPECT_GT(exact, 8);
}

}  // namespace
}  // namespace chokepoint::engine
