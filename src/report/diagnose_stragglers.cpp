// SPDX-License-Identifier: Apache-2.0
// The view of a pipelined job's stragglers. The JSON has the keys of every diagnosis (ranks, causes, choke_point) and the
// study's metrics under "straggler". Schema: docs/formats/json.md.
#include <chokepoint/base/units.hpp>
#include <chokepoint/report/diagnose_view.hpp>

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "diagnose_parts.hpp"
#include "json_data.hpp"
#include "table.hpp"

namespace chokepoint::report {

using namespace diagnose;

using Json = nlohmann::ordered_json;

namespace {

Json steps_json(const StragglerReport& r) {
  Json out = Json::array();
  for (const StragglerStep& s : r.steps) {
    out.push_back({{"step", s.number}, {"measured_s", s.measured_s}, {"without_delay_s", s.without_delay_s}, {"ideal_s", s.ideal_s},
                   {"slowdown", s.ideal_s > 0 ? s.without_delay_s / s.ideal_s : 1.0}});
  }
  return out;
}

Json numbered(const std::vector<double>& values) {
  Json out = Json::object();
  for (std::size_t i = 0; i < values.size(); ++i) out[std::to_string(i)] = values[i];
  return out;
}

Json workers_json(const StragglerReport& r) {
  Json out = Json::array();
  for (std::size_t i = 0; i < r.workers.size(); ++i) {
    const Worker& w = r.workers[i];
    out.push_back({{"rank", i},
                   {"data_rank", w.data_rank},
                   {"stage", w.stage},
                   {"slowdown", w.slowdown},
                   {"span_s", seconds_of(w.time.span_ns)},
                   {"bill", bill_json(w.bill)},
                   {"wait", wait_json(w.bill)},
                   {"overlap_fraction", w.time.communication_ns > 0 ? Json(w.time.overlap_fraction()) : Json(nullptr)},
                   {"device", time_json(w.time)}});
  }
  return out;
}

}  // namespace

Json straggler_data(const StragglerReport& r) {
  Json slowest = Json::array();
  for (const int w : r.slowest) {
    const Worker& worker = r.workers[static_cast<std::size_t>(w)];
    slowest.push_back({{"data_rank", worker.data_rank}, {"stage", worker.stage}, {"slowdown", worker.slowdown}});
  }
  const Json straggler = {{"slowdown", r.slowdown},
                          {"launch_slowdown", r.launch_slowdown},
                          {"measured_s", r.measured_s},
                          {"without_delay_s", r.without_delay_s},
                          {"ideal_s", r.ideal_s},
                          {"worker_metric", r.worker_metric},
                          {"stage_metric", r.stage_metric},
                          {"by_type", r.by_type},
                          {"by_data_rank", numbered(r.by_data_rank)},
                          {"by_stage", numbered(r.by_stage)},
                          {"slowest_workers", slowest},
                          {"steps", steps_json(r)}};
  return {{"schema", "chokepoint.diagnose/1"},
                    {"world_size", r.workers.size()},
                    {"steps", r.steps.size()},
                    {"measured_s", r.measured_s},
                    {"ideal_s", r.ideal_s},
                    {"choke_point", r.choke_point},
                    {"causes", causes_json(r.causes)},
                    {"ranks", workers_json(r)},
                    {"collectives", Json::array()},
                    {"straggler", straggler},
                    {"dropped_events", 0},
                    {"notes", notes_json(r.notes)}};
}

std::string straggler_json(const StragglerReport& r) { return straggler_data(r).dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

std::string straggler_text(const StragglerReport& r, const Style& style, bool quiet) {
  std::string text = style.bold(style.say(r.choke_point)) + "\n";
  if (quiet) return text;
  text += style.say("{} workers · {} steps · measured {} · launched at once {} · ideal {} · slowdown {}",
                    {std::to_string(r.workers.size()), std::to_string(r.steps.size()), format_duration(r.measured_s), format_duration(r.without_delay_s),
                     format_duration(r.ideal_s), fmt::format("{:.3f}", r.slowdown)}) + "\n";
  text += style.say("explained by the slowest workers {} %, by the last stage {} %",
                    {fmt::format("{:.0f}", 100 * r.worker_metric), fmt::format("{:.0f}", 100 * r.stage_metric)}) + "\n\n";
  std::vector<std::vector<std::string>> rows;
  for (const Cause& c : r.causes) {
    constexpr double kWorthShowing = 0.002;
    if (c.cost_s < kWorthShowing * r.measured_s) continue;
    rows.push_back({style.say(c.what), format_duration(c.cost_s), format_duration(c.step_time_without_s)});
  }
  text += table({{style.say("cause"), false}, {style.say("costs"), true}, {style.say("without it"), true}}, rows, style);
  if (!r.causes.empty() && !r.causes.front().remedy.empty()) text += style.say("What helps") + ": " + style.say(r.causes.front().remedy) + "\n";
  rows.clear();
  std::vector<std::pair<std::string, double>> kinds(r.by_type.begin(), r.by_type.end());
  for (std::size_t s = 0; s < r.by_stage.size(); ++s) kinds.emplace_back(style.say("stage {}", {std::to_string(s)}), r.by_stage[s]);
  for (std::size_t d = 0; d < r.by_data_rank.size(); ++d) kinds.emplace_back(style.say("data rank {}", {std::to_string(d)}), r.by_data_rank[d]);
  std::stable_sort(kinds.begin(), kinds.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  constexpr std::size_t kMost = 10;
  for (const auto& [kind, slowdown] : kinds) {
    if (rows.size() == kMost) break;
    rows.push_back({kind, fmt::format("{:.4f}", slowdown), style.bars ? bar(std::clamp((slowdown - 1) / std::max(1e-9, r.slowdown - 1), 0.0, 1.0), 20) : std::string()});
  }
  text += "\n" + table({{style.say("slowdown by"), false}, {style.say("alone"), true}, {"", false}}, rows, style);
  for (const Note& note : r.notes) text += style.dim(style.say("Note") + ": " + style.say(note.text)) + "\n";
  return text;
}

}  // namespace chokepoint::report
