// SPDX-License-Identifier: Apache-2.0
// Schema: docs/formats/json.md, "whatif".
#include <chokepoint/report/whatif_view.hpp>

#include <tuple>

#include "json_data.hpp"
#include "whatif_parts.hpp"

namespace chokepoint::report {

using namespace whatif;

namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json state_json(const State& state) {
  Json out = {{"prediction", state ? prediction_data(*state.prediction) : Json(nullptr)}};
  if (!state) out["reason"] = state.why_not;
  return out;
}

Json ratio_json(const std::optional<Ratio>& ratio) {
  if (!ratio) return nullptr;
  return {{"value", ratio->value}, {"low", ratio->low}, {"high", ratio->high}, {"told_apart", ratio->told_apart()}};
}

Json tag_json(const PriceTag& tag) { return {{"date", tag.date}, {"source", tag.source}, {"estimate", tag.estimate}}; }

Json money_json(const std::optional<Money>& money) {
  if (!money) return nullptr;
  Json idle = Json::array();
  for (const IdleMoney& one : money->idle) idle.push_back({{"class", one.name}, {"usd_per_day", one.usd_per_day}});
  return {{"usd_per_accelerator_hour", money->price.usd},
          {"price", money->price.what},
          {"price_tag", tag_json(money->price.tag)},
          {"usd_per_step", money->usd_per_step},
          {"usd_per_billion_tokens", money->usd_per_billion_tokens},
          {"usd_per_day", money->usd_per_day},
          {"spares_usd_per_day", money->spares_usd_per_day},
          {"run_s", or_null(money->run_s)},
          {"run_usd", or_null(money->run_usd)},
          {"idle", idle}};
}

Json goodput_json(const Goodput& g) {
  return {{"goodput", g.goodput},
          {"failures_per_day", g.failures_per_day},
          {"mean_time_between_failures_s", g.mean_time_between_failures_s},
          {"checkpoint_bytes", g.checkpoint_bytes},
          {"checkpoint_s", g.checkpoint_s},
          {"restart_s", g.restart_s},
          {"interval_s", g.interval_s},
          {"best_interval_s", g.best_interval_s},
          {"young_daly_s", g.young_daly_s},
          {"spare_hosts", g.spare_hosts},
          {"fraction_checkpoint", g.fraction_checkpoint},
          {"fraction_lost_work", g.fraction_lost_work},
          {"fraction_waiting", g.fraction_waiting}};
}

Json bought_json(const BillOfMaterials& bought) {
  Json items = Json::array();
  for (const Item& item : bought.items) {
    items.push_back({{"what", item.what},
                     {"count", item.count},
                     {"usd_each", or_null(item.usd_each)},
                     {"price_tag", tag_json(item.tag)}});
  }
  return {{"items", items}, {"usd", bought.usd()}, {"power_w", bought.power_w()}, {"without_price", bought.missing}};
}

Json answer_json(const PricedAnswer& a) {
  Json changes = Json::array();
  for (const Change& change : a.answer.changes) changes.push_back(change.text);
  Json notes = Json::array();
  for (const Note& note : a.answer.scenario.notes) notes.push_back(note.text);
  Json out = {{"changes", changes}, {"job", job_data(a.answer.scenario.job)}};
  for (const auto& [key, state, ratio, money] :
       {std::tuple{"same_strategy", &a.answer.kept, &a.answer.kept_ratio, &a.kept_money},
        std::tuple{"replanned", &a.answer.best, &a.answer.best_ratio, &a.best_money}}) {
    out[key] = state_json(*state);
    out[key]["step_time_ratio"] = ratio_json(*ratio);
    out[key]["money"] = money_json(*money);
  }
  out["bought"] = bought_json(a.bought);
  out["spared"] = bought_json(a.spared);
  out["payback"] = a.payback ? Json{{"purchase_usd", a.payback->purchase_usd},
                                    {"saved_usd_per_day", a.payback->saved_usd_per_day},
                                    {"payback_s", a.payback->days ? Json(*a.payback->days * 86400) : Json(nullptr)}}
                             : Json(nullptr);
  out["break_even"] = a.break_even ? Json{{"usd_per_accelerator_hour_after", a.break_even->usd_per_hour_after},
                                          {"purchase_usd", a.break_even->purchase_usd},
                                          {"years", a.break_even->years}}
                                   : Json(nullptr);
  out["notes"] = notes;
  out["replanned"]["given_up"] = a.answer.given_up;
  out["same_strategy"]["why_same"] = a.answer.why_same.empty() ? Json(nullptr) : Json(a.answer.why_same);
  return out;
}

Json sensitivities_json(const Sensitivities& s) {
  Json resources = Json::array();
  for (const Sensitivity& r : s.resources) {
    resources.push_back({{"resource", r.resource},
                         {"where", r.where},
                         {"derivative", r.derivative},
                         {"step_time_plus_10_percent_s", r.step_time_plus_10_s},
                         {"step_time_double_s", r.step_time_double_s},
                         {"step_time_infinite_s", r.step_time_infinite_s}});
  }
  Json chain = Json::array();
  for (const Fix& fix : s.chain)
    chain.push_back(
        {{"resource", fix.resource}, {"where", fix.where}, {"change", fix.change}, {"step_time_s", fix.step_time_s}});
  return {{"step_time_s", s.step_time_s}, {"resources", resources}, {"chain", chain}};
}

Json point_json(const ScalePoint& p) {
  Json out = {{"gpus", p.gpus}, {"batch", p.batch}};
  out.update(state_json(p.state));
  out["tokens_per_s"] = p.tokens_per_s;
  out["efficiency"] = p.efficiency;
  out["bend"] = p.bend ? Json{{"class", p.bend->bill}, {"efficiency_lost", p.bend->lost}} : Json(nullptr);
  out["goodput"] = goodput_json(p.goodput);
  out["money"] = money_json(p.money);
  out["on_pareto_front"] = p.on_front;
  return out;
}

Json largest_json(const Largest& l, bool micro_batch) {
  Json out = {{"layers", l.layers}, {"sequence", l.sequence}};
  if (micro_batch) out["micro_batch"] = l.micro_batch;
  return out;
}

Json break_even_json(const BreakEven& b) {
  return {{"network",
           {{"efficiency", b.network.efficiency},
            {"now_efficiency", b.network.now_efficiency},
            {"now_bytes_per_s", b.network.now_bytes_per_s},
            {"bytes_per_s", or_null(b.network.bytes_per_s)},
            {"reason", b.network.why_not}}},
          {"largest_same_strategy", largest_json(b.kept, true)},
          {"largest_replanned", largest_json(b.replanned, false)}};
}

}  // namespace

std::string whatif_json(const Study& study) {
  Json out = {{"schema", "chokepoint.whatif/1"},
              {"job", job_data(study.baseline.scenario.job)},
              {"strategy_given", study.baseline.strategy_given}};
  out["now"] = state_json(study.baseline.own);
  out["now"]["origin"] = study.baseline.scenario.real.measured ? "traces" : "model";
  out["now"]["money"] = money_json(study.money);
  out["now"]["goodput"] = goodput_json(study.goodput);
  out["best"] = state_json(study.baseline.best);
  out["best"]["money"] = money_json(study.best_money);
  Json notes = Json::array();
  for (const Note& note : study.baseline.scenario.notes) notes.push_back(note.text);
  out["now"]["notes"] = notes;
  out["left_out"] = study.left_out;
  out["money_meaning"] = study.money ? Json(money_meaning(study)) : Json(nullptr);
  if (!study.money) out["price_missing"] = study.price_missing;
  Json ladder = Json::array();
  for (const PricedRung& rung : study.ladder)
    ladder.push_back({{"name", rung.name}, {"fraction", rung.fraction}, {"usd_per_day", or_null(rung.usd_per_day)}});
  out["ladder"] = ladder;
  Json answers = Json::array();
  for (const PricedAnswer& a : study.answers) answers.push_back(answer_json(a));
  out["answers"] = answers;
  out["sensitivities"] = study.sensitivities ? sensitivities_json(*study.sensitivities) : Json(nullptr);
  Json scale = Json::array();
  for (const ScalePoint& p : study.scale) scale.push_back(point_json(p));
  out["scale"] = {{"grow_batch", study.options.scaling.grow_batch}, {"points", scale}};
  out["break_even"] = study.break_even ? break_even_json(*study.break_even) : Json(nullptr);
  out["deadline"] = study.deadline && study.deadline->point ? point_json(*study.deadline->point)
                    : study.deadline                        ? Json{{"reason", study.deadline->why_not}}
                                                            : Json(nullptr);
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace chokepoint::report
