// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/report/fit_view.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "table.hpp"

namespace chokepoint::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kNotesShown = 8;
constexpr double kNotExplained = 0.25;

std::string percent(double value) { return fmt::format("{:.1f}%", 100 * value); }
std::string signed_percent(double value) { return fmt::format("{:+.1f}%", 100 * value); }

Json check_json(const calibrate::Check& check) {
  return {{"rows", check.rows}, {"median_error_before", check.before}, {"median_error_after", check.after}};
}

std::string at(const Note& note) {
  if (note.pos.file.empty()) return note.text;
  return note.pos.line > 0 ? fmt::format("{}:{}: {}", note.pos.file, note.pos.line, note.text) : note.pos.file + ": " + note.text;
}

std::string verdict(const calibrate::Profile& profile, const std::string& written, const Style& style) {
  std::string out;
  if (profile.held_back.rows == 0) {
    out += "No rows held back: fewer than three measurements of a kind.\n";
  } else {
    out += fmt::format("{} rows held back from a first fit: median error {} before, {} after.\n", profile.held_back.rows,
                       percent(profile.held_back.before), percent(profile.held_back.after));
  }
  if (profile.makes_worse()) {
    out += style.red(written.empty() ? "Calibration makes them worse: the profile was not written (--force writes it)."
                                     : "Calibration makes them worse; written all the same.") + "\n";
  }
  for (const calibrate::ProfileInput& input : profile.inputs) {
    if (input.check.after < kNotExplained) continue;
    out += fmt::format("{} stays {} off: no machine of this kind differs by so much. Something is not as described, or not as it should be"
                       " (predict --measured names a suspect).\n", input.name, percent(input.check.after));
  }
  if (!written.empty()) out += fmt::format("Written to {}: give it to predict, plan and validate as --profile.\n", written);
  return out;
}

}  // namespace

std::string profile_text(const calibrate::Profile& profile, const std::vector<Note>& notes, const std::string& written, const Style& style) {
  std::vector<std::vector<std::string>> inputs, rows;
  for (std::size_t i = 0; i < profile.inputs.size(); ++i) {
    const calibrate::ProfileInput& input = profile.inputs[i];
    inputs.push_back({std::to_string(i + 1), input.name, input.kind, std::to_string(input.check.rows), percent(input.check.before),
                      percent(input.check.after)});
  }
  for (const calibrate::ProfileParameter& p : profile.parameters) {
    std::string by;
    for (const auto& [input, factor] : p.changed_by) by += fmt::format("{}input {} {}", by.empty() ? "" : ", ", input + 1, signed_percent(factor - 1));
    rows.push_back({p.info.name, fmt::format("{:.4g}", p.info.value), fmt::format("{:.4g}", p.value), signed_percent(p.value / p.info.value - 1),
                    percent(p.log_error), p.info.unit, by});
  }
  std::string out = table({{"input", true}, {"measured", false}, {"kind", false}, {"rows", true}, {"error before", true}, {"after", true}}, inputs, style);
  out += "\n" + verdict(profile, written, style) + "\n";
  if (rows.empty()) out += "Nothing changed: the shipped parameters meet these measurements.\n";
  if (!rows.empty()) {
    out += table({{"parameter", false}, {"shipped", true}, {"here", true}, {"change", true}, {"error", true}, {"unit", false}, {"each input alone", false}},
                 rows, style);
  }
  for (std::size_t i = 0; i < notes.size() && i < kNotesShown; ++i) out += style.dim(at(notes[i])) + "\n";
  if (notes.size() > kNotesShown) out += style.dim(fmt::format("{} more notes: --json lists them", notes.size() - kNotesShown)) + "\n";
  return out;
}

std::string profile_json(const calibrate::Profile& profile, const std::vector<Note>& notes, const std::string& written) {
  Json json;
  json["schema"] = "chokepoint.calibrate/1";
  json["inputs"] = Json::array();
  for (const calibrate::ProfileInput& input : profile.inputs) {
    json["inputs"].push_back({{"name", input.name}, {"kind", input.kind}, {"check", check_json(input.check)}});
  }
  json["held_back"] = profile.held_back.rows > 0 ? check_json(profile.held_back) : Json(nullptr);
  json["makes_worse"] = profile.makes_worse();
  json["written"] = written.empty() ? Json(nullptr) : Json(written);
  json["parameters"] = Json::array();
  for (const calibrate::ProfileParameter& p : profile.parameters) {
    Json changes = Json::array();
    for (const auto& [input, factor] : p.changed_by) changes.push_back({{"input", input + 1}, {"factor", factor}});
    json["parameters"].push_back({{"name", p.info.name}, {"value", p.value}, {"unit", p.info.unit}, {"shipped", p.info.value},
                                  {"log_error", p.log_error}, {"changed_by", changes}});
  }
  json["notes"] = Json::array();
  for (const Note& note : notes) json["notes"].push_back(at(note));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace chokepoint::report
