// SPDX-License-Identifier: Apache-2.0
// A what-if study as a page, Markdown and CSV: the document of --json, laid out.
#include <chokepoint/base/units.hpp>
#include <chokepoint/report/whatif_pages.hpp>
#include <chokepoint/report/whatif_view.hpp>

#include <chokepoint/report/predict_view.hpp>
#include <fmt/format.h>

#include "markup.hpp"
#include "page.hpp"

namespace chokepoint::embedded {
extern const std::string_view page_whatif;
}

namespace chokepoint::report {

using Json = nlohmann::ordered_json;
using Rows = std::vector<std::vector<std::string>>;

namespace {

double seconds(const Json& state) { return state["prediction"]["step_time_s"].get<double>(); }
bool possible(const Json& state) { return state.contains("prediction") && !state["prediction"].is_null(); }
std::string percent(double share) { return fmt::format("{:+.1f} %", 100 * share); }
std::string number(double value) { return fmt::format("{:.9g}", value); }

std::string joined(const Json& words) {
  std::string out;
  for (const Json& word : words) out += (out.empty() ? "" : ", ") + word.get<std::string>();
  return out;
}

std::string money(const Json& value, const char* key) {
  return value.is_null() || value[key].is_null() ? std::string() : "$" + format_count(value[key].get<double>());
}

/// The first change, or what the step hangs on most, or the step as it is.
std::string verdict(const Json& study, const Words& words) {
  const Json& now = study["now"];
  if (!study["answers"].empty()) {
    const Json& answer = study["answers"].front();
    const Json& state = possible(answer["same_strategy"]) ? answer["same_strategy"] : answer["replanned"];
    if (!possible(state)) return words("With {} no strategy of this job fits.", {joined(answer["changes"])});
    if (!possible(now))
      return words("With {} a step takes {}; as it is nothing fits.", {joined(answer["changes"]), format_duration(seconds(state))});
    return words("With {} a step takes {} instead of {} ({}).", {joined(answer["changes"]), format_duration(seconds(state)),
                                                                  format_duration(seconds(now)), percent(seconds(state) / seconds(now) - 1)});
  }
  if (!possible(now)) return words("Nothing fits as it is.");
  if (const Json& s = study["sensitivities"]; !s.is_null() && !s["chain"].empty()) {
    const Json& first = s["chain"].front();
    const std::string where = first["where"].get<std::string>();
    return words("A step hangs most on {}: {} instead of {} with {}.",
                 {where.empty() ? first["resource"].get<std::string>() : words(where),
                  format_duration(first["step_time_s"].get<double>()), format_duration(seconds(now)),
                  words(first["change"].get<std::string>())});
  }
  return words("A step takes {}.", {format_duration(seconds(now))});
}

Json document(const whatif::Study& study) { return Json::parse(whatif_json(study), nullptr, false); }

void add_states(Rows& rows, const std::string& name, const Json& state, const Json& now, const Words& words) {
  if (!possible(state)) {
    rows.push_back(
        {name, "", "", "", "", words(state.contains("reason") ? state["reason"].get<std::string>() : "not possible")});
    return;
  }
  rows.push_back({name, format_duration(seconds(state)),
                  possible(now) ? percent(seconds(state) / seconds(now) - 1) : "", money(state["money"], "usd_per_day"),
                  money(state["money"], "usd_per_billion_tokens"), state["prediction"]["strategy"].get<std::string>()});
}

}  // namespace

std::string whatif_html(const whatif::Study& study, PageForm form, const Words& words) {
  Page page;
  page.kind = "chokepoint whatif";
  page.data = document(study);
  page.verdict = verdict(page.data, words);
  page.facts = job_heading(study.baseline.scenario.job, words);
  page.script = embedded::page_whatif;
  page.markdown = whatif_markdown(study, words);
  page.view = "whatif";
  return html_page(page, words, form);
}

std::string whatif_markdown(const whatif::Study& study, const Words& words) {
  const Json doc = document(study);
  std::string out = "**" + markdown_cell(verdict(doc, words)) + "**\n\n";
  Rows rows;
  double before = 1;
  for (const Json& rung : doc["ladder"]) {
    const double left = rung["fraction"].get<double>();
    if (!rows.empty() && before - left < 0.0005) continue;
    rows.push_back({words(rung["name"].get<std::string>()), fmt::format("{:.1f} %", 100 * left),
                    rows.empty() ? "" : fmt::format("{:.1f}", 100 * (left - before)), money(rung, "usd_per_day")});
    before = left;
  }
  if (!rows.empty()) out += markdown_table({words("From peak to useful work"), words("left"), words("lost"), words("a day")}, rows, "lrrr") + "\n";
  rows.clear();
  add_states(rows, words("as it is"), doc["now"], doc["now"], words);
  for (const Json& answer : doc["answers"]) {
    add_states(rows, joined(answer["changes"]), answer["same_strategy"], doc["now"], words);
    add_states(rows, joined(answer["changes"]) + ", " + words("planned anew"), answer["replanned"], doc["now"], words);
  }
  out += markdown_table({words("change"), words("step"), "", words("a day"), words("per billion tokens"), words("strategy")}, rows, "lrrrrl") + "\n";
  rows.clear();
  if (const Json& s = doc["sensitivities"]; !s.is_null()) {
    const double now = s["step_time_s"].get<double>();
    for (const Json& r : s["resources"]) {
      if (rows.size() == 10) break;
      const std::string where = r["where"].get<std::string>();
      rows.push_back({where.empty() ? r["resource"].get<std::string>() : words(where),
                      percent(r["step_time_double_s"].get<double>() / now - 1),
                      percent(r["step_time_infinite_s"].get<double>() / now - 1),
                      fmt::format("{:.3f}", r["derivative"].get<double>())});
    }
    if (!rows.empty())
      out += markdown_table({words("resource"), words("twice as good"), words("without limit"), words("derivative")}, rows, "lrrr") + "\n";
  }
  rows.clear();
  for (const Json& p : doc["scale"]["points"]) {
    if (!possible(p)) continue;
    rows.push_back(
        {format_count(p["gpus"].get<double>()), format_duration(seconds(p)),
         format_count(p["tokens_per_s"].get<double>()), fmt::format("{:.1f} %", 100 * p["efficiency"].get<double>()),
         money(p["money"], "usd_per_billion_tokens"), p["bend"].is_null() ? "" : words(p["bend"]["class"].get<std::string>()),
         p["prediction"]["strategy"].get<std::string>()});
  }
  if (!rows.empty())
    out += markdown_table({"GPUs", words("step"), words("tokens/s"), words("efficiency"), words("per billion tokens"), words("what bends it"), words("strategy")},
                          rows, "rrrrrll") +
           "\n";
  return out;
}

std::string whatif_csv(const whatif::Study& study) {
  const Json doc = document(study);
  std::string out = csv_line({"kind", "name", "strategy", "gpus", "step_time_s", "tokens_per_s", "efficiency",
                              "derivative", "usd_per_day", "usd_per_billion_tokens"});
  const auto usd = [](const Json& state, const char* key) {
    return state["money"].is_null() ? std::string() : number(state["money"][key].get<double>());
  };
  const auto state = [&](const std::string& kind, const std::string& name, const Json& s, const Json& gpus) {
    if (!possible(s)) return;
    out += csv_line({kind, name, s["prediction"]["strategy"].get<std::string>(), std::to_string(gpus.get<int>()),
                     number(seconds(s)), "", "", "", usd(s, "usd_per_day"), usd(s, "usd_per_billion_tokens")});
  };
  state("now", "as it is", doc["now"], doc["job"]["gpus"]);
  for (const Json& answer : doc["answers"]) {
    state("same_strategy", joined(answer["changes"]), answer["same_strategy"], answer["job"]["gpus"]);
    state("replanned", joined(answer["changes"]), answer["replanned"], answer["job"]["gpus"]);
  }
  if (const Json& s = doc["sensitivities"]; !s.is_null()) {
    for (const Json& r : s["resources"]) {
      out += csv_line({"twice_as_good", r["resource"].get<std::string>(), "", "",
                       number(r["step_time_double_s"].get<double>()), "", "", number(r["derivative"].get<double>()), "",
                       ""});
    }
  }
  for (const Json& p : doc["scale"]["points"]) {
    if (!possible(p)) continue;
    out += csv_line({"scale", "", p["prediction"]["strategy"].get<std::string>(), std::to_string(p["gpus"].get<int>()),
                     number(seconds(p)), number(p["tokens_per_s"].get<double>()), number(p["efficiency"].get<double>()),
                     "", usd(p, "usd_per_day"), usd(p, "usd_per_billion_tokens")});
  }
  return out;
}

}  // namespace chokepoint::report
