// SPDX-License-Identifier: Apache-2.0
// Schema: docs/formats/json.md.
#include <chokepoint/base/units.hpp>
#include <chokepoint/report/diagnose_view.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "diagnose_parts.hpp"
#include "json_data.hpp"
#include "table.hpp"

namespace chokepoint::report {

using namespace diagnose;
using Json = nlohmann::ordered_json;

Json log_data(const LogReport& r) {
  Json timers = Json::array();
  for (const trace::TimerSpread& t : r.timers) timers.push_back({{"name", t.name}, {"fastest_rank_s", t.least_s}, {"slowest_rank_s", t.most_s}, {"lines", t.count}});
  const Json log = {{"file", r.file},
                    {"trainer", r.trainer},
                    {"seconds_known", r.seconds_known},
                    {"mean_s", r.mean_s},
                    {"median_s", r.median_s},
                    {"p95_s", r.p95_s},
                    {"fastest_s", r.fastest_s},
                    {"change_step", r.change_step >= 0 ? Json(r.change_step) : Json(nullptr)},
                    {"before_s", r.change_step >= 0 ? Json(r.before_s) : Json(nullptr)},
                    {"after_s", r.change_step >= 0 ? Json(r.after_s) : Json(nullptr)},
                    {"stall_period", r.stall_period > 0 ? Json(r.stall_period) : Json(nullptr)},
                    {"stall_s", r.stall_s},
                    {"timers", timers}};
  return {{"schema", "chokepoint.diagnose/1"},
                    {"steps", r.steps},
                    {"measured_s", r.mean_s},
                    {"ideal_s", r.fastest_s},
                    {"choke_point", r.choke_point},
                    {"causes", causes_json(r.causes)},
                    {"ranks", Json::array()},
                    {"collectives", Json::array()},
                    {"log", log},
                    {"dropped_events", 0},
                    {"notes", notes_json(r.notes)}};
}

std::string log_json(const LogReport& r) { return log_data(r).dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

std::string log_text(const LogReport& r, const Style& style, bool quiet) {
  std::string text = style.bold(style.say(r.choke_point)) + "\n";
  if (quiet) return text;
  const auto time = [&](double s) { return r.seconds_known ? format_duration(s) : style.say("{} of the median", {fmt::format("{:.3f}", s)}); };
  text += style.say("{} · {} steps · mean {} · median {} · 95th percentile {} · fastest 5 % {}",
                    {r.trainer, std::to_string(r.steps), time(r.mean_s), time(r.median_s), time(r.p95_s), time(r.fastest_s)}) + "\n";
  std::vector<std::vector<std::string>> rows;
  for (const Cause& c : r.causes) rows.push_back({style.say(c.what), time(c.cost_s), style.say(c.remedy)});
  if (!rows.empty()) text += "\n" + table({{style.say("cause"), false}, {style.say("costs per step"), true}, {style.say("what helps"), false}}, rows, style);
  rows.clear();
  constexpr std::size_t kMost = 8;
  for (const trace::TimerSpread& t : r.timers) {
    if (rows.size() == kMost) break;
    rows.push_back({t.name, format_duration(t.least_s), format_duration(t.most_s), format_duration(t.most_s - t.least_s)});
  }
  if (!rows.empty()) text += "\n" + table({{style.say("timer"), false}, {style.say("fastest rank"), true}, {style.say("slowest rank"), true}, {style.say("spread"), true}}, rows, style);
  for (const Note& note : r.notes) text += style.dim(style.say("Note") + ": " + style.say(note.text)) + "\n";
  return text;
}

}  // namespace chokepoint::report
