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
std::string verdict(const Json& study) {
  const Json& now = study["now"];
  if (!study["answers"].empty()) {
    const Json& answer = study["answers"].front();
    const Json& state = possible(answer["same_strategy"]) ? answer["same_strategy"] : answer["replanned"];
    if (!possible(state)) return "With " + joined(answer["changes"]) + " no strategy of this job fits.";
    if (!possible(now))
      return "With " + joined(answer["changes"]) + " a step takes " + format_duration(seconds(state)) +
             "; as it is nothing fits.";
    return fmt::format("With {} a step takes {} instead of {} ({}).", joined(answer["changes"]),
                       format_duration(seconds(state)), format_duration(seconds(now)),
                       percent(seconds(state) / seconds(now) - 1));
  }
  if (!possible(now)) return "Nothing fits as it is.";
  if (const Json& s = study["sensitivities"]; !s.is_null() && !s["chain"].empty()) {
    const Json& first = s["chain"].front();
    const std::string where = first["where"].get<std::string>();
    return fmt::format("A step hangs most on {}: {} instead of {} with {}.",
                       where.empty() ? first["resource"].get<std::string>() : where,
                       format_duration(first["step_time_s"].get<double>()), format_duration(seconds(now)),
                       first["change"].get<std::string>());
  }
  return fmt::format("A step takes {}.", format_duration(seconds(now)));
}

Json document(const whatif::Study& study) { return Json::parse(whatif_json(study), nullptr, false); }

void add_states(Rows& rows, const std::string& name, const Json& state, const Json& now) {
  if (!possible(state)) {
    rows.push_back(
        {name, "", "", "", "", state.contains("reason") ? state["reason"].get<std::string>() : "not possible"});
    return;
  }
  rows.push_back({name, format_duration(seconds(state)),
                  possible(now) ? percent(seconds(state) / seconds(now) - 1) : "", money(state["money"], "usd_per_day"),
                  money(state["money"], "usd_per_billion_tokens"), state["prediction"]["strategy"].get<std::string>()});
}

}  // namespace

std::string whatif_html(const whatif::Study& study, PageForm form) {
  Page page;
  page.kind = "chokepoint whatif";
  page.data = document(study);
  page.verdict = verdict(page.data);
  page.facts = job_heading(study.baseline.scenario.job);
  page.script = embedded::page_whatif;
  page.markdown = whatif_markdown(study);
  page.view = "whatif";
  return html_page(page, Words::english(), form);
}

std::string whatif_markdown(const whatif::Study& study) {
  const Json doc = document(study);
  std::string out = "**" + markdown_cell(verdict(doc)) + "**\n\n";
  Rows rows;
  add_states(rows, "as it is", doc["now"], doc["now"]);
  for (const Json& answer : doc["answers"]) {
    add_states(rows, joined(answer["changes"]), answer["same_strategy"], doc["now"]);
    add_states(rows, joined(answer["changes"]) + ", planned anew", answer["replanned"], doc["now"]);
  }
  out += markdown_table({"change", "step", "", "a day", "per billion tokens", "strategy"}, rows, "lrrrrl") + "\n";
  rows.clear();
  if (const Json& s = doc["sensitivities"]; !s.is_null()) {
    const double now = s["step_time_s"].get<double>();
    for (const Json& r : s["resources"]) {
      if (rows.size() == 10) break;
      const std::string where = r["where"].get<std::string>();
      rows.push_back({where.empty() ? r["resource"].get<std::string>() : where,
                      percent(r["step_time_double_s"].get<double>() / now - 1),
                      percent(r["step_time_infinite_s"].get<double>() / now - 1),
                      fmt::format("{:.3f}", r["derivative"].get<double>())});
    }
    if (!rows.empty())
      out += markdown_table({"resource", "twice as good", "without limit", "derivative"}, rows, "lrrr") + "\n";
  }
  rows.clear();
  for (const Json& p : doc["scale"]["points"]) {
    if (!possible(p)) continue;
    rows.push_back(
        {format_count(p["gpus"].get<double>()), format_duration(seconds(p)),
         format_count(p["tokens_per_s"].get<double>()), fmt::format("{:.1f} %", 100 * p["efficiency"].get<double>()),
         money(p["money"], "usd_per_billion_tokens"), p["bend"].is_null() ? "" : p["bend"]["class"].get<std::string>(),
         p["prediction"]["strategy"].get<std::string>()});
  }
  if (!rows.empty())
    out += markdown_table({"GPUs", "step", "tokens/s", "efficiency", "per billion tokens", "what bends it", "strategy"},
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
