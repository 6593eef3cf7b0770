// SPDX-License-Identifier: Apache-2.0
// The data of page_prediction.js beyond what --json has: memory of every stage, the map of the wiring, titles and
// prices.
#include <chokepoint/base/units.hpp>

#include <algorithm>

#include "json_data.hpp"
#include "page.hpp"
#include "pipeline_lanes.hpp"
#include "predict_pages.hpp"

namespace chokepoint::embedded {
extern const std::string_view page_prediction;
}

namespace chokepoint::report {

using Json = nlohmann::ordered_json;
using simulate::Prediction;

namespace {

/// Bars beyond this number are thinner than their labels.
constexpr int kMostStages = 64;

Json memory_stages(const parallel::Job& job, const Prediction& p) {
  Json out = Json::array();
  for (int stage = 0; stage < std::min(p.strategy.pipeline, kMostStages); ++stage) {
    const parallel::Memory memory = parallel::memory_of_stage(job, p.strategy, stage);
    Json parts = Json::object();
    for (const parallel::MemoryPart& part : memory.parts) parts[std::string(part.name)] = part.bytes;
    out.push_back({{"stage", stage}, {"needed_bytes", memory.needed_bytes}, {"parts", parts}});
  }
  return out;
}

void add_common(Json& data, const parallel::Job& job, const Prediction& p, const Words& words) {
  data["job"] = job_data(job);
  data["peak"] = format_flop_rate(job.accelerator.peak(job.dtype) * job.gpus);
  data["per_gpu"] = format_flop_rate(p.model_flops_per_s_per_gpu);
  data["memory_stages"] = memory_stages(job, p);
  data["svg"] = wiring_svg(job.cluster, words);
  if (const double usd = usd_per_day(job); usd > 0) {
    data["usd_per_day"] = usd;
    data["usd_per_billion_tokens"] = usd_per_billion_tokens(job, p);
  }
}

Page page_of(std::string kind) {
  Page page;
  page.kind = std::move(kind);
  page.script = embedded::page_prediction;
  page.view = "prediction";
  return page;
}

Json every_json(const PlanReport& report) {
  Json out = Json::array();
  for (const Prediction& p : report.every) {
    out.push_back({{"strategy", parallel::to_text(p.strategy)},
                   {"title", parallel::title(p.strategy)},
                   {"kind", plan::family_of(report.job, p.strategy)},
                   {"step_time_s", p.step_time_s},
                   {"needed_bytes", p.memory.needed_bytes},
                   {"mfu", p.mfu}});
  }
  return out;
}

Json candidates_json(const PlanReport& report) {
  Json out = Json::array();
  const Prediction& best = report.plan.candidates.front();
  for (const Prediction& p : report.plan.candidates) {
    Json row = prediction_data(p);
    row["title"] = parallel::title(p.strategy);
    row["tied"] = &p != &best && plan::tied(best, p);
    row["usd_per_billion_tokens"] = usd_per_billion_tokens(report.job, p);
    out.push_back(std::move(row));
  }
  return out;
}

}  // namespace

std::string predict_html(const PredictReport& report, const Words& words, PageForm form) {
  const Prediction& p = report.prediction;
  Page page = page_of("chokepoint predict");
  page.verdict = verdict_of(p, words);
  page.facts =
      job_heading(report.job, words) + parallel::title(p.strategy) + " \u00b7 " + parallel::to_text(p.strategy);
  const Json document = predict_data(report.job, p, report.implied, report.nearest);
  page.data = {{"prediction", document}, {"nearest_runs", document["nearest_runs"]}, {"sources", document["sources"]}};
  if (report.implied) page.data["measured"] = document["measured"];
  page.markdown = predict_markdown(report, words);
  add_common(page.data, report.job, p, words);
  if (report.simulated != nullptr) page.data["timeline"] = pipeline_lanes(*report.simulated);
  return html_page(page, words, form);
}

std::string plan_html(const PlanReport& report, const Words& words, PageForm form) {
  const plan::Plan& plan = report.plan;
  Page page = page_of("chokepoint plan");
  page.verdict = verdict_of(plan, words);
  page.facts = job_heading(report.job, words);
  const Json document = plan_data(report.job, plan);
  page.data = {{"plan", true},
               {"space", document["space"]},
               {"sources", document["sources"]},
               {"would_fit", document["would_fit"]},
               {"candidates", Json::array()}};
  page.markdown = plan_markdown(report, words);
  const bool fits = !plan.candidates.empty();
  if (!fits && !plan.closest) return html_page(page, words, form);
  const Prediction& best = fits ? plan.candidates.front() : *plan.closest;
  page.data["best"] = prediction_data(best);
  page.data["capacity_bytes"] = best.memory.capacity_bytes;
  Json losers = document["why_not"];
  for (std::size_t i = 0; i < plan.why_not.size(); ++i) {
    if (plan.why_not[i].strategy) losers[i]["title"] = parallel::title(*plan.why_not[i].strategy);
  }
  page.data["why_not"] = losers;
  page.data["every"] = every_json(report);
  if (fits) page.data["candidates"] = candidates_json(report);
  page.data["nearest_runs"] = predict_data(report.job, best, std::nullopt, report.nearest)["nearest_runs"];
  add_common(page.data, report.job, best, words);
  if (report.simulated != nullptr) page.data["timeline"] = pipeline_lanes(*report.simulated);
  return html_page(page, words, form);
}

}  // namespace chokepoint::report
