// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/whatif/real_step.hpp>

#include <algorithm>
#include <chokepoint/diagnose/diagnose.hpp>
#include <chokepoint/engine/engine.hpp>
#include <numeric>

namespace chokepoint::whatif {

using simulate::Bill;
using simulate::Prediction;

namespace {

/// Below this share of the modelled step a class is no measure of how the measured one moves.
constexpr double kComparable = 0.01;

double sum(const MeasuredStep::Bill& bill) { return std::accumulate(bill.begin(), bill.end(), 0.0); }

/// Takes `seconds` out of the waits first, as a late peer is waited for, then out of computation.
void take_out(MeasuredStep::Bill& wait, MeasuredStep::Bill& work, double seconds) {
  const double waits = sum(wait);
  const double share = waits > 0 ? std::min(1.0, seconds / waits) : 0;
  for (double& one : wait) one *= 1 - share;
  double& compute = work[static_cast<std::size_t>(Bill::kCompute)];
  compute = std::max(0.0, compute - std::max(0.0, seconds - share * waits));
}

/// Everything that follows from the step time.
void set_step(Prediction& p, double step_s) {
  const double ratio = p.step_time_s > 0 && step_s > 0 ? step_s / p.step_time_s : 1;
  p.step_time_s = step_s;
  for (double* time : {&p.step_time_low_s, &p.step_time_high_s}) *time *= ratio;
  for (double* rate : {&p.tokens_per_s_per_gpu, &p.model_flops_per_s_per_gpu, &p.mfu, &p.hfu}) *rate /= ratio;
  for (simulate::ChokePoint& c : p.choke_points) c.step_time_if_changed_s *= ratio;
}

}  // namespace

double MeasuredStep::step_s() const { return sum(bill_s); }

Result<MeasuredStep> measured_step(const diagnose::Diagnosis& d) {
  diagnose::MeasuredBill all;
  for (const diagnose::RankResult& rank : d.ranks) all += rank.bill;
  const auto total = static_cast<double>(all.total_ns());
  if (total <= 0 || !(d.measured_s > 0))
    return fail("the traces show no step: no device work was found in all ranks at the same time", {},
                {"chokepoint diagnose says what each file holds"});
  MeasuredStep out;
  for (std::size_t i = 0; i < out.bill_s.size(); ++i) {
    out.bill_s[i] = d.measured_s * static_cast<double>(all.ns[i]) / total;
    out.wait_s[i] = d.measured_s * static_cast<double>(all.wait_ns[i]) / total;
  }
  for (const diagnose::Cause& cause : d.causes) {
    const bool slow = cause.id == "slow-rank";
    if (!slow && cause.id != "imbalance" && cause.id != "heavy-stage") continue;
    MeasuredStep::Cost& cost = slow ? out.slow_rank : out.uneven_load;
    cost.alone_s += std::max(0.0, d.measured_s - cause.step_time_without_s);
    cost.share_s += std::max(0.0, cause.cost_s);
  }
  out.ranks = d.world_size;
  for (const diagnose::MatchedCollective& c : d.collectives) {
    int& size = out.groups[static_cast<std::size_t>(c.dimension)];
    size = std::max({size, c.group_size, 1});
  }
  return out;
}

MeasuredStep::Bill moved_bill(const MeasuredStep& m, const MeasuredStep::Bill& after) {
  const MeasuredStep::Bill before = m.model_s.value_or(after);
  const double comparable = kComparable * sum(before);
  MeasuredStep::Bill wait = m.wait_s;
  MeasuredStep::Bill work{};
  for (std::size_t i = 0; i < work.size(); ++i) {
    work[i] = std::max(0.0, m.bill_s[i] - m.wait_s[i]);
    work[i] = before[i] > comparable && work[i] > 0 ? work[i] * after[i] / before[i]
                                                    : std::max(0.0, work[i] + after[i] - before[i]);
  }
  const bool both = m.slow_rank_left < 1 && m.uneven_load_left < 1;
  const auto cost = [&](const MeasuredStep::Cost& c) { return both ? c.share_s : c.alone_s; };
  take_out(wait, work, cost(m.slow_rank) * (1 - m.slow_rank_left) + cost(m.uneven_load) * (1 - m.uneven_load_left));
  for (std::size_t i = 0; i < work.size(); ++i) work[i] += wait[i];
  return work;
}

Result<double> imperfect_over_even(const engine::Imperfections& imperfections, const simulate::Predictor& predictor,
                                   const parallel::Strategy& strategy) {
  if (!imperfections.any()) return 1.0;
  // A fixed slowness is the same in every step; draws need several, and fewer where every rank is drawn for.
  constexpr int kDraws = 20;
  constexpr int kDrawsOfMany = 4;
  constexpr int kManyRanks = 1024;
  const bool drawn = imperfections.jitter > 0 || imperfections.sequence_imbalance > 0 || !imperfections.stalls.empty();
  const bool many = imperfections.every_rank_differs() && predictor.job().gpus > kManyRanks;
  engine::SimulateOptions options;
  options.imperfections = imperfections;
  TRY_INTO(const engine::Spread spread,
           engine::simulate_spread(predictor, strategy, options, drawn ? (many ? kDrawsOfMany : kDraws) : 1));
  return spread.even_s > 0 ? spread.mean_s / spread.even_s : 1.0;
}

Result<bool> make_real(const RealJob& real, const simulate::Predictor& predictor, Prediction& p) {
  if (real.measured) {
    p.bill = moved_bill(*real.measured, p.bill);
    set_step(p, sum(p.bill));
    if (!p.ladder.empty()) p.ladder.push_back({"measured beyond the model", p.mfu});
  }
  TRY_INTO(const double factor, imperfect_over_even(real.imperfections, predictor, p.strategy));
  if (factor == 1) return true;
  p.bill[static_cast<std::size_t>(Bill::kOther)] += p.step_time_s * (factor - 1);
  set_step(p, p.step_time_s * factor);
  if (!p.ladder.empty()) p.ladder.push_back({"slow and uneven ranks", p.mfu});
  return true;
}

}  // namespace chokepoint::whatif
