// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/report/timed_view.hpp>

#include <chokepoint/base/units.hpp>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>

#include "table.hpp"

namespace chokepoint::report {

std::string timed_text(const simulate::TimedPlan& plan, const std::vector<simulate::TimedStep>& steps, const topology::MeasuredNetwork& network, const Style& style) {
  std::map<int, std::size_t> fastest;  // by work: micro-batches of a step
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto [at, fresh] = fastest.emplace(plan.cases[i].accumulate, i);
    if (!fresh && steps[i].step_time_s < steps[at->second].step_time_s) at->second = i;
  }
  std::string out = style.bold(fmt::format("{} hosts, one rank each, gloo", network.hosts.size())) + "\n";
  for (const auto& [work, best] : fastest) out += fmt::format("fastest with {} micro-batches a rank: {}, {}\n", work, plan.cases[best].name, format_duration(steps[best].step_time_s));
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    rows.push_back({plan.cases[i].name, std::to_string(plan.cases[i].accumulate), format_duration(steps[i].step_time_s), format_duration(steps[i].compute_s),
                    format_bytes(steps[i].sent_bytes), fmt::format("{} {:.0f}%", steps[i].busiest, 100 * steps[i].busiest_share)});
  }
  return out + "\n" + table({{"strategy", false}, {"micro-batches", true}, {"step", true}, {"compute", true}, {"most sent", true}, {"fullest link", false}}, rows, style);
}

std::string timed_json(const simulate::TimedPlan& plan, const std::vector<simulate::TimedStep>& steps) {
  nlohmann::ordered_json json{{"schema", "chokepoint.timed/1"}, {"cases", nlohmann::ordered_json::array()}};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    json["cases"].push_back({{"name", plan.cases[i].name}, {"strategy", simulate::name(plan.cases[i].strategy)}, {"accumulate", plan.cases[i].accumulate},
                             {"step_time_s", steps[i].step_time_s}, {"compute_s", steps[i].compute_s}, {"sent_bytes", steps[i].sent_bytes},
                             {"busiest_link", steps[i].busiest}, {"busiest_share", steps[i].busiest_share}});
  }
  return json.dump(2) + "\n";
}

}  // namespace chokepoint::report
