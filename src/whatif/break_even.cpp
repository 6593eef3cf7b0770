// SPDX-License-Identifier: Apache-2.0
// Bisections. Step time falls and memory grows monotonically in what is varied, so each has one crossing.
#include <chokepoint/base/progress.hpp>
#include <chokepoint/plan/plan.hpp>
#include <chokepoint/whatif/break_even.hpp>

#include <algorithm>
#include <cmath>
#include <functional>

#include "apply.hpp"
#include "rewire.hpp"

namespace chokepoint::whatif {

namespace {

constexpr int kHalvings = 60;
constexpr double kSlowest = 1e-5;  ///< of the network there is
constexpr double kFastest = 1e6;
constexpr int kSequenceStep = 1024;

Scenario with_network(const Scenario& scenario, double factor) {
  Scenario out = scenario;
  scale_nics(out.job.cluster, factor);
  // Slots faster than the NICs are no limit; slower ones must not hide what the network would do.
  if (factor > 1) {
    for (const LinkClass part : {LinkClass::kNicSlots, LinkClass::kSwitchUplinks, LinkClass::kHostMemory})
      scale_class(out.job.cluster, part, factor);
  }
  carry_measurements(scenario, out);
  return out;
}

double egress(const Scenario& s) {
  return collective::Network(s.job.cluster, s.job.accelerator, {}, s.parameters.collective).host_egress_bytes_per_s();
}

/// Greatest n in [1, most] of which `fits` is true, when it is true up to some n and false from there on; 0 if never.
int greatest(int most, const std::function<bool(int)>& fits) {
  if (!fits(1)) return 0;
  int low = 1;
  int high = 2;
  while (high <= most && fits(high)) {
    low = high;
    if (high > most / 2) break;
    high *= 2;
  }
  high = std::min(high, most + 1);
  if (low >= high) return fits(most) ? most : low;
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

bool fits_kept(const Scenario& scenario, parallel::Strategy strategy) {
  const auto full = parallel::completed(scenario.job, strategy);
  return full && parallel::memory_per_rank(scenario.job, *full).fits();
}

bool fits_somehow(const Scenario& scenario) {
  plan::Options options;
  options.top = 1;
  options.explain = false;
  options.parameters = scenario.parameters;
  options.report = [](const plan::Progress&) { return !stop_requested(); };
  const auto plan = plan::make_plan(scenario.job, options);
  return plan && !plan->candidates.empty();
}

}  // namespace

PriceBreakEven price_break_even(const Baseline& base, const Answer& answer, const HourlyPrice& price, double years,
                                const Footing& footing_before, const Footing& footing_after) {
  PriceBreakEven out;
  out.years = years;
  const State& after = answer.best ? answer.best : answer.kept;
  if (!after) return out;
  const parallel::Job& a = base.scenario.job;
  const parallel::Job& b = answer.scenario.job;
  // Settings are free: staying means the best strategy that there is without the change.
  const bool planned = base.best && base.best.prediction->step_time_s < base.own.prediction->step_time_s;
  const simulate::Prediction& before = planned ? *base.best.prediction : *base.own.prediction;
  const double tokens_before = tokens_per_step(a) / before.step_time_s * footing_before.goodput;
  const double tokens_after = tokens_per_step(b) / after.prediction->step_time_s * footing_after.goodput;
  const double hour = usd_per_hour(a, price.usd, footing_before) * tokens_after / tokens_before;
  out.usd_per_hour_after = std::max(0.0, (hour / footing_after.spares - footing_after.people_usd_per_hour) / b.gpus);
  const double saved_per_day =
      payback(a, before, price, b, *after.prediction, price, 0, footing_before, footing_after).saved_usd_per_day;
  out.purchase_usd = std::max(0.0, saved_per_day * years * 365.25);
  return out;
}

NetworkBreakEven network_break_even(const Scenario& scenario, const parallel::Strategy& strategy, double efficiency) {
  NetworkBreakEven out;
  out.efficiency = efficiency;
  out.now_bytes_per_s = egress(scenario);
  const auto now = step_time(scenario, strategy);
  if (scenario.job.gpus <= scenario.job.cluster.gpus_per_host() || out.now_bytes_per_s <= 0 || !now) {
    out.why_not = "the job stays inside one host: it needs no network";
    return out;
  }
  const auto at = [&](double factor) { return step_time(with_network(scenario, factor), strategy).value_or(*now); };
  const double best = at(kFastest);
  out.now_efficiency = best / *now;
  const double allowed = best / efficiency;
  if (at(kSlowest) <= allowed) {
    out.bytes_per_s = egress(with_network(scenario, kSlowest));
    out.why_not = "so little crosses the hosts that any network does";
    return out;
  }
  double low = kSlowest;
  double high = kFastest;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = std::sqrt(low * high);
    (at(middle) > allowed ? low : high) = middle;
  }
  out.bytes_per_s = egress(with_network(scenario, high));
  return out;
}

Largest largest_kept(const Scenario& scenario, const parallel::Strategy& strategy) {
  Largest out;
  const int pipeline = std::max(1, strategy.pipeline * strategy.virtual_stages);
  out.layers = pipeline * greatest(100000 / pipeline, [&](int n) {
                 Scenario s = scenario;
                 s.job.model.layers = n * pipeline;
                 return fits_kept(s, portable(strategy));
               });
  out.sequence = kSequenceStep * greatest((1 << 26) / kSequenceStep, [&](int n) {
                   Scenario s = scenario;
                   s.job.sequence = n * kSequenceStep;
                   return fits_kept(s, portable(strategy));
                 });
  out.micro_batch = greatest(1 << 16, [&](int n) {
    Scenario s = scenario;
    parallel::Strategy larger = portable(strategy);
    larger.micro_batch = n;
    const int ranks = std::max(1, s.job.gpus / std::max(1, larger.tensor * larger.pipeline * larger.context));
    const int steps = std::max(1, larger.pipeline > 1 ? larger.pipeline : 1);
    s.job.global_batch = static_cast<double>(n) * ranks * steps;
    return fits_kept(s, larger);
  });
  return out;
}

Largest largest_replanned(const Scenario& scenario) {
  Largest out;
  // Layers in steps that pipelines divide.
  constexpr int kLayerStep = 8;
  out.layers = kLayerStep * greatest(4096 / kLayerStep, [&](int n) {
                 Scenario s = scenario;
                 s.job.model.layers = n * kLayerStep;
                 return fits_somehow(s);
               });
  out.sequence = kSequenceStep * greatest((1 << 22) / kSequenceStep, [&](int n) {
                   Scenario s = scenario;
                   s.job.sequence = n * kSequenceStep;
                   return fits_somehow(s);
                 });
  return out;
}

}  // namespace chokepoint::whatif
