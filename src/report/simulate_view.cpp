// SPDX-License-Identifier: Apache-2.0
// Schema of the JSON part: docs/formats/json.md.
#include <chokepoint/base/units.hpp>
#include <chokepoint/report/simulate_view.hpp>

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace chokepoint::report {

using engine::Simulated;
using simulate::Bill;

namespace {

using Json = nlohmann::ordered_json;

std::string signed_percent(double value, double reference) {
  return reference > 0 ? fmt::format("{:+.1f} %", 100 * (value / reference - 1)) : std::string("-");
}

Json items_json(const std::array<double, simulate::kBillCount>& items) {
  Json out = Json::object();
  for (int i = 0; i < simulate::kBillCount; ++i)
    out[std::string(simulate::name(static_cast<Bill>(i)))] = items[static_cast<std::size_t>(i)];
  return out;
}

Json spread_json(const engine::Spread& s) {
  Json losses = Json::array();
  for (const auto& loss : s.losses) losses.push_back({{"cause", loss.cause}, {"cost_s", loss.cost_s}});
  return {{"steps", s.step_s.size()},
          {"mean_s", s.mean_s},
          {"p10_s", s.p10_s},
          {"p50_s", s.p50_s},
          {"p90_s", s.p90_s},
          {"even_s", s.even_s},
          {"meetings_per_step", s.meetings},
          {"losses", losses}};
}

double busiest_interface(const Simulated& s) {
  double most = 0;
  for (const double busy : s.run.out_busy_s) most = std::max(most, busy);
  for (const double busy : s.run.in_busy_s) most = std::max(most, busy);
  return s.step_s > 0 ? most / s.step_s : 0;
}

}  // namespace

std::string simulated_text(const Simulated& s, const simulate::Prediction& formula,
                           const std::optional<engine::Spread>& spread, const Style& style) {
  std::string out = fmt::format("\n{}  {}, {} against the formula's {}\n", style.bold("Simulated step"),
                                style.bold(format_duration(s.step_s)), signed_percent(s.step_s, s.closed_form_s),
                                format_duration(s.closed_form_s));
  out += fmt::format(
      "  {} ranks in {} class{} of like behaviour, {} operations each step; bill of rank {}, the busiest\n",
      s.layout.ranks(), s.fold.classes.size(), s.fold.classes.size() == 1 ? "" : "es", s.graph.ops(), s.busiest_rank);
  if (s.run.flows > 0)
    out += fmt::format("  {} transfers shared network interfaces, the busiest in use {:.0f} % of the step\n",
                       s.run.flows, 100 * busiest_interface(s));
  out += fmt::format("  {} {} {} {}\n", pad_right("", 12), pad_left("simulated", 10), pad_left("of it wait", 11),
                     pad_left("formula", 10));
  for (int i = 0; i < simulate::kBillCount; ++i) {
    const auto k = static_cast<std::size_t>(i);
    if (s.bill[k] < 1e-6 * s.step_s && formula.bill[k] < 1e-6 * s.step_s) continue;
    const std::string wait = s.wait_s[k] > 1e-6 * s.step_s ? format_duration(s.wait_s[k]) : std::string();
    out += fmt::format("  {} {} {} {}\n", pad_right(simulate::name(static_cast<Bill>(i)), 12),
                       pad_left(format_duration(s.bill[k]), 10), pad_left(wait, 11),
                       pad_left(format_duration(formula.bill[k]), 10));
  }
  out += fmt::format("  {} {} {} {}\n", pad_right("step", 12), pad_left(format_duration(s.step_s), 10),
                     pad_left("", 11), pad_left(format_duration(s.closed_form_s), 10));
  if (!spread) return out;
  out += fmt::format("\n{} steps drawn: mean {}, 10th to 90th percentile {} to {}; without imperfections {} ({})\n",
                     spread->step_s.size(), format_duration(spread->mean_s), format_duration(spread->p10_s),
                     format_duration(spread->p90_s), format_duration(spread->even_s),
                     signed_percent(spread->mean_s, spread->even_s));
  for (const auto& loss : spread->losses) {
    out += fmt::format("  {} costs {} a step ({:.1f} %)\n", pad_right(loss.cause, 16), format_duration(loss.cost_s),
                       100 * loss.cost_s / spread->mean_s);
  }
  out += fmt::format("  a rank meets others {} times in a step\n", spread->meetings);
  return out;
}

std::string with_simulated_json(const std::string& predict_json, const Simulated& s,
                                const std::optional<engine::Spread>& spread) {
  Json out = Json::parse(predict_json, nullptr, false);
  out["simulated"] = {{"step_time_s", s.step_s},
                      {"closed_form_s", s.closed_form_s},
                      {"bill", items_json(s.bill)},
                      {"wait", items_json(s.wait_s)},
                      {"busiest_rank", s.busiest_rank},
                      {"classes", s.fold.classes.size()},
                      {"operations", s.graph.ops()},
                      {"flows", s.run.flows},
                      {"busiest_interface_use", busiest_interface(s)}};
  if (spread) out["simulated"]["spread"] = spread_json(*spread);
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace chokepoint::report
