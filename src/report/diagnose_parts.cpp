// SPDX-License-Identifier: Apache-2.0
#include "diagnose_parts.hpp"

namespace chokepoint::report {

using namespace diagnose;
using Json = nlohmann::ordered_json;

Json bill_json(const MeasuredBill& bill) {
  Json out = Json::object();
  for (int i = 0; i < simulate::kBillCount; ++i) {
    out[std::string(simulate::name(static_cast<simulate::Bill>(i)))] = seconds_of(bill.ns[static_cast<std::size_t>(i)]);
  }
  return out;
}

Json wait_json(const MeasuredBill& bill) {
  Json out = Json::object();
  for (int i = 0; i < simulate::kBillCount; ++i) {
    const std::int64_t ns = bill.wait_ns[static_cast<std::size_t>(i)];
    if (ns > 0) out[std::string(simulate::name(static_cast<simulate::Bill>(i)))] = seconds_of(ns);
  }
  return out;
}

Json host_json(const MeasuredBill& bill) {
  Json out = Json::object();
  for (int i = 0; i < kHostPartCount; ++i) out[std::string(diagnose::name(static_cast<HostPart>(i)))] = seconds_of(bill.host_ns[static_cast<std::size_t>(i)]);
  return out;
}

Json time_json(const DeviceTime& t) {
  return {{"start_ns", t.start_ns},
          {"busy_s", seconds_of(t.busy_ns)},
          {"idle_s", seconds_of(t.idle_ns())},
          {"compute_s", seconds_of(t.compute_ns)},
          {"communication_s", seconds_of(t.communication_ns)},
          {"memory_s", seconds_of(t.memory_ns)},
          {"overlap_s", seconds_of(t.overlap_ns)},
          {"exposed_communication_s", seconds_of(t.exposed_communication_ns)},
          {"exposed_memory_s", seconds_of(t.exposed_memory_ns)}};
}

Json causes_json(const std::vector<Cause>& causes) {
  Json out = Json::array();
  for (const Cause& c : causes) {
    out.push_back({{"id", c.id}, {"where", c.where}, {"what", c.what}, {"remedy", c.remedy}, {"cost_s", c.cost_s}, {"step_time_without_s", c.step_time_without_s}});
  }
  return out;
}

Json notes_json(const std::vector<Note>& notes) {
  Json out = Json::array();
  for (const Note& note : notes) out.push_back(note.pos.file.empty() ? note.text : note.pos.file + ": " + note.text);
  return out;
}

}  // namespace chokepoint::report
