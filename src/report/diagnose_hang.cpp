// SPDX-License-Identifier: Apache-2.0
// Schema: docs/formats/json.md.
#include <chokepoint/report/diagnose_view.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "diagnose_parts.hpp"
#include "json_data.hpp"
#include "table.hpp"

namespace chokepoint::report {

using namespace diagnose;
using Json = nlohmann::ordered_json;

Json hang_data(const HangReport& r) {
  Json faulty = Json::array();
  Json ranks = Json::array();
  for (const FaultyRank& f : r.faulty) {
    faulty.push_back({{"rank", f.rank}, {"kind", f.kind}, {"evidence", f.evidence}});
    ranks.push_back(f.rank);
  }
  Json pending = Json::array();
  for (const PendingCollective& p : r.pending) {
    pending.push_back({{"group", p.group}, {"description", p.description}, {"op", p.op}, {"sequence", p.sequence}, {"sizes", p.sizes}, {"dtype", p.dtype},
                       {"present", p.present}, {"missing", p.missing}});
  }
  return {{"schema", "chokepoint.diagnose/1"},
                    {"choke_point", r.verdict},
                    {"causes", Json::array()},
                    {"ranks", Json::array()},
                    {"collectives", Json::array()},
                    {"hang", {{"dumps", r.dumps}, {"faulty_ranks", ranks}, {"faulty", faulty}, {"pending", pending}}},
                    {"dropped_events", 0},
                    {"notes", notes_json(r.notes)}};
}

std::string hang_json(const HangReport& r) { return hang_data(r).dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

std::string hang_text(const HangReport& r, const Style& style, bool quiet) {
  std::string text = style.bold(style.say(r.verdict)) + "\n";
  if (quiet) return text;
  text += style.say("{} flight recorder dumps", {std::to_string(r.dumps)}) + "\n";
  for (const FaultyRank& f : r.faulty) text += "  " + style.say("rank {}", {std::to_string(f.rank)}) + fmt::format(": {} ({})\n", style.say(f.evidence), f.kind);
  std::vector<std::vector<std::string>> rows;
  constexpr std::size_t kMost = 8;
  for (const PendingCollective& p : r.pending) {
    if (rows.size() == kMost) break;
    std::string missing;
    for (const int rank : p.missing) missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
    rows.push_back({p.group, p.description, p.op, std::to_string(p.sequence), p.sizes, missing});
  }
  if (!rows.empty()) {
    text += "\n" + table({{style.say("group"), false}, {style.say("description"), false}, {style.say("operation"), false}, {style.say("number"), true}, {style.say("sizes"), false},
                          {style.say("ranks that lack it"), false}}, rows, style);
    if (r.pending.size() > rows.size()) text += "  " + style.say("… and {} more (--json has all)", {std::to_string(r.pending.size() - rows.size())}) + "\n";
  }
  for (const Note& note : r.notes) text += style.dim(style.say("Note") + ": " + style.say(note.text)) + "\n";
  return text;
}

}  // namespace chokepoint::report
