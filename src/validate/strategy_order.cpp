// SPDX-License-Identifier: Apache-2.0
#include "strategy_order.hpp"
#include "repeats.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>

namespace chokepoint::validate {
namespace {

/// Times that differ by less are a tie even where a source repeats nothing: published figures have two or three digits.
constexpr double kSmallestTie = 0.02;
constexpr std::size_t kSmallestGroup = 3;

/// One strategy of a group: the geometric mean of its repeats.
struct Candidate {
  const RunRow* row = nullptr;
  double log_measured = 0;
  int repeats = 0;
};

struct Group {
  std::vector<Candidate> candidates;
  std::map<std::string, std::size_t> index;
};

void add(Group& group, const RunRow& row) {
  const auto found = group.index.emplace(configuration_key(row), group.candidates.size());
  if (found.second) group.candidates.push_back({&row, 0, 0});
  Candidate& candidate = group.candidates[found.first->second];
  candidate.log_measured += std::log(measured_s_per_token(row));
  ++candidate.repeats;
}

double tie_of(const std::string& source, const std::vector<Repeats>& repeats) {
  for (const Repeats& known : repeats) {
    // Two runs that each stray by the deviation differ by twice as much.
    if (known.source_id == source) return std::max(kSmallestTie, 2 * known.median_deviation);
  }
  return kSmallestTie;
}

std::optional<OrderGroup> judge(const Group& group, const std::vector<Repeats>& repeats) {
  if (group.candidates.size() < kSmallestGroup) return std::nullopt;
  std::vector<TimedPair> times;
  for (const Candidate& c : group.candidates) {
    times.push_back({std::exp(c.log_measured / c.repeats), predicted_s_per_token(*c.row)});
  }
  const RunRow& first = *group.candidates.front().row;
  const auto tau = kendall_tau(times, tie_of(first.source_id, repeats));
  if (!tau) return std::nullopt;
  OrderGroup out;
  out.source_id = first.source_id;
  out.trust = first.trust;
  out.what = fmt::format("{} x {}, {}, {} tokens", first.job->gpus, first.classes.accelerator, first.job->model.name, first.job->sequence);
  if (!first.batch_assumed) out.what += fmt::format(", batch {:g}", first.job->global_batch);
  out.strategies = static_cast<int>(group.candidates.size());
  out.pairs = tau->pairs;
  out.wrong = tau->wrong;
  out.tau = tau->tau;
  if (tau->worst_faster < 0) return out;
  const auto faster = static_cast<std::size_t>(tau->worst_faster), slower = static_cast<std::size_t>(tau->worst_slower);
  const Candidate& a = group.candidates[faster];
  const Candidate& b = group.candidates[slower];
  out.worst = {a.row->row, b.row->row, times[slower].measured / times[faster].measured, times[slower].predicted / times[faster].predicted};
  out.faster_strategy = parallel::to_text(a.row->strategy);
  out.slower_strategy = parallel::to_text(b.row->strategy);
  return out;
}

void fill_means(StrategyOrder& order) {
  for (const OrderGroup& group : order.groups) {
    order.mean_tau += group.tau / static_cast<double>(order.groups.size());
    const auto same = std::find_if(order.sources.begin(), order.sources.end(),
                                   [&](const SourceOrder& source) { return source.source_id == group.source_id; });
    SourceOrder& source = same != order.sources.end() ? *same : order.sources.emplace_back(SourceOrder{group.source_id, 0, 0});
    ++source.groups;
    source.mean_tau += group.tau;
  }
  for (SourceOrder& source : order.sources) {
    source.mean_tau /= source.groups;
    order.mean_of_sources += source.mean_tau / static_cast<double>(order.sources.size());
  }
}

}  // namespace

std::optional<Tau> kendall_tau(const std::vector<TimedPair>& runs, double tie) {
  Tau out;
  int right = 0, undecided = 0;
  double worst_gap = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (std::size_t j = 0; j < runs.size(); ++j) {
      if (runs[j].measured <= runs[i].measured * (1 + tie)) continue;  // i is the faster one
      ++out.pairs;
      const double predicted = runs[j].predicted / runs[i].predicted;
      right += predicted > 1;
      undecided += predicted == 1;
      if (predicted >= 1) continue;
      ++out.wrong;
      const double gap = runs[j].measured / runs[i].measured;
      if (gap <= worst_gap) continue;
      worst_gap = gap;
      out.worst_faster = static_cast<int>(i);
      out.worst_slower = static_cast<int>(j);
    }
  }
  if (out.pairs == 0) return std::nullopt;
  const double decided = right + out.wrong;
  out.tau = decided == 0 ? 0 : (right - out.wrong) / std::sqrt(decided * (decided + undecided));
  return out;
}

std::vector<StrategyOrder> strategy_order(const std::vector<RunRow>& rows, const std::vector<Repeats>& repeats) {
  std::vector<Group> groups;
  std::map<std::string, std::size_t> index;
  for (const RunRow& row : rows) {
    if (!row.step_time_error) continue;
    const auto found = index.emplace(job_key(row), groups.size());
    if (found.second) groups.emplace_back();
    add(groups[found.first->second], row);
  }
  std::map<std::string, StrategyOrder> by_trust;
  for (const Group& group : groups) {
    if (auto judged = judge(group, repeats)) by_trust[judged->trust].groups.push_back(*std::move(judged));
  }
  std::vector<StrategyOrder> orders;
  for (auto& [trust, order] : by_trust) {
    order.trust = trust;
    fill_means(order);
    orders.push_back(std::move(order));
  }
  return orders;
}

}  // namespace chokepoint::validate
