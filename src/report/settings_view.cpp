// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/units.hpp>
#include <chokepoint/report/settings_view.hpp>

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace chokepoint::report {

namespace {

using Json = nlohmann::ordered_json;
using frameworks::Use;

std::string place(const SourcePos& pos) {
  const std::string file = std::filesystem::path(pos.file).lexically_normal().string();
  return pos.line > 0 ? fmt::format("{}:{}", file, pos.line) : file;
}

std::string indented(std::string_view head, std::string_view text, int columns, const Style& style) {
  std::string out;
  for (const std::string& line : wrapped(text, style.width - columns)) {
    out += fmt::format("{}{}\n", head, line);
    head = "                    ";
    head = head.substr(0, static_cast<std::size_t>(columns));
  }
  return out;
}

long count(const frameworks::Reading& reading, Use use) {
  return std::count_if(reading.settings.begin(), reading.settings.end(),
                       [&](const frameworks::Setting& s) { return s.use == use; });
}

std::string listed(const frameworks::Reading& reading, Use use, std::string_view title, const Style& style) {
  std::string out;
  for (const frameworks::Setting& setting : reading.settings) {
    if (setting.use != use) continue;
    std::string text = setting.key + (setting.value.empty() ? "" : " = " + setting.value.substr(0, 60));
    if (!setting.note.empty()) text += ": " + setting.note;
    if (!setting.pos.file.empty()) text += fmt::format(" ({})", place(setting.pos));
    out += indented("    ", text, 6, style);
  }
  return out.empty() ? out : fmt::format("  {}\n{}", title, out);
}

}  // namespace

std::string settings_text(const frameworks::Reading& reading, const Style& style, bool quiet) {
  std::string out =
      fmt::format("\nSettings of {}: {} used, {} without effect on time and memory, {} not modelled, {} unknown\n",
                  reading.framework, count(reading, Use::kUsed), count(reading, Use::kNoEffect),
                  count(reading, Use::kNotModelled), count(reading, Use::kUnknown));
  if (quiet && reading.findings.empty()) return "";
  if (quiet) out.clear();
  for (const frameworks::Finding& finding : reading.findings) {
    const std::string sign = finding.refused ? style.red("wrong") : style.yellow("check");
    std::string text = finding.what;
    if (!finding.pos.file.empty()) text += fmt::format(" ({})", place(finding.pos));
    const std::vector<std::string> lines = wrapped(text, style.width - 9);
    for (std::size_t i = 0; i < lines.size(); ++i)
      out += i == 0 ? fmt::format("  {}  {}\n", sign, lines[i]) : fmt::format("         {}\n", lines[i]);
    out += indented("         fix: ", finding.fix, 14, style);
  }
  if (quiet) return out;
  out += listed(reading, Use::kNotModelled, "not modelled", style);
  out += listed(reading, Use::kUnknown, "unknown, ignored", style);
  return out;
}

std::string own_strategy_text(const simulate::Prediction& own, const plan::Plan& plan, const Style& style) {
  std::string out = fmt::format("\nYours   {}: {}", parallel::title(own.strategy), format_duration(own.step_time_s));
  if (!own.memory.fits()) out += ", does not fit in memory";
  if (plan.candidates.empty()) return out + "\n";
  const simulate::Prediction& best = plan.candidates.front();
  if (own.memory.fits() && (plan::tied(best, own) || own.step_time_s <= best.step_time_s)) {
    return out + ", as good as the best\n";
  }
  if (own.step_time_s > best.step_time_s) {
    out += fmt::format("; the best takes {:.0f} % less time", 100 * (1 - best.step_time_s / own.step_time_s));
  }
  return out + style.dim("\n        chokepoint export JOB --best --to FRAMEWORK writes its settings") + "\n";
}

std::string with_settings_json(const std::string& text, const frameworks::Reading& reading) {
  Json document = Json::parse(text, nullptr, false);
  if (document.is_discarded() || !document.is_object()) return text;
  Json findings = Json::array();
  for (const frameworks::Finding& f : reading.findings) {
    findings.push_back({{"id", f.id},
                        {"refused", f.refused},
                        {"file", f.pos.file},
                        {"line", f.pos.line},
                        {"what", f.what},
                        {"fix", f.fix}});
  }
  Json all = Json::array();
  for (const frameworks::Setting& s : reading.settings) {
    all.push_back({{"key", s.key},
                   {"value", s.value},
                   {"file", s.pos.file},
                   {"line", s.pos.line},
                   {"use", std::string(frameworks::name(s.use))},
                   {"note", s.note}});
  }
  document["settings"] = {{"framework", reading.framework},
                          {"format", std::string(frameworks::name(reading.format))},
                          {"findings", findings},
                          {"all", all}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string export_text(const frameworks::Export& result, const Style& style, bool quiet) {
  std::string out;
  for (const frameworks::File& file : result.files) {
    if (result.files.size() > 1) out += fmt::format("{}# ----- {} -----\n", out.empty() ? "" : "\n", file.name);
    out += file.text;
  }
  if (quiet || result.notices.empty()) return out;
  out += "\n";
  for (const std::string& notice : result.notices) {
    std::string_view head = "# note: ";
    for (const std::string& line : wrapped(notice, style.width - 8)) {
      out += fmt::format("{}{}\n", head, line);
      head = "#       ";
    }
  }
  return out;
}

std::string export_json(const frameworks::Export& result, const parallel::Job& job, const parallel::Strategy& asked,
                        std::string_view target) {
  Json files = Json::array();
  for (const frameworks::File& file : result.files) files.push_back({{"name", file.name}, {"text", file.text}});
  const Json out = {{"schema", "chokepoint.export/1"},
                    {"target", std::string(target)},
                    {"model", job.model.name},
                    {"gpus", job.gpus},
                    {"strategy", parallel::to_text(asked)},
                    {"expressed", parallel::to_text(result.expressed)},
                    {"files", files},
                    {"notices", result.notices}};
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace chokepoint::report
