// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/whatif/money.hpp>
#include <chokepoint/whatif/study.hpp>

#include "scenario_for_tests.hpp"

namespace chokepoint::whatif {
namespace {

TEST(FatTree, TwoLevelsOfOneThousandEndPoints) {
  // 64 ports, 32 down and 32 up: 32 leaves, 1,024 up-links into 16 spines of 64.
  const FatTree tree = fat_tree(1024, 64, 1);
  EXPECT_EQ(tree.levels, 2);
  EXPECT_EQ(tree.leaves, 32);
  EXPECT_EQ(tree.spines, 16);
  EXPECT_EQ(tree.links(), 2048);
}

TEST(FatTree, FullThreeLevelsIsTheKAryFatTree) {
  // k = 64: k^3/4 = 65,536 end points, 5 k^2/4 = 5,120 switches, three links per end point.
  const FatTree tree = fat_tree(65536, 64, 1);
  EXPECT_EQ(tree.levels, 3);
  EXPECT_EQ(tree.switches(), 5120);
  EXPECT_EQ(tree.links(), 3 * 65536);
  EXPECT_TRUE(tree.reachable);
  EXPECT_FALSE(fat_tree(65537, 64, 1).reachable);
}

TEST(FatTree, OneSwitchUntilItsPortsAreFull) {
  EXPECT_EQ(fat_tree(64, 64, 1).switches(), 1);
  EXPECT_EQ(fat_tree(64, 64, 1).links(), 64);
  EXPECT_EQ(fat_tree(65, 64, 1).levels, 2);
  EXPECT_EQ(fat_tree(0, 64, 1).links(), 0);
  EXPECT_EQ(fat_tree(1, 64, 1).switches(), 0);
}

TEST(FatTree, OversubscriptionSavesUpLinks) {
  // 3:1 of 64 ports: 48 down, 16 up; 960 end points need 20 leaves, 320 up-links, 5 spines.
  const FatTree tree = fat_tree(960, 64, 3);
  EXPECT_EQ(tree.leaves, 20);
  EXPECT_EQ(tree.leaf_links, 320);
  EXPECT_EQ(tree.spines, 5);
  for (const double over : {1.0, 2.0, 3.0, 7.0})
    EXPECT_LE(fat_tree(960, 64, over).switches(), fat_tree(960, 64, 1).switches());
}

Prices test_prices() {
  const auto prices = read_prices(R"(date: 2026-01-02
rent:
  - {accelerator: a100-sxm4-80gb, class: specialist, usd_per_hour: 2, date: 2026-01-01, source: test}
owned:
  amortisation_years: 4
  pue: 1.5
  usd_per_kwh: 0.10
  hosts:
    - {accelerator: a100-sxm4-80gb, usd_per_accelerator: 35064, power_w: 1000, date: 2026-01-01, source: test}
network:
  nics: [{rate: 200 Gb/s, usd: 1000, date: 2026-01-01, source: test}, {rate: 400 Gb/s, usd: 1500, date: 2026-01-01, source: test}]
  switches: [{rate: 400 Gb/s, ports: 64, usd: 30000, date: 2026-01-01, source: test}]
  links: [{rate: 400 Gb/s, usd: 1000, date: 2026-01-01, source: test}]
)",
                                  "test.yaml");
  EXPECT_TRUE(prices) << format(prices.error());
  return *prices;
}

TEST(Money, ByHand) {
  // 16 accelerators at 2 USD/h, a step of 9 s: 16 x 2 x 9 / 3600 = 0.08 USD; 64 x 4,096 tokens, so 305.2 USD a billion.
  const Scenario s = scenario_of({});
  simulate::Prediction p;
  p.step_time_s = 9;
  p.bill[static_cast<std::size_t>(simulate::Bill::kCompute)] = 6;
  p.bill[static_cast<std::size_t>(simulate::Bill::kBubble)] = 3;
  std::string why;
  const auto price = hourly_price(s.job, test_prices(), {}, why);
  ASSERT_TRUE(price) << why;
  const Money money = money_of(s.job, p, *price, 1, 1e12);
  EXPECT_NEAR(money.usd_per_step, 0.08, 1e-12);
  EXPECT_NEAR(money.usd_per_billion_tokens, 0.08 / 262144 * 1e9, 1e-9);
  EXPECT_NEAR(money.usd_per_day, 16 * 2 * 24, 1e-9);
  EXPECT_NEAR(*money.run_s, 1e12 / 262144 * 9, 1e-3);
  EXPECT_NEAR(*money.run_usd, 1e12 / 262144 * 0.08, 1e-3);
  ASSERT_EQ(money.idle.size(), 1u);
  EXPECT_EQ(money.idle[0].name, "bubble");
  EXPECT_NEAR(money.idle[0].usd_per_day, 768.0 / 3, 1e-9);
  // Half of the time lost to failures: the same tokens cost twice.
  EXPECT_NEAR(money_of(s.job, p, *price, 0.5, 0).usd_per_billion_tokens, 2 * money.usd_per_billion_tokens, 1e-9);
}

TEST(Money, OwnedHourByHand) {
  // One host: 35,064 USD / (4 x 8,766 h) = 1 USD/h, and 1 kW x 1.5 x 0.10 = 0.15 USD/h.
  const Scenario s = scenario_of({.gpus = 8});
  Basis basis;
  basis.kind = Basis::Kind::kOwned;
  std::string why;
  const auto price = hourly_price(s.job, test_prices(), basis, why);
  ASSERT_TRUE(price) << why;
  EXPECT_NEAR(price->running_usd, 0.15, 1e-12);
  EXPECT_NEAR(price->usd, 1.15, 1e-12);
}

TEST(Money, PeopleAndEgressByHand) {
  // 16 x 2 USD an hour and 8 USD of people are a quarter more; 1 TB out at 0.05 USD/GB is 50 USD, once per run.
  const Scenario s = scenario_of({});
  Prices prices = test_prices();
  simulate::Prediction p;
  p.step_time_s = 9;
  std::string why;
  const auto price = hourly_price(s.job, prices, {}, why);
  ASSERT_TRUE(price);
  const Money plain = money_of(s.job, p, *price, 1, 1e12);
  Money same = plain;
  add_surcharges(same, s.job, prices, 1e12);
  EXPECT_EQ(*same.run_usd, *plain.run_usd);
  prices.engineer_usd_per_hour = 8;
  prices.egress_usd_per_gb = 0.05;
  Money more = plain;
  add_surcharges(more, s.job, prices, 1e12);
  EXPECT_NEAR(more.usd_per_step, 1.25 * plain.usd_per_step, 1e-12);
  EXPECT_NEAR(*more.run_usd, 1.25 * *plain.run_usd + 50, 1e-6);
}

TEST(Money, WithoutAPriceThereIsAReason) {
  const Scenario s = scenario_of({.cluster = "dgx-h100"});
  std::string why;
  EXPECT_FALSE(hourly_price(s.job, test_prices(), {}, why));
  EXPECT_EQ(why, "the price list has no rented hour of h100-sxm5-80gb in class 'specialist'");
}

TEST(Purchase, IsWhatTheChangedClusterHasMore) {
  // Two hosts of eight 200 Gb/s NICs become two of 400: 16 NICs, one switch, 16 links, all of the new rate.
  const Scenario s = scenario_of({});
  const auto faster = after(s, {"nic=400 Gb/s"});
  ASSERT_TRUE(faster);
  const Prices prices = test_prices();
  const BillOfMaterials bought = purchase(all_parts(s.job, prices), all_parts(faster->job, prices));
  EXPECT_NEAR(bought.usd(), 16 * 1500 + 30000 + 16 * 1000, 1e-9);
  EXPECT_EQ(purchase(all_parts(s.job, prices), all_parts(s.job, prices)).items.size(), 0u);
}

TEST(Purchase, HostsThatAreBoughtBringTheirNics) {
  // Two hosts more: 16 accelerators, 16 links; one switch joins the 32 ports as it joined 16. No NIC on top.
  const Scenario s = scenario_of({});
  const auto larger = after(s, {"gpus=32"});
  ASSERT_TRUE(larger);
  const Prices prices = test_prices();
  const BillOfMaterials bought = purchase(all_parts(s.job, prices), all_parts(larger->job, prices));
  EXPECT_NEAR(bought.usd(), 16 * 35064 + 16 * 1000, 1e-9);
}

TEST(Payback, ByHand) {
  // 16 accelerators at 2 USD/h spend 768 USD a day; a step a quarter shorter does the same work for 576, so 1,920 USD
  // of parts are paid back in ten days.
  const Scenario s = scenario_of({});
  simulate::Prediction before, faster;
  before.step_time_s = 8;
  faster.step_time_s = 6;
  HourlyPrice price;
  price.usd = price.running_usd = 2;
  const Payback back = payback(s.job, before, price, s.job, faster, price, 1920);
  EXPECT_NEAR(back.saved_usd_per_day, 192, 1e-9);
  EXPECT_NEAR(*back.days, 10, 1e-9);
  EXPECT_FALSE(payback(s.job, before, price, s.job, before, price, 1920).days);
}

TEST(BreakEvenPrice, AtItATokenCostsTheSame) {
  const auto base = baseline(scenario_of({}));
  ASSERT_TRUE(base);
  const auto changed_answer = answer(*base, {*parse_change("accelerator=h100")});
  ASSERT_TRUE(changed_answer);
  HourlyPrice price;
  price.usd = price.running_usd = 2;
  const double tipping = price_break_even(*base, *changed_answer, price, 4).usd_per_hour_after;
  EXPECT_GT(tipping, 2);
  price.usd = 2;
  // Staying includes the settings that cost nothing: the planner's best without the change.
  const double now = money_of(base->scenario.job, *base->best.prediction, price, 1, 0).usd_per_billion_tokens;
  price.usd = tipping;
  EXPECT_NEAR(
      money_of(changed_answer->scenario.job, *changed_answer->best.prediction, price, 1, 0).usd_per_billion_tokens, now,
      1e-9 * now);
}

TEST(Prices, ErrorsSayWhereAndWhat) {
  const auto error = [](const char* text) {
    const auto prices = read_prices(text, "p.yaml");
    return prices ? std::string("no error") : format(prices.error());
  };
  EXPECT_NE(error("rent: []\n").find("date"), std::string::npos);
  EXPECT_NE(
      error("date: yesterday\n").find("p.yaml:1:7: error: date is 'yesterday', expected a day such as 2026-05-22"),
      std::string::npos);
  EXPECT_NE(error("date: 2026-01-01\nrnet: []\n").find("did you mean 'rent'"), std::string::npos);
  EXPECT_NE(
      error(
          "date: 2026-01-01\nrent:\n  - {accelerator: h1000, class: a, usd_per_hour: 1, date: 2026-01-01, source: x}\n")
          .find("h1000"),
      std::string::npos);
  EXPECT_NE(
      error(
          "date: 2026-01-01\nrent:\n  - {accelerator: h100, class: a, usd_per_hour: -1, date: 2026-01-01, source: x}\n")
          .find("usd_per_hour"),
      std::string::npos);
}

TEST(Prices, TheShippedListHasASourceForEveryFigure) {
  const Prices& prices = shipped_prices();
  EXPECT_GE(prices.rent.size(), 15u);
  for (const Rent& rent : prices.rent) {
    EXPECT_FALSE(rent.tag.source.empty());
    EXPECT_TRUE(days_between(rent.tag.date, prices.date)) << rent.tag.date;
    EXPECT_GE(*days_between(rent.tag.date, prices.date), 0);
  }
}

TEST(Dates, DaysBetween) {
  EXPECT_EQ(days_between("2024-02-28", "2024-03-01"), 2);  // a leap year
  EXPECT_EQ(days_between("2025-02-28", "2025-03-01"), 1);
  EXPECT_EQ(days_between("2025-01", "2026-01-01"), 365);
  EXPECT_FALSE(days_between("2025-13-01", "2026-01-01"));
  EXPECT_FALSE(days_between("", "2026-01-01"));
}

TEST(Study, TheLastRungIsGoodputAndRungsSumToTheLoss) {
  StudyOptions options;
  options.scaling.basis = {Basis::Kind::kGiven, "", 2};
  const auto study = make_study(scenario_of({}), {}, shipped_prices(), options);
  ASSERT_TRUE(study) << format(study.error());
  ASSERT_FALSE(study->ladder.empty());
  EXPECT_EQ(study->ladder.back().name, "goodput: failures, checkpoints");
  double lost = 0;
  for (const PricedRung& rung : study->ladder) lost += *rung.usd_per_day;
  EXPECT_NEAR(lost, study->money->usd_per_day * (1 - study->ladder.back().fraction), 1e-6);
}

}  // namespace
}  // namespace chokepoint::whatif
