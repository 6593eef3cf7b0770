// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/progress.hpp>
#include <chokepoint/whatif/study.hpp>

#include <algorithm>
#include <functional>

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

Footing footing_of(const parallel::Job& job, const Prices& prices, const StudyOptions& options) {
  const Goodput goodput = goodput_of(job, options.scaling.failures);
  const double spares = static_cast<double>(goodput.spare_hosts) * std::max(1, job.cluster.gpus_per_host());
  return {goodput.goodput, 1 + spares / std::max(1, job.gpus), prices.engineer_usd_per_hour};
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
  const BillOfMaterials had = all_parts(before, prices);
  const BillOfMaterials needed = all_parts(after, prices);
  out.bought = purchase(had, needed);
  out.spared = purchase(needed, had);
  if (!now || !out.best_money) return out;
  // What settings alone would give is free: the purchase earns only what it adds to the best that there is without it.
  const Footing footing = footing_of(before, prices, options);
  const Footing footing_after = footing_of(after, prices, options);
  out.payback = payback(before, best_without(base), now->price, after, *out.answer.best.prediction,
                        out.best_money->price, out.bought.usd(), footing, footing_after);
  if (options.break_even)
    out.break_even = price_break_even(base, out.answer, now->price, prices.owned.amortisation_years, footing, footing_after);
  return out;
}

}  // namespace

namespace {

std::vector<std::vector<Change>> questions_of(const std::vector<Change>& changes, const StudyOptions& options) {
  std::vector<std::vector<Change>> questions;
  if (!changes.empty() && !options.alternatives) questions.push_back(changes);
  if (options.alternatives || (options.each && changes.size() > 1)) {
    for (const Change& change : changes) questions.push_back({change});
  }
  return questions;
}

std::string title_of(const std::vector<Change>& changes) {
  std::string title;
  for (const Change& change : changes) title += (title.empty() ? "" : " + ") + change.text;
  return title;
}

/// Runs one part of a study as a round of its progress; what is stopped half-way or not begun is said to be left out.
class Parts {
 public:
  Parts(std::size_t count, Study& study) : progress_(count), study_(study) {}

  /// Whether the part was done to its end.
  bool run(const std::string& name, const std::function<void()>& part) {
    if (!stop_requested()) {
      const ProgressLoop::Round round(progress_);
      part();
      if (!stop_requested()) return true;
    }
    study_.left_out.push_back(name);
    return false;
  }

 private:
  ProgressLoop progress_;
  Study& study_;
};

/// What was asked beside changes. Break-even and deadline are searches: half of one says nothing.
Result<bool> add_questions(Parts& parts, const Prices& prices, const StudyOptions& options, Study& out) {
  const Baseline& base = out.baseline;
  const parallel::Strategy& strategy = base.own.prediction->strategy;
  Result<bool> ok = true;
  if (options.sensitivities) {
    parts.run("sensitivities of some resources", [&] {
      Result<Sensitivities> found = sensitivities(base.scenario, strategy);
      if (found) out.sensitivities = std::move(*found);
      else ok = tl::make_unexpected(std::move(found).error());
    });
  }
  if (options.scale && ok) {
    parts.run("further sizes", [&] {
      Result<std::vector<ScalePoint>> found = scaling(base.scenario, prices, options.scaling);
      if (found) out.scale = std::move(*found);
      else ok = tl::make_unexpected(std::move(found).error());
    });
  }
  if (options.break_even && ok) {
    const bool whole = parts.run("break-even", [&] {
      out.break_even = BreakEven{network_break_even(base.scenario, strategy, options.efficiency),
                                 largest_kept(base.scenario, strategy), largest_replanned(base.scenario)};
    });
    if (!whole) out.break_even.reset();
  }
  if (options.by_s > 0 && ok) {
    const bool whole = parts.run("deadline", [&] { out.deadline = deadline(base.scenario, prices, options.scaling, options.by_s); });
    if (!whole) out.deadline.reset();
  }
  return ok;
}

}  // namespace

Result<Study> make_study(const Scenario& scenario, const std::vector<Change>& changes, const Prices& prices,
                         const StudyOptions& options) {
  Study out;
  out.options = options;
  const std::vector<std::vector<Change>> questions = questions_of(changes, options);
  const auto one = [](bool asked) { return static_cast<std::size_t>(asked ? 1 : 0); };
  Parts parts(1 + questions.size() + one(options.sensitivities) + one(options.scale) + one(options.break_even) + one(options.by_s > 0), out);
  Result<bool> ok = true;
  parts.run("the search for the best strategy as it is", [&] {
    Result<Baseline> found = baseline(scenario);
    if (found) out.baseline = std::move(*found);
    else ok = tl::make_unexpected(std::move(found).error());
  });
  if (!ok) return tl::make_unexpected(std::move(ok).error());
  const Baseline& base = out.baseline;
  if (!base.own) return fail("stopped before the job as it is was worked out");
  out.goodput = goodput_of(base.scenario.job, options.scaling.failures);
  out.money = money_for(base.scenario.job, base.own, prices, options, out.price_missing);
  out.best_money = money_for(base.scenario.job, base.best, prices, options, out.price_missing);
  out.ladder = priced_ladder(*base.own.prediction, out.goodput, out.money);
  for (const std::vector<Change>& question : questions) {
    parts.run("the search for the best strategy with " + title_of(question), [&] {
      Result<PricedAnswer> priced = price_answer(base, out.money, question, prices, options);
      if (priced) out.answers.push_back(std::move(*priced));
      else ok = tl::make_unexpected(std::move(priced).error());
    });
    if (!ok) return tl::make_unexpected(std::move(ok).error());
  }
  TRY_INTO([[maybe_unused]] const bool asked, add_questions(parts, prices, options, out));
  return out;
}

}  // namespace chokepoint::whatif
