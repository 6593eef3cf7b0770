// SPDX-License-Identifier: Apache-2.0
// What grew is read off in three steps: the cause whose cost grew most (classes of time, waiting resolved), then the rank on
// which the time of that cause grew most, then the operation that grew most there.
#include <chokepoint/diagnose/regression.hpp>

#include <algorithm>
#include <chokepoint/base/units.hpp>
#include <cmath>
#include <cstdio>
#include <map>

namespace chokepoint::diagnose {

using simulate::Bill;

namespace {

constexpr std::string_view kIdeal = "ideal";
constexpr std::string_view kTransfer = "transfer: ";
constexpr std::size_t kMostOperations = 50;
constexpr std::size_t kMostNameBytes = 80;  // of a kernel's name in the sentence

double seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

std::vector<Change> joined(const std::map<std::string, double>& before, const std::map<std::string, double>& after) {
  std::map<std::string, Change> both;
  for (const auto& [id, s] : before) both[id].before_s = s;
  for (const auto& [id, s] : after) both[id].after_s = s;
  std::vector<Change> changes;
  for (auto& [id, change] : both) {
    change.id = id;
    changes.push_back(std::move(change));
  }
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) { return a.delta_s() > b.delta_s(); });
  return changes;
}

std::map<std::string, double> costs_of(double ideal_s, const std::vector<Cause>& causes) {
  std::map<std::string, double> costs{{std::string(kIdeal), ideal_s}};
  for (const Cause& c : causes) costs[c.id] += c.cost_s;
  return costs;
}

/// Standard error of a mean; 0 below three values.
double standard_error(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  if (n < 3) return 0;
  double mean = 0;
  for (const double v : values) mean += v / n;
  double square = 0;
  for (const double v : values) square += (v - mean) * (v - mean);
  return std::sqrt(square / (n - 1) / n);
}

std::vector<double> step_walls(const Diagnosis& d) {
  std::vector<double> walls;
  if (d.ranks.empty()) return walls;
  for (const StepBill& s : d.ranks.front().steps) walls.push_back(seconds(s.window.end_ns - s.window.begin_ns));
  return walls;
}

Regression begin(double before_s, double after_s, double noise_s, double tolerance) {
  Regression r;
  r.before_s = before_s;
  r.after_s = after_s;
  r.noise_s = noise_s;
  r.tolerance = tolerance;
  const double least = std::max(tolerance * before_s, 2 * noise_s);
  r.slower = after_s - before_s > least;
  r.faster = before_s - after_s > least;
  return r;
}

/// Part of a bill that a cause is about.
std::int64_t part_of(const MeasuredBill& bill, std::string_view cause) {
  const auto at = [&bill](Bill b) { return bill.ns[static_cast<std::size_t>(b)] - bill.wait_ns[static_cast<std::size_t>(b)]; };
  const auto loading = bill.host_ns[static_cast<std::size_t>(HostPart::kDataLoader)];
  if (cause == "host") return at(Bill::kHost) - loading;
  if (cause == "data-loader") return loading;
  if (cause == "copies") return at(Bill::kOffload);
  if (cause == "idle") return at(Bill::kOther);
  if (cause == "wire" || cause == "accumulation-sync") {
    return at(Bill::kTensor) + at(Bill::kContext) + at(Bill::kExpert) + at(Bill::kPipeline) + at(Bill::kDataGather) + at(Bill::kDataReduce);
  }
  return at(Bill::kCompute) + at(Bill::kRecompute) + at(Bill::kOptimizer);
}

/// Of whole steps where there are any.
MeasuredBill stepped(const RankResult& rank) {
  if (rank.steps.empty()) return rank.bill;
  MeasuredBill sum;
  for (const StepBill& s : rank.steps) sum += s.bill;
  return sum;
}

std::int64_t own_ns(const MeasuredBill& bill) {
  std::int64_t waited = 0;
  for (const std::int64_t ns : bill.wait_ns) waited += ns;
  return bill.total_ns() - waited;
}

class TraceComparison {
 public:
  TraceComparison(const Diagnosis& before, const Diagnosis& now, double tolerance) : before_(before), now_(now) {
    r_ = begin(before.measured_s, now.measured_s, std::hypot(standard_error(step_walls(before)), standard_error(step_walls(now))), tolerance);
  }

  Regression run() {
    note_limits();
    r_.causes = joined(costs_of(before_.ideal_s, before_.causes), costs_of(now_.ideal_s, now_.causes));
    r_.classes = joined(classes(before_), classes(now_));
    r_.ranks = joined(ranks(before_, own_ns), ranks(now_, own_ns));
    if (r_.causes.front().delta_s() > 0) r_.cause = r_.causes.front().id;
    find_rank();
    if (std::any_of(before_.ranks.begin(), before_.ranks.end(), [](const RankResult& r) { return !r.ops.empty(); })) {
      r_.operations = joined(operations(before_), operations(now_));
    } else {
      r_.notes.push_back({"the baseline says nothing of kernels (a saved diagnosis does not): none is named", {}});
    }
    if (r_.operations.size() > kMostOperations) r_.operations.resize(kMostOperations);
    find_operation();
    r_.what = sentence();
    return std::move(r_);
  }

 private:
  static double per_step(const Diagnosis& d) { return 1.0 / std::max(1, d.steps); }

  void note_limits() {
    if (before_.ranks.size() != now_.ranks.size()) {
      r_.notes.push_back({"the baseline holds " + std::to_string(before_.ranks.size()) + " ranks, the new traces " + std::to_string(now_.ranks.size()), {}});
    }
    const auto stepless = [](const Diagnosis& d) { return std::all_of(d.ranks.begin(), d.ranks.end(), [](const RankResult& r) { return r.steps.empty(); }); };
    if (stepless(before_) || stepless(now_)) {
      r_.notes.push_back({"no steps were found in one of them: whole recordings are compared, so they must hold the same work", {}});
    }
  }

  static std::map<std::string, double> classes(const Diagnosis& d) {
    MeasuredBill sum;
    for (const RankResult& r : d.ranks) sum += stepped(r);
    const double scale = per_step(d) / static_cast<double>(std::max<std::size_t>(1, d.ranks.size()));
    std::map<std::string, double> out;
    for (int i = 0; i < simulate::kBillCount; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const std::string name(simulate::name(static_cast<Bill>(i)));
      if (sum.ns[at] - sum.wait_ns[at] != 0) out[name] = seconds(sum.ns[at] - sum.wait_ns[at]) * scale;
      if (sum.wait_ns[at] != 0) out[name + " wait"] = seconds(sum.wait_ns[at]) * scale;
    }
    return out;
  }

  template <class F>
  static std::map<std::string, double> ranks(const Diagnosis& d, F value) {
    std::map<std::string, double> out;
    for (const RankResult& r : d.ranks) out[std::to_string(r.rank)] = seconds(value(stepped(r))) * per_step(d);
    return out;
  }

  /// The rank on which the time of the cause grew clearly more than on the typical one.
  void find_rank() {
    if (r_.cause.empty()) return;
    const auto part = [this](const MeasuredBill& bill) { return part_of(bill, r_.cause); };
    const std::vector<Change> grown = joined(ranks(before_, part), ranks(now_, part));
    if (grown.size() < 2 || grown.front().delta_s() <= 0) return;
    const double typical = grown[grown.size() / 2].delta_s();
    constexpr double kClearly = 0.5;
    if (typical < kClearly * grown.front().delta_s()) r_.rank = std::stoi(grown.front().id);
  }

  std::map<std::string, double> operations(const Diagnosis& d) const {
    std::map<std::string, double> out;
    double ranks = 0;
    for (const RankResult& r : d.ranks) {
      if (r_.rank >= 0 && r.rank != r_.rank) continue;
      ++ranks;
      for (const OpTotal& op : r.ops) out[(op.transfer ? std::string(kTransfer) : std::string()) + op.name] += seconds(op.ns);
    }
    for (auto& [name, s] : out) s *= per_step(d) / std::max(1.0, ranks);
    return out;
  }

  void find_operation() {
    if (r_.cause.empty() || r_.cause == "host" || r_.cause == "data-loader" || r_.cause == "idle") return;
    const bool transfers = r_.cause == "wire" || r_.cause == "accumulation-sync";
    for (const Change& c : r_.operations) {
      if (c.delta_s() <= 0) return;
      if ((c.id.rfind(kTransfer, 0) == 0) != transfers) continue;
      r_.op = transfers ? c.id.substr(kTransfer.size()) : c.id;
      return;
    }
  }

  static std::string shortened(const std::string& name) { return name.size() <= kMostNameBytes ? name : name.substr(0, kMostNameBytes) + "..."; }

  std::string grown_text() const {
    if (r_.cause == kIdeal) return "computing takes longer";
    for (const Cause& c : now_.causes) {
      if (c.id == r_.cause) return c.what;
    }
    return r_.cause;
  }

  std::string sentence() const {
    char text[96];
    std::snprintf(text, sizeof text, " (%+.1f %%)", r_.before_s > 0 ? 100 * (r_.after_s / r_.before_s - 1) : 0.0);
    std::string out = "A step takes " + format_duration(r_.after_s) + " instead of " + format_duration(r_.before_s) + text;
    if (!r_.slower) return out + (r_.faster ? ": faster than the baseline" : ": no more than the tolerance");
    out += ": " + grown_text() + ", +" + format_duration(r_.causes.front().delta_s());
    if (r_.rank >= 0) out += " on rank " + std::to_string(r_.rank);
    if (!r_.op.empty()) out += ", most of it in " + shortened(r_.op);
    return out;
  }

  const Diagnosis& before_;
  const Diagnosis& now_;
  Regression r_;
};

/// Sentence where there is nothing but causes and operations.
std::string plain_sentence(const Regression& r, std::string_view kind) {
  char text[96];
  std::snprintf(text, sizeof text, " (%+.1f %%)", r.before_s > 0 ? 100 * (r.after_s / r.before_s - 1) : 0.0);
  std::string out = "A step takes " + format_duration(r.after_s) + " instead of " + format_duration(r.before_s) + text;
  if (!r.slower) return out + (r.faster ? ": faster than the baseline" : ": no more than the tolerance");
  if (!r.cause.empty()) out += ": " + (r.cause == kIdeal ? "every step takes longer" : r.cause) + ", +" + format_duration(r.causes.front().delta_s());
  if (!r.op.empty()) out += ", " + std::string(kind) + " " + r.op;
  return out;
}

void finish_plain(Regression& r, std::string_view kind) {
  if (!r.causes.empty() && r.causes.front().delta_s() > 0) r.cause = r.causes.front().id;
  if (!r.operations.empty() && r.operations.front().delta_s() > 0) r.op = r.operations.front().id;
  r.what = plain_sentence(r, kind);
}

}  // namespace

Regression compare(const Diagnosis& before, const Diagnosis& now, double tolerance) { return TraceComparison(before, now, tolerance).run(); }

Regression compare(const LogReport& before, const LogReport& now, double tolerance) {
  Regression r = begin(before.mean_s, now.mean_s, std::hypot(before.standard_error_s, now.standard_error_s), tolerance);
  r.causes = joined(costs_of(before.fastest_s, before.causes), costs_of(now.fastest_s, now.causes));
  const auto timers = [](const LogReport& log) {
    std::map<std::string, double> out;
    for (const trace::TimerSpread& t : log.timers) out[t.name] = t.most_s;
    return out;
  };
  r.operations = joined(timers(before), timers(now));
  if (before.seconds_known != now.seconds_known) r.notes.push_back({"one log gives only a rate: its steps cannot be compared in seconds", {}});
  if (!before.seconds_known || !now.seconds_known) r.slower = r.faster = false;
  finish_plain(r, "timer");
  return r;
}

Regression compare(const StragglerReport& before, const StragglerReport& now, double tolerance) {
  const auto walls = [](const StragglerReport& s) {
    std::vector<double> out;
    for (const StragglerStep& step : s.steps) out.push_back(step.measured_s);
    return out;
  };
  Regression r = begin(before.measured_s, now.measured_s, std::hypot(standard_error(walls(before)), standard_error(walls(now))), tolerance);
  r.causes = joined(costs_of(before.ideal_s, before.causes), costs_of(now.ideal_s, now.causes));
  const auto workers = [](const StragglerReport& s) {
    std::map<std::string, double> out;
    for (const Worker& w : s.workers) {
      out["data rank " + std::to_string(w.data_rank) + ", stage " + std::to_string(w.stage)] = seconds(w.time.compute_ns) / static_cast<double>(std::max<std::size_t>(1, s.steps.size()));
    }
    return out;
  };
  r.operations = joined(workers(before), workers(now));
  finish_plain(r, "most of it on");
  return r;
}

}  // namespace chokepoint::diagnose
