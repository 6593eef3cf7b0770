// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/whatif/evaluate.hpp>

#include <cmath>

#include "rewire.hpp"
#include "scenario_for_tests.hpp"

namespace chokepoint::whatif {
namespace {

double time_after(const Scenario& scenario, const std::vector<std::string>& texts) {
  const auto changed_scenario = after(scenario, texts);
  EXPECT_TRUE(changed_scenario) << format(changed_scenario.error());
  if (!changed_scenario) return 0;
  const auto time = step_time(*changed_scenario, *changed_scenario->strategy);
  EXPECT_TRUE(time);
  return time.value_or(0);
}

std::string message_of(const Scenario& scenario, const std::vector<std::string>& texts) {
  const auto result = after(scenario, texts);
  return result ? "no error" : format(result.error());
}

TEST(Change, MisspeltWordNamesTheNearest) {
  const auto change = parse_change("ncis-per-host=4");
  ASSERT_FALSE(change);
  EXPECT_EQ(format(change.error()),
            "error: unknown change 'ncis-per-host'\n  did you mean 'nics-per-host'?\n  chokepoint whatif "
            "--list-changes prints every word with an example\n");
}

TEST(Change, NoValueAndNothingAtAllAreErrors) {
  EXPECT_FALSE(parse_change("nic="));
  EXPECT_FALSE(parse_change("nic"));
  EXPECT_FALSE(parse_change(""));
  EXPECT_FALSE(parse_change("=x2"));
  EXPECT_TRUE(parse_change("hsdp"));
}

TEST(Change, WhatTheModelCannotShowSaysWhereToLook) {
  const auto change = parse_change("protocol=ll");
  ASSERT_FALSE(change);
  EXPECT_NE(format(change.error()).find("NCCL's tuner"), std::string::npos);
}

TEST(Change, ContradictionsAreNamed) {
  const Scenario base = scenario_of({});
  EXPECT_NE(message_of(base, {"nic=x2", "nic=x3"}).find("'nic=x2' and 'nic=x3' contradict each other"),
            std::string::npos);
  EXPECT_NE(message_of(base, {"gpus=8", "hosts=2"}).find("both set the size"), std::string::npos);
  EXPECT_NE(message_of(base, {"zero=1", "fsdp"}).find("both set the sharding"), std::string::npos);
}

TEST(Change, DevicesThatDoNotExistAreErrors) {
  const Scenario base = scenario_of({});
  EXPECT_NE(message_of(base, {"GPU99.pcie=x2"}).find("no device 'GPU99'"), std::string::npos);
  EXPECT_NE(message_of(base, {"NIC99.rate=100 Gb/s"}).find("no NIC 'NIC99'"), std::string::npos);
  EXPECT_NE(message_of(base, {"GPU0.frob=x2"}).find("unknown link 'frob'"), std::string::npos);
  EXPECT_NE(message_of(scenario_of({.cluster = "pcie-a100-8"}), {"nvlink=x2"}).find("bridges=on"), std::string::npos);
  EXPECT_NE(message_of(base, {"accelerator=b2000"}).find("b2000"), std::string::npos);
}

TEST(Change, ValuesOutOfRangeAreErrorsNotCrashes) {
  const Scenario base = scenario_of({});
  for (const char* text : {"nic=xnan", "nic=x1e300", "nic=-5 Gb/s", "nic=400", "gpus=0", "gpus=999999999999",
                           "layers=-1", "oversubscription=0.5", "nvlink-domain=12", "pcie=9", "hbm=x0", "clock=",
                           "nics-per-host=1000", "sequence=1e9", "power=-3 W", "bridges=maybe", "bridges=on"}) {
    const auto change = parse_change(text);
    if (!change) continue;
    EXPECT_FALSE(changed(base, {*change})) << text;
  }
}

TEST(Change, TwiceAndHalfAreIdentity) {
  // A factor of two is exact in binary floating point, so the step must be the same to the last bit.
  for (const std::string cluster : {"dgx-a100", "pcie-a100-8-bridged"}) {
    const Scenario base = scenario_of({.cluster = cluster});
    const double now = time_after(base, {});
    for (const std::string key :
         {"nic", "nvlink", "pcie", "nic-slot", "host-memory", "latency", "hbm", "clock", "host", "network"}) {
      const auto twice = after(base, {key + "=x2"});
      ASSERT_TRUE(twice);
      EXPECT_DOUBLE_EQ(time_after(*twice, {key + "=x0.5"}), now) << cluster << " " << key;
    }
  }
}

TEST(Change, OrderOfACombinationDoesNotMatter) {
  const Scenario base = scenario_of({});
  EXPECT_EQ(time_after(base, {"accelerator=h100", "clock=x0.9", "gpus=32"}),
            time_after(base, {"gpus=32", "clock=x0.9", "accelerator=h100"}));
}

TEST(Change, AFasterPartNeverLengthensTheStep) {
  for (const std::string cluster : {"dgx-a100", "pcie-a100-8", "pcie-a100-8-bridged", "dgx-h100", "mi250x-node"}) {
    for (const std::string strategy :
         {"fsdp microbatch=1", "tensor=8 zero=1 microbatch=1", "pipeline=2 zero=1 microbatch=1"}) {
      const Scenario base = scenario_of({.cluster = cluster, .strategy = strategy});
      const double now = time_after(base, {});
      for (const std::string key : {"nic", "pcie", "nic-slot", "host-memory", "hbm", "clock", "host", "network"}) {
        EXPECT_LE(time_after(base, {key + "=x1.3"}), now * (1 + 1e-12)) << cluster << " " << strategy << " " << key;
      }
      EXPECT_LE(time_after(base, {"latency=x0.7"}), now * (1 + 1e-12)) << cluster << " " << strategy;
    }
  }
}

TEST(Change, NicCountMultipliesWhatAHostSends) {
  const Scenario base = scenario_of({.cluster = "dgx-a100"});
  const auto egress = [](const Scenario& s) {
    return collective::Network(s.job.cluster, s.job.accelerator).host_egress_bytes_per_s();
  };
  const auto half = after(base, {"nics-per-host=4"});
  ASSERT_TRUE(half);
  EXPECT_EQ(topology::compute_nics(half->job.cluster.hosts.front().host).size(), 4u);
  EXPECT_NEAR(egress(*half), egress(base) / 2, 1e-6 * egress(base));
  const auto back = after(*half, {"nics-per-host=8"});
  ASSERT_TRUE(back);
  EXPECT_NEAR(egress(*back), egress(base), 1e-6 * egress(base));
}

TEST(Change, BridgesOnAndOffAreTheTwoCatalogueHosts) {
  const Scenario plain = scenario_of({.cluster = "pcie-a100-8"});
  const Scenario bridged = scenario_of({.cluster = "pcie-a100-8-bridged"});
  EXPECT_DOUBLE_EQ(time_after(plain, {"bridges=on"}), time_after(bridged, {}));
  EXPECT_DOUBLE_EQ(time_after(bridged, {"bridges=off"}), time_after(plain, {}));
}

TEST(Change, AnotherAcceleratorIsTheCataloguesHostWithIt) {
  // Modules on the same board design: H100 to H200 changes the part alone.
  const Scenario before = scenario_of({.cluster = "dgx-h100"});
  const Scenario direct = scenario_of({.cluster = "dgx-h200"});
  EXPECT_DOUBLE_EQ(time_after(before, {"accelerator=h200"}), time_after(direct, {}));
  const Scenario newest = scenario_of({.cluster = "dgx-b200"});
  EXPECT_DOUBLE_EQ(time_after(before, {"accelerator=b200"}), time_after(newest, {}));
}

TEST(Change, AStrategyWordReplacesItsOwnAndLeavesTheRest) {
  const Scenario base = scenario_of({.strategy = "tensor=8 zero=1 microbatch=2 recompute=full"});
  const auto patched = after(base, {"recompute=selective", "zero=3"});
  ASSERT_TRUE(patched);
  EXPECT_EQ(parallel::to_text(*patched->strategy), "tensor=8 zero=3 microbatch=2 recompute=selective");
}

TEST(Change, AccumulationKeepsTheMicroBatch) {
  // 16 ranks x micro-batch 1 x 8 micro-steps = 128 sequences.
  const auto more = after(scenario_of({}), {"accumulate=8"});
  ASSERT_TRUE(more);
  EXPECT_EQ(more->job.global_batch, 128);
}

TEST(Change, MendedLinksRunAtTheirSpecification) {
  Scenario base = scenario_of({.cluster = "pcie-a100-8"});
  for (topology::Link& link : base.job.cluster.hosts.front().host.links) {
    if (link.kind == topology::LinkKind::kPcie && link.from == 0)
      link.bandwidth.negotiated_bytes_per_s = *link.bandwidth.specified_bytes_per_s / 2;
  }
  EXPECT_LT(time_after(base, {"mend=links"}), time_after(base, {}));
  EXPECT_DOUBLE_EQ(time_after(base, {"mend=links"}), time_after(scenario_of({.cluster = "pcie-a100-8"}), {}));
}

TEST(Answer, NoChangeIsNoDifferenceAndCertain) {
  const auto base = baseline(scenario_of({}));
  ASSERT_TRUE(base);
  const auto same = answer(*base, {*parse_change("nic=x1")});
  ASSERT_TRUE(same);
  EXPECT_EQ(same->kept_ratio->value, 1);
  EXPECT_EQ(same->kept_ratio->low, 1);
  EXPECT_EQ(same->kept_ratio->high, 1);
}

TEST(Answer, ReplanningIsNeverSlowerThanKeeping) {
  const auto base = baseline(scenario_of({.strategy = "fsdp microbatch=1 recompute=full"}));
  ASSERT_TRUE(base);
  for (const char* text : {"nic=x0.1", "nvlink=x2", "accelerator=h200", "gpus=32"}) {
    const auto one = answer(*base, {*parse_change(text)});
    ASSERT_TRUE(one);
    ASSERT_TRUE(one->kept && one->best) << text;
    EXPECT_LE(one->best.prediction->step_time_s, one->kept.prediction->step_time_s) << text;
  }
}

TEST(Answer, AStrategyThatNoLongerDividesSaysSoAndIsReplanned) {
  const auto base = baseline(scenario_of({.batch = 16}));
  ASSERT_TRUE(base);
  const auto wide = answer(*base, {*parse_change("gpus=32")});
  ASSERT_TRUE(wide);
  EXPECT_FALSE(wide->kept);
  EXPECT_NE(wide->kept.why_not.find("batch 16"), std::string::npos);
  EXPECT_TRUE(wide->best);
}

TEST(Paired, SharedErrorsCancel) {
  // The step halves with every class in proportion: the ratio is exact although each step has its band.
  const Scenario s = scenario_of({});
  simulate::Prediction a;
  a.step_time_s = 2;
  a.bill[0] = 1.5;
  a.bill[7] = 0.5;
  simulate::Prediction b = a;
  b.step_time_s = 1;
  b.bill[0] = 0.75;
  b.bill[7] = 0.25;
  EXPECT_EQ(paired(s, a, s, b).low, 0.5);
  // All of the reduction gone: its share falls by a quarter and with it 0.60 of error; compute's rises by a quarter of
  // 0.12.
  b = a;
  b.step_time_s = 1.5;
  b.bill[7] = 0;
  const double sigma = std::hypot(0.25 * 0.60, 0.25 * 0.12);
  EXPECT_NEAR(paired(s, a, s, b).high, 0.75 * std::exp(1.2816 * sigma), 1e-12);
}

}  // namespace
}  // namespace chokepoint::whatif
