// SPDX-License-Identifier: Apache-2.0
// Schema: docs/formats/json.md. Names are stable; quantities are SI with the unit as suffix.
#include <chokepoint/report/diagnose_view.hpp>

#include <nlohmann/json.hpp>

#include "diagnose_parts.hpp"
#include "json_data.hpp"

namespace chokepoint::report {

using namespace diagnose;

using Json = nlohmann::ordered_json;

namespace {

Json defects_json(const trace::Defects& defects, bool dropped) {
  Json out = Json::object();
  for (std::size_t i = 0; i < defects.count.size(); ++i) {
    const auto defect = static_cast<trace::Defect>(i);
    if (defects[defect] > 0 && trace::drops(defect) == dropped) out[std::string(trace::name(defect))] = defects[defect];
  }
  return out;
}

Json rank_json(const RankResult& r) {
  Json steps = Json::array();
  for (const StepBill& s : r.steps) {
    steps.push_back({{"name", s.name}, {"start_ns", s.window.begin_ns}, {"wall_s", seconds_of(s.window.end_ns - s.window.begin_ns)},
                     {"bill", bill_json(s.bill)}, {"wait", wait_json(s.bill)}});
  }
  return {{"rank", r.rank},
          {"rank_known", r.rank_known},
          {"file", r.file},
          {"span_s", seconds_of(r.time.span_ns)},
          {"bill", bill_json(r.bill)},
          {"wait", wait_json(r.bill)},
          {"host", host_json(r.bill)},
          {"overlap_fraction", r.time.communication_ns > 0 ? Json(r.time.overlap_fraction()) : Json(nullptr)},
          {"device", time_json(r.time)},
          {"collective_wait_s", seconds_of(r.collective_wait_ns)},
          {"collective_wire_s", seconds_of(r.collective_wire_ns)},
          {"late_count", r.late_count},
          {"clock_offset_s", seconds_of(r.clock_offset_ns)},
          {"clock_drift", r.clock_drift},
          {"clock_error_s", seconds_of(r.clock_error_ns)},
          {"steps", steps},
          {"dropped_events", defects_json(r.defects, true)},
          {"odd_events", defects_json(r.defects, false)},
          {"notes", r.notes}};
}

Json collective_json(const Diagnosis& d, const MatchedCollective& c) {
  Json ranks = Json::array();
  for (const int m : c.members) ranks.push_back(d.ranks[static_cast<std::size_t>(m)].rank);
  const double bus = c.bus_bytes_per_s();
  return {{"group", c.group},
          {"inferred", c.inferred},
          {"op", c.op_known ? Json(std::string(collective::name(c.op))) : Json(nullptr)},
          {"dimension", std::string(simulate::name(c.dimension))},
          {"index", c.index},
          {"ranks", ranks},
          {"group_size", c.group_size > 0 ? Json(c.group_size) : Json(nullptr)},
          {"bytes", c.bytes >= 0 ? Json(c.bytes) : Json(nullptr)},
          {"start_ns", c.last_start_ns},
          {"wire_s", seconds_of(c.wire_ns())},
          {"wait_s", seconds_of(c.wait_ns())},
          {"end_spread_s", seconds_of(c.last_end_ns - c.first_end_ns)},
          {"late_rank", c.late >= 0 ? Json(d.ranks[static_cast<std::size_t>(c.late)].rank) : Json(nullptr)},
          {"bus_bytes_per_s", bus > 0 ? Json(bus) : Json(nullptr)},
          {"expected_bus_bytes_per_s", c.expected_bus_bytes_per_s > 0 ? Json(c.expected_bus_bytes_per_s) : Json(nullptr)}};
}

}  // namespace

Json diagnose_data(const Diagnosis& d) {
  Json ranks = Json::array();
  std::uint64_t dropped = 0;
  for (const RankResult& r : d.ranks) {
    ranks.push_back(rank_json(r));
    dropped += r.defects.dropped();
  }
  Json collectives = Json::array();
  for (const MatchedCollective& c : d.collectives) collectives.push_back(collective_json(d, c));
  return {{"schema", "chokepoint.diagnose/1"},
                    {"world_size", d.world_size},
                    {"steps", d.steps},
                    {"measured_s", d.measured_s},
                    {"ideal_s", d.ideal_s},
                    {"choke_point", d.choke_point.empty() ? Json(nullptr) : Json(d.choke_point)},
                    {"causes", causes_json(d.causes)},
                    {"ranks", ranks},
                    {"collectives", collectives},
                    {"dropped_events", dropped},
                    {"notes", notes_json(d.notes)}};
}

std::string diagnose_json(const Diagnosis& d) { return diagnose_data(d).dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace chokepoint::report
