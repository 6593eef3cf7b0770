// SPDX-License-Identifier: Apache-2.0
// A wiring report as a page, Markdown and CSV.
#include <chokepoint/base/units.hpp>
#include <chokepoint/report/pages.hpp>

#include <algorithm>
#include <fmt/format.h>

#include "json_data.hpp"
#include "markup.hpp"
#include "page.hpp"

namespace chokepoint::embedded {
extern const std::string_view page_wiring;
}

namespace chokepoint::report {

using findings::Finding;
using findings::Severity;
using Json = nlohmann::ordered_json;

namespace {

bool costs(const Finding& f) { return f.cost && f.cost->lost_s() > 0.0005 * f.cost->step_time_s; }

std::string cost_words(const Finding& f, const Words& words) {
  if (!f.cost) return {};
  return costs(f) ? words("{} of a step of {}", {format_duration(f.cost->lost_s()), format_duration(f.cost->step_time_s)})
                  : words("nothing in this job");
}

/// How many faults, and the dearest or gravest one.
std::string verdict(const WiringReport& report, const Words& words) {
  const auto count = [&report](Severity s) {
    return std::count_if(report.findings.begin(), report.findings.end(),
                         [s](const Finding& f) { return f.severity == s; });
  };
  const long critical = count(Severity::kCritical);
  const long warnings = count(Severity::kWarning);
  if (critical + warnings == 0) return words("Nothing is wrong with this wiring as far as these files tell.");
  const std::string faults = words(critical == 1 ? "{} critical finding" : "{} critical findings", {std::to_string(critical)});
  const std::string lesser = words(warnings == 1 ? "{} warning" : "{} warnings", {std::to_string(warnings)});
  const std::string text = critical == 0 ? lesser : warnings == 0 ? faults : faults + " " + words("and") + " " + lesser;
  const Finding* dearest = &report.findings.front();
  for (const Finding& f : report.findings) {
    if (costs(f) && (!costs(*dearest) || f.cost->lost_s() > dearest->cost->lost_s())) dearest = &f;
  }
  std::string what = words(dearest->what);
  if (!what.empty() && what.back() == '.') what.pop_back();
  if (!costs(*dearest)) return text + "; " + words("the first: {}, {}.", {words(dearest->where), what});
  return text + "; " + words("the dearest: {}, {}, costs {}.", {words(dearest->where), what, cost_words(*dearest, words)});
}

std::string facts(const WiringReport& report, const Words& words) {
  const topology::Cluster& cluster = report.assembly.cluster;
  std::string text = cluster.name;
  for (const topology::HostGroup& group : cluster.hosts) {
    text += fmt::format("\n{} \u00d7 {}: {} \u00d7 {}", group.count, group.host.name.empty() ? words("host") : group.host.name,
                        group.host.gpus().size(), group.host.accelerator.empty() ? "GPU" : group.host.accelerator);
  }
  return text;
}

void rename(Json& value, const std::function<std::string(std::string_view)>& renamed) {
  if (value.is_string()) value = renamed(value.get_ref<const std::string&>());
  if (value.is_structured()) {
    for (Json& item : value) rename(item, renamed);
  }
}

}  // namespace

std::string wiring_html(const WiringReport& report, const std::function<std::string(std::string_view)>& renamed,
                        PageForm form, const Words& words) {
  Page page;
  page.kind = "chokepoint wiring";
  page.verdict = verdict(report, words);
  page.facts = facts(report, words);
  page.script = embedded::page_wiring;
  page.markdown = wiring_markdown(report, words);
  page.view = "wiring";
  page.data = wiring_data(report);
  page.data["svg"] = wiring_svg(report.assembly.cluster, words);
  if (renamed) {
    page.verdict = renamed(page.verdict);
    page.facts = renamed(page.facts);
    page.markdown = renamed(page.markdown);
    rename(page.data, renamed);
  }
  return html_page(page, words, form);
}

std::string wiring_markdown(const WiringReport& report, const Words& words) {
  std::string out = "**" + markdown_cell(verdict(report, words)) + "**\n\n";
  std::vector<std::vector<std::string>> rows;
  for (const Finding& f : report.findings) {
    rows.push_back({words(findings::name(f.severity)), f.id, words(f.where), words(f.what), cost_words(f, words), words(f.fix)});
  }
  if (!report.job.empty()) out += words("Costs for {}.", {markdown_cell(report.job)}) + "\n\n";
  if (!rows.empty())
    out += markdown_table({words("severity"), words("finding"), words("where"), words("what"), words("cost"), words("fix")}, rows, "llllrl") + "\n";
  for (const std::string& line : report.assembly.unknown) out += "- " + words("unknown: {}", {markdown_cell(words(line))}) + "\n";
  return out;
}

std::string wiring_csv(const WiringReport& report) {
  std::string out = csv_line(
      {"severity", "id", "where", "what", "step_time_s", "step_time_if_mended_s", "fix", "verify", "file", "line"});
  for (const Finding& f : report.findings) {
    const SourcePos seen = f.evidence.empty() ? SourcePos{} : f.evidence.front();
    out += csv_line({std::string(findings::name(f.severity)), f.id, f.where, f.what,
                     f.cost ? fmt::format("{:.9g}", f.cost->step_time_s) : "",
                     f.cost ? fmt::format("{:.9g}", f.cost->step_time_if_mended_s) : "", f.fix, f.verify, seen.file,
                     seen.line > 0 ? std::to_string(seen.line) : ""});
  }
  return out;
}

}  // namespace chokepoint::report
