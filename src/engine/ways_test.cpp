// SPDX-License-Identifier: Apache-2.0
// Transfers on the links of a whole cluster: what folds, what contends, what has no way.
#include <chokepoint/engine/engine.hpp>
#include <chokepoint/wiring/wiring.hpp>

#include <gtest/gtest.h>
#include <random>

#include "test_jobs.hpp"

namespace chokepoint::engine {
namespace {

parallel::Job on_tree(int hosts, int hosts_per_leaf, double oversubscription, topology::FabricKind kind) {
  parallel::Job job = job_on("dgx-h100", hosts, "llama-2-7b", 4096, 8.0 * hosts);
  job.cluster.fabric.kind = kind;
  job.cluster.fabric.hosts_per_leaf = hosts_per_leaf;
  job.cluster.fabric.oversubscription = oversubscription;
  return job;
}

Result<Simulated> simulated(const parallel::Job& job, const std::string& text, const SimulateOptions& options = {}) {
  const auto strategy = parallel::parse_strategy(text);
  EXPECT_TRUE(strategy) << text;
  return simulate_step(simulate::Predictor(job), *strategy, options);
}

TEST(Ways, FoldedAndUnfoldedStepsAreEqualOnTrees) {
  std::mt19937 random(3);
  const auto draw = [&random](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  int compared = 0;
  for (int round = 0; round < 24; ++round) {
    const int hosts = 2 * draw(1, 4);
    const auto kind = draw(0, 1) == 0 ? topology::FabricKind::kFatTree : topology::FabricKind::kRailOptimized;
    const parallel::Job job = on_tree(hosts, draw(1, 3), draw(1, 3), kind);
    const std::string text = "tensor=" + std::to_string(1 << draw(0, 3)) + " pipeline=" + std::to_string(1 << draw(0, 2)) +
                             (draw(0, 1) == 0 ? " zero=1" : " ddp") + " microbatch=1";
    SimulateOptions options;
    options.spread = draw(0, 1) == 0 ? flow::Spread::kSpray : flow::Spread::kHash;
    if (draw(0, 1) == 0) options.imperfections.slow_hosts = {{draw(0, hosts - 1), 0.3}};
    if (draw(0, 2) == 0) options.imperfections.slow_ranks = {{draw(0, 8 * hosts - 1), 1.2}};
    const auto folded = simulated(job, text, options);
    if (!folded) continue;
    ++compared;
    options.folded = false;
    const auto own = simulated(job, text, options);
    ASSERT_TRUE(own) << text;
    EXPECT_NEAR(folded->step_s, own->step_s, 1e-11 * own->step_s) << text << " on " << hosts;
    EXPECT_LE(folded->fold.classes.size(), own->fold.classes.size());
  }
  EXPECT_GT(compared, 12);
}

TEST(Ways, SymmetricStepsFoldToAClassPerStageAndLinksToAFew) {
  const parallel::Job job = on_tree(8, 4, 1, topology::FabricKind::kFatTree);
  const auto s = simulated(job, "tensor=8 pipeline=2 zero=1 microbatch=1");
  ASSERT_TRUE(s);
  EXPECT_EQ(s->fold.classes.size(), 2u);
  EXPECT_LT(s->fold.links.size(), 20u);
  EXPECT_EQ(s->fold.links.size(), s->run.link_busy_s.size());
}

TEST(Ways, HashedFlowsCollideAndNeverRunFasterThanSprayedOnes) {
  // Four hosts, one a leaf: the ranks of four tensor groups of 8 each send through one of eight cables by hash. Eight
  // flows that fall on eight cables at random leave some cable with two or more: the reduction takes at least twice as
  // long where it shows, as it does without overlap.
  const parallel::Job job = on_tree(4, 1, 1, topology::FabricKind::kFatTree);
  const char* text = "tensor=8 zero=1 overlap=off microbatch=1";
  SimulateOptions options;
  const auto spray = simulated(job, text, options);
  options.spread = flow::Spread::kHash;
  const auto hash = simulated(job, text, options);
  options.spread = flow::Spread::kAdaptive;
  const auto adaptive = simulated(job, text, options);
  ASSERT_TRUE(spray && hash && adaptive);
  const auto reduce = static_cast<std::size_t>(simulate::Bill::kDataReduce);
  EXPECT_GT(hash->bill[reduce], 1.5 * spray->bill[reduce]);
  // The emptiest cable for each flow: eight flows on eight cables.
  EXPECT_NEAR(adaptive->bill[reduce], spray->bill[reduce], 0.01 * spray->bill[reduce]);
  EXPECT_EQ(simulated(job, text, options)->step_s, adaptive->step_s);
}

TEST(Ways, MessagesAndReductionsMeetOnAnOversubscribedLeaf) {
  // Stages two hosts wide, a leaf a host: gradients and activations cross the same thin trunks at the same time.
  const parallel::Job job = on_tree(4, 1, 8, topology::FabricKind::kFatTree);
  SimulateOptions options;
  const auto shared = simulated(job, "pipeline=2 zero=1 microbatch=1", options);
  options.contention = false;
  const auto alone = simulated(job, "pipeline=2 zero=1 microbatch=1", options);
  ASSERT_TRUE(shared && alone);
  EXPECT_GE(shared->step_s, alone->step_s * (1 - 1e-9));
  bool leaf = false;
  for (const SharedLink& link : shared->fold.links)
    leaf = leaf || shared->ways->platform->class_of(link.representative) == flow::LinkClass::kLeafUp;
  EXPECT_TRUE(leaf);
  EXPECT_EQ(alone->ways, nullptr);
}

TEST(Ways, PcieLinksThatTwoKindsPassAreShared) {
  const parallel::Job job = job_on("pcie-a100-8", 4, "llama-2-7b", 4096, 32);
  const auto s = simulated(job, "tensor=2 zero=1 microbatch=1");
  ASSERT_TRUE(s) << (s ? "" : s.error().message);
  bool pcie = false;
  for (const SharedLink& link : s->fold.links)
    pcie = pcie || s->ways->platform->class_of(link.representative) == flow::LinkClass::kPcie;
  EXPECT_TRUE(pcie);
}

TEST(Ways, HostsThatNothingJoinsAreNamed) {
  parallel::Job job = on_tree(2, 1, 1, topology::FabricKind::kFatTree);
  job.cluster.fabric.kind = topology::FabricKind::kNone;
  const auto s = simulated(job, "tensor=8 microbatch=1");
  ASSERT_FALSE(s);
  EXPECT_NE(s.error().message.find("no way from host 0"), std::string::npos) << s.error().message;
  EXPECT_NE(s.error().message.find("nothing joins the hosts"), std::string::npos) << s.error().message;
}

TEST(Ways, RecordedPassagesCarryWhatTheLinksCarried) {
  const parallel::Job job = on_tree(4, 1, 2, topology::FabricKind::kFatTree);
  SimulateOptions options;
  options.record = true;
  const auto s = simulated(job, "tensor=4 pipeline=2 zero=1 microbatch=1", options);
  ASSERT_TRUE(s);
  std::vector<double> sums(s->fold.links.size(), 0.0);
  for (const Run::Passage& passage : s->run.passages) {
    EXPECT_LE(passage.start_s, passage.end_s);
    sums[static_cast<std::size_t>(passage.link)] += passage.busy_s;
  }
  for (std::size_t i = 0; i < sums.size(); ++i) EXPECT_NEAR(sums[i], s->run.link_busy_s[i], 1e-6 * s->step_s) << i;
}

}  // namespace
}  // namespace chokepoint::engine
