// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/progress.hpp>
#include <chokepoint/plan/plan.hpp>
#include <chokepoint/whatif/evaluate.hpp>

#include <algorithm>
#include <array>
#include <chokepoint/base/units.hpp>
#include <cmath>
#include <fmt/format.h>
#include <initializer_list>

#include <chokepoint/base/text.hpp>

#include "same_step.hpp"

namespace chokepoint::whatif {

using simulate::Bill;
using simulate::Prediction;

namespace {

constexpr double kEightyPercent = 1.2816;  ///< standard deviations of the normal distribution to either side

/// Clocks above or below the data sheet's do not change what the data sheet says.
void against_data_sheet(const Scenario& scenario, Prediction& p) {
  p.mfu *= scenario.arithmetic;
  p.hfu *= scenario.arithmetic;
}

double share(const Prediction& p, std::initializer_list<Bill> items) {
  double sum = 0;
  for (const Bill item : items) sum += p.item(item);
  return p.step_time_s > 0 ? sum / p.step_time_s : 0;
}

}  // namespace

Ratio paired(const Scenario& before, const Prediction& a, const Scenario& after, const Prediction& b) {
  const simulate::Constants& k = before.parameters.step;
  const bool measured = before.job.cluster.measured.all_reduce || before.job.cluster.measured.host_all_reduce;
  const auto moved = [&](std::initializer_list<Bill> items) { return share(b, items) - share(a, items); };
  std::vector<double> errors = {
      k.band_compute * moved({Bill::kCompute, Bill::kRecompute, Bill::kOptimizer}),
      (measured ? k.band_wires_measured : k.band_wires) *
          moved({Bill::kTensor, Bill::kContext, Bill::kExpert, Bill::kPipeline, Bill::kDataGather, Bill::kDataReduce}),
      k.band_host * moved({Bill::kHost, Bill::kOther, Bill::kOffload}),
      k.band_bubble * moved({Bill::kBubble}),
  };
  // What the two do not share: another generation's kernels, another framework's habits.
  if (before.job.accelerator.architecture != after.job.accelerator.architecture) errors.push_back(k.band_generation);
  if (before.job.framework != after.job.framework || before.job.compiled != after.job.compiled)
    errors.push_back(k.band_framework);
  double variance = 0;
  for (const double error : errors) variance += error * error;
  const double spread = std::exp(kEightyPercent * std::sqrt(variance));
  const double value = a.step_time_s > 0 ? b.step_time_s / a.step_time_s : 1;
  return {value, value / spread, value * spread};
}

State predict_state(const Scenario& scenario, const parallel::Strategy& strategy, bool choke_points) {
  State state;
  const simulate::Predictor predictor(scenario.job, {}, scenario.parameters);
  Result<Prediction> prediction = predictor.predict(strategy);
  if (!prediction) {
    state.why_not = prediction.error().message;
    return state;
  }
  if (choke_points) simulate::find_choke_points(scenario.job, *prediction, scenario.parameters);
  if (const Result<bool> real = make_real(scenario.real, predictor, *prediction); !real) {
    state.why_not = real.error().message;
    return state;
  }
  against_data_sheet(scenario, *prediction);
  state.prediction = std::move(*prediction);
  return state;
}

State plan_state(const Scenario& scenario) {
  State state;
  plan::Options options;
  options.top = 1;
  options.explain = false;
  options.parameters = scenario.parameters;
  constexpr std::size_t kTicks = 100;
  ProgressLoop progress(kTicks);
  std::size_t ticks = 0;
  options.report = [&](const plan::Progress& p) {
    for (; ticks < kTicks && static_cast<double>(ticks) < p.done * kTicks; ++ticks) const ProgressLoop::Round round(progress);
    return !stop_requested();
  };
  Result<plan::Plan> plan = plan::make_plan(scenario.job, options);
  if (!plan) {
    state.why_not = plan.error().message;
    return state;
  }
  if (plan->candidates.empty()) {
    state.why_not = plan->stopped ? "stopped before anything that fits was found" : "nothing fits";
    if (plan->closest) {
      state.why_not += fmt::format(": the closest needs {} of {}", format_bytes(plan->closest->memory.needed_bytes),
                                   format_bytes(plan->closest->memory.capacity_bytes));
    }
    return state;
  }
  // The planner looks for choke points with the shipped parameters: those of the scenario count here.
  return predict_state(scenario, plan->candidates.front().strategy);
}

std::optional<double> step_time(const Scenario& scenario, const parallel::Strategy& strategy) {
  const auto full = parallel::completed(scenario.job, strategy);
  if (!full || scenario.job.accelerator.peak(scenario.job.dtype) <= 0) return std::nullopt;
  const simulate::Predictor predictor(scenario.job, {}, scenario.parameters);
  Prediction prediction = predictor.evaluate(*full);
  if (!make_real(scenario.real, predictor, prediction)) return std::nullopt;
  return prediction.step_time_s;
}

namespace {

/// What of the strategy the traces do not show, and the other way round: the traces may be of another one.
std::vector<std::string> unlike_traces(const MeasuredStep& measured, const parallel::Strategy& s) {
  struct Trait {
    Bill item;
    const char* word;
    int degree;
  };
  const std::array<Trait, 4> traits = {Trait{Bill::kTensor, "tensor", s.tensor}, Trait{Bill::kContext, "context", s.context},
                                       Trait{Bill::kExpert, "expert", s.expert}, Trait{Bill::kPipeline, "pipeline", s.pipeline}};
  std::vector<std::string> out;
  for (const Trait& trait : traits) {
    const int seen = measured.groups[static_cast<std::size_t>(trait.item)];
    if (trait.degree > 1 && seen == 0) out.push_back(fmt::format("{}={} leaves no trace in them", trait.word, trait.degree));
    if (trait.degree == 1 && seen > 1) out.push_back(fmt::format("they show {} parallelism, the strategy has none", trait.word));
  }
  const bool gathers = measured.groups[static_cast<std::size_t>(Bill::kDataGather)] > 1;
  if (s.zero == 3 && s.data > 1 && !gathers) out.emplace_back("they show no gather of sharded parameters");
  if (s.zero == 0 && gathers) out.emplace_back("they show gathers of sharded parameters, the strategy shards nothing");
  return out;
}

/// Measured costs move as the model says: it has to speak of the job that was traced.
Result<bool> hold_against_model(Scenario& scenario) {
  MeasuredStep& measured = *scenario.real.measured;
  if (!scenario.strategy)
    return fail("the traces do not say which strategy ran", {}, {"give it with --strategy, or in the job file"});
  if (measured.ranks > 0 && measured.ranks != scenario.job.gpus)
    return fail(fmt::format("the traces are of a job of {} ranks, this job has {}", measured.ranks, scenario.job.gpus),
                {}, {fmt::format("--gpus {} is the job that was traced; --change gpus= then asks for another size",
                                 measured.ranks)});
  TRY_INTO(const parallel::Strategy full, parallel::completed(scenario.job, *scenario.strategy));
  measured.model_s = simulate::Predictor(scenario.job, {}, scenario.parameters).evaluate(full).bill;
  for (const std::string& unlike : unlike_traces(measured, full)) {
    scenario.notes.push_back({"the traces may be of another strategy than " + parallel::to_text(portable(full)) + ": " + unlike +
                              "; figures below move their costs as if it had run", {}});
  }
  return true;
}

/// Words of a strategy that another one does not have.
std::vector<std::string> words_without(const parallel::Strategy& kept, const parallel::Strategy& other) {
  const std::string other_text = parallel::to_text(portable(other));
  const std::vector<std::string_view> there = split_blanks(other_text);
  const std::string kept_text = parallel::to_text(portable(kept));
  std::vector<std::string> out;
  for (const std::string_view word : split_blanks(kept_text)) {
    if (std::find(there.begin(), there.end(), word) == there.end()) out.emplace_back(word);
  }
  return out;
}

}  // namespace

Result<Baseline> baseline(Scenario scenario) {
  Baseline out;
  out.scenario = std::move(scenario);
  out.strategy_given = out.scenario.strategy.has_value();
  if (out.strategy_given) {
    // An illegal strategy of the user's own is an error, not an answer.
    TRY_INTO([[maybe_unused]] const parallel::Strategy legal,
             parallel::completed(out.scenario.job, *out.scenario.strategy));
  }
  if (out.scenario.real.measured) {
    TRY_INTO([[maybe_unused]] const bool held, hold_against_model(out.scenario));
  }
  out.best = plan_state(out.scenario);
  if (out.strategy_given) {
    out.scenario.strategy = portable(*out.scenario.strategy);
    out.own = predict_state(out.scenario, *out.scenario.strategy);
    if (!out.own) return fail(out.own.why_not);
    return out;
  }
  out.own = out.best;
  if (!out.own)
    return fail("no strategy of this job can be predicted: " + out.own.why_not, {},
                {"chokepoint plan says what would make it fit"});
  out.scenario.strategy = portable(out.own.prediction->strategy);
  return out;
}

Result<Answer> answer(const Baseline& baseline, const std::vector<Change>& changes) {
  Answer out;
  out.changes = changes;
  TRY_INTO(out.scenario, changed(baseline.scenario, changes));
  out.tokens = tokens_per_step(out.scenario.job);
  out.kept = predict_state(out.scenario, *out.scenario.strategy);
  out.best = plan_state(out.scenario);
  // The planner does not try every setting (offload, ZeRO++, schedules): the strategy kept may be better.
  const bool kept_wins = out.kept && out.kept.prediction->memory.fits() &&
                         (!out.best || out.kept.prediction->step_time_s < out.best.prediction->step_time_s);
  if (kept_wins) out.best = out.kept;
  const Prediction& before = *baseline.own.prediction;
  if (out.best) out.given_up = words_without(before.strategy, out.best.prediction->strategy);
  constexpr double kNothing = 5e-4;
  if (out.kept && std::abs(out.kept.prediction->step_time_s / before.step_time_s - 1) < kNothing && changes.size() == 1)
    out.why_same = why_same(baseline.scenario, before, changes.front());
  if (out.kept) out.kept_ratio = paired(baseline.scenario, before, out.scenario, *out.kept.prediction);
  if (out.best) out.best_ratio = paired(baseline.scenario, before, out.scenario, *out.best.prediction);
  return out;
}

double exposed_communication(const Prediction& prediction) {
  double sum = 0;
  for (const Bill item : {Bill::kTensor, Bill::kContext, Bill::kExpert, Bill::kPipeline, Bill::kDataGather, Bill::kDataReduce})
    sum += prediction.item(item);
  return prediction.step_time_s > 0 ? sum / prediction.step_time_s : 0;
}

}  // namespace chokepoint::whatif
