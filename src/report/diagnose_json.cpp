// SPDX-License-Identifier: Apache-2.0
// Schema: docs/formats/json.md. Names are stable; quantities are SI with the unit as suffix.
#include <chokepoint/report/diagnose_view.hpp>

#include <nlohmann/json.hpp>

namespace chokepoint::report {

using namespace diagnose;

namespace {

using Json = nlohmann::ordered_json;

double seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

Json bill_json(const MeasuredBill& bill) {
  Json out = Json::object();
  for (int i = 0; i < simulate::kBillCount; ++i) {
    out[std::string(simulate::name(static_cast<simulate::Bill>(i)))] = seconds(bill.ns[static_cast<std::size_t>(i)]);
  }
  return out;
}

/// Only the classes that waited at all.
Json wait_json(const MeasuredBill& bill) {
  Json out = Json::object();
  for (int i = 0; i < simulate::kBillCount; ++i) {
    const std::int64_t ns = bill.wait_ns[static_cast<std::size_t>(i)];
    if (ns > 0) out[std::string(simulate::name(static_cast<simulate::Bill>(i)))] = seconds(ns);
  }
  return out;
}

Json host_json(const MeasuredBill& bill) {
  Json out = Json::object();
  for (int i = 0; i < kHostPartCount; ++i) out[std::string(diagnose::name(static_cast<HostPart>(i)))] = seconds(bill.host_ns[static_cast<std::size_t>(i)]);
  return out;
}

Json time_json(const DeviceTime& t) {
  return {{"start_ns", t.start_ns},
          {"busy_s", seconds(t.busy_ns)},
          {"idle_s", seconds(t.idle_ns())},
          {"compute_s", seconds(t.compute_ns)},
          {"communication_s", seconds(t.communication_ns)},
          {"memory_s", seconds(t.memory_ns)},
          {"overlap_s", seconds(t.overlap_ns)},
          {"exposed_communication_s", seconds(t.exposed_communication_ns)},
          {"exposed_memory_s", seconds(t.exposed_memory_ns)}};
}

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
    steps.push_back({{"name", s.name}, {"start_ns", s.window.begin_ns}, {"wall_s", seconds(s.window.end_ns - s.window.begin_ns)},
                     {"bill", bill_json(s.bill)}, {"wait", wait_json(s.bill)}});
  }
  return {{"rank", r.rank},
          {"rank_known", r.rank_known},
          {"file", r.file},
          {"span_s", seconds(r.time.span_ns)},
          {"bill", bill_json(r.bill)},
          {"wait", wait_json(r.bill)},
          {"host", host_json(r.bill)},
          {"overlap_fraction", r.time.communication_ns > 0 ? Json(r.time.overlap_fraction()) : Json(nullptr)},
          {"device", time_json(r.time)},
          {"collective_wait_s", seconds(r.collective_wait_ns)},
          {"collective_wire_s", seconds(r.collective_wire_ns)},
          {"late_count", r.late_count},
          {"clock_offset_s", seconds(r.clock_offset_ns)},
          {"clock_drift", r.clock_drift},
          {"clock_error_s", seconds(r.clock_error_ns)},
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
          {"wire_s", seconds(c.wire_ns())},
          {"wait_s", seconds(c.wait_ns())},
          {"end_spread_s", seconds(c.last_end_ns - c.first_end_ns)},
          {"late_rank", c.late >= 0 ? Json(d.ranks[static_cast<std::size_t>(c.late)].rank) : Json(nullptr)},
          {"bus_bytes_per_s", bus > 0 ? Json(bus) : Json(nullptr)},
          {"expected_bus_bytes_per_s", nullptr}};
}

Json cause_json(const Cause& c) {
  return {{"id", c.id}, {"where", c.where}, {"what", c.what}, {"remedy", c.remedy}, {"cost_s", c.cost_s}, {"step_time_without_s", c.step_time_without_s}};
}

}  // namespace

std::string diagnose_json(const Diagnosis& d) {
  Json ranks = Json::array();
  std::uint64_t dropped = 0;
  for (const RankResult& r : d.ranks) {
    ranks.push_back(rank_json(r));
    dropped += r.defects.dropped();
  }
  Json collectives = Json::array();
  for (const MatchedCollective& c : d.collectives) collectives.push_back(collective_json(d, c));
  Json causes = Json::array();
  for (const Cause& c : d.causes) causes.push_back(cause_json(c));
  Json notes = Json::array();
  for (const Note& note : d.notes) notes.push_back(note.pos.file.empty() ? note.text : note.pos.file + ": " + note.text);
  const Json out = {{"schema", "chokepoint.diagnose/1"},
                    {"world_size", d.world_size},
                    {"steps", d.steps},
                    {"measured_s", d.measured_s},
                    {"ideal_s", d.ideal_s},
                    {"choke_point", d.choke_point.empty() ? Json(nullptr) : Json(d.choke_point)},
                    {"causes", causes},
                    {"ranks", ranks},
                    {"collectives", collectives},
                    {"dropped_events", dropped},
                    {"notes", notes}};
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace chokepoint::report
