// SPDX-License-Identifier: Apache-2.0
#include "spread.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace chokepoint::diagnose {

using trace::OpType;

namespace {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

void centre(std::vector<double>& values) {
  const double m = mean(values);
  for (double& v : values) v -= m;
}

class Splitter {
 public:
  Splitter(const OpGraph& g, const std::vector<double>& own, const std::vector<double>& ideal) : g_(g), own_(own), ideal_(ideal) {
    for (std::vector<double>* part : {&s_.stage, &s_.worker, &s_.drift, &s_.micro_batch}) part->assign(own.size(), 0);
  }

  Spread split() {
    for (const OpType type : {OpType::kForwardCompute, OpType::kBackwardCompute}) split_type(type);
    s_.forward_backward_correlation = correlation();
    return std::move(s_);
  }

 private:
  std::size_t worker(int stage, int d) const { return static_cast<std::size_t>(stage) * static_cast<std::size_t>(g_.data_ranks) + static_cast<std::size_t>(d); }

  template <class F>
  void each(OpType type, F use) {
    for (std::size_t op = 0; op < g_.ops.size(); ++op) {
      if (g_.ops[op].type != type) continue;
      for (std::size_t step = 0; step < g_.steps.size(); ++step) {
        for (int d = 0; d < g_.data_ranks; ++d) {
          const std::size_t at = g_.at(op, g_.instance(step, d));
          use(at, g_.ops[op].stage, d, step, own_[at] - ideal_[at]);
        }
      }
    }
  }

  void split_type(OpType type) {
    const auto stages = static_cast<std::size_t>(g_.stages);
    const auto data = static_cast<std::size_t>(g_.data_ranks);
    std::vector<double> worker_mean(stages * data, 0);
    std::vector<double> count(stages * data, 0);
    each(type, [&](std::size_t, int stage, int d, std::size_t, double x) {
      worker_mean[worker(stage, d)] += x;
      count[worker(stage, d)] += 1;
    });
    for (std::size_t w = 0; w < worker_mean.size(); ++w) worker_mean[w] = count[w] > 0 ? worker_mean[w] / count[w] : 0;
    // A stage is what most of its workers do, so that one slow worker does not make its stage slow.
    std::vector<double> stage_part(stages, 0);
    for (std::size_t s = 0; s < stages; ++s) {
      stage_part[s] = median({worker_mean.begin() + static_cast<std::ptrdiff_t>(s * data), worker_mean.begin() + static_cast<std::ptrdiff_t>((s + 1) * data)});
    }
    std::vector<double> worker_part(worker_mean.size(), 0);
    for (std::size_t w = 0; w < worker_part.size(); ++w) worker_part[w] = worker_mean[w] - stage_part[w / data];
    centre(stage_part);
    centre(worker_part);
    std::vector<double> step_part(g_.steps.size(), 0);
    double per_step = 0;
    for (const double c : count) per_step += c;
    per_step /= static_cast<double>(g_.steps.size());
    each(type, [&](std::size_t, int, int, std::size_t step, double x) { step_part[step] += x / std::max(1.0, per_step); });
    each(type, [&](std::size_t at, int stage, int d, std::size_t step, double x) {
      s_.stage[at] = stage_part[static_cast<std::size_t>(stage)];
      s_.worker[at] = worker_part[worker(stage, d)];
      s_.drift[at] = step_part[step];
      s_.micro_batch[at] = x - s_.stage[at] - s_.worker[at] - s_.drift[at];
    });
  }

  /// Pearson's correlation over all micro-batches, forward against backward of the same one.
  double correlation() const {
    std::map<std::pair<int, int>, std::size_t> backward;
    for (std::size_t op = 0; op < g_.ops.size(); ++op) {
      if (g_.ops[op].type == OpType::kBackwardCompute) backward[{g_.ops[op].stage, g_.ops[op].sequence}] = op;
    }
    double xx = 0;
    double yy = 0;
    double xy = 0;
    for (std::size_t op = 0; op < g_.ops.size(); ++op) {
      if (g_.ops[op].type != OpType::kForwardCompute) continue;
      const auto other = backward.find({g_.ops[op].stage, g_.ops[op].sequence});
      if (other == backward.end()) continue;
      for (std::size_t i = 0; i < g_.instances(); ++i) {
        const double x = s_.micro_batch[g_.at(op, i)];
        const double y = s_.micro_batch[g_.at(other->second, i)];
        xx += x * x;
        yy += y * y;
        xy += x * y;
      }
    }
    return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
  }

  const OpGraph& g_;
  const std::vector<double>& own_;
  const std::vector<double>& ideal_;
  Spread s_;
};

}  // namespace

Spread spread_of(const OpGraph& graph, const std::vector<double>& own, const std::vector<double>& mean) {
  return Splitter(graph, own, mean).split();
}

}  // namespace chokepoint::diagnose
