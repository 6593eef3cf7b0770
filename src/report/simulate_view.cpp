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
  for (const auto& loss : s.losses) losses.push_back({{"cause", loss.cause}, {"cost_s", loss.cost_s}, {"p10_s", loss.p10_s}, {"p90_s", loss.p90_s}});
  return {{"steps", s.step_s.size()},
          {"mean_s", s.mean_s},
          {"p10_s", s.p10_s},
          {"p50_s", s.p50_s},
          {"p90_s", s.p90_s},
          {"even_s", s.even_s},
          {"meetings_per_step", s.meetings},
          {"wait_s", s.wait_s},
          {"even_wait_s", s.even_wait_s},
          {"step_times_s", s.step_s},
          {"losses", losses}};
}

/// Links by use of the step, busiest first, one for each class of links and name class.
struct BusyLink {
  std::string_view kind;
  std::string name;
  int alike = 0;
  double use = 0;
};

std::vector<BusyLink> busiest_links(const Simulated& s, std::size_t most) {
  std::vector<BusyLink> links;
  for (std::size_t i = 0; i < s.run.link_busy_s.size() && s.ways != nullptr; ++i) {
    const engine::SharedLink& link = s.fold.links[i];
    if (s.run.link_busy_s[i] <= 0 || link.share <= 0) continue;
    links.push_back({flow::name(s.ways->platform->class_of(link.representative)),
                     s.ways->platform->name_of(link.representative), link.count,
                     s.run.link_busy_s[i] / link.share / s.step_s});
  }
  std::stable_sort(links.begin(), links.end(), [](const BusyLink& a, const BusyLink& b) { return a.use > b.use; });
  if (links.size() > most) links.resize(most);
  return links;
}

Json links_json(const Simulated& s) {
  Json out = Json::array();
  for (const BusyLink& link : busiest_links(s, 32))
    out.push_back({{"kind", link.kind}, {"link", link.name}, {"alike", link.alike}, {"use", link.use}});
  return out;
}

double busiest_interface(const Simulated& s) {
  const std::vector<BusyLink> links = busiest_links(s, 1);
  return links.empty() ? 0 : links.front().use;
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
  if (const std::vector<BusyLink> busy = busiest_links(s, 1); s.run.flows > 0 && !busy.empty()) {
    const std::string alike = busy[0].alike > 1 ? fmt::format(" and {} alike", busy[0].alike - 1) : std::string();
    out += fmt::format("  {} transfers shared links; the busiest, {}{}, in use {:.0f} % of the step\n", s.run.flows,
                       busy[0].name, alike, 100 * busy[0].use);
  }
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
    out += fmt::format("  {} costs {} a step ({:.1f} %), 10th to 90th percentile {} to {}\n", pad_right(loss.cause, 16),
                       format_duration(loss.cost_s), 100 * loss.cost_s / spread->mean_s, format_duration(loss.p10_s),
                       format_duration(loss.p90_s));
  }
  out += fmt::format("  a rank meets others {} times in a step and waits {} for them, {} without imperfections\n",
                     spread->meetings, format_duration(spread->wait_s), format_duration(spread->even_wait_s));
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
                      {"busiest_interface_use", busiest_interface(s)},
                      {"links", links_json(s)}};
  if (spread) out["simulated"]["spread"] = spread_json(*spread);
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace chokepoint::report
