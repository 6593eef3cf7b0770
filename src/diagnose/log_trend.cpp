// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/diagnose/log_trend.hpp>

#include <algorithm>
#include <chokepoint/base/units.hpp>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>

#include "choke_sentence.hpp"

namespace chokepoint::diagnose {

namespace {

double quantile(std::vector<double> values, double q) {
  const auto at = static_cast<std::size_t>(q * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

double mean(const std::vector<double>& v) { return v.empty() ? 0 : std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size()); }

constexpr double kLevelChange = 0.05;     // a smaller change of level is not reported
constexpr double kSlowStep = 1.25;        // of the median

class Trend {
 public:
  explicit Trend(const trace::TrainerLog& log) : log_(log) {}

  Result<LogReport> run() {
    collect();
    constexpr std::size_t kNeeded = 4;
    if (times_.size() < kNeeded && log_.mean_step_s > 0) return summed_up();
    if (times_.size() < kNeeded) {
      return fail("only " + std::to_string(times_.size()) + " steps with a time, expected at least 4", {log_.file, 0, 0});
    }
    r_.mean_s = mean(times_);
    double square = 0;
    for (const double t : times_) square += (t - r_.mean_s) * (t - r_.mean_s);
    const auto n = static_cast<double>(times_.size());
    r_.standard_error_s = std::sqrt(square / (n - 1) / n);
    r_.median_s = quantile(times_, 0.5);
    r_.p95_s = quantile(times_, 0.95);
    r_.fastest_s = quantile(times_, 0.05);
    find_change();
    find_stalls();
    r_.timers = log_.timers;
    std::stable_sort(r_.timers.begin(), r_.timers.end(), [](const auto& a, const auto& b) { return a.most_s - a.least_s > b.most_s - b.least_s; });
    name_causes();
    return std::move(r_);
  }

 private:
  /// The trainer gives its mean alone.
  LogReport summed_up() {
    r_.seconds_known = true;
    r_.steps = static_cast<int>(std::min<std::int64_t>(log_.step_count, std::numeric_limits<int>::max()));
    r_.mean_s = r_.median_s = r_.p95_s = r_.fastest_s = log_.mean_step_s;
    r_.notes = {{"the log gives the mean of all steps alone: leave the progress bar on (disable_tqdm=False) to see how even they are", {log_.file, 0, 0}}};
    r_.choke_point = "Steps take " + format_duration(r_.mean_s) + " on average; what holds them back the log does not say";
    return std::move(r_);
  }

  void collect() {
    r_.file = log_.file;
    r_.trainer = log_.trainer;
    r_.seconds_known = std::any_of(log_.steps.begin(), log_.steps.end(), [](const trace::LoggedStep& s) { return s.seconds > 0; });
    for (const trace::LoggedStep& s : log_.steps) {
      const double time = r_.seconds_known ? s.seconds : (s.rate > 0 ? 1 / s.rate : 0);
      if (time <= 0) continue;
      times_.push_back(time);
      numbers_.push_back(s.step);
    }
    // The first step compiles and warms up: it says nothing about the others.
    if (times_.size() > kFewestAtLevel && times_[0] > kSlowStep * quantile(times_, 0.5)) {
      times_.erase(times_.begin());
      numbers_.erase(numbers_.begin());
      r_.notes.push_back({"the first logged step is left out (start-up)", {log_.file, 0, 0}});
    }
    if (!r_.seconds_known && !times_.empty()) {
      const double unit = quantile(times_, 0.5);
      for (double& t : times_) t /= unit;
      r_.notes.push_back({"the log gives only a rate: times are relative to the median step", {log_.file, 0, 0}});
    }
    r_.steps = static_cast<int>(times_.size());
  }

  /// The split with the least absolute deviation around both sides' medians; kept if the level changes clearly more than
  /// the steps scatter.
  void find_change() {
    if (times_.size() < 2 * kFewestAtLevel) return;
    std::size_t best = 0;
    double best_gain = 0;
    // Prefix sums of capped values: single stalls must not look like a change of level.
    std::vector<double> sum(times_.size() + 1, 0);
    for (std::size_t i = 0; i < times_.size(); ++i) sum[i + 1] = sum[i] + std::min(times_[i], kSlowStep * r_.median_s + (times_[i] - r_.median_s) * 0.1);
    const double n = static_cast<double>(times_.size());
    for (std::size_t k = kFewestAtLevel; k + kFewestAtLevel <= times_.size(); ++k) {
      const double left = sum[k] / static_cast<double>(k);
      const double right = (sum.back() - sum[k]) / (n - static_cast<double>(k));
      const double gain = static_cast<double>(k) * (n - static_cast<double>(k)) / n * (left - right) * (left - right);
      if (gain > best_gain) {
        best_gain = gain;
        best = k;
      }
    }
    if (best == 0) return;
    const std::vector<double> before(times_.begin(), times_.begin() + static_cast<std::ptrdiff_t>(best));
    const std::vector<double> after(times_.begin() + static_cast<std::ptrdiff_t>(best), times_.end());
    const double level_before = quantile(before, 0.5);
    const double level_after = quantile(after, 0.5);
    const double scatter = std::max(quantile(before, 0.75) - quantile(before, 0.25), quantile(after, 0.75) - quantile(after, 0.25));
    const double change = std::fabs(level_after - level_before);
    if (change < kLevelChange * level_before || change < scatter) return;
    r_.change_step = numbers_[best];
    r_.before_s = level_before;
    r_.after_s = level_after;
  }

  /// Slow steps whose distances are equal.
  void find_stalls() {
    std::vector<std::size_t> slow;
    for (std::size_t i = 0; i < times_.size(); ++i) {
      if (times_[i] > kSlowStep * level_at(i)) slow.push_back(i);
    }
    constexpr std::size_t kFewestStalls = 3;
    if (slow.size() < kFewestStalls) return;
    std::vector<double> gaps;
    for (std::size_t k = 1; k < slow.size(); ++k) gaps.push_back(static_cast<double>(slow[k] - slow[k - 1]));
    const double period = quantile(gaps, 0.5);
    const auto regular = std::count_if(gaps.begin(), gaps.end(), [period](double g) { return std::fabs(g - period) <= 0.1 * period; });
    if (period < 2 || static_cast<double>(regular) < 0.7 * static_cast<double>(gaps.size())) return;
    r_.stall_period = static_cast<int>(period);
    for (const std::size_t i : slow) r_.stall_s += (times_[i] - level_at(i)) / static_cast<double>(slow.size());
  }

  double level_at(std::size_t i) const {
    if (r_.change_step < 0) return r_.median_s;
    return numbers_[i] >= r_.change_step ? r_.after_s : r_.before_s;
  }

  void add(const char* id, std::string what, std::string remedy, double cost) {
    constexpr double kRounding = 1e-9;
    if (cost <= kRounding * r_.mean_s) return;
    r_.causes.push_back({id, "steps", std::move(what), std::move(remedy), cost, r_.mean_s - cost});
  }

  /// Parts of mean - fastest, in a fixed order: change of level, regular stalls, the rest as jitter.
  void name_causes() {
    const double gap = r_.mean_s - r_.fastest_s;
    double left = gap;
    if (r_.change_step >= 0) {
      double cost = 0;
      const double lower = std::min(r_.before_s, r_.after_s);
      for (std::size_t i = 0; i < times_.size(); ++i) cost += (level_at(i) - lower) / static_cast<double>(times_.size());
      cost = std::min(cost, left);
      left -= cost;
      char text[128];
      std::snprintf(text, sizeof text, "Steps take %.0f %% %s from step %lld on", 100 * std::fabs(r_.after_s / r_.before_s - 1),
                    r_.after_s > r_.before_s ? "longer" : "less", static_cast<long long>(r_.change_step));
      add("level-change", text, "see what changed then: a host, a neighbour on the network, clocks, data", cost);
    }
    if (r_.stall_period > 0) {
      const double cost = std::min(r_.stall_s / r_.stall_period, left);
      left -= cost;
      add("periodic-stall", "Every " + std::to_string(r_.stall_period) + "th logged step is slow",
          "what runs with that period: checkpoints (async_save), evaluation, logging, garbage collection, data shards", cost);
    }
    add("jitter", "Steps scatter", "look at per-rank times: one slow rank at a time, garbage collection, shared network", left);
    std::stable_sort(r_.causes.begin(), r_.causes.end(), [](const Cause& a, const Cause& b) { return a.cost_s > b.cost_s; });
    constexpr double kWorthNaming = 0.02;
    r_.choke_point = !r_.causes.empty() && r_.causes.front().cost_s > kWorthNaming * r_.mean_s
                         ? choke_sentence(r_.causes.front(), r_.mean_s)
                         : "Steps are even: " + format_duration(r_.mean_s) + " each, within 2 %";
  }

  const trace::TrainerLog& log_;
  LogReport r_;
  std::vector<double> times_;
  std::vector<std::int64_t> numbers_;
};

}  // namespace

Result<LogReport> find_trend(const trace::TrainerLog& log) { return Trend(log).run(); }

}  // namespace chokepoint::diagnose
