// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/progress.hpp>
#include <chokepoint/whatif/study.hpp>

namespace chokepoint::whatif {

namespace {

std::vector<PricedRung> priced_ladder(const simulate::Prediction& p, const Goodput& goodput,
                                      const std::optional<Money>& money) {
  std::vector<PricedRung> out;
  double before = 1;
  const auto add = [&](const std::string& name, double fraction) {
    PricedRung rung{name, fraction, {}};
    if (money) rung.usd_per_day = money->usd_per_day * (before - fraction);
    out.push_back(std::move(rung));
    before = fraction;
  };
  for (const simulate::Rung& rung : p.ladder) add(rung.name, rung.fraction);
  if (!out.empty()) add("goodput: failures, checkpoints", before * goodput.goodput);
  return out;
}

std::optional<Money> money_for(const parallel::Job& job, const State& state, const Prices& prices,
                               const StudyOptions& options, std::string& why) {
  if (!state) return std::nullopt;
  const auto price = hourly_price(job, prices, options.scaling.basis, why);
  if (!price) return std::nullopt;
  const Goodput goodput = goodput_of(job, options.scaling.failures);
  Money money = money_of(job, *state.prediction, *price, goodput.goodput, options.scaling.tokens);
  add_spares(money, job, goodput.spare_hosts);
  add_surcharges(money, job, prices, goodput.checkpoint_bytes);
  return money;
}

const simulate::Prediction& best_without(const Baseline& base) {
  const bool planned = base.best && base.best.prediction->step_time_s < base.own.prediction->step_time_s;
  return planned ? *base.best.prediction : *base.own.prediction;
}

Result<PricedAnswer> price_answer(const Baseline& base, const std::optional<Money>& now,
                                  const std::vector<Change>& changes, const Prices& prices,
                                  const StudyOptions& options) {
  PricedAnswer out;
  TRY_INTO(out.answer, answer(base, changes));
  const parallel::Job& before = base.scenario.job;
  const parallel::Job& after = out.answer.scenario.job;
  out.kept_money = money_for(after, out.answer.kept, prices, options, out.price_missing);
  out.best_money = money_for(after, out.answer.best, prices, options, out.price_missing);
  // Parts of a rented cluster are not for sale, except that a change asks for wiring: then they say what it would take.
  out.bought = purchase(all_parts(before, prices), all_parts(after, prices));
  if (!now || !out.best_money) return out;
  // What settings alone would give is free: the purchase earns only what it adds to the best that there is without it.
  out.payback = payback(before, best_without(base), now->price, after, *out.answer.best.prediction,
                        out.best_money->price, out.bought.usd());
  if (options.break_even)
    out.break_even = price_break_even(base, out.answer, now->price, prices.owned.amortisation_years);
  return out;
}

}  // namespace

Result<Study> make_study(const Scenario& scenario, const std::vector<Change>& changes, const Prices& prices,
                         const StudyOptions& options) {
  Study out;
  out.options = options;
  const std::size_t parts = 2 + changes.size() + (options.sensitivities ? 1 : 0) + (options.scale ? 1 : 0) + (options.break_even ? 1 : 0);
  ProgressLoop progress(parts);
  {
    const ProgressLoop::Round round(progress);
    TRY_INTO(out.baseline, baseline(scenario));
  }
  const Baseline& base = out.baseline;
  const parallel::Job& job = base.scenario.job;
  const parallel::Strategy& strategy = base.own.prediction->strategy;
  out.goodput = goodput_of(job, options.scaling.failures);
  out.money = money_for(job, base.own, prices, options, out.price_missing);
  out.best_money = money_for(job, base.best, prices, options, out.price_missing);
  out.ladder = priced_ladder(*base.own.prediction, out.goodput, out.money);
  std::vector<std::vector<Change>> questions;
  if (!changes.empty() && !options.alternatives) questions.push_back(changes);
  if (options.alternatives || (options.each && changes.size() > 1)) {
    for (const Change& change : changes) questions.push_back({change});
  }
  for (const std::vector<Change>& question : questions) {
    const ProgressLoop::Round round(progress);
    TRY_INTO(PricedAnswer priced, price_answer(base, out.money, question, prices, options));
    out.answers.push_back(std::move(priced));
  }
  if (options.sensitivities) {
    const ProgressLoop::Round round(progress);
    TRY_INTO(out.sensitivities, sensitivities(base.scenario, strategy));
  }
  if (options.scale) {
    const ProgressLoop::Round round(progress);
    TRY_INTO(out.scale, scaling(base.scenario, prices, options.scaling));
  }
  if (options.break_even) {
    const ProgressLoop::Round round(progress);
    out.break_even = BreakEven{network_break_even(base.scenario, strategy, options.efficiency),
                               largest_kept(base.scenario, strategy), largest_replanned(base.scenario)};
  }
  if (options.by_s > 0) out.deadline = deadline(base.scenario, prices, options.scaling, options.by_s);
  return out;
}

}  // namespace chokepoint::whatif
