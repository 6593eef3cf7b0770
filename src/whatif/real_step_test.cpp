// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/whatif/evaluate.hpp>
#include <chokepoint/whatif/sensitivity.hpp>

#include <cmath>
#include <numeric>

#include "scenario_for_tests.hpp"

namespace chokepoint::whatif {
namespace {

using simulate::Bill;

std::size_t at(Bill item) { return static_cast<std::size_t>(item); }

/// A step of 10 s: 6 s of computation, 3 s of exposed reduction, a second of it waiting for a slow rank, 1 s of host.
MeasuredStep ten_seconds() {
  MeasuredStep m;
  m.bill_s[at(Bill::kCompute)] = 6;
  m.bill_s[at(Bill::kDataReduce)] = 3;
  m.bill_s[at(Bill::kHost)] = 1;
  m.wait_s[at(Bill::kDataReduce)] = 1;
  m.slow_rank = {1, 0.7};
  m.uneven_load = {0.8, 0.5};
  MeasuredStep::Bill model{};
  model[at(Bill::kCompute)] = 5;
  model[at(Bill::kDataReduce)] = 1;
  m.model_s = model;
  return m;
}

TEST(MovedBill, NothingChangedIsTheMeasuredBill) {
  const MeasuredStep m = ten_seconds();
  const MeasuredStep::Bill same = moved_bill(m, *m.model_s);
  for (std::size_t i = 0; i < same.size(); ++i) EXPECT_NEAR(same[i], m.bill_s[i], 1e-12) << i;
}

TEST(MovedBill, WiresMoveWithTheModelAndWaitsStay) {
  const MeasuredStep m = ten_seconds();
  MeasuredStep::Bill after = *m.model_s;
  after[at(Bill::kDataReduce)] = 0.5;  // half of it: 1 s of the measured 2 s on the wire, and the second of waiting
  const MeasuredStep::Bill bill = moved_bill(m, after);
  EXPECT_NEAR(bill[at(Bill::kDataReduce)], 2, 1e-12);
  EXPECT_NEAR(bill[at(Bill::kCompute)], 6, 1e-12);
  EXPECT_NEAR(bill[at(Bill::kHost)], 1, 1e-12);  // the model has none: it stays
}

TEST(MovedBill, AClassThatTheModelAddsIsAdded) {
  const MeasuredStep m = ten_seconds();
  MeasuredStep::Bill after = *m.model_s;
  after[at(Bill::kBubble)] = 0.7;
  EXPECT_NEAR(moved_bill(m, after)[at(Bill::kBubble)], 0.7, 1e-12);
}

TEST(MovedBill, WithoutTheSlowRankNobodyWaitsForIt) {
  MeasuredStep m = ten_seconds();
  m.slow_rank_left = 0;
  const MeasuredStep::Bill bill = moved_bill(m, *m.model_s);
  EXPECT_NEAR(bill[at(Bill::kDataReduce)], 2, 1e-12);
  EXPECT_NEAR(std::accumulate(bill.begin(), bill.end(), 0.0), 9, 1e-12);
  // Both gone: their shares, 0.7 and 0.5, a second of them out of the waits and the rest out of computation.
  m.uneven_load_left = 0;
  const MeasuredStep::Bill both = moved_bill(m, *m.model_s);
  EXPECT_NEAR(both[at(Bill::kDataReduce)], 2, 1e-12);
  EXPECT_NEAR(both[at(Bill::kCompute)], 5.8, 1e-12);
}

TEST(Measured, TheJobAsItIsTakesWhatWasMeasured) {
  Scenario s = scenario_of({});
  s.real.measured = ten_seconds();
  s.real.measured->model_s.reset();
  const auto base = baseline(s);
  ASSERT_TRUE(base) << format(base.error());
  EXPECT_NEAR(base->own.prediction->step_time_s, 10, 1e-9);
  // A faster network shortens it, by no more than the two seconds that were spent on wires.
  const auto faster = answer(*base, {*parse_change("network=x4")});
  ASSERT_TRUE(faster);
  EXPECT_LT(faster->kept.prediction->step_time_s, 10);
  EXPECT_GE(faster->kept.prediction->step_time_s, 8 - 1e-9);
  // The traces themselves say what the slow rank costs.
  const auto without = answer(*base, {*parse_change("straggler=none")});
  ASSERT_TRUE(without);
  EXPECT_NEAR(without->kept.prediction->step_time_s, 9, 1e-9);
}

TEST(Measured, TracesOfAnotherJobAreRefused) {
  Scenario s = scenario_of({});
  s.real.measured = ten_seconds();
  s.real.measured->ranks = 32;
  const auto base = baseline(s);
  ASSERT_FALSE(base);
  EXPECT_NE(base.error().message.find("of 32 ranks, this job has 16"), std::string::npos);
  s.real.measured->ranks = 16;
  s.strategy.reset();
  EXPECT_FALSE(baseline(s));
}

TEST(Measured, TracesOfAnotherStrategyAreSaid) {
  const auto notes = [](const std::string& strategy, std::initializer_list<std::pair<Bill, int>> groups) {
    Scenario s = scenario_of({.strategy = strategy});
    s.real.measured = ten_seconds();
    for (const auto& [item, size] : groups) s.real.measured->groups[at(item)] = size;
    const auto base = baseline(s);
    EXPECT_TRUE(base);
    std::string all;
    if (base) {
      for (const Note& note : base->scenario.notes) all += note.text + "\n";
    }
    return all;
  };
  EXPECT_EQ(notes("fsdp microbatch=1", {{Bill::kDataGather, 16}, {Bill::kDataReduce, 16}}), "");
  EXPECT_EQ(notes("tensor=8 zero=1 microbatch=1", {{Bill::kTensor, 8}, {Bill::kDataReduce, 2}}), "");
  EXPECT_NE(notes("tensor=8 zero=1 microbatch=1", {{Bill::kDataReduce, 16}}).find("tensor=8 leaves no trace in them"), std::string::npos);
  EXPECT_NE(notes("ddp microbatch=1 recompute=full", {{Bill::kTensor, 8}}).find("they show tensor parallelism, the strategy has none"), std::string::npos);
  EXPECT_NE(notes("fsdp microbatch=1", {{Bill::kDataReduce, 16}}).find("no gather of sharded parameters"), std::string::npos);
}

TEST(Imperfect, ASlowRankHoldsAllBackAndItsRemovalGivesThatBack) {
  const Scenario even = scenario_of({});
  const auto base = baseline(even);
  ASSERT_TRUE(base);
  const auto slow = answer(*base, {*parse_change("slow-rank=3:1.3")});
  ASSERT_TRUE(slow) << format(slow.error());
  const double ratio = slow->kept_ratio->value;
  EXPECT_GT(ratio, 1.05);
  EXPECT_LT(ratio, 1.3 + 1e-9);

  Scenario ailing = even;
  ASSERT_TRUE(engine::parse_imperfection("slow-rank=3:1.3", ailing.real.imperfections));
  const auto ailing_base = baseline(ailing);
  ASSERT_TRUE(ailing_base);
  EXPECT_NEAR(ailing_base->own.prediction->step_time_s / base->own.prediction->step_time_s, ratio, 1e-9);
  for (const char* cure : {"straggler=none", "mend=ranks", "mend=all"}) {
    const auto cured = answer(*ailing_base, {*parse_change(cure)});
    ASSERT_TRUE(cured);
    EXPECT_NEAR(cured->kept.prediction->step_time_s, base->own.prediction->step_time_s, 1e-9) << cure;
  }
  // The bill still sums to the step, and the ladder ends at the job's own efficiency.
  const simulate::Prediction& p = *ailing_base->own.prediction;
  EXPECT_NEAR(std::accumulate(p.bill.begin(), p.bill.end(), 0.0), p.step_time_s, 1e-9 * p.step_time_s);
  EXPECT_NEAR(p.ladder.back().fraction, p.mfu, 1e-9);
}

TEST(Imperfect, RanksThatDoNotExistAndWordsThatSayNothingAreErrors) {
  const auto base = baseline(scenario_of({}));
  ASSERT_TRUE(base);
  const auto none = answer(*base, {*parse_change("slow-rank=99:1.3")});
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->kept);
  EXPECT_NE(none->kept.why_not.find("ranks 0 to 15"), std::string::npos);
  EXPECT_FALSE(answer(*base, {*parse_change("slow-rank=x2")}));
  EXPECT_FALSE(answer(*base, {*parse_change("balance=odd")}));
  EXPECT_FALSE(answer(*base, {*parse_change("mend=cables")}));
}

TEST(Imperfect, NothingToMendIsSaid) {
  const auto base = baseline(scenario_of({}));
  ASSERT_TRUE(base);
  const auto same = answer(*base, {*parse_change("straggler=none")});
  ASSERT_TRUE(same);
  ASSERT_FALSE(same->scenario.notes.empty());
  EXPECT_NE(same->scenario.notes.front().text.find("no such thing"), std::string::npos);
}

TEST(Imperfect, ASlowRankIsAResourceOfTheSensitivities) {
  Scenario s = scenario_of({});
  ASSERT_TRUE(engine::parse_imperfection("slow-rank=3:1.5", s.real.imperfections));
  const auto found = sensitivities(s, *s.strategy);
  ASSERT_TRUE(found) << format(found.error());
  const auto slow = std::find_if(found->resources.begin(), found->resources.end(),
                                 [](const Sensitivity& r) { return r.resource == "slow ranks"; });
  ASSERT_NE(slow, found->resources.end());
  EXPECT_LT(slow->step_time_infinite_s, slow->step_time_double_s);
  EXPECT_LT(slow->step_time_double_s, found->step_time_s);
  const auto even = scenario_of({});
  EXPECT_NEAR(slow->step_time_infinite_s / *step_time(even, *even.strategy), 1, 1e-5);
}

TEST(SameStep, SaysWhyAChangeMovesNothing) {
  const auto one_host = baseline(scenario_of({.gpus = 8}));
  ASSERT_TRUE(one_host);
  const auto nic = answer(*one_host, {*parse_change("nic=x2")});
  ASSERT_TRUE(nic);
  EXPECT_NE(nic->why_same.find("inside one host"), std::string::npos);
  const auto memory = answer(*one_host, {*parse_change("socket=x2")});
  ASSERT_TRUE(memory);
  EXPECT_NE(memory->why_same.find("not on the path"), std::string::npos) << memory->why_same;
  const auto felt = answer(*one_host, {*parse_change("clock=x0.8")});
  ASSERT_TRUE(felt);
  EXPECT_EQ(felt->why_same, "");
}

TEST(GivenUp, NamesTheWordsThatTheBestStrategyDoesNotHave) {
  const auto base = baseline(scenario_of({.gpus = 8, .strategy = "tensor=8 zero=1 microbatch=1 recompute=full"}));
  ASSERT_TRUE(base);
  const auto same = answer(*base, {*parse_change("hbm=x1.1")});
  ASSERT_TRUE(same);
  const auto& words = same->given_up;
  EXPECT_NE(std::find(words.begin(), words.end(), "recompute=full"), words.end());
}

}  // namespace
}  // namespace chokepoint::whatif
