// SPDX-License-Identifier: Apache-2.0
#include "predict_pages.hpp"

#include <chokepoint/base/units.hpp>

#include <fmt/format.h>

#include "prediction_parts.hpp"

namespace chokepoint::report {

using simulate::Prediction;

namespace {

std::string misfit(const Prediction& p, const Words& words) {
  return words(
      "{} does not fit: {} needed of {} usable on the fullest rank.",
      {parallel::title(p.strategy), format_bytes(p.memory.needed_bytes), format_bytes(p.memory.capacity_bytes)});
}

std::string held_back(const Prediction& p, const Words& words) {
  if (p.choke_points.empty()) return words("No single better resource would shorten it by more than 0.2 %.");
  const simulate::ChokePoint& c = p.choke_points.front();
  return words(
      "What holds it back most: {}; {} % with {}.",
      {words(c.where), fmt::format("{:+.0f}", 100 * (c.step_time_if_changed_s / p.step_time_s - 1)), words(c.change)});
}

}  // namespace

std::string verdict_of(const Prediction& p, const Words& words) {
  if (!p.memory.fits()) return misfit(p, words);
  return words("A step takes {} \u00b1 {} %, at {} % of the peak.",
               {format_duration(p.step_time_s), std::to_string(band_percent(p)), fmt::format("{:.1f}", 100 * p.mfu)}) +
         " " + held_back(p, words);
}

std::string verdict_of(const plan::Plan& plan, const Words& words) {
  if (plan.candidates.empty()) {
    std::string text = words("Nothing fits.");
    if (plan.closest) text += " " + misfit(*plan.closest, words);
    return text;
  }
  const Prediction& best = plan.candidates.front();
  return words("Best of {} legal strategies: {}, {} \u00b1 {} % a step, {} % of the peak.",
               {format_count(static_cast<double>(plan.enumerated)), parallel::title(best.strategy),
                format_duration(best.step_time_s), std::to_string(band_percent(best)),
                fmt::format("{:.1f}", 100 * best.mfu)}) +
         " " + held_back(best, words);
}

double usd_per_day(const parallel::Job& job) {
  return job.cluster.prices.accelerator_hour_usd.value_or(0) * job.gpus * 24;
}

double usd_per_billion_tokens(const parallel::Job& job, const Prediction& p) {
  const double tokens_per_day = p.tokens_per_s_per_gpu * job.gpus * 86400;
  return tokens_per_day > 0 ? usd_per_day(job) / tokens_per_day * 1e9 : 0;
}

}  // namespace chokepoint::report
