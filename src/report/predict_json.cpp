// SPDX-License-Identifier: Apache-2.0
// Schema: docs/formats/json.md. Names are stable; quantities are SI with the unit as suffix.
#include "json_data.hpp"
#include "nearest_view.hpp"
#include "predict_pages.hpp"

#include <chokepoint/report/predict_view.hpp>

#include <nlohmann/json.hpp>

namespace chokepoint::report {

using Json = nlohmann::ordered_json;

namespace {

using simulate::Prediction;

Json notes_json(const std::vector<Note>& notes) {
  Json out = Json::array();
  for (const Note& note : notes) out.push_back(note.text);
  return out;
}

Json memory_json(const parallel::Memory& memory) {
  Json parts = Json::object();
  for (const parallel::MemoryPart& part : memory.parts) parts[std::string(part.name)] = part.bytes;
  return {{"peak_bytes", memory.reserved_bytes}, {"allocated_bytes", memory.allocated_bytes}, {"needed_bytes", memory.needed_bytes},
          {"capacity_bytes", memory.capacity_bytes}, {"fits", memory.fits()}, {"verdict", parallel::name(memory.verdict())},
          {"stage", memory.stage}, {"parts", parts}};
}

Json choke_json(const simulate::ChokePoint& c) {
  return {{"kind", c.kind}, {"where", c.where}, {"change", c.change}, {"step_time_if_ideal_s", c.step_time_if_changed_s}};
}

}  // namespace

Json prediction_data(const Prediction& p) {
  Json bill = Json::object();
  for (int i = 0; i < simulate::kBillCount; ++i) {
    bill[std::string(simulate::name(static_cast<simulate::Bill>(i)))] = p.bill[static_cast<std::size_t>(i)];
  }
  Json ladder = Json::array();
  for (const simulate::Rung& rung : p.ladder) ladder.push_back({{"name", rung.name}, {"fraction", rung.fraction}});
  Json out = {{"strategy", parallel::to_text(p.strategy)},
              {"step_time_s", p.step_time_s},
              {"step_time_low_s", p.step_time_low_s},
              {"step_time_high_s", p.step_time_high_s},
              {"tokens_per_s_per_gpu", p.tokens_per_s_per_gpu},
              {"model_flops_per_s_per_gpu", p.model_flops_per_s_per_gpu},
              {"mfu", p.mfu},
              {"hfu", p.hfu},
              {"bill", bill},
              {"ladder", ladder},
              {"memory", memory_json(p.memory)}};
  out["choke_point"] = p.choke_points.empty() ? Json(nullptr) : choke_json(p.choke_points.front());
  Json others = Json::array();
  for (const simulate::ChokePoint& c : p.choke_points) others.push_back(choke_json(c));
  out["choke_points"] = others;
  out["findings"] = p.findings;
  out["assumptions"] = notes_json(p.assumptions);
  return out;
}

Json job_data(const parallel::Job& job) {
  return {{"model", job.model.name},
          {"parameters", model::count_parameters(job.model).total},
          {"accelerator", job.accelerator.name},
          {"gpus", job.gpus},
          {"gpus_per_host", job.cluster.gpus_per_host()},
          {"batch", job.global_batch},
          {"sequence", job.sequence},
          {"precision", std::string(hardware::name(job.dtype))}};
}

namespace {

Json sources_json(const parallel::Job& job) {
  Json out = Json::array();
  if (!job.accelerator.source.empty()) out.push_back(job.accelerator.source);
  if (!job.model.source.empty()) out.push_back(job.model.source);
  if (!job.cluster.fabric.origin.empty()) out.push_back(job.cluster.fabric.origin);
  return out;
}

Json implied_json(const simulate::Implied& i) {
  Json out = {{"measured_step_time_s", i.measured_step_time_s}, {"ratio", i.ratio}, {"inside_band", i.inside_band},
              {"explained_by_wires", i.explained_by_wires}, {"link", i.link}, {"expected_bytes_per_s", i.expected_bytes_per_s}, {"suspect", i.suspect}};
  if (i.explained_by_wires) out["implied_bytes_per_s"] = i.bytes_per_s;
  return out;
}

std::string dumped(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

Json predict_data(const parallel::Job& job, const Prediction& p, const std::optional<simulate::Implied>& implied, const Nearest& nearest) {
  Json out = {{"schema", "chokepoint.predict/1"}, {"job", job_data(job)}};
  out.update(prediction_data(p));
  out["sources"] = sources_json(job);
  out["nearest_runs"] = nearest_json(nearest.runs);
  if (implied) out["measured"] = implied_json(*implied);
  return out;
}

std::string predict_json(const parallel::Job& job, const Prediction& p, const std::optional<simulate::Implied>& implied, const Nearest& nearest) {
  return dumped(predict_data(job, p, implied, nearest));
}

namespace {

Json space_json(const plan::Plan& plan) {
  Json rejected = Json::array();
  for (const plan::Rejected& r : plan.rejected) rejected.push_back({{"reason", r.reason}, {"count", r.count}});
  return {{"enumerated", plan.enumerated}, {"pruned", plan.pruned}, {"evaluated", plan.evaluated}, {"bounds", plan.bounds}, {"rejected", rejected},
          {"proof_s", plan.proof_s}, {"search_s", plan.search_s}, {"stopped", plan.stopped}};
}

Json engine_json(const plan::Plan& plan) {
  Json out = Json::array();
  for (const plan::Rematch& r : plan.engine) {
    out.push_back({{"candidate", r.candidate + 1}, {"closed_form_s", r.closed_form_s}, {"engine_s", r.engine_s}});
  }
  return out;
}

Json undecided_json(const plan::Plan& plan) {
  Json out = Json::array();
  for (const plan::Undecided& u : plan.undecided) {
    out.push_back({{"candidate", u.candidate + 1}, {"slower_s", u.slower_s}, {"sigma_s", u.sigma_s}, {"constant", u.constant},
                   {"turns_at", u.turns_at}, {"needed", u.needed}, {"measure", u.measure}, {"command", u.command}});
  }
  return out;
}

Json pareto_json(const plan::Plan& plan) {
  Json out = Json::array();
  for (const plan::ParetoPoint& p : plan.pareto) {
    out.push_back({{"gpus", p.gpus}, {"strategy", parallel::to_text(p.strategy)}, {"step_time_s", p.step_time_s}, {"needed_bytes", p.needed_bytes},
                   {"usd_per_billion_tokens", p.usd_per_billion_tokens > 0 ? Json(p.usd_per_billion_tokens) : Json(nullptr)}});
  }
  return out;
}

}  // namespace

Json plan_data(const parallel::Job& job, const plan::Plan& plan) {
  Json candidates = Json::array();
  for (const Prediction& p : plan.candidates) {
    candidates.push_back(prediction_data(p));
    const double usd = usd_per_billion_tokens(job, p);
    candidates.back()["usd_per_billion_tokens"] = usd > 0 ? Json(usd) : Json(nullptr);
  }
  Json losers = Json::array();
  for (const plan::Loser& l : plan.why_not) {
    losers.push_back({{"family", l.family},
                      {"strategy", l.strategy ? Json(parallel::to_text(*l.strategy)) : Json(nullptr)},
                      {"step_time_s", l.strategy ? Json(l.step_time_s) : Json(nullptr)},
                      {"reason", l.reason}});
  }
  return {{"schema", "chokepoint.plan/1"},
              {"job", job_data(job)},
              {"candidates", candidates},
              {"space", space_json(plan)},
              {"optimal", plan.optimal},
              {"bound_s", plan.bound_s},
              {"gap", plan.gap},
              {"too_slow", plan.too_slow},
              {"engine", engine_json(plan)},
              {"undecided", undecided_json(plan)},
              {"pareto", pareto_json(plan)},
              {"why_not", losers},
              {"closest", plan.closest ? prediction_data(*plan.closest) : Json(nullptr)},
              {"would_fit", plan.would_fit},
              {"sources", sources_json(job)}};
}

std::string plan_json(const parallel::Job& job, const plan::Plan& plan) { return dumped(plan_data(job, plan)); }

}  // namespace chokepoint::report
