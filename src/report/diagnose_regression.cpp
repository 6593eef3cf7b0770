// SPDX-License-Identifier: Apache-2.0
// Two runs of a job side by side, and what a followed job reports. Schema: docs/formats/json.md.
#include <chokepoint/base/units.hpp>
#include <chokepoint/report/diagnose_view.hpp>

#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "diagnose_parts.hpp"
#include "json_data.hpp"
#include "table.hpp"

namespace chokepoint::report {

using namespace diagnose;
using Json = nlohmann::ordered_json;

namespace {

constexpr std::size_t kMostRows = 5;

Json changes_json(const std::vector<Change>& changes) {
  Json out = Json::array();
  for (const Change& c : changes) out.push_back({{"id", c.id}, {"before_s", c.before_s}, {"after_s", c.after_s}, {"delta_s", c.delta_s()}});
  return out;
}

Json regression_data(const Regression& r) {
  return {{"verdict", r.slower ? "slower" : r.faster ? "faster" : "same"},
          {"what", r.what},
          {"before_s", r.before_s},
          {"after_s", r.after_s},
          {"noise_s", r.noise_s},
          {"tolerance", r.tolerance},
          {"cause", r.cause.empty() ? Json(nullptr) : Json(r.cause)},
          {"op", r.op.empty() ? Json(nullptr) : Json(r.op)},
          {"rank", r.rank >= 0 ? Json(r.rank) : Json(nullptr)},
          {"causes", changes_json(r.causes)},
          {"classes", changes_json(r.classes)},
          {"operations", changes_json(r.operations)},
          {"ranks", changes_json(r.ranks)},
          {"notes", notes_json(r.notes)}};
}

Json worth_data(const WorthReport& w) {
  Json causes = Json::array();
  for (const Worth& c : w.causes) causes.push_back({{"id", c.id}, {"where", c.where}, {"tokens_per_s", c.tokens_per_s}, {"saved_per_day", c.saved_per_day}});
  return {{"tokens_per_s", w.tokens_per_s}, {"price_per_day", w.price_per_day}, {"causes", causes}};
}

std::string with_extras(Json data, const DiagnoseExtras& extras) {
  if (extras.baseline != nullptr) data["baseline"] = regression_data(*extras.baseline);
  if (extras.worth != nullptr) data["worth"] = worth_data(*extras.worth);
  return data.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string signed_duration(double s) { return (s < 0 ? "-" : "+") + format_duration(std::fabs(s)); }

std::string changes_text(const std::vector<Change>& changes, std::string_view head, const Style& style) {
  std::vector<std::vector<std::string>> rows;
  for (const Change& c : changes) {
    if (rows.size() == kMostRows) break;
    if (c.delta_s() == 0) continue;
    constexpr std::size_t kMostNameBytes = 48;
    const std::string name = c.id.size() <= kMostNameBytes ? c.id : c.id.substr(0, kMostNameBytes) + "...";
    rows.push_back({style.say(name), format_duration(c.before_s), format_duration(c.after_s), signed_duration(c.delta_s())});
  }
  if (rows.empty()) return {};
  return "\n" + table({{std::string(head), false}, {style.say("before"), true}, {style.say("now"), true}, {style.say("change"), true}}, rows, style);
}

}  // namespace

std::string regression_text(const Regression& r, const Style& style, bool quiet) {
  std::string text = style.bold(style.say(r.what)) + "\n";
  if (quiet) return text;
  text += changes_text(r.causes, style.say("cause"), style) + changes_text(r.classes, style.say("where the time goes"), style) +
          changes_text(r.operations, style.say("operation"), style);
  for (const Note& note : r.notes) text += style.dim(style.say("Note") + ": " + style.say(note.text)) + "\n";
  return text + "\n";
}

std::string worth_text(const WorthReport& w, const Style& style) {
  if (w.causes.empty()) return {};
  const Worth& first = w.causes.front();
  std::string text;
  if (w.tokens_per_s > 0) text += style.say("Without the first cause {} tokens/s instead of {}", {format_count(first.tokens_per_s), format_count(w.tokens_per_s)}) + "\n";
  if (w.price_per_day > 0) text += style.say("It costs {} of {} a day", {format_count(first.saved_per_day), format_count(w.price_per_day)}) + "\n";
  return text;
}

std::string diagnose_json(const Diagnosis& d, const DiagnoseExtras& extras) { return with_extras(diagnose_data(d), extras); }
std::string straggler_json(const StragglerReport& s, const DiagnoseExtras& extras) { return with_extras(straggler_data(s), extras); }
std::string log_json(const LogReport& log, const DiagnoseExtras& extras) { return with_extras(log_data(log), extras); }

std::string event_line(const WatchEvent& e, const Style& style) { return e.file + ": " + style.bold(style.say(e.what)) + "\n"; }

std::string event_json_line(const WatchEvent& e) {
  const Json out = {{"schema", "chokepoint.follow/1"}, {"event", std::string(name(e.kind))}, {"file", e.file}, {"step", e.step >= 0 ? Json(e.step) : Json(nullptr)},
                    {"before_s", e.before_s}, {"after_s", e.after_s}, {"what", e.what}};
  return out.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string watch_json_line(const std::vector<WatchedLog>& logs) {
  Json list = Json::array();
  for (const WatchedLog& w : logs) {
    list.push_back({{"file", w.file},
                    {"steps", w.steps},
                    {"last_step", w.last_step >= 0 ? Json(w.last_step) : Json(nullptr)},
                    {"first_level_s", w.first_level_s},
                    {"level_s", w.level_s},
                    {"choke_point", w.report ? Json(w.report->choke_point) : Json(nullptr)},
                    {"causes", w.report ? causes_json(w.report->causes) : Json::array()}});
  }
  const Json out = {{"schema", "chokepoint.follow/1"}, {"logs", list}};
  return out.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace chokepoint::report
