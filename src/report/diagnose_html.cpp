// SPDX-License-Identifier: Apache-2.0
// The data of page_diagnose.js: the document of --json without what only programs need, collectives also summed by
// kind.
#include <algorithm>
#include <map>
#include <tuple>

#include "collective_sums.hpp"
#include "diagnose_parts.hpp"
#include "json_data.hpp"
#include "page.hpp"

#include <chokepoint/report/pages.hpp>

namespace chokepoint::embedded {
extern const std::string_view page_diagnose;
}

namespace chokepoint::report {

using namespace diagnose;
using Json = nlohmann::ordered_json;

namespace {

constexpr std::size_t kMostPoints = 2500;  ///< collectives drawn one by one
constexpr std::size_t kMostSteps = 200;    ///< columns of the picture of steps

Page page_of(const std::string& sentence, std::string fallback, std::string facts, Json data, std::string markdown) {
  Page page;
  page.kind = "chokepoint diagnose";
  page.verdict = sentence.empty() ? std::move(fallback) : sentence;
  page.facts = std::move(facts);
  page.script = embedded::page_diagnose;
  page.view = "diagnose";
  page.data = std::move(data);
  page.markdown = std::move(markdown);
  return page;
}

Json groups_json(const Diagnosis& d) {
  Json out = Json::array();
  for (const CollectiveSum& s : summed_collectives(d)) {
    out.push_back({{"group", s.group},
                   {"op", s.op},
                   {"bytes", s.bytes >= 0 ? Json(s.bytes) : Json(nullptr)},
                   {"count", s.count},
                   {"wire_s", seconds_of(s.wire_ns)},
                   {"wait_s", seconds_of(s.wait_ns)},
                   {"bus_bytes_per_s", s.bus_bytes_per_s > 0 ? Json(s.bus_bytes_per_s) : Json(nullptr)},
                   {"expected_bus_bytes_per_s",
                    s.expected_bus_bytes_per_s > 0 ? Json(s.expected_bus_bytes_per_s) : Json(nullptr)},
                   {"late_rank", s.late_rank >= 0 ? Json(s.late_rank) : Json(nullptr)},
                   {"late_count", s.late_count}});
  }
  return out;
}

/// Those with the longest wire and wait, in order of time.
Json longest(Json collectives) {
  if (collectives.size() <= kMostPoints) return collectives;
  const auto cost = [](const Json& c) { return c["wire_s"].get<double>() + c["wait_s"].get<double>(); };
  auto& list = collectives.get_ref<Json::array_t&>();
  std::stable_sort(list.begin(), list.end(), [&cost](const Json& a, const Json& b) { return cost(a) > cost(b); });
  list.resize(kMostPoints);
  return collectives;
}

/// The folder of the files, and their names.
std::string file_list(const Diagnosis& d) {
  constexpr std::size_t kShown = 4;
  std::string out;
  for (std::size_t i = 0; i < std::min(kShown, d.ranks.size()); ++i) {
    const std::string& file = d.ranks[i].file;
    out += (i == 0 ? "" : ", ") + (i == 0 ? file : file.substr(file.rfind('/') + 1));
  }
  if (d.ranks.size() > kShown) out += ", \u2026 (" + std::to_string(d.ranks.size()) + ")";
  return out;
}

}  // namespace

std::string diagnose_html(const Diagnosis& d, const Words& words, PageForm form) {
  Json data = diagnose_data(d);
  for (Json& rank : data["ranks"]) {
    Json wall = Json::array();
    Json names = Json::array();
    for (const Json& step : rank["steps"]) {
      if (wall.size() == kMostSteps) break;
      wall.push_back(step["wall_s"]);
      names.push_back(step["name"]);
    }
    rank["step_wall_s"] = std::move(wall);
    rank["step_names"] = std::move(names);
    rank.erase("steps");
    rank.erase("device");
  }
  data["collective_groups"] = groups_json(d);
  data["collectives"] = longest(std::move(data["collectives"]));
  return html_page(
      page_of(words(d.choke_point), words("Where the time of {} ranks went", {std::to_string(d.ranks.size())}),
              file_list(d), std::move(data), diagnose_markdown(d, words)),
      words, form);
}

std::string straggler_html(const StragglerReport& r, const Words& words, PageForm form) {
  return html_page(page_of(words(r.choke_point), words("Stragglers"), r.file, straggler_data(r), straggler_markdown(r, words)), words, form);
}

std::string hang_html(const HangReport& r, const Words& words, PageForm form) {
  return html_page(page_of(words(r.verdict), words("No rank hangs"),
                           words("{} flight recorder dumps", {std::to_string(r.dumps)}), hang_data(r), hang_markdown(r, words)),
                   words, form);
}

std::string log_html(const LogReport& r, const Words& words, PageForm form) {
  return html_page(page_of(words(r.choke_point), words("Step times"), r.file, log_data(r), log_markdown(r, words)), words, form);
}

}  // namespace chokepoint::report
