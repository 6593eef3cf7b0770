// SPDX-License-Identifier: Apache-2.0
// The inverse of diagnose_json.cpp and log_data, as far as a comparison needs it.
#include <chokepoint/report/diagnose_read.hpp>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace chokepoint::report {

using namespace diagnose;
using Json = nlohmann::json;

namespace {

constexpr std::string_view kSchema = "chokepoint.diagnose/1";
constexpr double kMost_s = 1e9;  // sums of some thousand such times stay below 2^63 ns

const Json& at(const Json& object, std::string_view key) {
  static const Json kNothing;
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found == object.end() ? kNothing : *found;
}

double number(const Json& object, std::string_view key) {
  const Json& value = at(object, key);
  const double v = value.is_number() ? value.get<double>() : 0;
  return std::isfinite(v) && std::fabs(v) <= kMost_s ? v : 0;
}
std::int64_t ns(const Json& object, std::string_view key) { return std::llround(1e9 * number(object, key)); }
int integer(const Json& object, std::string_view key) { return static_cast<int>(number(object, key)); }
std::string text(const Json& object, std::string_view key) {
  const Json& value = at(object, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

MeasuredBill bill_of(const Json& bill, const Json& wait, const Json& host) {
  MeasuredBill b;
  for (int i = 0; i < simulate::kBillCount; ++i) {
    const auto k = static_cast<std::size_t>(i);
    b.ns[k] = ns(bill, simulate::name(static_cast<simulate::Bill>(i)));
    b.wait_ns[k] = ns(wait, simulate::name(static_cast<simulate::Bill>(i)));
  }
  for (int i = 0; i < kHostPartCount; ++i) b.host_ns[static_cast<std::size_t>(i)] = ns(host, diagnose::name(static_cast<HostPart>(i)));
  return b;
}

/// Parts of the host's time are saved for the whole recording alone: a step is taken to have its share of each.
void share_host(const MeasuredBill& all, MeasuredBill& step) {
  constexpr auto kHost = static_cast<std::size_t>(simulate::Bill::kHost);
  if (all.ns[kHost] <= 0) return;
  const double share = static_cast<double>(step.ns[kHost]) / static_cast<double>(all.ns[kHost]);
  for (std::size_t p = 0; p < step.host_ns.size(); ++p) step.host_ns[p] = std::llround(std::min(1.0, share) * static_cast<double>(all.host_ns[p]));
}

std::vector<Cause> causes_of(const Json& root) {
  std::vector<Cause> causes;
  for (const Json& c : at(root, "causes")) {
    causes.push_back({text(c, "id"), text(c, "where"), text(c, "what"), text(c, "remedy"), number(c, "cost_s"), number(c, "step_time_without_s")});
  }
  return causes;
}

Diagnosis traces_of(const Json& root) {
  Diagnosis d;
  d.measured_s = number(root, "measured_s");
  d.ideal_s = number(root, "ideal_s");
  d.steps = integer(root, "steps");
  d.world_size = integer(root, "world_size");
  d.choke_point = text(root, "choke_point");
  d.causes = causes_of(root);
  for (const Json& r : at(root, "ranks")) {
    RankResult rank;
    rank.rank = integer(r, "rank");
    rank.file = text(r, "file");
    rank.bill = bill_of(at(r, "bill"), at(r, "wait"), at(r, "host"));
    for (const Json& s : at(r, "steps")) {
      StepBill step{text(s, "name"), {0, ns(s, "wall_s")}, bill_of(at(s, "bill"), at(s, "wait"), Json())};
      share_host(rank.bill, step.bill);
      rank.steps.push_back(std::move(step));
    }
    d.ranks.push_back(std::move(rank));
  }
  return d;
}

LogReport log_of(const Json& root, const Json& log) {
  LogReport r;
  r.file = text(log, "file");
  r.trainer = text(log, "trainer");
  r.seconds_known = at(log, "seconds_known") == true;
  r.steps = integer(root, "steps");
  r.mean_s = number(log, "mean_s");
  r.median_s = number(log, "median_s");
  r.p95_s = number(log, "p95_s");
  r.fastest_s = number(log, "fastest_s");
  for (const Json& t : at(log, "timers")) r.timers.push_back({text(t, "name"), number(t, "fastest_rank_s"), number(t, "slowest_rank_s"), integer(t, "lines")});
  r.causes = causes_of(root);
  r.choke_point = text(root, "choke_point");
  return r;
}

}  // namespace

bool looks_like_saved_diagnosis(std::string_view head) {
  return head.find_first_not_of(" \t\r\n") != std::string_view::npos && head[head.find_first_not_of(" \t\r\n")] == '{' && head.substr(0, 200).find(kSchema) != std::string_view::npos;
}

Result<SavedDiagnosis> read_saved_diagnosis(std::string_view content, const std::string& file) {
  const Json root = Json::parse(content, nullptr, false);
  if (root.is_discarded()) return fail("a saved diagnosis that is not JSON: cut off?", {file, 0, 0}, {"write it again: chokepoint diagnose ... --json --out FILE"});
  if (text(root, "schema") != kSchema || !at(root, "measured_s").is_number()) {
    return fail("not a saved diagnosis: expected \"schema\": \"" + std::string(kSchema) + "\" and measured_s", {file, 0, 0}, {"write it again: chokepoint diagnose ... --json --out FILE"});
  }
  if (at(root, "log").is_object()) return SavedDiagnosis(log_of(root, at(root, "log")));
  if (at(root, "ranks").is_array() && !at(root, "ranks").empty()) return SavedDiagnosis(traces_of(root));
  return fail("a saved diagnosis of another kind: traces and logs can be compared with", {file, 0, 0}, {"give the files it was made from"});
}

}  // namespace chokepoint::report
