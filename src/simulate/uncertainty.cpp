// SPDX-License-Identifier: Apache-2.0
// Log error of a step = weighted errors of its classes. Classes that were measured on the user's own machine are known
// better than those taken from a data sheet.
#include "uncertainty.hpp"

#include <cmath>

namespace chokepoint::simulate {

void set_band(const parallel::Job& job, const Constants& constants, Prediction& p) {
  const bool measured = job.cluster.measured.all_reduce || job.cluster.measured.host_all_reduce;
  const double network = measured ? constants.band_wires_measured : constants.band_wires;
  const double total = p.step_time_s > 0 ? p.step_time_s : 1;
  const auto share = [&](std::initializer_list<Bill> items) {
    double sum = 0;
    for (const Bill item : items) sum += p.item(item);
    return sum / total;
  };
  const double compute = share({Bill::kCompute, Bill::kRecompute, Bill::kOptimizer}) * constants.band_compute;
  const double wires = share({Bill::kTensor, Bill::kContext, Bill::kExpert, Bill::kPipeline, Bill::kDataGather, Bill::kDataReduce}) * network;
  const double host = share({Bill::kHost, Bill::kOther, Bill::kOffload}) * constants.band_host;
  const double bubble = share({Bill::kBubble}) * constants.band_bubble;
  const double sigma = std::sqrt(compute * compute + wires * wires + host * host + bubble * bubble + constants.band_source * constants.band_source);
  constexpr double kEightyPercent = 1.2816;
  p.step_time_low_s = p.step_time_s * std::exp(-kEightyPercent * sigma);
  p.step_time_high_s = p.step_time_s * std::exp(kEightyPercent * sigma);
}

}  // namespace chokepoint::simulate
