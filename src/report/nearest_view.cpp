// SPDX-License-Identifier: Apache-2.0
#include "nearest_view.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace chokepoint::report {
namespace {

using validate::NearestRun;

long percent(double share) { return std::lround(100 * share); }

std::string differences(const NearestRun& near) {
  constexpr std::size_t kShown = 3;
  std::string words;
  for (std::size_t i = 0; i < std::min(kShown, near.differences.size()); ++i) words += (i == 0 ? "" : ", ") + near.differences[i];
  return words.empty() ? "much the same" : words;
}

}  // namespace

std::string nearest_line(const std::vector<NearestRun>& nearest) {
  if (nearest.empty()) return "";
  double low = 1e9, high = 0;
  int similar = 0;
  for (const NearestRun& near : nearest) {
    if (near.distance > validate::kSimilar) continue;
    ++similar;
    low = std::min(low, near.run->mfu);
    high = std::max(high, near.run->mfu);
  }
  if (similar == 0) {
    const NearestRun& near = nearest.front();
    return fmt::format("  no similar published run here; the nearest, {} on {} {}, reached {} % MFU\n", near.run->model,
                       near.run->gpus, near.run->accelerator, percent(near.run->mfu));
  }
  const std::string range = percent(low) == percent(high) ? std::to_string(percent(low)) : fmt::format("{}-{}", percent(low), percent(high));
  return fmt::format("  {} similar published run{}: {} % MFU (--nearest N lists them)\n", similar, similar == 1 ? "" : "s", range);
}

std::string nearest_list(const std::vector<NearestRun>& nearest, const Style& style) {
  if (nearest.empty()) return "";
  std::string out = "\nNearest published runs (none of them is read by the prediction)\n";
  for (const NearestRun& near : nearest) {
    const validate::PublishedRun& run = *near.run;
    out += fmt::format("  {:>3} % MFU  {} on {} {}, {} {}{}{}\n", percent(run.mfu), run.model, run.gpus, run.accelerator,
                       parallel::name(run.framework), hardware::name(run.dtype), run.strategy_text.empty() ? "" : ", ", run.strategy_text);
    for (const std::string& line : wrapped(fmt::format("{}; {}: {}", differences(near), run.reached, run.source), style.width - 14)) {
      out += style.dim("              " + line) + "\n";
    }
  }
  return out;
}

nlohmann::ordered_json nearest_json(const std::vector<NearestRun>& nearest) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const NearestRun& near : nearest) {
    const validate::PublishedRun& run = *near.run;
    list.push_back({{"model", run.model}, {"parameters", run.parameters}, {"active_parameters", run.active_parameters},
                    {"accelerator", run.accelerator}, {"gpus", run.gpus},
                    {"sequence", run.sequence > 0 ? nlohmann::ordered_json(run.sequence) : nlohmann::ordered_json(nullptr)},
                    {"batch", run.global_batch > 0 ? nlohmann::ordered_json(run.global_batch) : nlohmann::ordered_json(nullptr)},
                    {"framework", std::string(parallel::name(run.framework))}, {"precision", std::string(hardware::name(run.dtype))},
                    {"strategy", run.strategy_text}, {"mfu", run.mfu}, {"reached", run.reached}, {"distance", near.distance},
                    {"similar", near.distance <= validate::kSimilar}, {"differences", near.differences},
                    {"source", run.source}, {"date", run.date}});
  }
  return list;
}

}  // namespace chokepoint::report
