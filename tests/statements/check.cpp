// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/files.hpp>
#include <chokepoint/base/units.hpp>
#include <chokepoint/collective/collective.hpp>
#include <chokepoint/plan/plan.hpp>
#include <chokepoint/simulate/predict.hpp>

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>

#include "statement.hpp"

namespace chokepoint::statements {

namespace {

/// What a run came to: a prediction, or one collective's bus bandwidth.
struct Outcome {
  std::optional<parallel::Job> job;
  std::optional<simulate::Prediction> prediction;
  double bus_bytes_per_s = 0;
};

Result<Outcome> run_collective(const Run& run) {
  TRY_INTO(const auto cluster, job::resolve_cluster(run.options.cluster.value_or(""), directory_of(run.job_file),
                                                    run.options.hosts, run.options.gpus, run.options.accelerator));
  TRY_INTO(const auto op, collective::parse_op(run.collective));
  const std::string& part = run.options.accelerator ? *run.options.accelerator : cluster.hosts.front().host.accelerator;
  TRY_INTO(const auto accelerator, hardware::find_accelerator(part));
  collective::Group group;
  group.ranks = run.options.gpus.value_or(cluster.gpu_count());
  group.ranks_per_host = std::min(group.ranks, cluster.gpus_per_host() / run.stride);
  group.local_stride = run.stride;
  Outcome out;
  out.bus_bytes_per_s = collective::Network(cluster, accelerator).cost(op, run.collective_bytes, group).bus_bytes_per_s;
  return out;
}

Result<Outcome> run_job(const Run& run) {
  TRY_INTO(job::JobFile file, job::read_job(run.job_text, run.job_text.empty() ? "" : run.job_file, run.options));
  Outcome out;
  if (run.best) {
    plan::Options one;
    one.top = 1;
    TRY_INTO(plan::Plan plan, plan::make_plan(file.job, one));
    if (plan.candidates.empty()) return fail("nothing fits");
    out.prediction = std::move(plan.candidates.front());
  } else {
    if (!file.strategy) return fail("the run names no strategy");
    TRY_INTO(out.prediction, simulate::Predictor(file.job).predict(*file.strategy));
  }
  out.job = std::move(file.job);
  return out;
}

double states_bytes(const parallel::Memory& memory) {
  double sum = 0;
  for (const parallel::MemoryPart& part : memory.parts) {
    if (part.name == "parameters" || part.name == "gradients" || part.name == "optimizer states") sum += part.bytes;
  }
  return sum;
}

Result<double> figure(const Outcome& outcome, const std::string& of) {
  if (of == "bus_bandwidth") return outcome.bus_bytes_per_s;
  if (!outcome.prediction) return fail("a collective has only a bus_bandwidth");
  const simulate::Prediction& p = *outcome.prediction;
  if (of == "step_time") return p.step_time_s;
  if (of == "tokens_per_s_per_gpu") return p.tokens_per_s_per_gpu;
  if (of == "tokens_per_s") return p.tokens_per_s_per_gpu * outcome.job->gpus;
  if (of == "model_flops") return p.model_flops_per_s_per_gpu;
  if (of == "reserved") return p.memory.reserved_bytes;
  if (of == "allocated") return p.memory.allocated_bytes;
  if (of == "states") return states_bytes(p.memory);
  for (int i = 0; i < simulate::kBillCount; ++i) {
    const auto item = static_cast<simulate::Bill>(i);
    if (of == fmt::format("share of {}", simulate::name(item))) return p.item(item) / p.step_time_s;
  }
  return fail(fmt::format("unknown figure '{}'", of));
}

std::string show(double value, const std::string& of) {
  if (of == "step_time") return format_duration(value);
  if (of == "bus_bandwidth" || of == "implied") return format_rate(value);
  if (of == "reserved" || of == "allocated" || of == "states") return format_bytes(value);
  return fmt::format("{:.4g}", value);
}

/// Ranks counted from 0, ties share the mean of their places.
std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<double> out;
  for (const double value : values) {
    const auto below = std::count_if(values.begin(), values.end(), [&](double v) { return v < value; });
    const auto same = std::count(values.begin(), values.end(), value);
    out.push_back(static_cast<double>(below) + static_cast<double>(same - 1) / 2);
  }
  return out;
}

/// Spearman's coefficient: Pearson's of the ranks.
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const std::vector<double> x = ranks_of(a);
  const std::vector<double> y = ranks_of(b);
  const double mean = static_cast<double>(a.size() - 1) / 2;
  double xy = 0;
  double xx = 0;
  double yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

Verdict within(double value, const Claim& claim, std::string detail) {
  return {value >= claim.low && value <= claim.high, std::move(detail)};
}

Verdict check_implied(const Outcome& outcome, const Claim& claim) {
  if (!outcome.prediction || claim.measured.size() != 1) return {false, "implied needs one job and one measured time"};
  const simulate::Implied implied = simulate::implied_bandwidth(*outcome.job, *outcome.prediction, claim.measured.front());
  const std::string detail = fmt::format("predicted {}, measured {}: {} implied over {}",
                                         format_duration(outcome.prediction->step_time_s), format_duration(claim.measured.front()),
                                         implied.explained_by_wires ? format_rate(implied.bytes_per_s) : "nothing", implied.link);
  if (!implied.explained_by_wires) return {false, detail};
  return within(implied.bytes_per_s, claim, detail);
}

Verdict check_figures(const Claim& claim, const std::vector<double>& values) {
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < values.size(); ++i) shown.push_back(claim.runs[i] + " " + show(values[i], claim.of));
  const std::string list = fmt::format("{}", fmt::join(shown, ", "));
  switch (claim.kind) {
    case ClaimKind::kRatio:
      if (values.size() == 4) {
        const double ratio = values[0] / values[1] / (values[2] / values[3]);
        return within(ratio, claim, fmt::format("{}: ratio of ratios {:.3g}", list, ratio));
      }
      if (values.size() != 2) return {false, "ratio needs two runs, or four for a ratio of ratios"};
      return within(values[0] / values[1], claim, fmt::format("{}: ratio {:.3g}", list, values[0] / values[1]));
    case ClaimKind::kDifference:
      if (values.size() != 2) return {false, "difference needs two runs"};
      return within(values[0] - values[1], claim, fmt::format("{}: difference {}", list, show(values[0] - values[1], claim.of)));
    case ClaimKind::kValue: return within(values[0], claim, list);
    case ClaimKind::kAscending: return {std::is_sorted(values.begin(), values.end()), list};
    case ClaimKind::kRanksAs: {
      if (claim.measured.size() != values.size() || values.size() < 3) return {false, "ranks_as needs a measured figure for each run"};
      const double rho = rank_correlation(values, claim.measured);
      return within(rho, claim, fmt::format("{}: rank correlation {:.2f}", list, rho));
    }
    default: return {false, "not a claim about figures"};
  }
}

Verdict check_claim(const Claim& claim, const std::map<std::string, Outcome>& outcomes) {
  std::vector<double> values;
  for (const std::string& name : claim.runs) {
    const auto found = outcomes.find(name);
    if (found == outcomes.end()) return {false, fmt::format("no run named '{}'", name)};
    const Outcome& outcome = found->second;
    if (claim.kind == ClaimKind::kImplied) return check_implied(outcome, claim);
    if (claim.kind == ClaimKind::kFits || claim.kind == ClaimKind::kMisfits) {
      if (!outcome.prediction) return {false, "only a job can fit"};
      const parallel::Memory& memory = outcome.prediction->memory;
      const bool right = memory.fits() == (claim.kind == ClaimKind::kFits);
      if (!right || name == claim.runs.back()) {
        return {right, fmt::format("{} needs {} of {}", name, format_bytes(memory.reserved_bytes), format_bytes(memory.capacity_bytes))};
      }
      continue;
    }
    const Result<double> value = figure(outcome, claim.of);
    if (!value) return {false, value.error().message};
    values.push_back(*value);
  }
  return check_figures(claim, values);
}

}  // namespace

Verdict check(const Statement& statement) {
  std::map<std::string, Outcome> outcomes;
  for (const Run& run : statement.runs) {
    Result<Outcome> outcome = run.collective.empty() ? run_job(run) : run_collective(run);
    if (!outcome) return {false, fmt::format("run {}: {}", run.name, format(outcome.error()))};
    outcomes[run.name] = std::move(*outcome);
  }
  Verdict all{true, ""};
  for (const Claim& claim : statement.claims) {
    const Verdict one = check_claim(claim, outcomes);
    all.holds = all.holds && one.holds;
    if (!all.detail.empty()) all.detail += "; ";
    all.detail += (one.holds ? "" : "NOT ") + one.detail;
  }
  return all;
}

}  // namespace chokepoint::statements
